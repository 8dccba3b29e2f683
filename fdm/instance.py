"""Networks in files: one JSON object each."""

import json
import math
import reprlib
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from fdm.network import Demand, Link, Network, Node

LARGEST_FILE_BYTES = 64_000_000
"""Size of a file of about a million demands; what a parser makes of more fills the memory."""

MOST_NODES = 1_000_000
"""Nodes that a number in a file may call for."""

LEAST_RATE, LARGEST_RATE = 1e-3, 1e15
"""Rates, capacities and packets above 0 lie between; beyond, doubles cannot hold their sums."""

LONGEST_DELAY_S = 1e9

_LONGEST_NAME = 100

_SHOWN = reprlib.Repr()
_SHOWN.maxstring = _SHOWN.maxother = _SHOWN.maxlong = 40
_SHOWN.maxlevel = 2


class InstanceError(ValueError):
    """A file that does not hold an instance; the message names file, field and expectation."""


@dataclass(frozen=True)
class Instance:
    """A network, its demands, and what is known of the optimum.

    Attributes
    ----------
    name : str
        Name, from the file or from its path.
    network : Network
        Nodes and links.
    demands : tuple of Demand
        Demands.
    packet_bits : float
        Mean packet in bits.
    optimum_gamma_T : float or None
        γT at the optimum, where the file gives it.
    """

    name: str
    network: Network
    demands: tuple[Demand, ...]
    packet_bits: float
    optimum_gamma_T: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return what a file of this instance holds, ready for JSON; `load` reads it back."""
        return {
            "name": self.name,
            "nodes": list(self.network.nodes),
            "packet_bits": self.packet_bits,
            "links": [link._asdict() for link in self.network.links],
            "commodities": [
                {
                    "origin": demand.origin,
                    "destination": demand.destination,
                    "demand_bps": demand.rate_bps,
                }
                for demand in self.demands
            ],
        }


def load(path: Path | str) -> Instance:
    """Read an instance.

    The file is a JSON object: ``nodes`` (a number of nodes, then called 0, 1, …, or a list of
    their names, each text or a whole number), ``links`` (objects of ``tail``, ``head``,
    ``capacity_bps``, and ``delay_s``, which is 0 if missing), ``commodities`` (``origin``,
    ``destination``, ``demand_bps``) and, optionally, ``name``, ``packet_bits`` (12000 if missing)
    and ``optimum`` (``gamma_T``). Other fields are left alone. Rates, capacities and
    ``packet_bits`` are 0 or from 1e-3 to 1e15 (``packet_bits`` not 0), delays up to 1e9 seconds.

    Parameters
    ----------
    path : path-like
        File to read: a regular one of at most 64 MB.

    Raises
    ------
    InstanceError
        If the file cannot be read, is not JSON, or a field is missing or wrong; one sentence that
        names the file and the field, and never long.
    """
    path = Path(path)
    tree = _parsed(path, _read(path))
    if not isinstance(tree, dict):
        raise InstanceError(f"{path}: must hold one JSON object, not {_kind(tree)}")
    try:
        return _instance(tree, path.stem)
    except ValueError as error:
        raise InstanceError(f"{path}: {error}") from None


def _read(path: Path) -> bytes:
    try:
        mode = path.stat().st_mode  # opening a named pipe would wait for a writer
        if stat.S_ISDIR(mode):
            raise InstanceError(f"{path}: cannot be read: it is a directory, not a JSON file")
        if not stat.S_ISREG(mode):
            raise InstanceError(f"{path}: cannot be read: it is no regular file")
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE_BYTES + 1)
    except OSError as error:
        raise InstanceError(f"{path}: cannot be read: {error.strerror}") from None
    if len(data) > LARGEST_FILE_BYTES:
        limit_mb = LARGEST_FILE_BYTES // 1_000_000
        raise InstanceError(f"{path}: must hold at most {limit_mb} MB, but is larger")
    if not data:
        raise InstanceError(f"{path}: not JSON: it is empty")
    return data


def _parsed(path: Path, data: bytes) -> Any:
    try:
        return json.loads(data.decode("utf-8-sig"), parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise InstanceError(f"{path}: not JSON: byte {error.start} is not UTF-8 text") from None
    except RecursionError:
        raise InstanceError(f"{path}: not JSON: it is nested too deeply") from None
    except ValueError as error:
        # Python's own advice after the semicolon is about the interpreter, not about the file.
        raise InstanceError(f"{path}: not JSON: {str(error).partition(';')[0]}") from None


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number in JSON")


def _instance(tree: dict[str, Any], name: str) -> Instance:
    network = Network(
        _nodes(tree),
        [
            Link(
                _name(link, "tail", where),
                _name(link, "head", where),
                _rate(link, "capacity_bps", where),
                _delay(link, where),
            )
            for where, link in _objects(tree, "links")
        ],
    )
    demands = tuple(
        Demand(
            _name(commodity, "origin", where),
            _name(commodity, "destination", where),
            _rate(commodity, "demand_bps", where),
        )
        for where, commodity in _objects(tree, "commodities")
    )
    network.check(demands)
    packet_bits = 12000.0
    if tree.get("packet_bits") is not None:
        packet_bits = _rate(tree, "packet_bits")
        if packet_bits == 0.0:
            raise ValueError("packet_bits must be above 0, not 0")
    gamma_T = None
    if tree.get("optimum") is not None:
        optimum = tree["optimum"]
        if not isinstance(optimum, dict):
            raise ValueError(f"optimum must be an object, not {_SHOWN.repr(optimum)}")
        gamma_T = _number(optimum, "gamma_T", "optimum.")
    if tree.get("name") is not None:
        name = _text(tree["name"], "name")
    return Instance(name, network, demands, packet_bits, gamma_T)


def _nodes(tree: dict[str, Any]) -> range | list[Node]:
    nodes = _value(tree, "nodes")
    if isinstance(nodes, list):
        names = [_node(node, f"nodes[{number}]") for number, node in enumerate(nodes)]
    elif isinstance(nodes, bool) or not isinstance(nodes, int):
        raise ValueError(
            f"nodes must be a whole number or a list of names, not {_SHOWN.repr(nodes)}"
        )
    elif not 0 <= nodes <= MOST_NODES:
        raise ValueError(f"nodes must be from 0 to {MOST_NODES}, not {_SHOWN.repr(nodes)}")
    else:
        return range(nodes)
    if len(names) > MOST_NODES:
        raise ValueError(f"nodes must be at most {MOST_NODES}, but there are {len(names)}")
    return names


def _objects(tree: dict[str, Any], name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    entries = _value(tree, name)
    if not isinstance(entries, list):
        raise ValueError(f"{name} must be a list, not {_SHOWN.repr(entries)}")
    for number, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise ValueError(f"{name}[{number}] must be an object, not {_SHOWN.repr(entry)}")
        yield f"{name}[{number}].", entry


def _value(tree: dict[str, Any], name: str, where: str = "") -> Any:
    value = tree.get(name)
    if value is None:
        raise ValueError(f"{where}{name} is missing")
    return value


def _rate(tree: dict[str, Any], name: str, where: str = "") -> float:
    rate = _number(tree, name, where)
    if rate != 0.0 and not LEAST_RATE <= rate <= LARGEST_RATE:
        raise ValueError(
            f"{where}{name} must be 0 or from {LEAST_RATE:g} to {LARGEST_RATE:g}, not {rate:g}"
        )
    return rate


def _delay(link: dict[str, Any], where: str) -> float:
    delay_s = _number(link, "delay_s", where) if link.get("delay_s") is not None else 0.0
    if not 0.0 <= delay_s <= LONGEST_DELAY_S:
        raise ValueError(f"{where}delay_s must be from 0 to {LONGEST_DELAY_S:g}, not {delay_s:g}")
    return delay_s


def _number(tree: dict[str, Any], name: str, where: str = "") -> float:
    value = _value(tree, name, where)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ValueError(f"{where}{name} must be a number, not {_SHOWN.repr(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{where}{name} is too large a number")
    return number


def _name(tree: dict[str, Any], name: str, where: str) -> Node:
    return _node(_value(tree, name, where), f"{where}{name}")


def _node(value: object, where: str) -> Node:
    if isinstance(value, int) and not isinstance(value, bool):
        if abs(value) >= 10**_LONGEST_NAME:
            raise ValueError(f"{where} must have at most {_LONGEST_NAME} digits")
        return value
    if isinstance(value, str):
        return _text(value, where)
    raise ValueError(f"{where} must be text or a whole number, not {_SHOWN.repr(value)}")


def _text(value: object, where: str) -> str:
    # A name has to fit into a table and a sentence, and must not steer a terminal.
    if not isinstance(value, str):
        raise ValueError(f"{where} must be text, not {_SHOWN.repr(value)}")
    if not value.isprintable() or not 0 < len(value) <= _LONGEST_NAME:
        raise ValueError(
            f"{where} must be 1 to {_LONGEST_NAME} printable characters, not {_SHOWN.repr(value)}"
        )
    return value


def _kind(value: object) -> str:
    kinds = {list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number")
