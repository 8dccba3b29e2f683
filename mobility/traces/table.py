"""Tables of comma-separated values with a header, one row for each fix.

Columns are found by name, in any order and case; others are passed over.

    node,time_s,east_m,north_m,up_m
    node,time_s,latitude_deg,longitude_deg,altitude_m

Heights may be missing. So that public tables of AIS and GPS can be read as they are, the names
below are understood too, and times may be dates of ISO 8601.
"""

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path as FilePath
from typing import TextIO

from mobility.traces.record import (
    Fix,
    GeoFix,
    TraceError,
    expected,
    instant,
    lines,
    number,
    place,
)

_NAMES = {
    "node": ("node", "id", "name", "mmsi", "vehicle_id"),
    "time": ("time_s", "time", "t", "timestamp", "basedatetime", "base_date_time"),
    "east": ("east_m", "x_m", "x"),
    "north": ("north_m", "y_m", "y"),
    "up": ("up_m", "z_m", "z"),
    "latitude": ("latitude_deg", "latitude", "lat"),
    "longitude": ("longitude_deg", "longitude", "lon", "lng"),
    "altitude": ("altitude_m", "altitude", "alt", "ele"),
}


def read(file: FilePath) -> Iterator[Fix | GeoFix]:
    """Yield the rows."""
    columns: dict[str, int] = {}
    at = 0

    def counted() -> Iterator[str]:
        nonlocal at
        for line, text in lines(file):
            at = line
            yield f"{text}\n"

    rows = csv.reader(counted(), strict=True)
    while True:
        try:
            row = next(rows)
        except StopIteration:
            break
        except csv.Error as error:
            raise TraceError(file, at, f"expected comma-separated values: {error}") from None
        if not row:
            continue
        if not columns:
            columns = _columns(file, at, row)
            continue
        if len(row) <= max(columns.values()):
            raise expected(file, at, f"at least {max(columns.values()) + 1} columns", ",".join(row))
        yield _fix(file, at, {what: row[index].strip() for what, index in columns.items()})
    if not columns:
        raise TraceError(file, 0, "expected a header such as node,time_s,east_m,north_m")


def _columns(file: object, line: int, header: list[str]) -> dict[str, int]:
    given = [name.strip().lower().lstrip("# ") for name in header]
    columns = {
        what: next(given.index(name) for name in names if name in given)
        for what, names in _NAMES.items()
        if any(name in given for name in names)
    }
    for needed in ("node", "time"):
        if needed not in columns:
            raise expected(file, line, f"a column {_NAMES[needed][0]}", ",".join(header))
    local = "east" in columns and "north" in columns
    earth = "latitude" in columns and "longitude" in columns
    if local == earth:
        raise expected(
            file,
            line,
            "either columns east_m and north_m or latitude_deg and longitude_deg",
            ",".join(header),
        )
    return columns


def _fix(file: object, line: int, cells: dict[str, str]) -> Fix | GeoFix:
    node, time = cells["node"], cells["time"]
    if not node:
        raise expected(file, line, "the name of a node", node)
    if "-" in time[1:] and ":" in time:
        time_s = instant(file, line, time)
    else:
        time_s = number(file, line, "a time in seconds or of ISO 8601", time)
    if "latitude" in cells:
        latitude, longitude = place(file, line, cells["latitude"], cells["longitude"])
        high = cells.get("altitude") or "0"
        return GeoFix(
            node, time_s, latitude, longitude, number(file, line, "an altitude in metres", high)
        )
    return Fix(
        node,
        time_s,
        number(file, line, "metres east", cells["east"]),
        number(file, line, "metres north", cells["north"]),
        number(file, line, "metres up", cells.get("up") or "0"),
    )


def write(fixes: Iterable[Fix] | Iterable[GeoFix], stream: TextIO) -> None:
    """Write fixes of one kind, in their order."""
    writer = csv.writer(stream, lineterminator="\n")
    for row, fix in enumerate(fixes):
        if row == 0:
            writer.writerow(Fix._fields if isinstance(fix, Fix) else GeoFix._fields)
        writer.writerow([fix[0], *(repr(value) for value in fix[1:])])
