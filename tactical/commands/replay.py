"""`tactical replay`: a finished or running run in the page of the live view."""

from __future__ import annotations

import argparse
import threading
import time
from pathlib import Path

from tactical.faults import Refused
from tactical.live.arguments import add_page_arguments

_LOOK_EVERY_S = 0.5

SUMMARY = "show a run on a page: map, rates, handovers, with a time slider"
EXAMPLES = """\
The page is served on this machine until Ctrl-C and asks nobody else for anything. The address with
the token plays, pauses and searches; the one without follows. A run that still goes on is followed,
and is a recording once it has ended; in virtual time only its events are known before its end.

examples:
  tactical replay runs/direct-move/20260101T120000Z-fdm-0-1a2b3c4d
  tactical replay RUN --port 8000 --no-browser
  tactical replay RUN --json          the address and the state as JSON
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("run", type=Path, metavar="RUN", help="run directory")
    add_page_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Serve the page until a signal ends it."""
    from tactical.live.setup import SetupError
    from tactical.live.showing import shown
    from tactical.live.sources import Following, open_run

    try:
        source = open_run(options.run)
    except SetupError as error:
        raise Refused(str(error)) from error
    with shown(source, options, run=str(options.run)) as viewers:
        while isinstance(source, Following):
            time.sleep(_LOOK_EVERY_S)
            source = viewers.source = source.recording() or source
        threading.Event().wait()
    return 0
