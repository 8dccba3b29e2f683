"""Networks in files: one JSON object each."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fdm.network import Demand, Link, Network


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


def load(path: Path | str) -> Instance:
    """Read an instance.

    The file is a JSON object: ``nodes`` (a number of nodes, or their names), ``links`` (objects
    of ``tail``, ``head``, ``capacity_bps``, ``delay_s``), ``commodities`` (``origin``,
    ``destination``, ``demand_bps``) and, optionally, ``name``, ``packet_bits`` and ``optimum``
    (``gamma_T``).

    Parameters
    ----------
    path : path-like
        File to read.

    Raises
    ------
    InstanceError
        If the file cannot be read, is not JSON, or a field is missing or wrong.
    """
    path = Path(path)
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InstanceError(f"{path}: cannot be read: {error.strerror}") from None
    except RecursionError:
        raise InstanceError(f"{path}: not JSON: it is nested too deeply") from None
    except ValueError as error:
        raise InstanceError(f"{path}: not JSON: {str(error).partition(';')[0]}") from None
    if not isinstance(tree, dict):
        raise InstanceError(f"{path}: must hold one JSON object, not {type(tree).__name__}")
    try:
        nodes = _field(tree, "nodes", "", int, list)
        network = Network(
            range(nodes) if isinstance(nodes, int) else nodes,
            [
                Link(
                    _field(link, "tail", where, int, str),
                    _field(link, "head", where, int, str),
                    float(_field(link, "capacity_bps", where, int, float)),
                    float(_field(link, "delay_s", where, int, float, default=0.0)),
                )
                for where, link in _objects(tree, "links")
            ],
        )
        demands = tuple(
            Demand(
                _field(commodity, "origin", where, int, str),
                _field(commodity, "destination", where, int, str),
                float(_field(commodity, "demand_bps", where, int, float)),
            )
            for where, commodity in _objects(tree, "commodities")
        )
        network.check(demands)
        packet_bits = float(_field(tree, "packet_bits", "", int, float, default=12000.0))
        optimum = _field(tree, "optimum", "", dict, default={})
        gamma_T = float(_field(optimum, "gamma_T", "optimum.", int, float)) if optimum else None
        name = _field(tree, "name", "", str, default=path.stem)
    except (ValueError, TypeError) as error:
        raise InstanceError(f"{path}: {error}") from None
    return Instance(name, network, demands, packet_bits, gamma_T)


def _objects(tree: dict[str, Any], name: str) -> list[tuple[str, dict[str, Any]]]:
    objects = []
    for number, entry in enumerate(_field(tree, name, "", list)):
        if not isinstance(entry, dict):
            raise ValueError(f"{name}[{number}] must be an object, not {entry!r}")
        objects.append((f"{name}[{number}].", entry))
    return objects


def _field(tree: dict[str, Any], name: str, where: str, *kinds: type, default: Any = None) -> Any:
    value = tree.get(name, default)
    if value is None:
        raise ValueError(f"{where}{name} is missing")
    if not isinstance(value, kinds) or isinstance(value, bool):
        words = {int: "a number", float: "a number", str: "text", list: "a list", dict: "an object"}
        expected = " or ".join(dict.fromkeys(words[kind] for kind in kinds))
        raise ValueError(f"{where}{name} must be {expected}, not {value!r}")
    return value
