"""Floating car data of SUMO (``--fcd-output``): where vehicles and persons are at every step.

``x`` and ``y`` are metres of SUMO's network, or longitude and latitude if it was run with
``--fcd-output.geo``; the file does not say which.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path as FilePath
from typing import TextIO
from xml.sax.saxutils import quoteattr

from mobility.traces.record import Fix, GeoFix, TraceError, expected, number, place
from mobility.traces.xml import elements

_MOVERS = frozenset({"vehicle", "person", "container"})


def read(file: FilePath) -> Iterator[Fix]:
    """Yield places in metres."""
    for line, node, time_s, attributes in _movers(file):
        yield Fix(
            node,
            time_s,
            number(file, line, "x in metres", attributes.get("x")),
            number(file, line, "y in metres", attributes.get("y")),
            number(file, line, "z in metres", attributes.get("z", "0")),
        )


def read_geo(file: FilePath) -> Iterator[GeoFix]:
    """Yield places in degrees."""
    for line, node, time_s, attributes in _movers(file):
        latitude, longitude = place(file, line, attributes.get("y"), attributes.get("x"))
        altitude = number(file, line, "z in metres", attributes.get("z", "0"))
        yield GeoFix(node, time_s, latitude, longitude, altitude)


def _movers(file: FilePath) -> Iterator[tuple[int, str, float, dict[str, str]]]:
    root = ""
    time_s: float | None = None
    for line, tag, attributes, _ in elements(file):
        if attributes is None:
            if tag == "timestep":
                time_s = None
            continue
        if not root:
            root = tag
            if root != "fcd-export":
                raise expected(file, line, "the root element <fcd-export>", f"<{tag}>")
        elif tag == "timestep":
            time_s = number(file, line, "the time of a timestep", attributes.get("time"))
        elif tag in _MOVERS:
            if time_s is None:
                raise TraceError(file, line, f"expected <{tag}> inside a <timestep>")
            node = attributes.get("id")
            if not node:
                raise TraceError(file, line, f"expected an id of the <{tag}>, found none")
            yield line, node, time_s, attributes


def write(fixes: Iterable[Fix], stream: TextIO) -> None:
    """Write places in metres, in order of time."""
    _write(((fix, fix.east_m, fix.north_m, fix.up_m) for fix in fixes), stream)


def write_geo(fixes: Iterable[GeoFix], stream: TextIO) -> None:
    """Write places in degrees, in order of time."""
    _write(((fix, fix.longitude_deg, fix.latitude_deg, fix.altitude_m) for fix in fixes), stream)


def _write(rows: Iterable[tuple[Fix | GeoFix, float, float, float]], stream: TextIO) -> None:
    stream.write('<?xml version="1.0" encoding="UTF-8"?>\n<fcd-export>\n')
    time_s: float | None = None
    for fix, x, y, z in sorted(rows, key=lambda row: row[0].time_s):
        if fix.time_s != time_s:
            stream.write("</timestep>\n" if time_s is not None else "")
            time_s = fix.time_s
            stream.write(f'<timestep time="{time_s!r}">\n')
        stream.write(f'<vehicle id={quoteattr(fix.node)} x="{x!r}" y="{y!r}" z="{z!r}"/>\n')
    stream.write("</timestep>\n" if time_s is not None else "")
    stream.write("</fcd-export>\n")
