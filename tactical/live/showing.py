"""Shows a source to people: serves the page, says where it is, opens a browser."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tactical.faults import Refused
from tactical.streams import print_json

from .server import ServerError, document, serving
from .sources import Source
from .viewers import Viewers


@contextmanager
def shown(source: Source, options: argparse.Namespace, **more: Any) -> Iterator[Viewers]:
    """Serve the page of a source while the block lasts.

    Parameters
    ----------
    options
        What `add_page_arguments` declared, and ``json``.
    **more
        Further members of the JSON document.

    Yields
    ------
    Viewers
        Who watches; its source may be exchanged for one of a higher epoch.

    Raises
    ------
    Refused
        If the page cannot be served there.
    """
    token = secrets.token_urlsafe(12)
    viewers = Viewers(source, token)
    viewers.advance(0.0)
    try:
        with serving(viewers, options.host, options.port) as address:
            steering = f"{address}#token={token}"
            if options.json:
                print_json(
                    {"url": steering, "watch_url": address, **more, "state": document(viewers)}
                )
            else:
                print(f"{'Page':<16}{steering}")
                print(f"{'To watch only':<16}{address}")
                print("Ctrl-C ends it.")
            sys.stdout.flush()
            if not options.no_browser and not options.json and _has_screen():
                webbrowser.open(steering)
            yield viewers
    except ServerError as error:
        raise Refused(f"the page cannot be served: {error}") from error


def _has_screen() -> bool:
    """Elsewhere a browser for terminals might be started."""
    return sys.platform == "darwin" or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
