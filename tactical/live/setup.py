"""What is known of a run before anything happens in it: nodes, links, users."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


class SetupError(Exception):
    """The directory does not say what run it is; the text is one sentence for the user."""


@dataclass(frozen=True)
class Node:
    """A node; `kind` is "station", "access point", "satellite" or "host"."""

    name: str
    kind: str
    range_m: float | None = None


@dataclass(frozen=True)
class Link:
    """The link from a relay to the host, with the switch ports at its ends."""

    relay: str
    port: str
    shore_port: str
    rate_bps: float
    delay_s: float


@dataclass(frozen=True)
class User:
    """Who sends, how much, and by which interface to which relay."""

    name: str
    offered_bps: float | None
    interfaces: Mapping[str, str]


@dataclass(frozen=True)
class Setup:
    """Everything about a run that does not change.

    Attributes
    ----------
    ports : mapping
        (switch, port) to the user whose wired interface is attached there.
    policy : str
        What decides at the start.
    """

    scenario: str
    protocol: str
    seed: int | None
    backend: str
    machine: str
    time: str
    duration_s: float
    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    users: tuple[User, ...]
    policy: str
    ports: Mapping[tuple[str, str], str] = field(default_factory=dict)

    @property
    def stations(self) -> tuple[str, ...]:
        """Names of all stations."""
        return tuple(node.name for node in self.nodes if node.kind == "station")

    @property
    def access_points(self) -> tuple[str, ...]:
        """Names of all access points."""
        return tuple(node.name for node in self.nodes if node.kind == "access point")

    def paths(self, user: User) -> tuple[str, ...]:
        """Relays that a user can have a subflow over: satellites, then access points."""
        wired = [via for via in user.interfaces.values() if via not in self.access_points]
        wired = [via for via in wired if any(link.relay == via for link in self.links)]
        radio = len(wired) < len(user.interfaces)
        return (*wired, *(self.access_points if radio else ()))

    def document(self) -> dict[str, Any]:
        """As the page gets it."""
        document = asdict(self)
        del document["ports"]
        for shown, user in zip(document["users"], self.users, strict=True):
            shown["paths"] = list(self.paths(user))
        return document


def read_setup(run_dir: Path) -> Setup:
    """Read what a run directory says about its run, also while that goes on.

    Raises
    ------
    SetupError
        If there is no such directory, or it does not say.
    """
    if not run_dir.is_dir():
        raise SetupError(f"{run_dir}: expected a run directory, but there is none")
    plan = _object(run_dir / "plan.json")
    try:
        run = tomllib.loads((run_dir / "run.toml").read_text(encoding="utf-8"))["run"]
    except OSError as error:
        raise SetupError(f"{run_dir}: run.toml cannot be read: {error.strerror}") from error
    except (ValueError, KeyError) as error:
        raise SetupError(f"{run_dir}: run.toml does not describe a run: {error}") from error
    try:
        return _setup(run, plan, _attachments(run_dir))
    except KeyError as error:
        raise SetupError(f"{run_dir}: run.toml and plan.json lack {error}") from error
    except (TypeError, ValueError, AttributeError) as error:
        problem = f"{type(error).__name__}: {error}"
        raise SetupError(f"{run_dir}: plan.json does not describe a network: {problem}") from error


def _setup(
    run: Mapping[str, Any], plan: Mapping[str, Any], ports: Mapping[tuple[str, str], str]
) -> Setup:
    ranges = {name: float(each["range_m"]) for name, each in plan["access_points"].items()}
    users = tuple(
        User(
            name,
            _number(each.get("offered_bps")),
            {interface: str(i["via"]) for interface, i in each["interfaces"].items()},
        )
        for name, each in plan["users"].items()
    )
    links = tuple(
        Link(
            str(u["relay"]),
            str(u["relay_port"]),
            str(u["shore_port"]),
            float(u["rate_bps"]),
            float(u["delay_s"]),
        )
        for u in plan["uplinks"]
    )
    # Stations that send nothing are known by their captures only.
    captured = (str(c["node"]) for c in plan["captures"] if c.get("side") == "station")
    stations = dict.fromkeys((*(user.name for user in users), *captured))
    nodes = [Node(name, "station") for name in stations]
    for link in links:
        kind = "access point" if link.relay in ranges else "satellite"
        nodes.append(Node(link.relay, kind, ranges.get(link.relay)))
    nodes.append(Node(str(plan["host"]["name"]), "host"))
    seed = run.get("seed")
    protocol = str(run["protocol"])
    return Setup(
        scenario=str(run["scenario"]),
        protocol=protocol,
        seed=seed if isinstance(seed, int) else None,
        backend=str(run.get("backend", "")),
        machine=str(run.get("machine", "")),
        time=str(run.get("time", "real")),
        duration_s=float(plan["duration_s"]),
        nodes=tuple(nodes),
        links=links,
        users=users,
        policy="fdm" if protocol == "fdm" else "shortest",
        ports=ports,
    )


def _attachments(run_dir: Path) -> dict[tuple[str, str], str]:
    """Who is attached to which port by wire; the controller's description may come later."""
    try:
        attachments = _object(run_dir / "network.json")["attachments"]
        return {(a["datapath"], a["port"]): a["user"] for a in attachments if not a["wireless"]}
    except (SetupError, KeyError, TypeError):
        return {}


def _object(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        problem = error.strerror or str(error)
        raise SetupError(f"{path.parent}: {path.name} cannot be read: {problem}") from error
    except ValueError as error:
        raise SetupError(f"{path.parent}: {path.name} is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise SetupError(f"{path.parent}: {path.name}: expected a JSON object")
    return found


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
