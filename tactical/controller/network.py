"""What the controller is told about the network: inert, and the same for emulated or real.

A description is a JSON file (``network.json`` in the run directory).  It names datapaths and
their ports, where each station's interfaces attach, the trunks between datapaths with their
rate and delay, the host, what each user wants to send, the policy, and, where they shall differ
from the defaults, the settings of the controller and a forecast of associations.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import json
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fdm.queues import MODES

from . import policy
from .addresses import check_method
from .quantities import (
    DELAY_S,
    POSITIVE_SPAN_S,
    RATE_BPS,
    RATE_OR_NONE_BPS,
    RATIO,
    SIGNAL_DBM,
    SPAN_S,
    Quantity,
    shown,
)

MOST_CONNECTIONS = 256
"""Of one transfer; their ports follow each other."""


class NetworkError(ValueError):
    """A network description that cannot be used; the message names what and where."""


@dataclass(frozen=True)
class Datapath:
    """An OpenFlow switch; `ovsdb` is the connection method of its database if it has its own."""

    name: str
    dpid: int
    ovsdb: str | None = None


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

    @property
    def name(self) -> str:
        """What it is called in the API: its first end."""
        return f"{self.a_datapath}:{self.a_port}"


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
    """What a user wants to send, and to get from the server, on the wire (headers included)."""

    user: str
    rate_bps: float
    down_bps: float = 0.0


@dataclass(frozen=True)
class Forecast:
    """A station is expected to join or leave an access point so long after the start."""

    user: str
    access_point: str
    associated: bool
    in_s: float


@dataclass(frozen=True)
class Settings:
    """How the controller decides; every field has a default."""

    relative_gap: float = 0.01
    """An allocation is kept while its relative gap in the present state is at most this
    (hysteresis)."""
    dwell_s: float = 5.0
    """An allocation that still fits is kept at least this long."""
    period_s: float = 5.0
    """How often the allocation in force is judged without any other occasion."""
    demand_threshold: float = 0.1
    """Relative change of a demand that calls for a new solution."""
    queue_tolerance: float = 0.05
    """Relative change of a queue's rate that is not worth a change on the switch."""
    queue_mode: str = "overflow"
    """What a queue may take beyond its guarantee, see `fdm.queues`; ``work-conserving`` where the
    switches keep queues short themselves."""
    paths_per_user: int = 3
    """Most subflows of a user that get more than a trickle."""
    transfer_port: int = 5001
    """The server's TCP port of the first connection of a transfer under ``maxflow``."""
    solve_deadline_s: float = 10.0
    """A solve that takes longer is not waited for."""
    start_grace_s: float = 30.0
    """So long after the first datapath the others are waited for."""
    measured_demand: bool = False
    """Whether demands follow what is measured (then `count_subflows` is needed), not what is
    described."""
    smoothing_s: float = 5.0
    """Time constant of the exponential smoothing of measured rates."""
    count_subflows: bool = True
    """Whether the bytes of every subflow are asked for once a second."""
    discover_subflows: bool = False
    """Whether switches send a copy of TCP segments with SYN to the controller."""
    lead_time_s: float = 2.0
    """So long before an expected change of association the network is made ready for it."""
    signal_threshold_dbm: float = -82.0
    """Signal at which a station is expected to lose its access point: -82 dBm is the least
    sensitivity that IEEE 802.11-2020 (table 17-18) asks for at 6 Mbit/s in 20 MHz."""


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
    settings: Settings = Settings()
    forecast: tuple[Forecast, ...] = ()

    def port(self, datapath: str, name: str) -> Port:
        """The port of `datapath` called `name`."""
        return self._ports[datapath, name]

    def dpid(self, datapath: str) -> int:
        """The datapath identifier of `datapath`."""
        return self._dpids[datapath]

    def datapath_name(self, dpid: int) -> str | None:
        """The name of the datapath with identifier `dpid`, if it is described."""
        return self._names.get(dpid)

    def port_name(self, dpid: int, number: int) -> str | None:
        """The name of port `number` of the datapath with identifier `dpid`, if described."""
        return self._port_names.get((dpid, number))

    def has_attachment(self, user: str, datapath: str) -> bool:
        """Whether `user` has an interface that can attach to `datapath`."""
        return (user, datapath) in self._places

    @cached_property
    def _ports(self) -> dict[tuple[str, str], Port]:
        return {(p.datapath, p.name): p for p in self.ports}

    @cached_property
    def _dpids(self) -> dict[str, int]:
        return {d.name: d.dpid for d in self.datapaths}

    @cached_property
    def _names(self) -> dict[int, str]:
        return {d.dpid: d.name for d in self.datapaths}

    @cached_property
    def _port_names(self) -> dict[tuple[int, int], str]:
        return {(self._dpids[p.datapath], p.number): p.name for p in self.ports}

    @cached_property
    def _places(self) -> frozenset[tuple[str, str]]:
        return frozenset((a.user, a.datapath) for a in self.attachments)


_PARTS: dict[str, type] = {
    "datapaths": Datapath,
    "ports": Port,
    "attachments": Attachment,
    "trunks": Trunk,
    "demands": Demand,
    "forecast": Forecast,
}
_OPTIONAL = frozenset({"forecast"})

_BOUNDS: dict[type, dict[str, Quantity]] = {
    Datapath: {"dpid": Quantity(0, 2**64 - 1)},
    Port: {"number": Quantity(1, 0xFFFF_FF00)},  # OFPP_MAX
    Attachment: {"rate_bps": RATE_BPS},
    Trunk: {"rate_bps": RATE_OR_NONE_BPS, "delay_s": DELAY_S},
    Server: {"rate_bps": RATE_BPS},
    Demand: {"rate_bps": RATE_OR_NONE_BPS, "down_bps": RATE_OR_NONE_BPS},
    Forecast: {"in_s": SPAN_S},
    Settings: {
        "relative_gap": RATIO,
        "dwell_s": SPAN_S,
        "period_s": POSITIVE_SPAN_S,
        "demand_threshold": RATIO,
        "queue_tolerance": RATIO,
        "paths_per_user": Quantity(1, 1000),
        "transfer_port": Quantity(1, 65_536 - MOST_CONNECTIONS),
        "solve_deadline_s": POSITIVE_SPAN_S,
        "start_grace_s": SPAN_S,
        "smoothing_s": POSITIVE_SPAN_S,
        "lead_time_s": SPAN_S,
        "signal_threshold_dbm": SIGNAL_DBM,
    },
    ControlledNetwork: {
        "mean_packet_bits": Quantity(1.0, 1e9),
        "delay_coefficient": Quantity(1e-6, 1e6),
        "capacity_share": Quantity(1e-6, 1.0),
    },
}
_MAC = re.compile("[0-9a-f]{2}(:[0-9a-f]{2}){5}")

_SCALARS: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "str | None": (str, type(None)),
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
        if path.exists() and not path.is_file():  # a pipe would be waited for
            raise NetworkError(f"{path}: no regular file; expected a network description")
        document = json.loads(path.read_text())
    except RecursionError:
        raise NetworkError(f"{path}: nested too deeply; expected a network description") from None
    except OSError as error:
        raise NetworkError(f"{path}: {error.strerror}; expected a network description") from None
    except UnicodeDecodeError:
        raise NetworkError(f"{path}: expected JSON in UTF-8") from None
    except json.JSONDecodeError as error:
        raise NetworkError(f"{path}, line {error.lineno}: {error.msg}; expected JSON") from None
    except NetworkError:
        raise
    except ValueError as error:  # Python's limit to digits; its advice is behind the semicolon
        raise NetworkError(f"{path}: {str(error).partition(';')[0]}; expected JSON") from None
    if not isinstance(document, dict):
        raise NetworkError(f"{path}: expected an object at the top")
    fields: dict[str, Any] = dict(document)
    for key, kind in _PARTS.items():
        rows = fields.get(key, [] if key in _OPTIONAL else None)
        if not isinstance(rows, list):
            raise NetworkError(f"{path}: {key}: expected a list")
        fields[key] = tuple(_build(kind, row, f"{path}: {key}[{i}]") for i, row in enumerate(rows))
    fields["server"] = _build(Server, fields.get("server"), f"{path}: server")
    fields["settings"] = _build(Settings, fields.get("settings", {}), f"{path}: settings")
    network: ControlledNetwork = _build(ControlledNetwork, fields, str(path))
    _check(network, path)
    return network


def _build(kind: type, row: object, where: str) -> Any:
    if not isinstance(row, dict):
        raise NetworkError(f"{where}: expected an object")
    described = dataclasses.fields(kind)
    needed = {f.name for f in described if _is_needed(f)}
    if missing := sorted(needed - set(row)):
        raise NetworkError(f"{where}: {missing[0]} is missing")
    if unknown := sorted(set(row) - {f.name for f in described}):
        raise NetworkError(f"{where}: unknown field {unknown[0]!r}")
    values = dict(row)
    for f in described:
        wanted, value = _SCALARS.get(str(f.type)), row.get(f.name)
        if wanted is None or f.name not in row:
            continue
        if type(value) not in wanted:
            raise NetworkError(f"{where}: {f.name}: {shown(value)}; expected {f.type}")
        try:
            values[f.name] = _checked(f.name, value, _BOUNDS.get(kind, {}).get(f.name))
        except ValueError as error:
            raise NetworkError(f"{where}: {f.name}: {error}") from None
        if f.type == "float":
            values[f.name] = float(values[f.name])
    return kind(**values)


def _checked(name: str, value: Any, bounds: Quantity | None) -> Any:
    """The value of a field as it is used.

    Raises
    ------
    ValueError
        If it cannot be; the message says what it is and what is expected.
    """
    if bounds is not None:
        return bounds.check(value)
    if not isinstance(value, str):
        return value
    if not value or not value.isprintable():
        raise ValueError(f"{shown(value)}; expected text that can be printed")
    if name == "address":
        try:
            return str(ipaddress.IPv4Address(value))
        except ValueError:
            raise ValueError(f"{shown(value)}; expected an IPv4 address") from None
    if name == "mac" and not _MAC.fullmatch(value.lower()):
        raise ValueError(f"{shown(value)}; expected a MAC address, such as 02:00:00:00:00:01")
    if name == "ovsdb":
        check_method(value)
    return value.lower() if name == "mac" else value


def _is_needed(f: dataclasses.Field[Any]) -> bool:
    return f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING


def _check(network: ControlledNetwork, path: Path) -> None:
    if network.settings.queue_mode not in MODES:
        raise NetworkError(
            f"{path}: settings: queue_mode: {network.settings.queue_mode!r}; "
            f"expected one of {', '.join(MODES)}"
        )
    if network.policy not in policy.NAMES:
        raise NetworkError(
            f"{path}: policy: {network.policy!r}; expected one of {', '.join(policy.NAMES)}"
        )
    datapaths = {d.name for d in network.datapaths}
    for kind, names in (
        ("datapaths", [d.name for d in network.datapaths]),
        ("datapaths: dpid", [str(d.dpid) for d in network.datapaths]),
        ("ports", [f"{p.datapath}:{p.name}" for p in network.ports]),
        ("ports", [f"number {p.number} of {p.datapath}" for p in network.ports]),
        ("demands", [d.user for d in network.demands]),
    ):
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise NetworkError(f"{path}: {kind}: {twice[0]} is there twice")
    ports = {(p.datapath, p.name) for p in network.ports}
    ends = [(a.datapath, a.port) for a in network.attachments]
    ends += [(t.a_datapath, t.a_port) for t in network.trunks]
    ends += [(t.b_datapath, t.b_port) for t in network.trunks]
    ends.append((network.server.datapath, network.server.port))
    for datapath, port in ends:
        if datapath not in datapaths:
            raise NetworkError(f"{path}: datapath {datapath!r} is used but not described")
        if (datapath, port) not in ports:
            raise NetworkError(f"{path}: ports: datapath {datapath!r} has no port {port!r}")
    users = {a.user for a in network.attachments}
    for demand in network.demands:
        if demand.user not in users:
            raise NetworkError(f"{path}: demands: user {demand.user!r} has no attachment")
    for number, expected in enumerate(network.forecast):
        if not network.has_attachment(expected.user, expected.access_point):
            raise NetworkError(
                f"{path}: forecast[{number}]: {expected.user!r} has no attachment at "
                f"{expected.access_point!r}"
            )
