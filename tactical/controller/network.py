"""What the controller is told about the network: inert, and the same for emulated or real.

A description is a JSON file (``network.json`` in the run directory).  It names datapaths and
their ports, where each station's interfaces attach, the trunks between datapaths with their
rate and delay, the host, what each user wants to send, and the policy.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

POLICIES = ("shortest", "fdm")


class NetworkError(ValueError):
    """A network description that cannot be used; the message names what and where."""


@dataclass(frozen=True)
class Datapath:
    """An OpenFlow switch."""

    name: str
    dpid: int


@dataclass(frozen=True)
class Port:
    """A port of a datapath, by name (OVSDB) and number (OpenFlow)."""

    datapath: str
    name: str
    number: int


@dataclass(frozen=True)
class Attachment:
    """A station's interface and the port behind which it is found while it is attached.

    A subflow is named by its attachment: one interface address, one path, one queue.
    """

    user: str
    interface: str
    address: str
    mac: str
    datapath: str
    port: str
    rate_bps: float
    wireless: bool


@dataclass(frozen=True)
class Trunk:
    """A link between two datapaths; both directions have the same rate and delay."""

    a_datapath: str
    a_port: str
    b_datapath: str
    b_port: str
    rate_bps: float
    delay_s: float


@dataclass(frozen=True)
class Server:
    """The host that users send to."""

    name: str
    address: str
    mac: str
    datapath: str
    port: str
    rate_bps: float


@dataclass(frozen=True)
class Demand:
    """What a user wants to send, on the wire (headers included)."""

    user: str
    rate_bps: float


@dataclass(frozen=True)
class ControlledNetwork:
    """Everything the controller knows before the first switch connects."""

    policy: str
    datapaths: tuple[Datapath, ...]
    ports: tuple[Port, ...]
    attachments: tuple[Attachment, ...]
    trunks: tuple[Trunk, ...]
    server: Server
    demands: tuple[Demand, ...]
    mean_packet_bits: float
    delay_coefficient: float
    """Calibration factor κ of the M/M/1 delay (1 for Poisson traffic)."""
    capacity_share: float
    """Largest share η of a trunk's rate that is guaranteed to subflows."""

    def port(self, datapath: str, name: str) -> Port:
        """The port of `datapath` called `name`."""
        return next(p for p in self.ports if (p.datapath, p.name) == (datapath, name))

    def dpid(self, datapath: str) -> int:
        """The datapath identifier of `datapath`."""
        return next(d.dpid for d in self.datapaths if d.name == datapath)

    def datapath_name(self, dpid: int) -> str | None:
        """The name of the datapath with identifier `dpid`, if it is described."""
        return next((d.name for d in self.datapaths if d.dpid == dpid), None)


_PARTS: dict[str, type] = {
    "datapaths": Datapath,
    "ports": Port,
    "attachments": Attachment,
    "trunks": Trunk,
    "demands": Demand,
}

_SCALARS: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
}


def save(network: ControlledNetwork, path: Path) -> None:
    """Write `network` as JSON to `path`."""
    path.write_text(json.dumps(dataclasses.asdict(network), indent=1) + "\n")


def load(path: Path) -> ControlledNetwork:
    """Read a description.

    Raises
    ------
    NetworkError
        If the file is missing, is not JSON, or a field is missing, unknown or inconsistent.
    """
    try:
        document = json.loads(path.read_text())
    except OSError as error:
        raise NetworkError(f"{path}: {error.strerror}; expected a network description") from None
    except UnicodeDecodeError:
        raise NetworkError(f"{path}: expected JSON in UTF-8") from None
    except json.JSONDecodeError as error:
        raise NetworkError(f"{path}, line {error.lineno}: {error.msg}; expected JSON") from None
    if not isinstance(document, dict):
        raise NetworkError(f"{path}: expected an object at the top")
    fields: dict[str, Any] = dict(document)
    for key, kind in _PARTS.items():
        rows = fields.get(key)
        if not isinstance(rows, list):
            raise NetworkError(f"{path}: {key}: expected a list")
        fields[key] = tuple(_build(kind, row, f"{path}: {key}[{i}]") for i, row in enumerate(rows))
    fields["server"] = _build(Server, fields.get("server"), f"{path}: server")
    network: ControlledNetwork = _build(ControlledNetwork, fields, str(path))
    _check(network, path)
    return network


def _build(kind: type, row: object, where: str) -> Any:
    if not isinstance(row, dict):
        raise NetworkError(f"{where}: expected an object")
    expected = {field.name for field in dataclasses.fields(kind)}
    if missing := sorted(expected - set(row)):
        raise NetworkError(f"{where}: {missing[0]} is missing")
    if unknown := sorted(set(row) - expected):
        raise NetworkError(f"{where}: unknown field {unknown[0]!r}")
    for field in dataclasses.fields(kind):
        wanted, value = _SCALARS.get(str(field.type)), row[field.name]
        if wanted is not None and type(value) not in wanted:
            raise NetworkError(f"{where}: {field.name}: {value!r}; expected {field.type}")
    return kind(**row)


def _check(network: ControlledNetwork, path: Path) -> None:
    if network.policy not in POLICIES:
        raise NetworkError(
            f"{path}: policy: {network.policy!r}; expected one of {', '.join(POLICIES)}"
        )
    datapaths = {d.name for d in network.datapaths}
    ends = [(a.datapath, a.port) for a in network.attachments]
    ends += [(t.a_datapath, t.a_port) for t in network.trunks]
    ends += [(t.b_datapath, t.b_port) for t in network.trunks]
    ends.append((network.server.datapath, network.server.port))
    for datapath, port in ends:
        if datapath not in datapaths:
            raise NetworkError(f"{path}: datapath {datapath!r} is used but not described")
        if not any((p.datapath, p.name) == (datapath, port) for p in network.ports):
            raise NetworkError(f"{path}: ports: datapath {datapath!r} has no port {port!r}")
    users = {a.user for a in network.attachments}
    for demand in network.demands:
        if demand.user not in users:
            raise NetworkError(f"{path}: demands: user {demand.user!r} has no attachment")
