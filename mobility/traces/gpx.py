"""GPX, the tracks of navigation receivers: versions 1.0 and 1.1 (Topografix).

Every track is a node, named by its ``<name>`` or else by its number, as in ``track1``. Track
points need a time, which not all files have: a route that somebody drew is no motion. Times are
seconds since 1970.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path as FilePath
from typing import TextIO
from xml.sax.saxutils import escape

from mobility.traces.record import GeoFix, TraceError, expected, instant, iso, number, place
from mobility.traces.xml import elements


def read(file: FilePath) -> Iterator[GeoFix]:
    """Yield the track points."""
    taken: set[str] = set()
    name, tracks = "", 0
    inside: list[str] = []
    where: tuple[float, float] = (0.0, 0.0)
    altitude, time_s = 0.0, None
    for line, tag, attributes, text in elements(file):
        if attributes is not None:
            if not inside and tag != "gpx":
                raise expected(file, line, "the root element <gpx>", f"<{tag}>")
            inside.append(tag)
            if tag == "trk":
                tracks += 1
                name = _fresh(f"track{tracks}", taken)
            elif tag == "trkpt":
                where = place(file, line, attributes.get("lat"), attributes.get("lon"))
                altitude, time_s = 0.0, None
            continue
        inside.pop()
        parent = inside[-1] if inside else ""
        if tag == "name" and parent == "trk" and text:
            name = _fresh(text, taken)
        elif tag == "ele" and parent == "trkpt":
            altitude = number(file, line, "an elevation in metres", text)
        elif tag == "time" and parent == "trkpt":
            time_s = instant(file, line, text)
        elif tag == "trkpt":
            if time_s is None:
                raise TraceError(file, line, "expected a <time> in the track point, found none")
            taken.add(name)
            yield GeoFix(name, time_s, *where, altitude)


def _fresh(name: str, taken: set[str]) -> str:
    number = 1
    fresh = name
    while fresh in taken:
        number += 1
        fresh = f"{name} {number}"
    return fresh


def write(fixes: Iterable[GeoFix], stream: TextIO) -> None:
    """Write a track for each node; times are cut to microseconds."""
    tracks: dict[str, list[GeoFix]] = {}
    for fix in fixes:
        tracks.setdefault(fix.node, []).append(fix)
    stream.write('<?xml version="1.0" encoding="UTF-8"?>\n')
    stream.write(
        '<gpx version="1.1" creator="tactical" xmlns="http://www.topografix.com/GPX/1/1">\n'
    )
    for name, track in tracks.items():
        stream.write(f"<trk><name>{escape(name)}</name><trkseg>\n")
        for fix in track:
            stream.write(
                f'<trkpt lat="{fix.latitude_deg!r}" lon="{fix.longitude_deg!r}">'
                f"<ele>{fix.altitude_m!r}</ele><time>{iso(fix.time_s)}</time></trkpt>\n"
            )
        stream.write("</trkseg></trk>\n")
    stream.write("</gpx>\n")
