"""What people may command while a run goes on, as data. Pure.

One JSON object each:

==============================================================  ===============================
``{"do": "place", "node": n, "east_m": 100, "north_m": -20}``   a node is there now, and goes on
``{"do": "link", "relay": r, "up": false}``                     its link to the host is cut
``{"do": "demand", "user": u, "rate_bps": 2e6}``                what is planned for a user
``{"do": "policy", "policy": "shortest"}``                      what decides: `POLICIES`
``{"do": "play", "playing": false}``                            nodes stop, or go on
``{"do": "speed", "speed": 4}``                                 how fast they do
==============================================================  ===============================
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from .playback import FASTEST, SLOWEST

POLICIES = ("fdm", "shortest")
"""Flow deviation, or none: paths of least delay, and multipath TCP's own choice among them."""

FARTHEST_M = 1e7
LARGEST_RATE_BPS = 1e12


class CommandError(ValueError):
    """Something that is no command, or not one here; the text is one sentence."""


@dataclass(frozen=True)
class Place:
    """A node is at this place now, and goes on from there as it would have gone."""

    do: ClassVar = "place"
    node: str
    east_m: float
    north_m: float


@dataclass(frozen=True)
class Link:
    """A relay's link to the host is cut, or works again."""

    do: ClassVar = "link"
    relay: str
    up: bool


@dataclass(frozen=True)
class Demand:
    """What the controller plans with for a user, whatever that sends."""

    do: ClassVar = "demand"
    user: str
    rate_bps: float


@dataclass(frozen=True)
class Policy:
    """What decides from now on."""

    do: ClassVar = "policy"
    policy: str


@dataclass(frozen=True)
class Play:
    """Nodes move, or stay where they are."""

    do: ClassVar = "play"
    playing: bool


@dataclass(frozen=True)
class Speed:
    """Nodes move that many times as fast as they would by themselves."""

    do: ClassVar = "speed"
    speed: float


Command = Place | Link | Demand | Policy | Play | Speed

_KINDS: Mapping[str, type[Command]] = {
    kind.do: kind for kind in (Place, Link, Demand, Policy, Play, Speed)
}


@dataclass(frozen=True)
class Names:
    """What there is to command: nodes that have a place, relays, users."""

    nodes: Collection[str]
    relays: Collection[str]
    users: Collection[str]


def read(document: object, names: Names) -> Command:
    """The command that a JSON object says.

    Raises
    ------
    CommandError
        If it says none, or one about something that there is not.
    """
    do = document.get("do") if isinstance(document, Mapping) else None
    if not isinstance(document, Mapping) or not isinstance(do, str) or do not in _KINDS:
        raise CommandError(f"expected a command: one of {', '.join(_KINDS)}")
    kind = _KINDS[do]
    given = {key: value for key, value in document.items() if key != "do"}
    expected = [field.name for field in dataclasses.fields(kind)]
    if sorted(given) != sorted(expected):
        raise CommandError(f"{kind.do}: expected {', '.join(expected)}")
    match kind.do:
        case "place":
            return Place(
                _name(given, "node", names.nodes),
                _number(given, "east_m", -FARTHEST_M, FARTHEST_M),
                _number(given, "north_m", -FARTHEST_M, FARTHEST_M),
            )
        case "link":
            return Link(_name(given, "relay", names.relays), _choice(given, "up"))
        case "demand":
            user = _name(given, "user", names.users)
            return Demand(user, _number(given, "rate_bps", 0.0, LARGEST_RATE_BPS))
        case "policy":
            return Policy(_name(given, "policy", POLICIES))
        case "play":
            return Play(_choice(given, "playing"))
        case _:
            return Speed(_number(given, "speed", SLOWEST, FASTEST))


def document(command: Command) -> dict[str, Any]:
    """The JSON object that says a command."""
    return {"do": command.do, **dataclasses.asdict(command)}


def _name(given: Mapping[str, object], key: str, known: Collection[str]) -> str:
    value = given[key]
    if not isinstance(value, str) or value not in known:
        raise CommandError(f"{key}: expected one of {', '.join(known)}, not {value!r}")
    return value


def _choice(given: Mapping[str, object], key: str) -> bool:
    value = given[key]
    if not isinstance(value, bool):
        raise CommandError(f"{key}: expected true or false, not {value!r}")
    return value


def _number(given: Mapping[str, object], key: str, least: float, most: float) -> float:
    value = given[key]
    fits = type(value) in (int, float) and math.isfinite(value) and least <= value <= most  # type: ignore[operator,arg-type]
    if not fits:
        raise CommandError(f"{key}: expected a number from {least:g} to {most:g}, not {value!r}")
    return float(value)  # type: ignore[arg-type]
