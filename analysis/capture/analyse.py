"""From captures alone, without a run directory, to figures: anybody's MPTCP or TCP traffic."""

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from analysis.capture.clock import ClockRelation
from analysis.capture.places import (
    CLIENT,
    SERVER,
    Group,
    Place,
    groups,
    nearness,
    position,
)
from analysis.capture.quality import quality
from analysis.capture.result import (
    CaptureAnalysis,
    ConnectionResult,
    DirectionResult,
    Fairness,
    HeadOfLine,
    PlaceResult,
    ReorderingResult,
    SignalResult,
    SubflowDirection,
    SubflowResult,
    Summary,
)
from analysis.transfer.arrival import reordering, waiting
from analysis.transfer.direction import Answers, Direction, Sent
from analysis.transfer.interruption import Interruption
from analysis.transfer.rates import jain_over_time, rates_bps, step_s
from analysis.transfer.roundtrip import RoundTrips, from_acknowledgments, from_timestamps
from analysis.transfer.stalls import Stalls
from analysis.transfer.trace import (
    Line,
    Trace,
    covering,
    flight_bytes,
    line,
    quantiles,
    rates_of,
    repeat_kinds,
    repeats_over_time,
    sequence_points,
)
from captures import (
    Capture,
    Connection,
    Endpoint,
    Packets,
    Subflow,
    SubflowTraffic,
    read,
)
from captures.checksums import Checksums
from captures.packets import SYN

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

LISTED_GAP_S = 0.5
DRAWN_TRANSFERS = 6
"""Directions with most data that get series for figures."""

_SMALLEST_DRAWN_BYTES = 2000
# Of large captures, whose columns are in files: after so many they are given back.
_KEPT_PACKETS = 1_000_000
# Shares of a short time differ by chance.
_FAIRNESS_STEPS = 50
_FAIRNESS_DIGITS = 6


def analyse_captures(
    files: Iterable[str | Path | Capture],
    *,
    listed_gap_s: float = LISTED_GAP_S,
    same_clock: bool | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> CaptureAnalysis:
    """Measure the connections in captures, of any program and any network.

    Parameters
    ----------
    files : iterable of path or Capture
        pcap or pcapng. Files of one host are read as one; files of two hosts that hold the same
        packets become a pair, in which one-way delays and losses are measured.
    listed_gap_s : float
        Stalls of the in-order data that are longer are listed as interruptions.
    same_clock : bool or None
        Whether two places were stamped by the same clock. ``None``: they are taken to be as long
        as no packet contradicts, and corrected by the estimate otherwise.
    progress : callable, optional
        Called with what is being done, and how much of it is done (0 to 1).

    Returns
    -------
    CaptureAnalysis

    Raises
    ------
    OSError
        If a file cannot be opened.
    PlacesError
        If the same packets are in files of more than two places.
    """
    tell = progress or (lambda what, share: None)
    given = list(files)
    captures: list[Capture] = []
    for index, each in enumerate(given):
        tell("reading", index / len(given))
        captures.append(each if isinstance(each, Capture) else read(each))
    tell("finding connections", 0.0)
    found = groups(captures, same_clock=same_clock)
    measured: list[ConnectionResult] = []
    places: list[PlaceResult] = []
    fairness: list[Fairness] = []
    drawn = _Drawn()
    looked_at = total = 0
    whole = max(sum(len(group.places[0].packets) for group in found), 1)
    for group in found:
        first_place = len(places)
        origin_ns = _origin_ns(group)
        for index, where in enumerate(group.places):
            places.append(
                PlaceResult(
                    files=where.files,
                    start_epoch_s=(
                        int(where.packets.time_ns[0]) / 1e9 if len(where.packets) else 0.0
                    ),
                    clock=group.clock if index else None,
                )
            )
        measure = _Measure(group, origin_ns, listed_gap_s, first_place)
        competing = _Competing(group, origin_ns)
        for views in _views(group):
            tell("measuring", min(total / whole, 1.0))
            drawn.add(views.captured_bytes)
            competing.add(views)
            measured.append(measure.connection(views, drawn.from_bytes))
            # The next one is made while this name would still hold this one.
            del views
            packets = sum(
                way.packets
                for each in measured[-1].subflows
                for way in (each.client_to_server, each.server_to_client)
            )
            looked_at, total = looked_at + packets, total + packets
            if looked_at > _KEPT_PACKETS:
                looked_at = 0
                for where in group.places:
                    where.packets.release()
        fairness += competing.fairness(first_place)
    measured = [drawn.only(each) for each in measured]
    tell("measuring", 1.0)
    return CaptureAnalysis(
        files=tuple(quality(each) for each in captures),
        places=tuple(places),
        connections=tuple(measured),
        tcp_streams=sum(len(group.places[0].streams) for group in found),
        unmapped_bytes=sum(
            each.client_to_server.unmapped_bytes + each.server_to_client.unmapped_bytes
            for each in measured
        ),
        fairness=tuple(fairness),
        remarks=tuple(_remarks(captures, found, measured)),
        listed_gap_s=listed_gap_s,
    )


@dataclass(frozen=True)
class _Views:
    """A connection as each place of its group saw it; at least one did."""

    near_client: Connection | None
    near_server: Connection | None = None

    @property
    def any(self) -> Connection:
        found = self.near_client or self.near_server
        assert found is not None
        return found

    @property
    def captured_bytes(self) -> tuple[int, int]:
        return self.any.forward.captured_bytes, self.any.backward.captured_bytes


def _views(group: Group) -> Iterator[_Views]:
    first = group.places[0]
    if len(group.places) == 1:
        # Unlike a comprehension, this holds no connection while the next one is made.
        return map(_Views, first.each_connection())
    second = group.places[1]
    partner = _partners(group)
    taken = set(partner.values())
    found = [
        _Views(each, second.connections[partner[index]] if index in partner else None)
        for index, each in enumerate(first.connections)
    ]
    rest = [
        _Views(None, each) for index, each in enumerate(second.connections) if index not in taken
    ]
    return iter(found + rest)


def _partners(group: Group) -> dict[int, int]:
    """For each connection of the first place the one of the second with the same packets."""
    first, second = group.places
    here = _numbers(first)[group.sent_row]
    there = _numbers(second)[group.received_row]
    known = (here >= 0) & (there >= 0)
    pairs, counts = np.unique(
        np.stack([here[known], there[known]], axis=1), axis=0, return_counts=True
    )
    partner: dict[int, int] = {}
    for (a, b), _ in sorted(zip(pairs.tolist(), counts.tolist(), strict=True), key=lambda e: -e[1]):
        if a not in partner and b not in partner.values():
            partner[a] = b
    return partner


def _numbers(one: Place) -> I64:
    """For each packet the number of its connection."""
    numbers = np.full(len(one.packets), -1, dtype=np.int64)
    for index, connection in enumerate(one.connections):
        forward, _ = one.directions(connection)
        for sent in forward.subflows:
            numbers[sent.rows] = index
            numbers[sent.opposite_rows] = index
    return numbers


def _origin_ns(group: Group) -> int:
    firsts = [int(each.packets.time_ns[0]) for each in group.places if len(each.packets)]
    return min(firsts, default=0)


class _Drawn:
    """Tells which directions are drawn, though connections come one by one."""

    def __init__(self) -> None:
        self._largest: list[int] = []

    def add(self, sizes: Iterable[int]) -> None:
        self._largest = heapq.nlargest(DRAWN_TRANSFERS, [*self._largest, *sizes])

    @property
    def from_bytes(self) -> int:
        """From how many bytes on a direction is drawn, as far as is known: it only rises."""
        return max(self._largest[-1] if self._largest else 0, _SMALLEST_DRAWN_BYTES)

    def only(self, found: ConnectionResult) -> ConnectionResult:
        """The connection without the series of what turned out to be too small."""
        there, back = (
            each if each.captured_bytes >= self.from_bytes else replace(each, trace=None)
            for each in (found.client_to_server, found.server_to_client)
        )
        return replace(found, client_to_server=there, server_to_client=back)


class _Measure:
    """Measures the connections of one group."""

    def __init__(self, group: Group, origin_ns: int, listed_gap_s: float, first_place: int) -> None:
        self._group, self._origin_ns, self._gap_s = group, origin_ns, listed_gap_s
        self._first_place = first_place
        first, second = group.places[0], group.places[-1]
        self._delay_s: F64 | None = None
        self._lost: tuple[Mask, Mask] | None = None
        if len(group.places) == 2:
            # Of each packet of the first place, on its way between the two.
            delay = np.full(len(first.packets), np.nan)
            delay[group.sent_row] = (
                second.packets.time_ns[group.received_row] - first.packets.time_ns[group.sent_row]
            ) / 1e9
            self._delay_s = delay
            self._lost = self._losses()

    def _losses(self) -> tuple[Mask, Mask]:
        """Packets of either place that the other did not see while it recorded."""
        group = self._group
        missing: list[Mask] = []
        for here, there, matched in (
            (group.places[0], group.places[1], group.sent_row),
            (group.places[1], group.places[0], group.received_row),
        ):
            unseen = np.ones(len(here.packets), dtype=np.bool_)
            unseen[matched] = False
            if here is group.places[0]:
                unseen[group.ambiguous_row] = False
            times = here.packets.time_ns
            if len(there.packets):
                recorded = (times >= there.packets.time_ns[0]) & (
                    times <= there.packets.time_ns[-1]
                )
                unseen &= recorded
            missing.append(unseen)
        return missing[0], missing[1]

    def _s(self, time_ns: I64) -> F64:
        found: F64 = (time_ns - self._origin_ns) / 1e9
        return found

    def connection(self, views: _Views, drawn_bytes: int) -> ConnectionResult:
        """All figures of one connection."""
        places = self._group.places
        seen = [
            _Seen(
                index,
                where,
                connection,
                where.directions(connection),
                (
                    tuple(each.forward for each in connection.subflows),
                    tuple(each.backward for each in connection.subflows),
                ),
            )
            for index, (where, connection) in enumerate(
                zip(places, (views.near_client, views.near_server), strict=False)
            )
            if connection is not None
        ]
        subflows, seen = _aligned(seen)
        first, last = seen[0], seen[-1]
        connection = first.connection
        near = nearness(first.place, connection)
        where = connection.capture_side or position(near) if len(seen) == 1 else None
        both = [
            _Both(
                sent=source.directions[number],
                traffic=source.traffic[number],
                sent_at=source.place,
                arrived=target.directions[number],
                at_first=first.directions[number],
                near_sender=len(seen) == 2 or where == (CLIENT, SERVER)[number],
                near_receiver=where == (SERVER, CLIENT)[number],
                onwards=number == 0,
                paired=len(seen) == 2,
                opened_ns=connection.opened_ns,
            )
            for number, source, target in ((0, first, last), (1, last, first))
        ]
        return ConnectionResult(
            protocol=connection.protocol,
            version=connection.version,
            fallback=any(each.connection.fallback for each in seen),
            client=str(connection.client),
            server=str(connection.server),
            client_token=connection.client_token,
            server_token=connection.server_token,
            origin_s=self._origin_ns / 1e9,
            seen_at=tuple(self._first_place + each.number for each in seen),
            capture_side=where,
            round_trip_to_client_s=near[0] if near else None,
            round_trip_to_server_s=near[1] if near else None,
            closed=connection.closed,
            opened_s=(min(each.connection.opened_ns for each in seen) - self._origin_ns) / 1e9,
            last_s=(max(each.connection.last_ns for each in seen) - self._origin_ns) / 1e9,
            subflows=tuple(
                self._subflow(index, subflow, first, both) for index, subflow in enumerate(subflows)
            ),
            signals=tuple(
                SignalResult(
                    time_s=(each.time_ns - self._origin_ns) / 1e9,
                    what=each.what,
                    subflow=each.subflow,
                    direction="client_to_server" if each.forward else "server_to_client",
                    fields=each.fields,
                )
                for each in connection.signals
            ),
            client_to_server=self._direction(both[0], subflows, drawn_bytes),
            server_to_client=self._direction(both[1], subflows, drawn_bytes),
        )

    def _direction(
        self, both: "_Both", subflows: Sequence[Subflow], drawn_bytes: int
    ) -> DirectionResult:
        sent, arrived = both.sent.flow, both.arrived.flow
        stalls = Stalls(
            arrived=both.arrived,
            sent=both.sent if both.near_sender else None,
            answering=both.sent_at.packets,
            answers_of=both.sent,
        )
        _, lengths_ns = stalls.lengths()
        progress = arrived.time_ns[np.diff(arrived.in_order, prepend=0) > 0]
        start_s = end_s = None
        if len(sent.time_ns) and len(progress):
            start_s = (int(min(sent.time_ns[0], arrived.time_ns[0])) - self._origin_ns) / 1e9
            end_s = (int(progress[-1]) - self._origin_ns) / 1e9
        acknowledged = max(sent.acknowledged_bytes, arrived.acknowledged_bytes)
        end_bytes = arrived.end_bytes if arrived.end_bytes is not None else sent.end_bytes
        announced = max(arrived.announced_bytes, sent.announced_bytes)
        figures = {
            "announced": announced,
            "captured": arrived.captured_bytes,
            "in_order": arrived.in_order_bytes,
            "acknowledged": acknowledged,
        }
        goodput = None
        if start_s is not None and end_s is not None and end_s > start_s:
            goodput = {name: 8 * size / (end_s - start_s) for name, size in figures.items()}
        complete = end_bytes is not None and acknowledged >= end_bytes
        finished = None
        if complete and end_bytes:
            answers = both.sent.answers
            at = int(np.searchsorted(answers.acknowledged, end_bytes))
            if at < len(answers.time_ns):
                finished = (int(answers.time_ns[at]) - both.opened_ns) / 1e9
        payload = int(sum(each.length.sum() for each in both.arrived.subflows))
        trips = _data_round_trips(both.sent)
        size = arrived.captured_bytes
        return DirectionResult(
            payload_bytes=payload,
            announced_bytes=announced,
            captured_bytes=size,
            in_order_bytes=arrived.in_order_bytes,
            acknowledged_bytes=acknowledged,
            goodput_bps=goodput,
            unmapped_bytes=arrived.unmapped_bytes,
            end_bytes=end_bytes,
            complete=complete,
            start_s=start_s,
            end_s=end_s,
            completion_time_s=finished,
            **{name: sum(getattr(each, name) for each in both.traffic) for name in _REPEATS},
            redundant_bytes=payload - arrived.unmapped_bytes - size,
            longest_stall_s=float(lengths_ns.max()) / 1e9 if len(lengths_ns) else None,
            interruptions=tuple(
                Interruption(
                    (each.start_ns - self._origin_ns) / 1e9,
                    (each.end_ns - each.start_ns) / 1e9,
                    each.cause,
                )
                for each in stalls.longer_than(self._gap_s)
            ),
            data_round_trip=summary(trips.rtt_s),
            reordering=_reordering(both.arrived),
            head_of_line=_head_of_line(both.arrived),
            trace=self._trace(both, subflows, trips) if size >= drawn_bytes else None,
        )

    def _subflow(
        self, index: int, subflow: Subflow, first: "_Seen", both: "list[_Both]"
    ) -> SubflowResult:
        here = first.directions[0].subflows[index]
        rows = np.concatenate([here.rows, here.opposite_rows])
        there, back = (self._one_way(index, each) for each in both)
        return SubflowResult(
            client=str(subflow.client),
            server=str(subflow.server),
            join=subflow.joined,
            by_server=subflow.by_server,
            verified=subflow.verified,
            backup=subflow.backup,
            closed=subflow.closed,
            interfaces=tuple(interface_names(first.place, rows)),
            opened_s=(subflow.opened_ns - self._origin_ns) / 1e9,
            last_s=(subflow.last_ns - self._origin_ns) / 1e9,
            handshake_s=_handshake_s(first.place.packets, here),
            client_to_server=there,
            server_to_client=back,
        )

    def _one_way(self, index: int, both: "_Both") -> SubflowDirection:
        sent, packets = both.sent.subflows[index], both.sent_at.packets
        stamps = _echoes(packets, sent.rows, sent.opposite_rows)
        active_s = float(np.ptp(sent.time_ns)) / 1e9 if len(sent.time_ns) else 0.0
        payload = int(sent.length.sum())
        flight_ns, flight = flight_bytes(sent)
        arrived = both.arrived.flow
        lost = None
        if both.paired and self._lost is not None:
            lost = int(self._lost[0 if both.onwards else 1][sent.data_row].sum())
        return SubflowDirection(
            packets=len(sent.rows),
            data_packets=len(sent.data_row),
            payload_bytes=payload,
            fresh_bytes=int(arrived.fresh[arrived.subflow == index].sum()),
            throughput_bps=8 * payload / active_s if active_s > 0 else None,
            **{name: getattr(both.traffic[index], name) for name in _REPEATS},
            lost_packets=lost,
            round_trip=summary(_round_trips(sent).rtt_s),
            timestamp_round_trip=summary(stamps.rtt_s),
            one_way_delay=summary(self._delays_s(index, both)),
            largest_flight_bytes=int(flight.max(initial=0)),
            mean_flight_bytes=_mean_over_time(flight_ns, flight),
        )

    def _delays_s(self, index: int, both: "_Both") -> F64:
        """One-way delays of the data packets of one subflow."""
        if self._delay_s is None or not both.paired:
            return np.zeros(0)
        found = self._delay_s[both.at_first.subflows[index].data_row]
        found = found[~np.isnan(found)]
        return found if both.onwards else -found

    def _trace(self, both: "_Both", subflows: Sequence[Subflow], trips: RoundTrips) -> Trace:
        sent, arrived = both.sent.flow, both.arrived.flow
        paths = tuple(path_names(subflows))
        sent_s, arrived_s = self._s(sent.time_ns), self._s(arrived.time_ns)
        both_s = np.concatenate([sent_s, arrived_s])
        edges = covering([both_s], step_s(float(np.ptp(both_s))))
        arriving, goodput = rates_of(
            arrived_s, arrived.fresh, arrived.in_order, arrived.subflow, len(paths), edges
        )
        kind = repeat_kinds(both.sent.flow)
        delays: dict[str, F64] = {}
        trips_s: dict[str, F64] = {}
        flight: dict[str, Line] = {}
        for index, (path, each) in enumerate(zip(paths, both.sent.subflows, strict=True)):
            samples = (
                _echoes(both.sent_at.packets, each.opposite_rows, each.rows)
                if both.near_receiver
                else _round_trips(each)
            ).rtt_s
            if len(samples):
                trips_s[path] = quantiles(samples)
            samples = self._delays_s(index, both)
            if len(samples):
                delays[path] = quantiles(samples)
            moments, outstanding = flight_bytes(each)
            if outstanding.any():
                flight[path] = line(self._s(moments), outstanding)
        if len(subflows) > 1 and len(trips.rtt_s) and not both.near_receiver:
            trips_s["data level"] = quantiles(trips.rtt_s)
        held = waiting(
            arrived.time_ns, arrived.position, arrived.length, arrived.fresh, arrived.in_order
        )
        return Trace(
            paths=paths,
            edges_s=edges,
            arriving_bps=arriving,
            goodput_bps=goodput,
            points=sequence_points(sent_s, sent.position, sent.length, sent.subflow, kind),
            delays_s=delays,
            round_trips_s=trips_s,
            repeats=repeats_over_time(sent_s, kind, edges),
            flight=flight,
            waiting=line(arrived_s, held.waiting_bytes) if held.waiting_bytes.any() else None,
        )


_REPEATS = ("retransmissions", "reinjections", "resends", "redundant")


@dataclass(frozen=True)
class _Seen:
    """A connection as one place saw it."""

    number: int
    place: Place
    connection: Connection
    directions: tuple[Direction, Direction]
    traffic: tuple[tuple[SubflowTraffic, ...], tuple[SubflowTraffic, ...]]


@dataclass(frozen=True)
class _Both:
    """One direction as it was sent and as it arrived; the same where there is one place.

    `near_sender`: `sent` is what left the sender, not what was left of it on the way.
    `near_receiver`: round trips to the receiver say nothing, those to the sender do.
    """

    sent: Direction
    traffic: tuple[SubflowTraffic, ...]
    sent_at: Place
    arrived: Direction
    at_first: Direction
    near_sender: bool
    near_receiver: bool
    onwards: bool
    paired: bool
    opened_ns: int


_NONE = np.zeros(0, dtype=np.int64)
_NOT_SEEN = Sent(
    _NONE, _NONE, _NONE, _NONE, _NONE, _NONE, _NONE.astype(np.bool_), Answers(_NONE, _NONE, _NONE)
)


_NO_TRAFFIC = SubflowTraffic(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, Checksums())


def _aligned(seen: list[_Seen]) -> tuple[list[Subflow], list[_Seen]]:
    """All subflows that any place saw, and the views with their subflows in that order."""
    ends = [[(sub.client, sub.server) for sub in each.connection.subflows] for each in seen]
    if all(each == ends[0] for each in ends):
        return list(seen[0].connection.subflows), seen
    order = list(dict.fromkeys(end for each in ends for end in each))
    known: dict[tuple[Endpoint, Endpoint], Subflow] = {}
    for each, own in zip(seen, ends, strict=True):
        for end, subflow in zip(own, each.connection.subflows, strict=True):
            known.setdefault(end, subflow)
    views: list[_Seen] = []
    for each, own in zip(seen, ends, strict=True):
        # Where an end was used twice, the last one counts.
        new_number = np.array([order.index(end) for end in own], dtype=np.int64)
        there, back = (
            replace(
                direction,
                flow=replace(direction.flow, subflow=new_number[direction.flow.subflow]),
                subflows=tuple(
                    direction.subflows[own.index(end)] if end in own else _NOT_SEEN for end in order
                ),
            )
            for direction in each.directions
        )
        out, home = (
            tuple(traffic[own.index(end)] if end in own else _NO_TRAFFIC for end in order)
            for traffic in each.traffic
        )
        views.append(replace(each, directions=(there, back), traffic=(out, home)))
    return [known[end] for end in order], views


def path_names(subflows: Sequence[Subflow]) -> list[str]:
    """What tells subflows apart, as short as it can be: the client's addresses, usually."""
    for name in (
        lambda each: each.client.address,
        lambda each: each.server.address,
        lambda each: str(each.client),
        lambda each: f"{each.client} → {each.server}",
    ):
        names = [name(each) for each in subflows]
        if len(set(names)) == len(names):
            return names
    return [f"{each.client} ({index + 1})" for index, each in enumerate(subflows)]


def interface_names(where: Place, rows: I64) -> list[str]:
    """Names of the interfaces that recorded these packets of a place."""
    used = np.unique(where.packets.interface[rows]).tolist()
    if len(where.captures) > 1:
        return [where.captures[each].path.name for each in used]
    known = where.captures[0].interfaces
    names = [known[each].name if each < len(known) else "" for each in used]
    return [name for name in names if name]


def summary(samples_s: F64) -> Summary | None:
    """Some samples in short; ``None`` for none."""
    if not len(samples_s):
        return None
    low, median, high, top = np.percentile(samples_s, [0, 50, 95, 100]).tolist()
    return Summary(len(samples_s), low, float(samples_s.mean()), median, high, top)


def _round_trips(sent: Sent) -> RoundTrips:
    return from_acknowledgments(
        sent.time_ns,
        sent.start,
        sent.start + sent.length,
        sent.repeated,
        sent.answers.time_ns,
        sent.answers.acknowledged,
    )


def _echoes(packets: Packets, rows: I64, opposite: I64) -> RoundTrips:
    return from_timestamps(
        packets.time_ns[rows],
        packets.time_value[rows],
        packets.time_ns[opposite],
        packets.time_echo[opposite],
    )


def _data_round_trips(sent: Direction) -> RoundTrips:
    flow = sent.flow
    return from_acknowledgments(
        flow.time_ns,
        flow.position,
        flow.position + flow.length,
        flow.fresh < flow.length,
        sent.answers.time_ns,
        sent.answers.acknowledged,
    )


def _mean_over_time(time_ns: I64, value: I64) -> float | None:
    if len(time_ns) < 2 or time_ns[-1] <= time_ns[0]:
        return None
    return float((value[:-1] * np.diff(time_ns)).sum() / (time_ns[-1] - time_ns[0]))


def _handshake_s(packets: Packets, there: Sent) -> float | None:
    """From the SYN to its answer, seen from the place of the capture."""
    syn = there.rows[packets.flags[there.rows] & SYN != 0]
    answer = there.opposite_rows[packets.flags[there.opposite_rows] & SYN != 0]
    if not len(syn) or not len(answer):
        return None
    taken = int(packets.time_ns[answer[0]] - packets.time_ns[syn[0]]) / 1e9
    return taken if taken >= 0 else None


def _reordering(arrived: Direction) -> ReorderingResult | None:
    flow = arrived.flow
    if not len(flow.row):
        return None
    found = reordering(flow.time_ns, flow.position, flow.fresh, flow.subflow)
    pieces = len(found.extent)
    return ReorderingResult(
        pieces=pieces,
        ratio=pieces / max(int((flow.fresh > 0).sum()), 1),
        over_other_subflow=int(found.other_subflow.sum()),
        largest_extent=int(found.extent.max(initial=0)),
        mean_extent=float(found.extent.mean()) if pieces else None,
        largest_late_s=float(found.late_s.max()) if pieces else None,
    )


def _head_of_line(arrived: Direction) -> HeadOfLine | None:
    flow = arrived.flow
    if not len(flow.row):
        return None
    found = waiting(flow.time_ns, flow.position, flow.length, flow.fresh, flow.in_order)
    known = ~np.isnan(found.wait_s)
    sizes = flow.fresh[flow.fresh > 0][known]
    waits = found.wait_s[known]
    return HeadOfLine(
        blocked_s=found.blocked_s,
        mean_wait_s=float((waits * sizes).sum() / sizes.sum()) if sizes.sum() else None,
        longest_wait_s=float(waits.max()) if len(waits) else None,
        largest_waiting_bytes=int(found.waiting_bytes.max()),
    )


@dataclass(frozen=True)
class _Moved:
    """Progress of a transfer in short times: when, how many bytes, and its whole time."""

    at_s: F64
    size: I64
    first_s: float
    last_s: float


class _Competing:
    """Collects the transfers of each direction, to tell how equally they shared."""

    def __init__(self, group: Group, origin_ns: int) -> None:
        self._origin_ns = origin_ns
        self._moved: dict[bool, list[_Moved]] = {True: [], False: []}
        # Data is counted where it arrives, as far as there is a choice.
        self._place = {True: len(group.places) - 1, False: 0}
        span_ns = max(
            (int(np.ptp(each.packets.time_ns)) for each in group.places if len(each.packets)),
            default=0,
        )
        # A power of ten: every step that may be chosen is a multiple of it.
        self._grain_ns = 10 ** max(len(str(span_ns)) - _FAIRNESS_DIGITS, 0)

    def add(self, views: _Views) -> None:
        for forward, moved in self._moved.items():
            connection = views.near_server if self._place[forward] else views.near_client
            flow = connection and (connection.forward if forward else connection.backward)
            if not flow or flow.captured_bytes < _SMALLEST_DRAWN_BYTES:
                continue
            advanced = np.diff(flow.in_order, prepend=0)
            rising = np.flatnonzero(advanced)
            grains, number = np.unique(
                (flow.time_ns[rising] - self._origin_ns) // self._grain_ns, return_inverse=True
            )
            size = np.zeros(len(grains), dtype=np.int64)
            np.add.at(size, number, advanced[rising])
            moved.append(
                _Moved(
                    at_s=(grains + 0.5) * (self._grain_ns / 1e9),
                    size=size,
                    first_s=(int(flow.time_ns.min()) - self._origin_ns) / 1e9,
                    last_s=(int(flow.time_ns.max()) - self._origin_ns) / 1e9,
                )
            )

    def fairness(self, first_place: int) -> list[Fairness]:
        """Jain's index of the transfers of each direction, where there are several."""
        found: list[Fairness] = []
        for forward, moved in self._moved.items():
            if len(moved) < 2:
                continue
            whole = np.array(
                [min(each.first_s for each in moved), max(each.last_s for each in moved)]
            )
            edges = covering([whole], step_s(float(np.ptp(whole)), _FAIRNESS_STEPS))
            rates = np.stack([rates_bps(each.at_s, each.size, edges) for each in moved])
            active = np.stack(
                [(edges[1:] > each.first_s) & (edges[:-1] < each.last_s) for each in moved]
            )
            index = jain_over_time(rates, active)
            if np.isfinite(index).any():
                found.append(
                    Fairness(
                        place=first_place + self._place[forward],
                        direction="client_to_server" if forward else "server_to_client",
                        edges_s=edges.tolist(),
                        index=index.tolist(),
                        mean=float(np.nanmean(index)),
                    )
                )
        return found


def _remarks(
    captures: Sequence[Capture], found: Sequence[Group], measured: Sequence[ConnectionResult]
) -> list[str]:
    remarks: list[str] = []
    for each in captures:
        remarks += [f"{each.path.name}: {remark}" for remark in each.remarks]
        if each.dropped:
            remarks.append(f"{each.path.name}: the recorder dropped {each.dropped} packets")
    if len(found) > 1:
        remarks.append(
            f"the files are of {len(found)} different networks or times: no connection is in both"
        )
    for group in found:
        if group.clock is not None:
            remarks.append(clock_sentence(group.clock))
    if not any(len(each.packets) for each in captures):
        remarks.append("no TCP packet in the files: nothing to measure")
    late = [each for each in measured if each.protocol == "mptcp" and each.version is None]
    if late:
        remarks.append(
            f"{len(late)} multipath connections were opened before the capture or elsewhere: "
            "their version is not known, and their data counts from the first that was seen"
        )
    return remarks


def clock_sentence(clock: ClockRelation) -> str:
    """What is known about two clocks, in one sentence."""
    low, high = 1e3 * clock.lowest_offset_s, 1e3 * clock.highest_offset_s
    bounds = f"between {low:+.3f} and {high:+.3f} ms"
    if np.isinf(clock.uncertainty_s):
        bounds = f"at most {high:+.3f} ms" if np.isinf(low) else f"at least {low:+.3f} ms"
    skew = (
        f"{1e6 * clock.skew:+.2f} ± {1e6 * clock.skew_uncertainty:.2f} ppm"
        if clock.skew_known
        else "none that can be told"
    )
    done = "times are corrected by it" if clock.applied else "times are left as recorded"
    why = ", as no packet contradicts one clock" if clock.may_be_one_clock else ""
    broken = (
        ""
        if clock.consistent
        else "; the packets contradict each other: a clock was set, or the two drift apart"
    )
    return (
        f"the second place’s clock is {1e3 * clock.offset_s:+.3f} ms ahead if the shortest delays "
        f"of both ways are equal, and {bounds} whatever they are; skew {skew}; {done}{why}{broken}"
    )
