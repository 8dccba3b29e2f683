"""Run the controller for a testbed: ``python -m tactical.controller --network FILE``.

Reports about stations are read from standard input, one JSON object a line
(:mod:`tactical.controller.reports`); records are written to standard output, one JSON object a
line.  The controller ends when its input does.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from .addresses import check_method
from .network import load
from .records import RecordWriter
from .serving import ServingError, follow_reports, own_standard_output, start


def main(arguments: list[str] | None = None) -> int:
    """Entry point; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tactical.controller", description=__doc__)
    parser.add_argument("--network", type=Path, required=True, help="network description (JSON)")
    parser.add_argument("--port", type=int, default=6653, help="OpenFlow TCP port (6653)")
    parser.add_argument(
        "--ovsdb",
        default="unix:/var/run/openvswitch/db.sock",
        help="OVSDB connection method (the local Open vSwitch)",
    )
    options = parser.parse_args(arguments)
    try:
        network = load(options.network)
        check_method(options.ovsdb)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    write = RecordWriter(own_standard_output())
    try:
        from .app import Options

        app = start(network, Options(options.ovsdb), write, "127.0.0.1", options.port)
    except ServingError as error:
        print(error, file=sys.stderr)
        return 2

    follow_reports(app).wait()
    app.close()
    write.close()
    # The framework's threads cannot be joined; nothing is left to write.
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
