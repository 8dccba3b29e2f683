"""Where the page is served, on the command line."""

import argparse


def add_page_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare where the page is served."""
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="address to serve the page on; another than this machine's own lets everybody watch "
        "who reaches it (default: 127.0.0.1)",
    )
    parser.add_argument(
        "--port", type=_port, default=0, help="TCP port of the page (default: a free one)"
    )
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser")


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 to 65535, not {text!r}")
    return int(text)
