"""Movements of ns-2, as its `setdest` and BonnMotion's NSFile write them.

    $node_(0) set X_ 150.0
    $ns_ at 2.0 "$node_(0) setdest 90.4 44.9 1.37"

A node goes straight towards its destination at the speed given, and stays there. Lines about
anything but places (comments, $god_, Tcl around them) are passed over. (The ns Manual, chapter
"Mobile Networking in ns".)
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import TextIO

from mobility.traces.record import Fix, TraceError, expected, lines, number
from mobility.trajectory import Path

_SET = re.compile(r"\$node_\((?P<node>[^)]*)\)\s+set\s+(?P<axis>[XYZ])_(?P<value>.*)")
_GO = re.compile(r"\$node_\((?P<node>[^)]*)\)\s+setdest\b(?P<rest>.*)")
_AT = re.compile(r'\$ns_?\s+at\s+(?P<time>\S+)\s+"\s*(?P<command>[^"]*)"')
_SAME = 1e-9
"""Share of a time by which an arrival that was computed may differ from the next command's."""


@dataclass
class _Node:
    place: list[float]
    since_s: float = 0.0
    goal: tuple[float, float] | None = None
    arrives_s: float = math.inf
    told_s: float = -math.inf


def read(file: FilePath) -> Iterator[Fix]:
    """Yield where nodes are whenever they change course."""
    nodes: dict[str, _Node] = {}
    for line, text in lines(file):
        stripped = text.strip()
        if not stripped or stripped.startswith("#") or "$node_(" not in stripped:
            continue
        at = _AT.match(stripped)
        time_s = 0.0
        if at:
            time_s = number(file, line, "a time in seconds", at["time"])
            stripped = at["command"].strip()
        if match := _SET.match(stripped):
            value = number(file, line, f"{match['axis']}_ in metres", match["value"].strip())
            state = nodes.setdefault(_name(file, line, match["node"]), _Node([0.0, 0.0, 0.0]))
            if at:
                yield from _until(file, line, match["node"].strip(), state, time_s)
                state.goal, state.arrives_s = None, math.inf
            state.place["XYZ".index(match["axis"])] = value
            if at:
                yield Fix(match["node"].strip(), time_s, *state.place)
        elif match := _GO.match(stripped):
            if not at:
                raise expected(file, line, '$ns_ at TIME "$node_(N) setdest X Y SPEED"', text)
            fields = match["rest"].split()
            if len(fields) != 3:
                raise expected(file, line, "setdest X Y SPEED", match["rest"].strip())
            x, y, speed = (
                number(file, line, what, field)
                for what, field in zip(
                    ("X in metres", "Y in metres", "a speed in m/s"), fields, strict=True
                )
            )
            if speed < 0.0:
                raise expected(file, line, "a speed of 0 m/s or more", fields[2])
            name = _name(file, line, match["node"])
            state = nodes.setdefault(name, _Node([0.0, 0.0, 0.0]))
            yield from _until(file, line, name, state, time_s)
            away = math.hypot(x - state.place[0], y - state.place[1])
            moves = speed > 0.0 and away > 0.0
            state.since_s = time_s
            state.goal = (x, y) if moves else None
            state.arrives_s = time_s + away / speed if moves else math.inf
    for name, state in nodes.items():
        if state.goal is not None:
            yield Fix(name, state.arrives_s, *state.goal, state.place[2])
        elif state.told_s == -math.inf:
            yield Fix(name, 0.0, state.place[0], state.place[1], state.place[2])


def _name(file: object, line: int, text: str) -> str:
    name = text.strip()
    if not name.isdigit():
        raise expected(file, line, "the number of a node in $node_(N)", name)
    return name


def _until(file: object, line: int, name: str, state: _Node, time_s: float) -> Iterator[Fix]:
    """Move a node on to the time of its next command."""
    if time_s < max(state.since_s, 0.0):
        raise TraceError(
            file,
            line,
            f"expected a time no earlier than the last of node {name} ({state.since_s:g} s), "
            f"found {time_s:g}",
        )
    if state.told_s == -math.inf and time_s > 0.0:
        yield Fix(name, 0.0, *state.place)
    if state.goal is not None:
        late = abs(time_s - state.arrives_s) <= _SAME * max(abs(time_s), 1.0)
        if time_s >= state.arrives_s or late:
            if not late:
                yield Fix(name, state.arrives_s, *state.goal, state.place[2])
            state.place[:2] = state.goal
        else:
            share = (time_s - state.since_s) / (state.arrives_s - state.since_s)
            for axis in (0, 1):
                state.place[axis] += (state.goal[axis] - state.place[axis]) * share
        state.goal, state.arrives_s = None, math.inf
    state.since_s = state.told_s = time_s
    yield Fix(name, time_s, *state.place)


def write(nodes: Mapping[str, Path], stream: TextIO) -> None:
    """Write paths; nodes are numbered in their order.

    Raises
    ------
    ValueError
        If a path begins before 0 s, or climbs other than in a jump: ns-2 moves in the plane.
    """
    for index, path in enumerate(nodes.values()):
        times, places = path.times_s.tolist(), path.positions_m.tolist()
        if times[0] < 0.0:
            raise ValueError(f"ns-2 has no time before 0 s, and node {index} has {times[0]:g} s")
        for axis, value in zip("XYZ", places[0], strict=True):
            stream.write(f"$node_({index}) set {axis}_ {value!r}\n")
        stream.writelines(_commands(index, times, places))


def _commands(index: int, times: list[float], places: list[list[float]]) -> Iterable[str]:
    for leg in range(len(times)):
        (x, y, z), start = places[leg], times[leg]
        if leg + 1 == len(times) or times[leg + 1] > start:
            goal, speed = (x, y), 0.0
            if leg + 1 < len(times):
                goal = (places[leg + 1][0], places[leg + 1][1])
                if places[leg + 1][2] != z:
                    raise ValueError(f"ns-2 moves in the plane, and node {index} climbs")
                speed = math.hypot(goal[0] - x, goal[1] - y) / (times[leg + 1] - start)
            yield f'$ns_ at {start!r} "$node_({index}) setdest {goal[0]!r} {goal[1]!r} {speed!r}"\n'
        else:
            for axis, value in zip("XYZ", places[leg + 1], strict=True):
                yield f'$ns_ at {start!r} "$node_({index}) set {axis}_ {value!r}"\n'
