"""BonnMotion's own format: a line for each node, of waypoints ``time x y`` or ``time x y z``.

(N. Aschenbruck, R. Ernst, E. Gerhards-Padilla and M. Schwamborn, "BonnMotion: a mobility scenario
generation and analysis tool", SIMUTools 2010.) The format does not say which of the two it is; a
comment ``#3D`` does here. Without it, three numbers a waypoint are tried first: they must fit the
line, and times must not decrease.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path as FilePath
from typing import TextIO

from mobility.traces.record import Fix, TraceError, expected, lines, number
from mobility.trajectory import Path

_SOLID = "#3D"


def read(file: FilePath) -> Iterator[Fix]:
    """Yield the waypoints, node by node; nodes are named by their number from 0."""
    node = 0
    width = 0
    for line, text in lines(file):
        if text.strip() == _SOLID:
            width = 4
        if not text.strip() or text.lstrip().startswith("#"):
            continue
        values = [
            number(file, line, "a number (time in s, place in m)", field) for field in text.split()
        ]
        width = width or _width(file, line, values)
        if len(values) % width:
            raise TraceError(
                file,
                line,
                f"expected waypoints of {width} numbers, found {len(values)} numbers",
            )
        times = values[::width]
        if (late := _decrease(times)) is not None:
            raise TraceError(
                file,
                line,
                f"expected times that do not decrease, found {times[late]:g} s "
                f"after {times[late - 1]:g} s",
            )
        for start in range(0, len(values), width):
            time_s, x, y, *rest = values[start : start + width]
            yield Fix(str(node), time_s, x, y, rest[0] if rest else 0.0)
        node += 1


def _width(file: object, line: int, values: list[float]) -> int:
    """Tell from the first node how many numbers make a waypoint."""
    fits = [width for width in (3, 4) if len(values) % width == 0]
    if not fits:
        raise expected(file, line, "waypoints of 3 or 4 numbers", f"{len(values)} numbers")
    good = [width for width in fits if _decrease(values[::width]) is None]
    return (good or fits)[0]


def _decrease(times: list[float]) -> int | None:
    return next((at for at in range(1, len(times)) if times[at] < times[at - 1]), None)


def write(nodes: Mapping[str, Path], stream: TextIO) -> None:
    """Write paths; nodes lose their names. With altitudes, all lines have them."""
    solid = any(path.positions_m[:, 2].any() for path in nodes.values())
    if solid:
        stream.write(f"{_SOLID}\n")
    for path in nodes.values():
        stream.write(
            " ".join(
                repr(value)
                for time_s, (x, y, z) in zip(
                    path.times_s.tolist(), path.positions_m.tolist(), strict=True
                )
                for value in ((time_s, x, y, z) if solid else (time_s, x, y))
            )
            + "\n"
        )
