"""`python -m tactical` is the command `tactical`."""

import sys

from tactical.cli import main

if __name__ == "__main__":
    sys.exit(main())
