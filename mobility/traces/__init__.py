"""Motion from files and into files.

>>> from mobility import traces
>>> sorted(traces.FORMATS)
['ais', 'bonnmotion', 'csv', 'eel', 'gpx', 'ns2', 'sumo', 'sumo-geo']

`fixes` streams what a file says, in the coordinates of its format; `load` makes paths of it, and
`save` writes paths. Files are read in constant memory, line by line, and a file that is not of its
format is refused with the line and with what was expected there (`TraceError`).
"""

import importlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

import numpy as np

from mobility.traces.record import Fix, GeoFix, TraceError
from mobility.trajectory import Path

if TYPE_CHECKING:
    from mobility.geodesy import LocalFrame


@dataclass(frozen=True)
class Format:
    """A format of trace files.

    Attributes
    ----------
    module : str
        Module of this package that reads and writes it; imported when it is needed.
    summary : str
        What it is.
    suffixes : tuple of str
        Ends of file names that are taken for it.
    on_earth : bool
        Places are degrees and not metres; a table may be either.
    since_1970 : bool
        Times are seconds since 1970 and not of the run.
    waypoints : bool
        It holds whole paths rather than single fixes.
    reader, writer : str
        Functions of the module.
    """

    module: str
    summary: str
    suffixes: tuple[str, ...]
    on_earth: bool = False
    since_1970: bool = False
    waypoints: bool = False
    reader: str = "read"
    writer: str = "write"


FORMATS: Mapping[str, Format] = {
    "ns2": Format("ns2", "movements of ns-2 (setdest)", (".ns_movements", ".tcl"), waypoints=True),
    "bonnmotion": Format("bonnmotion", "waypoints of BonnMotion", (".movements",), waypoints=True),
    "eel": Format("eel", "locations of EMANE's event log", (".eel",), on_earth=True),
    "gpx": Format("gpx", "tracks of navigation receivers", (".gpx",), True, True),
    "csv": Format("table", "table with a header", (".csv",)),
    "ais": Format("ais", "AIS reports in NMEA 0183", (".nmea", ".ais", ".aivdm"), True, True),
    "sumo": Format("sumo", "floating car data of SUMO, metres", (".fcd.xml",)),
    "sumo-geo": Format(
        "sumo",
        "floating car data of SUMO, degrees",
        (".geo.fcd.xml",),
        on_earth=True,
        reader="read_geo",
        writer="write_geo",
    ),
}
"""The formats by name."""


def format_of(file: FilePath | str) -> str:
    """Return the format that a file's name stands for.

    Raises
    ------
    TraceError
        If its end is none of those of `FORMATS`.
    """
    name = FilePath(file).name.lower()
    fits = [
        (len(suffix), known)
        for known, each in FORMATS.items()
        for suffix in each.suffixes
        if name.endswith(suffix)
    ]
    if not fits:
        ends = ", ".join(suffix for each in FORMATS.values() for suffix in each.suffixes)
        raise TraceError(file, 0, f"expected a name that ends in one of {ends}, or a format")
    return max(fits)[1]


def fixes(file: FilePath | str, format: str | None = None) -> Iterator[Fix | GeoFix]:
    """Yield what a file says, as it says it, one fix after the other.

    Parameters
    ----------
    file : path
        The file.
    format : str, optional
        One of `FORMATS`; told from the name of the file if not given.

    Yields
    ------
    Fix or GeoFix
        In the coordinates of the format.

    Raises
    ------
    TraceError
        As soon as something is not as expected.
    """
    path = FilePath(file)
    known = _format(format or format_of(path))
    yield from getattr(importlib.import_module(f"mobility.traces.{known.module}"), known.reader)(
        path
    )


def load(
    file: FilePath | str,
    format: str | None = None,
    *,
    frame: "LocalFrame | None" = None,
    start_s: float | None = None,
) -> dict[str, Path]:
    """Return the paths of a file's nodes, in metres of a local frame and seconds of run time.

    Parameters
    ----------
    file : path
        The file.
    format : str, optional
        One of `FORMATS`; told from the name of the file if not given.
    frame : LocalFrame, optional
        For places on the earth: what they are projected to; about the first place of the file if
        not given.
    start_s : float, optional
        What is run time 0, in the file's time. The first time of the file if it counts from 1970,
        otherwise 0.

    Returns
    -------
    dict of str to Path
        By name, in the order in which nodes appear. Fixes of a node are put in order of time; of
        several at the same time, which receivers' logs have, the last counts, except in formats
        of waypoints, where they are a jump.

    Raises
    ------
    TraceError
        If something is not as expected, or there is no fix at all.
    """
    path = FilePath(file)
    name = format or format_of(path)
    known = _format(name)
    rows: dict[str, list[tuple[float, ...]]] = {}
    kind: type[Fix | GeoFix] | None = None
    origin: tuple[float, float] | None = None
    for fix in fixes(path, name):
        kind = kind or type(fix)
        origin = origin or (fix[2], fix[3])
        rows.setdefault(fix.node, []).append(fix[1:])
    if kind is None or origin is None:
        raise TraceError(path, 0, "expected at least one position, found none")
    if start_s is None:
        earliest = min(row[0] for track in rows.values() for row in track)
        # A table may count from either; nobody runs for thirty years.
        start_s = earliest if known.since_1970 or earliest > 1e9 else 0.0
    if kind is GeoFix and frame is None:
        from mobility.geodesy import LocalFrame

        frame = LocalFrame(*origin)
    paths = {}
    for node, track in rows.items():
        table = np.array(track)
        if not known.waypoints:
            table = table[np.argsort(table[:, 0], kind="stable")]
            table = table[np.append(np.diff(table[:, 0]) > 0.0, True)]
        times, places = table[:, 0] - start_s, table[:, 1:]
        if kind is GeoFix and frame is not None:
            places = frame.to_local(*places.T)
        try:
            paths[node] = Path(times, places)
        except ValueError as error:
            raise TraceError(path, 0, f"expected a motion of {node}, but {error}") from None
    return paths


def save(
    nodes: Mapping[str, Path],
    file: FilePath | str,
    format: str | None = None,
    *,
    frame: "LocalFrame | None" = None,
    start_s: float = 0.0,
) -> None:
    """Write paths to a file, so that `load` gives them back.

    Parameters
    ----------
    nodes : mapping of str to Path
        By name; ns-2 and BonnMotion number nodes in this order instead.
    file : path
        The file, which is replaced.
    format : str, optional
        One of `FORMATS`; told from the name of the file if not given.
    frame : LocalFrame, optional
        Where the local frame is on the earth; needed by formats with degrees.
    start_s : float
        What run time 0 is in the file's time.

    Raises
    ------
    ValueError
        If the format cannot say what the paths do, such as a climb in ns-2.
    """
    path = FilePath(file)
    name = format or format_of(path)
    known = _format(name)
    if known.on_earth and frame is None:
        raise ValueError(f"{name} has places on the earth: a frame must be given")
    writer = getattr(importlib.import_module(f"mobility.traces.{known.module}"), known.writer)
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        if known.waypoints:
            moved = {
                node: Path(each.times_s + start_s, each.positions_m) for node, each in nodes.items()
            }
            writer(moved, stream)
        else:
            writer(_as_fixes(nodes, frame, start_s), stream)


def _as_fixes(
    nodes: Mapping[str, Path], frame: "LocalFrame | None", start_s: float
) -> Iterable[Fix | GeoFix]:
    for node, path in nodes.items():
        places = path.positions_m if frame is None else frame.to_geodetic(path.positions_m)
        for time_s, row in zip((path.times_s + start_s).tolist(), places.tolist(), strict=True):
            x, y, z = row
            yield Fix(node, time_s, x, y, z) if frame is None else GeoFix(node, time_s, x, y, z)


def _format(name: str) -> Format:
    if name not in FORMATS:
        raise ValueError(f"there is no trace format {name!r}, only {', '.join(FORMATS)}")
    return FORMATS[name]


__all__ = ["FORMATS", "Fix", "Format", "GeoFix", "TraceError", "fixes", "format_of", "load", "save"]
