"""What an experiment is, as inert data.

A `Scenario` says which nodes there are, how they move, which links they have, who sends what to
whom, and the figures the controller works with. It starts nothing and knows no network library:
``tactical.emulation.plan`` turns it into interfaces, addresses and queues.

Names follow one scheme. The first interface of a node is ``<node>-eth0``, its radio is
``<node>-wlan0``; Linux allows 15 characters for both, hence the limit on node names.
"""

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

import mobility
from scenarios.errors import ScenarioError
from scenarios.parameters import Parameter, check
from scenarios.traffic import Application, Rate, Traffic

PROTOCOLS = ("sptcp", "mptcp", "fdm")
"""Transport set-ups an experiment can be run with.

``sptcp`` is one TCP connection that hands over between access networks, ``mptcp`` is kernel
multipath TCP over all of them, ``fdm`` is the same with the controller placing each subflow in a
queue whose rate comes from the flow deviation method.
"""

INTERFACE_NAME_LIMIT = 15
"""Characters in the name of a Linux network interface (IFNAMSIZ is 16, with its final zero)."""

SEGMENT_BYTES = 1420
"""Data in a full segment of multipath TCP."""

_LONGEST_SUFFIX = "-wlan0"
_NODE_NAME = re.compile(r"[a-z][a-z0-9]*")


# Parameters that links share with the experiments that set them.
Delay = Annotated[float, Parameter(unit="s", meaning="delay one way", minimum=0, maximum=60)]
Loss = Annotated[
    float, Parameter(meaning="share of packets lost at random", minimum=0, maximum=1, below=True)
]
Buffer = Annotated[
    int,
    Parameter(unit="packets", meaning="packets a full queue holds", minimum=1, maximum=1_000_000),
]
Range = Annotated[
    float,
    Parameter(unit="m", meaning="slant range of the radio", minimum=0, above=True, maximum=1e8),
]
Channel = Annotated[int, Parameter(meaning="2.4 GHz radio channel", minimum=1, maximum=13)]
QueueDiscipline = Annotated[
    str,
    Parameter(
        meaning="what the queues of subflows do with packets that wait",
        pattern="codel|fifo",
        pattern_meaning="codel (held to the wait that the solution assumed) or fifo",
    ),
]
Prediction = Annotated[
    str,
    Parameter(
        meaning="what is known of handovers beforehand",
        pattern="none|mobility",
        pattern_meaning="none, or mobility (the moments at which stations change access)",
    ),
]


@dataclass(frozen=True)
class LinkState:
    """What a link is like from a moment on.

    Attributes
    ----------
    time_s : float
        Seconds of run time.
    rate_bps : float
        Whole bits per second.
    delay_s : float
        Propagation delay one way, in seconds.
    loss : float
        Share of packets lost at random, from 0 to 1; at 1 the link is down.
    cause : str
        Why it changes, in words.

    Raises
    ------
    ScenarioError
        If a value is outside its bounds.
    """

    time_s: Annotated[float, Parameter(unit="s", meaning="from when on", minimum=0)]
    rate_bps: Rate
    delay_s: Delay
    loss: Annotated[
        float, Parameter(meaning="share of packets lost at random", minimum=0, maximum=1)
    ] = 0.0
    cause: str = ""

    def __post_init__(self) -> None:
        check(self, "link.profile.")

    @property
    def capacity_bps(self) -> float:
        """What can be planned with: nothing of a link that is down."""
        return 0.0 if self.loss == 1.0 else self.rate_bps


@dataclass(frozen=True, kw_only=True)
class Link:
    """A link, described for one way and alike both ways.

    Attributes
    ----------
    rate_bps : float
        Whole bits per second.
    delay_s : float
        Propagation delay one way, in seconds.
    loss : float
        Share of packets lost at random, from 0 to less than 1.
    buffer_packets : int
        Packets that a full queue in front of the link holds.
    profile : tuple of LinkState
        What becomes of rate, delay and loss in a run, in order of time; before its first state the
        link is as described above.

    Raises
    ------
    ScenarioError
        If a value is outside its bounds, or the times of the profile do not increase.
    """

    rate_bps: Rate
    delay_s: Delay
    loss: Loss = 0.0
    buffer_packets: Buffer
    profile: tuple[LinkState, ...] = ()

    def __post_init__(self) -> None:
        check(self, "link.")
        for before, after in itertools.pairwise(self.profile):
            if before.time_s >= after.time_s:
                raise ScenarioError(
                    "link.profile.time_s",
                    f"must be later than {before.time_s:g} s, that of the state before, not "
                    f"{after.time_s:g}",
                    after.time_s,
                )

    def at(self, time_s: float) -> LinkState:
        """The state at a run time."""
        past = [state for state in self.profile if state.time_s <= time_s]
        return past[-1] if past else LinkState(0.0, self.rate_bps, self.delay_s, self.loss)


@dataclass(frozen=True)
class Station:
    """A mobile user: a ship, a vehicle, a soldier."""

    name: str
    trajectory: mobility.Trajectory


class Service(NamedTuple):
    """A time during which one spacecraft serves.

    Attributes
    ----------
    start_s, end_s : float
        From when to when, in seconds of run time.
    spacecraft : str
        Its name.
    """

    start_s: float
    end_s: float
    spacecraft: str


@dataclass(frozen=True)
class Satellite:
    """A satellite and its ground station, as one switch that every station always reaches.

    `backhaul` is the link from the switch to the host. It carries the whole delay of the path:
    the station's own leg is taken as ideal. `services` tells which spacecraft of a constellation
    take turns, in order of time; none where there is only one, which stays. What that does to the
    link is in its profile.
    """

    name: str
    backhaul: Link
    services: tuple[Service, ...] = ()


@dataclass(frozen=True)
class AccessPoint:
    """A radio access point that stations reach within a slant range.

    Attributes
    ----------
    name : str
        Node name.
    trajectory : mobility.Trajectory
        Its motion, altitude included.
    range_m : float
        Slant range in metres within which stations associate.
    backhaul : Link
        Its own link to the host, shared by the stations associated with it.
    channel : int
        2.4 GHz channel number.

    Raises
    ------
    ScenarioError
        If a value is outside its bounds.
    """

    name: str
    trajectory: mobility.Trajectory
    range_m: Range
    backhaul: Link
    channel: Channel = 1

    def __post_init__(self) -> None:
        check(self, "access_point.")


class Handover(NamedTuple):
    """A station changing the access that it uses besides, or instead of, the first satellite.

    With a single path it hands over from one to the other. With several paths, its radio leaves
    the one where that is an access point, joins the other where that is one, and the paths over
    satellites stay.

    Attributes
    ----------
    time_s : float
        Seconds of run time. A station in range from the start hands over at 0 s.
    station : str
        Who.
    before, after : str
        Names of two access points, or of the first satellite where the radio has none (empty in a
        scenario without satellites).
    """

    time_s: float
    station: str
    before: str
    after: str


class SatelliteHandover(NamedTuple):
    """A satellite access changing the spacecraft, for all stations at once.

    Attributes
    ----------
    time_s : float
        Seconds of run time.
    satellite : str
        Name of the access.
    before, after : str
        Names of the spacecraft; empty where none serves.
    """

    time_s: float
    satellite: str
    before: str
    after: str


class CoverageChange(NamedTuple):
    """A station coming into range of an access point, or leaving it.

    Attributes
    ----------
    time_s : float
        Seconds of run time.
    station, access_point : str
        Names of the two.
    entering : bool
        True when the station comes into range. A station in range from the start enters at 0 s.
    """

    time_s: float
    station: str
    access_point: str
    entering: bool


@dataclass(frozen=True)
class Scenario:
    """Everything a run needs to know, and nothing that is running.

    Attributes
    ----------
    name : str
        Name of the experiment, such as ``direct-move``.
    duration_s : float
        Length of a run in seconds.
    stations, satellites, access_points : tuple
        Mobile users; access that is always in range; access with a range.
    host : str
        Name of the node that is the other end of all traffic.
    traffic : tuple of Traffic or Application
        Any number for each station.
    mean_packet_bits : float
        Mean packet the delay model of the controller assumes.
    capacity_share : float
        Share of a link's capacity that guaranteed queue rates may add up to.
    kappa : float
        Coefficient of the queueing delay in the controller's delay model; 1 is M/M/1.
    header_overhead : float
        Bits on the wire for each bit of application data.
    snap_length_bytes : int
        Bytes kept of every captured packet.
    queue_discipline : str
        "codel" or "fifo": what the queues that the controller sets do with packets that wait.
    prediction : str
        "none", or "mobility": stations and controller know when access changes, and under ``fdm``
        leave a path before it goes.
    reluctance : mobility.Reluctance, optional
        When the one radio of a station changes to an access point that is nearer than its own.
        Without any it keeps its own until that is lost.
    outage_s : tuple of float, optional
        Run times at which the controller is killed and started again.
    reference_goodput_bps : mapping of str to float
        Protocol to the average throughput the source reports; may be empty.
    reference : str
        The source, as cited beside its figures.

    Raises
    ------
    ScenarioError
        If names clash, are too long for an interface, or refer to nothing.
    """

    name: str
    duration_s: float
    stations: tuple[Station, ...]
    satellites: tuple[Satellite, ...]
    access_points: tuple[AccessPoint, ...]
    host: str
    traffic: tuple[Traffic | Application, ...]
    mean_packet_bits: float
    capacity_share: float
    kappa: float
    header_overhead: float
    snap_length_bytes: int
    queue_discipline: str = "codel"
    prediction: str = "none"
    outage_s: tuple[float, float] | None = None
    reluctance: mobility.Reluctance | None = None
    reference_goodput_bps: Mapping[str, float] = field(default_factory=dict)
    reference: str = ""

    def __post_init__(self) -> None:
        self._check_names()
        self._check_traffic()

    def coverage(self) -> tuple[CoverageChange, ...]:
        """Return who comes into range of which access point and when, in order of time."""
        changes = [
            CoverageChange(crossing.time_s, station.name, access_point.name, crossing.entering)
            for station in self.stations
            for access_point in self.access_points
            for crossing in mobility.range_crossings(
                station.trajectory, access_point.trajectory, access_point.range_m, self.duration_s
            )
        ]
        return tuple(sorted(changes))

    def offered_bps(self, user: str, direction: str = "up") -> float:
        """Return what the applications of a station offer together on average, one way."""
        return sum(each.offered_bps(direction) for each in self.traffic if each.user == user)

    def demand_bps(self, user: str, direction: str = "up") -> float:
        """Return what a station needs on the wire one way: headers and acknowledgments included.

        `header_overhead` is that of full segments (`SEGMENT_BYTES` of data); smaller packets have
        as large a header each. TCP acknowledges every second segment with a header alone
        (RFC 1122, 4.2.3.2).
        """
        back = "down" if direction == "up" else "up"
        header = self.header_overhead - 1.0
        demand_bps = 0.0
        for each in self.traffic:
            if each.user == user:
                share = SEGMENT_BYTES / min(each.packet_bytes() or SEGMENT_BYTES, SEGMENT_BYTES)
                demand_bps += each.offered_bps(direction) * (1.0 + header * share)
                if each.transport_protocol == "tcp":
                    demand_bps += each.offered_bps(back) * header / 2.0
        return demand_bps

    @property
    def accesses(self) -> tuple[Satellite | AccessPoint, ...]:
        """Satellites, then access points."""
        return (*self.satellites, *self.access_points)

    @property
    def home(self) -> str:
        """Name of the access that every station starts on: the first satellite, if there is one."""
        return self.satellites[0].name if self.satellites else ""

    def handovers(self) -> tuple[Handover, ...]:
        """Return which access every station changes to and when, in order of time.

        A station has one radio, so it uses one access point at a time:
        `mobility.associations` says which.
        """
        found = []
        for station in self.stations:
            used, since_s = self.home, 0.0
            for each in mobility.associations(
                station.trajectory,
                [access_point.trajectory for access_point in self.access_points],
                [access_point.range_m for access_point in self.access_points],
                self.duration_s,
                self.reluctance,
            ):
                if each.start_s > since_s and used != self.home:
                    found.append(Handover(since_s, station.name, used, self.home))
                    used = self.home
                after = self.access_points[each.access_point].name
                found.append(Handover(each.start_s, station.name, used, after))
                used, since_s = after, each.end_s
            if used != self.home and since_s < self.duration_s:
                found.append(Handover(since_s, station.name, used, self.home))
        return tuple(sorted(found))

    def satellite_handovers(self) -> tuple[SatelliteHandover, ...]:
        """Return which satellite access changes its spacecraft and when, in order of time."""
        found = []
        for satellite in self.satellites:
            before = Service(0.0, 0.0, "")
            for service in satellite.services:
                if before.spacecraft and before.end_s < service.start_s:
                    gap = SatelliteHandover(before.end_s, satellite.name, before.spacecraft, "")
                    before = Service(before.end_s, service.start_s, "")
                    found.append(gap)
                if service.start_s > 0.0:
                    found.append(
                        SatelliteHandover(
                            service.start_s, satellite.name, before.spacecraft, service.spacecraft
                        )
                    )
                before = service
            if before.spacecraft and before.end_s < self.duration_s:
                found.append(SatelliteHandover(before.end_s, satellite.name, before.spacecraft, ""))
        return tuple(sorted(found))

    def _check_names(self) -> None:
        names = [station.name for station in self.stations]
        names += [satellite.name for satellite in self.satellites]
        names += [access_point.name for access_point in self.access_points]
        names.append(self.host)
        longest = INTERFACE_NAME_LIMIT - len(_LONGEST_SUFFIX)
        for name in names:
            if not _NODE_NAME.fullmatch(name) or len(name) > longest:
                raise ScenarioError(
                    "name",
                    f"must be lower-case letters and digits, a letter first, at most {longest} "
                    f"characters so that {name + _LONGEST_SUFFIX!r} fits a Linux interface name, "
                    f"not {name!r}",
                    name,
                )
            if names.count(name) > 1:
                raise ScenarioError("name", f"must be unique, but two nodes are {name!r}", name)
        if not self.stations:
            raise ScenarioError("stations", "must hold at least one station")
        if not self.satellites and not self.access_points:
            raise ScenarioError(
                "satellites", "must hold a satellite where there is no other access"
            )

    def _check_traffic(self) -> None:
        stations = {station.name for station in self.stations}
        for flow in self.traffic:
            if flow.user not in stations:
                raise ScenarioError(
                    "traffic.user", f"must be a station, but {flow.user!r} is none", flow.user
                )
            if flow.host != self.host:
                raise ScenarioError(
                    "traffic.host", f"must be the host {self.host!r}, not {flow.host!r}", flow.host
                )
            if flow.start_s + flow.duration_s > self.duration_s:
                raise ScenarioError(
                    "traffic.duration_s",
                    f"must end within the run of {self.duration_s:g} s, but {flow.user} sends "
                    f"until {flow.start_s + flow.duration_s:g} s",
                    flow.duration_s,
                )
