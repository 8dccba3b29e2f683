"""`tactical inspect`: the few packets around an event, decoded."""

from __future__ import annotations

import argparse
import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING

from tactical.capture_files import read_capture
from tactical.faults import Refused
from tactical.progress import stages
from tactical.streams import print_json

if TYPE_CHECKING:
    from analysis.run.excerpt import DecodedPacket, Excerpt, Moment, Source

SUMMARY = "decode the few packets around an event"
EXAMPLES = """\
RUN is a run directory: its captures are looked into around an event (--around) or a run time
(--at). A FILE is looked into at a time: seconds from its first packet, or seconds since 1970.

Around an event of one user only its packets are shown. There may be more than --limit: those that
open, join, change or end something are kept first, then the nearest. The moments of a handover are
cause (the middle between the stamps before and after the command; both are within the window),
solve, deployed, old (the last data over the old path), new (the first over the new one),
interruption and back; `tactical report --story` tells them. Other kinds are those of events.jsonl,
such as solve:2, association:1 or link_down:1.

Sequence numbers count from the first packet of each direction; "data" is where a packet's data lies
in the connection. tshark decodes the packets, and has to be installed.

examples:
  tactical inspect runs/direct-move/RUN --around handover:1
  tactical inspect RUN --around handover:1:new --node ship1 --window 0.1
  tactical inspect RUN --at 61.3 --interface host-eth0 --limit 50
  tactical inspect client.pcapng --at 2.48 --json
"""

_FURTHEST_S = 4e9
"""Nanoseconds of twice as many seconds still fit into 64 bits; this is the year 2096."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("path", type=Path, metavar="RUN|FILE", help="run directory or capture")
    parser.add_argument("--around", metavar="KIND:N", help="event of the run, counted from 1")
    parser.add_argument("--at", type=float, metavar="SECONDS", help="a time instead of an event")
    parser.add_argument(
        "--window",
        type=float,
        default=0.5,
        metavar="SECONDS",
        help="how far before and after (default: 0.5)",
    )
    parser.add_argument("--node", metavar="NAME", help="only captures of this node")
    parser.add_argument("--interface", metavar="NAME", help="only captures of this interface")
    parser.add_argument(
        "--limit", type=int, default=200, metavar="N", help="at most so many packets (default: 200)"
    )


def run(options: argparse.Namespace) -> int:
    """Find the packets, decode and print them."""
    from analysis.run.excerpt import ExcerptError, excerpt

    if (options.around is None) == (options.at is None):
        raise Refused("say where to look: either --around KIND:N or --at SECONDS")
    if not 0 <= options.window <= _FURTHEST_S:
        raise Refused(f"--window {options.window:g}: expected 0 or more seconds")
    if options.at is not None and not abs(options.at) <= _FURTHEST_S:
        raise Refused(f"--at {options.at:g}: expected seconds of the run, or since 1970")
    if options.limit < 1:
        raise Refused(f"--limit {options.limit}: expected 1 or more packets")
    try:
        sources, moment, port = _asked(options)
        chosen = [
            each
            for each in sources
            if options.node in (None, each.node) and options.interface in (None, each.interface)
        ]
        if not chosen:
            known = ", ".join(f"{each.node} {each.interface}".strip() for each in sources)
            raise Refused(f"{options.path}: no such capture; there are {known or 'none'}")
        found = excerpt(chosen, moment, window_s=options.window, limit=options.limit, port=port)
    except ExcerptError as error:
        raise Refused(str(error)) from error
    if options.json:
        print_json(_document(found))
    else:
        print("\n".join(_lines(found)))
    return 0


def _asked(options: argparse.Namespace) -> tuple[list[Source], Moment, int | None]:
    """What to look into, when, and the port of the user whom it is about."""
    from analysis import RunDirectoryError, analyse
    from analysis.run.directory import count, mapping, read_run
    from analysis.run.excerpt import (
        ExcerptError,
        Source,
        moment_of_capture,
        moment_of_run,
        sources_of_run,
    )

    path: Path = options.path
    try:
        if os.path.isdir(path):  # noqa: PTH112 - Path.is_dir fails on a name that is too long
            files = read_run(path)
            handover = options.around is not None and options.around.startswith("handover")
            stories = analyse(path).handover_stories if handover else []
            moment = moment_of_run(files, stories, options.around, options.at)
            user = mapping(mapping(files.plan.get("users")).get(moment.user))
            return sources_of_run(files), moment, count(user.get("port"))
        if options.around is not None:
            if not os.path.exists(path):  # noqa: PTH110 - as above
                raise Refused(f"{path}: there is neither a run directory nor a capture")
            raise Refused(f"{path} is no run directory, and only a run has events: use --at")
        with stages() as tell:
            capture = read_capture(path, tell)
        return [Source(path, interface=path.name)], moment_of_capture(capture, options.at), None
    except (RunDirectoryError, ExcerptError) as error:
        raise Refused(str(error)) from error
    except (OSError, ValueError) as error:
        raise Refused(f"{path}: {getattr(error, 'strerror', None) or error}") from error


def _document(found: Excerpt) -> dict[str, object]:
    return {
        "moment": dataclasses.asdict(found.moment),
        "window_s": found.window_s,
        "found": found.found,
        "packets": [dataclasses.asdict(each) for each in found.packets],
    }


_HEADS = ("time (s)", "where", "frame", "from", "to", "sub", "flags", "seq", "ack", "len", "data")


def _lines(found: Excerpt) -> list[str]:
    moment = found.moment
    spread_s = (moment.until_ns - moment.from_ns) / 2e9
    known = f" ± {spread_s:.3f} s" if spread_s else ""
    shown = len(found.packets)
    what = f"{found.found} packets" if shown == found.found else f"{shown} of {found.found} packets"
    lines = [f"{moment.label}{known}; {what} within {found.window_s:g} s of it"]
    if not found.packets:
        return lines
    cells = [_HEADS, *(_cells(each) for each in found.packets)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(_HEADS))]
    left = {1, 3, 4, 6}
    for number, row in enumerate(cells):
        padded = [
            f"{cell:<{width}}" if column in left else f"{cell:>{width}}"
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        options = " | ".join(found.packets[number - 1].options) if number else "multipath options"
        lines.append("  ".join([*padded, options]).rstrip())
    return lines


def _cells(packet: DecodedPacket) -> tuple[str, ...]:
    def told(value: int | None) -> str:
        return "" if value is None else str(value)

    return (
        f"{packet.t_s:+.6f}",
        packet.interface or packet.node,
        str(packet.frame),
        packet.source,
        packet.destination,
        packet.subflow,
        packet.flags,
        told(packet.relative_sequence),
        told(packet.relative_acknowledgment) if "ACK" in packet.flags else "",
        str(packet.payload_bytes),
        told(packet.data_position),
    )
