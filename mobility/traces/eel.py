"""EMANE's Emulation Event Log: events of nodes, of which locations are read.

    0.0 nem:1 location gps 40.031075,-74.523518,3.000000

Other events (path loss, antenna profile, velocity, orientation) are passed over. An initial state
at ``-Inf`` holds from 0 s. (Naval Research Laboratory, EEL; EMANE's eelgenerator.)
"""

import math
from collections.abc import Iterable, Iterator
from pathlib import Path as FilePath
from typing import TextIO

from mobility.traces.record import GeoFix, expected, lines, number, place


def read(file: FilePath) -> Iterator[GeoFix]:
    """Yield the locations."""
    for line, text in lines(file):
        fields = text.split()
        if not fields or fields[0].startswith("#"):
            continue
        if len(fields) < 3:
            raise expected(file, line, "TIME nem:ID EVENT ...", text)
        time_s = 0.0
        if fields[0].lower() != "-inf":
            time_s = number(file, line, "a time in seconds or -Inf", fields[0])
        kind, colon, node = fields[1].partition(":")
        if not colon or kind.lower() != "nem" or not node:
            raise expected(file, line, "nem:ID", fields[1])
        if fields[2].lower() != "location":
            continue
        if len(fields) != 5 or fields[3].lower() != "gps":
            raise expected(
                file, line, "location gps LATITUDE,LONGITUDE,ALTITUDE", " ".join(fields[2:])
            )
        parts = fields[4].split(",")
        if len(parts) not in (3, 4):
            raise expected(file, line, "LATITUDE,LONGITUDE,ALTITUDE", fields[4])
        latitude, longitude = place(file, line, parts[0], parts[1])
        altitude = number(file, line, "an altitude in metres", parts[2])
        if len(parts) == 4 and parts[3].lower() not in ("msl", "agl"):
            raise expected(file, line, "msl or agl after the altitude", parts[3])
        yield GeoFix(node, time_s, latitude, longitude, altitude)


def write(fixes: Iterable[GeoFix], stream: TextIO) -> None:
    """Write locations in order of time.

    Raises
    ------
    ValueError
        If a node's name is no number, as EMANE's are.
    """
    for fix in sorted(fixes, key=lambda each: each.time_s):
        if not fix.node.isdigit():
            raise ValueError(f"EEL names nodes by numbers, such as 12, not {fix.node!r}")
        if not math.isfinite(fix.time_s):
            raise ValueError(f"EEL takes finite times, not {fix.time_s!r}")
        stream.write(
            f"{fix.time_s!r} nem:{fix.node} location gps "
            f"{fix.latitude_deg!r},{fix.longitude_deg!r},{fix.altitude_m!r}\n"
        )
