"""One user's figures from captures: goodput, interruptions, delays, what each path carried."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from analysis.run.directory import Event, JsonObject, count, mapping
from analysis.run.result import PathShare, Series, UserResult
from analysis.run.story import LinkChange, Timeline
from analysis.transfer.interruption import Interruption
from analysis.transfer.rates import step_s
from analysis.transfer.trace import (
    Trace,
    covering,
    quantiles,
    repeat_kinds,
    repeats_over_time,
    sequence_points,
)
from captures import Connection, DataFlow, Packets, one_way_delays

# iperf3 opens both of its connections with a cookie of this many bytes.
COOKIE_BYTES = 37
# Gaps longer than this are listed as interruptions.
LISTED_GAP_S = 0.5
# How long after an event a gap may begin that the event explains.
_EVENT_MARGIN_S = 2.0
_START_UP_S = 2.0
_STEP_S = 1.0
_LONGEST_SERIES_S = 100_000.0
# More than a control connection ever carries.
_BULK_BYTES = 65_536
_HANDOVER_KINDS = ("handover", "association")
_NO_GAP: tuple[float | None, str | None] = (None, None)

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]


@dataclass(frozen=True)
class Clock:
    """Turns capture time into run time."""

    epoch_ns: int

    def run_time(self, time_ns: I64) -> F64:
        """Seconds since the traffic began."""
        return (time_ns - self.epoch_ns) / 1e9


@dataclass(frozen=True)
class Interface:
    """A user's interface as the plan has it."""

    name: str
    via: str
    address: str


@dataclass(frozen=True)
class Recorded:
    """What one side recorded: packets in order of time, and the connections in them.

    Attributes
    ----------
    missing : frozenset of int
        Positions of its interfaces without a capture.
    cut : frozenset of int
        Those whose capture was cut off or damaged.
    until_ns : int or None
        Where the first of the cut captures ends; ``None`` if none is cut.
    dropped : int
        Packets that its recorders dropped.
    """

    packets: Packets
    connections: tuple[Connection, ...]
    missing: frozenset[int] = frozenset()
    cut: frozenset[int] = frozenset()
    until_ns: int | None = None
    dropped: int = 0

    @property
    def whole(self) -> bool:
        """Whether every interface was recorded to the end."""
        return not self.missing and not self.cut


@dataclass(frozen=True)
class Surroundings:
    """What a user's figures need to know about the run.

    Attributes
    ----------
    clock : Clock
    events : list of Event
    end_s : float
        Run time at which the recording ended.
    stalls : list of (float, float)
        Run times between which the machine stood still.
    changes : list of LinkChange
        When links of users came and went.
    """

    clock: Clock
    events: list[Event]
    end_s: float
    stalls: list[tuple[float, float]]
    changes: list[LinkChange]


@dataclass(frozen=True)
class User:
    """A user as the plan has it, and what iperf3 said."""

    name: str
    port: int
    interfaces: tuple[Interface, ...]
    offered_bps: float | None
    start_s: float
    duration_s: float | None
    client: JsonObject
    server: JsonObject


class Measured(NamedTuple):
    """A user's figures, and what they were made from, as far as the host recorded it."""

    result: UserResult
    timeline: Timeline | None


def data_connection(recorded: Recorded | None, port: int) -> Connection | None:
    """The user's data connection: of those to this port, the one with the bulk.

    iperf3's control connection goes to the same port; it carries a few hundred bytes in both
    directions, the data connection carries data in one.
    """
    if recorded is None:
        return None
    found = [
        each
        for each in recorded.connections
        if each.server.port == port
        and (each.backward.captured_bytes == 0 or each.forward.captured_bytes > _BULK_BYTES)
    ]
    return max(found, key=lambda each: each.forward.captured_bytes, default=None)


def measure_user(
    user: User,
    host: Recorded | None,
    sender: Recorded | None,
    run: Surroundings,
    remarks: list[str],
) -> Measured:
    """All figures of one user.

    Parameters
    ----------
    user : User
    host, sender : Recorded or None
        The host's captures, and those of the user's interfaces (in the order of
        `user.interfaces`); ``None`` where there is none.
    run : Surroundings
    remarks : list of str
        Gets what the reader of the figures should know.

    Returns
    -------
    Measured
    """
    clock = run.clock
    at_host = data_connection(host, user.port)
    at_sender = data_connection(sender, user.port)
    iperf_bytes, error = _iperf(user.client)
    connection = at_host or at_sender
    # Whether captures would show everything that happened.
    whole = host is not None and host.whole and sender is not None and sender.whole
    completed, incomplete = _completion(iperf_bytes, error, at_host, at_sender, whole)
    if completed is None:
        remarks.append(f"{user.name}: not known whether the transfer completed: {incomplete}")
    elif not completed:
        remarks.append(f"{user.name}: the transfer did not complete ({incomplete})")
    if connection is None:
        remarks.append(f"{user.name}: no connection to port {user.port} in the captures")
        nothing = UserResult(
            goodput_bps=None,
            data_bytes=0,
            longest_interruption_s=None,
            interruptions=[],
            mean_packet_delay_s=None,
            p95_packet_delay_s=None,
            throughput_cov=None,
            subflows=[],
            offered_bps=user.offered_bps,
            iperf_bytes=iperf_bytes,
            completed=completed,
            incomplete=incomplete,
            iperf_error=error,
        )
        return Measured(nothing, None)
    if at_host is None:
        remarks.append(
            f"{user.name}: the host's capture lacks the data connection; "
            "no goodput, only what the user sent"
        )
    flow = connection.forward
    if flow.gaps and completed:
        remarks.append(
            f"{user.name}: the transfer completed, but its data has {flow.gaps} holes in the "
            "capture: packets were not recorded"
        )
    if flow.unmapped_bytes:
        remarks.append(f"{user.name}: {flow.unmapped_bytes} payload bytes without a data mapping")

    paths = _Paths(user, host, sender, at_host, at_sender)
    window = _sending_window(user, at_host, at_sender, clock, completed is True)
    goodput = to_end = cov = None
    longest = later = _NO_GAP
    interruptions: list[Interruption] = []
    series = timeline = None
    # Of a host with several interfaces one of which is not there, nothing is known at any time.
    if host is not None and at_host is not None and not host.missing:
        start_s, end_s = window
        known_until_s = run.end_s
        if host.until_ns is not None:
            cut_s = (host.until_ns - clock.epoch_ns) / 1e9
            known_until_s = min(known_until_s, cut_s)
            # What came after the damage is no interruption.
            end_s = min(end_s, cut_s)
            window = (start_s, end_s)
            remarks.append(
                f"{user.name}: the host's capture is cut off, figures are of the time "
                f"up to {end_s:.1f} s"
            )
        began = _first_payload((at_sender or at_host).forward) is not None
        if not began:
            remarks.append(f"{user.name}: no data after iperf3's cookie, the test never began")
        progress = _progress(at_host.forward, clock)
        if began and end_s > start_s and host.whole:
            to_end = 8 * at_host.forward.in_order_bytes / (end_s - start_s)
        if began:
            goodput = _goodput(user, at_host.forward, clock, known_until_s, to_end)
        gaps = _gaps(progress, start_s, end_s) if began else []
        explain = _Causes(user, run, start_s, sender, at_sender, paths)
        longest = _longest(gaps, explain, began)
        later = _longest([gap for gap in gaps if gap[0] - start_s >= _START_UP_S], explain, began)
        interruptions = [
            explain.interruption(gap, length) for gap, length in gaps if length > LISTED_GAP_S
        ]
        timeline = Timeline(
            arrived_s=clock.run_time(at_host.forward.time_ns),
            in_order=at_host.forward.in_order,
            via=paths.via_of(at_host.forward),
            links=tuple(paths.links),
            start_s=start_s,
            end_s=end_s,
            gaps=tuple(gaps),
            explain=explain.interruption,
            offered_bps=user.offered_bps,
        )
        cov = _variation(at_host.forward, clock, start_s, end_s)
        frame_bytes = host.packets.wire_bytes[at_host.forward.row].astype(np.int64)
        until_s = max(end_s, user.start_s + 1)
        series = _series(at_host.forward, frame_bytes, clock, paths, until_s)
    delays = paths.delay_s
    quantiles = np.linspace(0, 1, 101)
    result = UserResult(
        goodput_bps=goodput,
        data_bytes=flow.captured_bytes,
        goodput_to_end_bps=to_end,
        longest_interruption_s=longest[0],
        longest_interruption_cause=longest[1],
        longest_interruption_after_start_s=later[0],
        longest_interruption_after_start_cause=later[1],
        interruptions=interruptions,
        mean_packet_delay_s=float(delays.mean()) if len(delays) else None,
        p95_packet_delay_s=float(np.percentile(delays, 95)) if len(delays) else None,
        throughput_cov=cov,
        subflows=paths.shares(clock),
        offered_bps=user.offered_bps,
        iperf_bytes=iperf_bytes,
        completed=completed,
        incomplete=incomplete,
        bytes_agree=(flow.captured_bytes == iperf_bytes + COOKIE_BYTES)
        if completed and iperf_bytes is not None and host is not None and host.whole
        else None,
        iperf_error=error,
        protocol=connection.protocol,
        fallback=connection.fallback,
        closed=connection.closed,
        sending_start_s=window[0],
        sending_end_s=window[1],
        matched_packets=len(delays),
        lost_packets=paths.lost_packets,
        retransmissions=_repeats(sender, at_sender, ("retransmissions",)),
        reinjections=_repeats(sender, at_sender, ("reinjections", "resends")),
        resends=_repeats(sender, at_sender, ("resends",)),
        duplicate_bytes=int(flow.length.sum()) - flow.captured_bytes,
        delay_quantiles_s=np.quantile(delays, quantiles).tolist() if len(delays) else [],
        series=series,
        trace=_trace(at_sender, clock, paths),
    )
    return Measured(result, timeline)


def _repeats(
    sender: Recorded | None, connection: Connection | None, names: tuple[str, ...]
) -> int | None:
    if sender is None or not sender.whole or connection is None:
        return None
    return sum(int(getattr(each.forward, name)) for each in connection.subflows for name in names)


def _completion(
    iperf_bytes: int | None,
    error: str | None,
    at_host: Connection | None,
    at_sender: Connection | None,
    whole: bool,
) -> tuple[bool | None, str | None]:
    """Whether the transfer completed (None: not known), and why not."""
    if error is not None or iperf_bytes is None:
        return False, error
    arrived = at_host is not None and (
        at_host.forward.end_bytes is not None
        and at_host.forward.in_order_bytes >= at_host.forward.end_bytes
    )
    if arrived or any(each.forward.complete for each in (at_sender, at_host) if each is not None):
        return True, None
    if not whole:
        return None, "captures that would show its end are missing or cut off"
    ends = [each.closed for each in (at_sender, at_host) if each is not None]
    if not ends:
        return False, "its data connection was never opened"
    if "open" in ends and len(set(ends)) == 1:
        return False, "its connection was never closed"
    said = ", ".join(dict.fromkeys(end for end in ends if end != "open"))
    if at_host is not None and at_host.forward.captured_bytes >= iperf_bytes + COOKIE_BYTES:
        return False, f"its data had arrived, but its connection was not closed in order ({said})"
    return False, f"its connection ended ({said}) before all data had arrived"


def _goodput(
    user: User, flow: DataFlow, clock: Clock, known_until_s: float, to_end: float | None
) -> float | None:
    """Data that became complete in the user's own time of sending, seen where it arrives.

    The time is as long as the plan says and begins when the first data arrive, so that neither
    the delay of the path nor a queue that drains afterwards matters.
    """
    if user.duration_s is None:
        return to_end
    first_ns = _first_payload(flow)
    if first_ns is None:
        return 0.0
    first_s = (first_ns - clock.epoch_ns) / 1e9
    end_s = min(first_s + user.duration_s, known_until_s)
    if end_s <= first_s:
        return None
    at_s = clock.run_time(flow.time_ns)
    complete = int(flow.in_order[at_s <= end_s].max(initial=0))
    return 8 * max(complete - COOKIE_BYTES, 0) / (end_s - first_s)


def _iperf(client: JsonObject) -> tuple[int | None, str | None]:
    """Bytes iperf3's client says it sent, and its error."""
    error = client.get("error")
    if not client:
        return None, "no result of the iperf3 client"
    sent = count(mapping(mapping(client.get("end")).get("sum_sent")).get("bytes"))
    if sent is None:
        return None, str(error or "the iperf3 client's result has no end.sum_sent.bytes")
    return sent, str(error) if error else None


def _first_payload(flow: DataFlow) -> int | None:
    """Time of the first data after the cookie: iperf3 negotiates between the two."""
    after = np.flatnonzero(flow.position + flow.length > COOKIE_BYTES)
    return int(flow.time_ns[after[0]]) if len(after) else None


def _progress(flow: DataFlow, clock: Clock) -> F64:
    """Run times at which data beyond the cookie became complete at the host."""
    advanced = np.diff(flow.in_order, prepend=0) > 0
    return clock.run_time(flow.time_ns[advanced & (flow.in_order > COOKIE_BYTES)])


def _sending_window(
    user: User,
    at_host: Connection | None,
    at_sender: Connection | None,
    clock: Clock,
    completed: bool,
) -> tuple[float, float]:
    """From the first data that was sent to the last progress at the host.

    A transfer that did not complete counts as sending until its planned end, or until the
    captures end.
    """
    firsts = [
        first
        for each in (at_sender, at_host)
        if each is not None and (first := _first_payload(each.forward)) is not None
    ]
    start_s = (min(firsts) - clock.epoch_ns) / 1e9 if firsts else user.start_s
    progress = _progress(at_host.forward, clock) if at_host is not None else np.zeros(0)
    end_s = float(progress[-1]) if len(progress) else start_s
    if completed:
        return start_s, end_s
    seen = [each.last_ns for each in (at_sender, at_host) if each is not None]
    last_seen_s = (max(seen) - clock.epoch_ns) / 1e9
    planned_s = start_s + user.duration_s if user.duration_s else last_seen_s
    return start_s, max(end_s, min(planned_s, last_seen_s))


def _gaps(progress: F64, start_s: float, end_s: float) -> list[tuple[float, float]]:
    """Start and length of the times without progress within the sending window."""
    marks = np.unique(np.concatenate([[start_s], progress, [end_s]]))
    marks = marks[(marks >= start_s) & (marks <= end_s)]
    return list(zip(marks[:-1].tolist(), np.diff(marks).tolist(), strict=True))


def _longest(
    gaps: list[tuple[float, float]], explain: "_Causes", began: bool
) -> tuple[float | None, str | None]:
    """Length and cause of the longest gap; nothing if the test never began."""
    if not began:
        return _NO_GAP
    if not gaps:
        return 0.0, None
    start_s, length_s = max(gaps, key=lambda gap: gap[1])
    return length_s, explain(start_s, length_s)


def _went(event: Event) -> bool:
    """Whether a link went or came back, or the satellite behind it changed."""
    if event.kind == "link_change":
        return event.data.get("loss") == 1.0
    return event.kind in ("link_down", "link_up")


@dataclass(frozen=True)
class _Causes:
    """Explains gaps of a user."""

    user: User
    run: Surroundings
    sending_start_s: float
    sender: Recorded | None
    at_sender: Connection | None
    paths: "_Paths"

    def __call__(self, start_s: float, length_s: float) -> str:
        """What explains a gap; the first of the list in docs/analysis.md that applies."""
        user = self.user
        after, before = start_s - _EVENT_MARGIN_S, start_s + length_s
        if any(begin < before and end > start_s for begin, end in self.run.stalls):
            return "host stalled"
        near = [event for event in self.run.events if after <= event.t_s <= before]
        if any(each.node == user.name and each.kind in _HANDOVER_KINDS for each in near):
            return "handover"
        # Link events are told by the switch, or by the user's own side.
        places = {user.name, *(each.via for each in user.interfaces)}
        if any(each.node in places and _went(each) for each in near):
            return "link"
        if start_s - self.sending_start_s < _START_UP_S:
            return "start-up"
        if not self._recorded(before):
            return "not recorded"
        if self.at_sender is not None:
            flow = self.at_sender.forward
            sent_s = self.run.clock.run_time(flow.time_ns)
            during = (sent_s >= start_s) & (sent_s <= before)
            if not during.any():
                return "sender idle"
            around = (sent_s >= after) & (sent_s <= before)
            lost = np.isin(flow.row, self.paths.lost_rows)
            if (around & (lost | flow.retransmitted)).any():
                return "loss"
        return "queueing"

    def interruption(self, start_s: float, length_s: float) -> Interruption:
        """A gap with its cause, and when the event happened that explains it."""
        cause = self(start_s, length_s)
        end_s = start_s + length_s
        event_s = error_s = None
        if cause == "handover":
            # The last change before the gap ended.
            causing = [
                each
                for each in self.run.changes
                if each.user == self.user.name and each.after_s <= end_s
            ]
            if causing:
                event_s, error_s = causing[-1].event_s, causing[-1].error_s
        elif cause == "host stalled":
            stalled = [each for each in self.run.stalls if each[0] < end_s and each[1] > start_s]
            begin_s, stop_s = max(stalled, key=lambda each: each[1] - each[0])
            event_s, error_s = (begin_s + stop_s) / 2, (stop_s - begin_s) / 2
        return Interruption(start_s, length_s, cause, event_s, error_s)

    def _recorded(self, until_s: float) -> bool:
        """Whether the user's captures show all it sent up to this run time."""
        if self.sender is None or self.at_sender is None or self.sender.missing:
            return False
        if self.sender.until_ns is None:
            return True
        return until_s <= (self.sender.until_ns - self.run.clock.epoch_ns) / 1e9


def _variation(flow: DataFlow, clock: Clock, start_s: float, end_s: float) -> float | None:
    """Coefficient of variation of the new data in each full second of the sending window."""
    seconds = int(end_s - start_s)
    if seconds < 2:
        return None
    arrived, _ = np.histogram(
        clock.run_time(flow.time_ns),
        bins=start_s + np.arange(seconds + 1),
        weights=flow.fresh.astype(np.float64),
    )
    mean = float(arrived.mean())
    return float(arrived.std()) / mean if mean > 0 else None


def _trace(at_sender: Connection | None, clock: Clock, paths: "_Paths") -> Trace | None:
    """What left the user, for figures."""
    if at_sender is None or not len(at_sender.forward.row):
        return None
    flow = at_sender.forward
    time_s, kind = clock.run_time(flow.time_ns), repeat_kinds(flow)
    via = paths.via_of(flow, at_host=False)
    edges = covering([time_s], max(step_s(float(np.ptp(time_s))), _STEP_S))
    return Trace(
        paths=tuple(paths.links),
        edges_s=edges,
        points=sequence_points(time_s, flow.position, flow.length, via, kind),
        delays_s=paths.delay_distributions(flow, via),
        repeats=repeats_over_time(time_s, kind, edges),
    )


def _series(
    flow: DataFlow, frame_bytes: I64, clock: Clock, paths: "_Paths", end_s: float
) -> Series:
    """Rates over time; `frame_bytes` are those of the packet of each piece of `flow`."""
    times = clock.run_time(flow.time_ns)
    first = float(np.floor(min(times.min(), 0.0))) if len(times) else 0.0
    # Damaged time stamps must not make a series of years.
    last = min(np.ceil(end_s), first + _LONGEST_SERIES_S)
    bins = np.arange(first, max(last, first) + _STEP_S, _STEP_S)

    def rate(weights: I64, wanted: NDArray[np.bool_]) -> list[float]:
        summed, _ = np.histogram(times[wanted], bins=bins, weights=weights[wanted].astype(float))
        rates: list[float] = (8 * summed / _STEP_S).tolist()
        return rates

    everything = np.ones(len(times), dtype=np.bool_)
    via = paths.via_of(flow)
    # A packet that is in two pieces counts once.
    first_piece = np.diff(flow.row, prepend=-1) != 0
    median, high = paths.delay_series(clock, bins)
    return Series(
        start_s=float(bins[0]),
        step_s=_STEP_S,
        goodput_bps=rate(np.diff(flow.in_order, prepend=0), everything),
        arriving_bps={
            name: rate(flow.fresh, via == index) for index, name in enumerate(paths.links)
        },
        delay_s=median,
        delay_p95_s=high,
        frames_bps={
            name: rate(frame_bytes, (via == index) & first_piece)
            for index, name in enumerate(paths.links)
        },
    )


class _Paths:
    """Which interface each data packet left by, found by matching the two captures."""

    def __init__(
        self,
        user: User,
        host: Recorded | None,
        sender: Recorded | None,
        at_host: Connection | None,
        at_sender: Connection | None,
    ) -> None:
        self._user, self._at_host, self._at_sender = user, at_host, at_sender
        self._missing = sender.missing if sender is not None else frozenset()
        self._cut = sender.cut if sender is not None else frozenset()
        # What the host did not record is not lost.
        self._loss_known = host is not None and host.whole and host.dropped == 0
        self.links = list(dict.fromkeys(each.via for each in user.interfaces))
        self.delay_s: F64 = np.zeros(0)
        self.lost_rows: I64 = np.zeros(0, dtype=np.int64)
        self.lost_packets: int | None = None
        self._host_interface: I64 = np.zeros(0, dtype=np.int64)
        self._sender_interface: I64 = np.zeros(0, dtype=np.int64)
        self._delay_of_sent: F64 = np.zeros(0)
        if host is not None:
            self._host_interface = np.full(len(host.packets), -1, dtype=np.int64)
        if sender is not None:
            self._sender_interface = sender.packets.interface.astype(np.int64)
            self._delay_of_sent = np.full(len(sender.packets), np.nan)
        if host is None or sender is None or at_host is None or at_sender is None:
            return
        delays = one_way_delays(sender.packets, host.packets)
        self._host_interface[delays.received_row] = sender.packets.interface[delays.sent_row]
        self._delay_of_sent[delays.sent_row] = delays.delay_s
        data_rows = np.unique(at_sender.forward.row)
        here = self._delay_of_sent[data_rows]
        self.delay_s = here[~np.isnan(here)]
        self.lost_rows = np.intersect1d(data_rows, delays.lost_row)
        if self._loss_known and sender.whole:
            self.lost_packets = len(self.lost_rows)

    def interface_of(self, flow: DataFlow, *, at_host: bool) -> I64:
        """Index of the interface for each entry of a flow; by address where none matched."""
        known = self._host_interface if at_host else self._sender_interface
        found: I64 = known[flow.row] if len(known) else np.full(len(flow.row), -1, dtype=np.int64)
        connection = self._at_host if at_host else self._at_sender
        addresses = [each.address for each in self._user.interfaces]
        for index, subflow in enumerate(connection.subflows if connection is not None else ()):
            own = subflow.client.address
            if addresses.count(own) == 1:
                here = (flow.subflow == index) & (found < 0)
                found = np.where(here, addresses.index(own), found)
            elif at_host and len(self._missing) == 1:
                # What no other interface sent came from the one that was not recorded.
                (absent,) = self._missing
                found = np.where((flow.subflow == index) & (found < 0), absent, found)
        # The same address on several interfaces: as the packet before.
        last = np.maximum.accumulate(np.where(found >= 0, np.arange(len(found)), -1))
        return np.where(last >= 0, found[last], 0) if len(found) else found

    def via_of(self, flow: DataFlow, *, at_host: bool = True) -> I64:
        """Index into `links` for each entry of a flow."""
        of_interface = np.array(
            [self.links.index(each.via) for each in self._user.interfaces] or [0], dtype=np.int64
        )
        return of_interface[self.interface_of(flow, at_host=at_host)]

    def delay_distributions(self, flow: DataFlow, via: I64) -> dict[str, F64]:
        """One-way delays of what was sent over each link, as quantiles."""
        if not len(self._delay_of_sent):
            return {}
        rows, first = np.unique(flow.row, return_index=True)
        return {
            name: quantiles(self._delay_of_sent[rows[via[first] == index]])
            for index, name in enumerate(self.links)
        }

    def delay_series(
        self, clock: Clock, bins: F64
    ) -> tuple[dict[str, list[float | None]], dict[str, list[float | None]]]:
        """Median and 95th percentile of the delay of what was sent in each bin, for each link."""
        if self._at_sender is None or not len(self.delay_s):
            return {}, {}
        flow = self._at_sender.forward
        delay = self._delay_of_sent[flow.row]
        via = self.via_of(flow, at_host=False)
        place = np.digitize(clock.run_time(flow.time_ns), bins) - 1
        median: dict[str, list[float | None]] = {}
        high: dict[str, list[float | None]] = {}
        for index, name in enumerate(self.links):
            median[name], high[name] = [], []
            mine = (via == index) & ~np.isnan(delay)
            for step in range(len(bins) - 1):
                found = delay[mine & (place == step)]
                median[name].append(float(np.median(found)) if len(found) else None)
                high[name].append(float(np.percentile(found, 95)) if len(found) else None)
        return median, high

    def shares(self, clock: Clock) -> list[PathShare]:
        """What each subflow carried over each interface.

        What was sent comes from the sender's captures; for a subflow that is not in them, from
        the host's.
        """
        sides = [(self._at_sender, False), (self._at_host, True)]
        ends: dict[tuple[str, int], dict[bool, int]] = {}
        opened: dict[tuple[str, int], int] = {}
        for connection, at_host in sides:
            for index, subflow in enumerate(connection.subflows if connection else ()):
                end = (subflow.client.address, subflow.client.port)
                ends.setdefault(end, {})[at_host] = index
                opened[end] = min(opened.get(end, subflow.opened_ns), subflow.opened_ns)
        interfaces = {
            at_host: self.interface_of(connection.forward, at_host=at_host)
            for connection, at_host in sides
            if connection is not None
        }
        shares: list[PathShare] = []
        for end in sorted(ends, key=lambda each: opened[each]):
            numbers = ends[end]
            used: set[int] = set()
            for connection, at_host in sides:
                if connection is not None and at_host in numbers:
                    mine = connection.forward.subflow == numbers[at_host]
                    used |= set(np.unique(interfaces[at_host][mine]).tolist())
            if not used:
                # A subflow without data still shows that its path was there.
                addresses = [each.address for each in self._user.interfaces]
                used = {addresses.index(end[0]) if end[0] in addresses else 0}
            shares += [self._share(numbers, which, interfaces, clock) for which in sorted(used)]
        return shares

    def _share(
        self, numbers: dict[bool, int], which: int, interfaces: dict[bool, I64], clock: Clock
    ) -> PathShare:
        """One subflow (its number at each side) over one interface."""
        recorded_there = False in numbers and (which not in self._missing or True not in numbers)
        connection = self._at_sender if recorded_there else self._at_host
        assert connection is not None
        subflow = connection.subflows[numbers[not recorded_there]]
        flow = connection.forward
        mine = (flow.subflow == numbers[not recorded_there]) & (
            interfaces[not recorded_there] == which
        )
        rows, first_of_row = np.unique(flow.row[mine], return_index=True)
        delay = self._delay_of_sent[rows] if recorded_there else np.zeros(0)
        delay = delay[~np.isnan(delay)]
        times = clock.run_time(flow.time_ns[mine])
        opened_s = (subflow.opened_ns - clock.epoch_ns) / 1e9
        lost = None
        sent_is_known = recorded_there and which not in self._cut and not self._missing
        if recorded_there and self._loss_known and which not in self._cut | self._missing:
            lost = int(np.isin(rows, self.lost_rows).sum())
        data_bytes = int(flow.fresh[mine].sum())
        closed = subflow.closed
        if self._at_host is not None:
            data_bytes = 0
            if True in numbers:
                arrived = self._at_host.forward
                theirs = (arrived.subflow == numbers[True]) & (interfaces[True] == which)
                data_bytes = int(arrived.fresh[theirs].sum())
                closed = _worse(closed, self._at_host.subflows[numbers[True]].closed)
        known = self._user.interfaces
        interface = known[which] if which < len(known) else Interface("?", "?", "")
        return PathShare(
            interface=interface.name,
            via=interface.via,
            client=str(subflow.client),
            server=str(subflow.server),
            joined=subflow.joined,
            data_bytes=data_bytes,
            payload_bytes=int(flow.length[mine].sum()),
            data_packets=len(rows),
            lost_packets=lost,
            retransmissions=int(flow.retransmitted[mine][first_of_row].sum())
            if sent_is_known
            else None,
            reinjections=int((flow.reinjected | flow.resent)[mine][first_of_row].sum())
            if sent_is_known
            else None,
            mean_packet_delay_s=float(delay.mean()) if len(delay) else None,
            p95_packet_delay_s=float(np.percentile(delay, 95)) if len(delay) else None,
            first_s=float(times.min()) if len(times) else opened_s,
            last_s=float(times.max()) if len(times) else opened_s,
            closed=closed,
            resends=int(flow.resent[mine][first_of_row].sum()) if sent_is_known else None,
        )


def _worse(one: str, other: str) -> str:
    """How a subflow ended, from what both sides saw: one may miss the last packets."""
    return next((end for end in ("reset", "orderly") if end in (one, other)), "open")
