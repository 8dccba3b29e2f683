"""What an analysis of one run finds; `RunResult.to_json` is what result.json holds."""

import math
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from analysis.run.machine import MachineLoad
from analysis.transfer.interruption import Interruption
from analysis.transfer.trace import Trace

FORMAT = 2


@dataclass(frozen=True)
class PathShare:
    """What one subflow carried over one of its user's interfaces.

    A subflow of multipath TCP has one interface; the single TCP connection of a user that hands
    over has several, and so several of these.

    Attributes
    ----------
    data_bytes : int
        Data bytes that reached the host here first.
    payload_bytes, data_packets : int
        Sent here, repeated ones included (at the host where the sender was not recorded).
    lost_packets : int or None
        Sent here and not seen at the host.
    retransmissions, reinjections, resends : int or None
        Packets repeated by TCP; data packets new to TCP, but with data that had been sent before,
        by any subflow; those of them whose data the same subflow had sent. ``None`` where the
        sender's captures are missing or cut off.
    mean_packet_delay_s, p95_packet_delay_s : float or None
        One way.
    first_s, last_s : float
        Run time of the first and the last data packet.
    closed : str
        How the subflow ended: "orderly", "reset" or "open".
    """

    interface: str
    via: str
    client: str
    server: str
    joined: bool
    data_bytes: int
    payload_bytes: int
    data_packets: int
    lost_packets: int | None
    retransmissions: int | None
    reinjections: int | None
    mean_packet_delay_s: float | None
    p95_packet_delay_s: float | None
    first_s: float
    last_s: float
    closed: str
    resends: int | None = None


@dataclass(frozen=True)
class Series:
    """Rates at the host in steps of `step_s` from run time `start_s`, bit/s.

    `goodput_bps` counts data when it is complete from the start; `arriving_bps` new data when it
    arrives, for each link it came over. `delay_s` and `delay_p95_s` are median and 95th percentile
    of the one-way delay of the data packets sent over each link in each step, seconds; ``None``
    where there were none. `frames_bps` is what arrives over each link, in whole frames with
    headers and repeats, as queues count it.
    """

    start_s: float
    step_s: float
    goodput_bps: list[float]
    arriving_bps: dict[str, list[float]]
    delay_s: dict[str, list[float | None]] = field(default_factory=dict)
    delay_p95_s: dict[str, list[float | None]] = field(default_factory=dict)
    frames_bps: dict[str, list[float]] = field(default_factory=dict)


@dataclass(frozen=True)
class UserResult:
    """One user's figures. Those that could not be measured are ``None``.

    Attributes
    ----------
    goodput_bps : float or None
        Data complete at the host within the planned duration from the first data that arrives
        there (cut at the end of the recording), divided by that time. Of a user without a bulk
        transfer to the host, what all its applications got, in either direction.
    goodput_to_end_bps : float or None
        All data complete at the host, divided by the time from the first sent data to the last
        progress (not shorter than the planned duration, if the transfer did not complete).
    longest_interruption_cause : str or None
        As in `Interruption`, also where the longest one is too short to be listed.
    longest_interruption_after_start_s, longest_interruption_after_start_cause
        The longest one that begins 2 s or more after the first sent data.
    data_bytes : int
        Data bytes of the connection seen in captures, each counted once.
    iperf_bytes : int or None
        What iperf3's client says it sent.
    completed : bool or None
        iperf3 ended without an error, the sender ended the connection in an orderly way
        (DATA_FIN or FIN), and all data up to there arrived at the host or was acknowledged.
        ``None`` if captures that are missing or cut off would have had to show that.
    incomplete : str or None
        Why `completed` is not true.
    bytes_agree : bool or None
        `data_bytes` is `iperf_bytes` + 37 (iperf3's cookie); ``None`` if not completed, or if
        the host's capture is cut off.
    throughput_cov : float or None
        Coefficient of variation of the new data that arrives in each full second.
    duplicate_bytes : int
        Payload that arrived at the host beyond `data_bytes`.
    delay_quantiles_s : list of float
        One-way packet delay below which 0, 1, …, 100 % of the matched packets lie; empty if there
        are none.
    completion_time_s, response_time_s, message_delay_s, datagram_delay_s : float or None
        Means over the files, requests, messages and datagrams of all its applications.
    datagram_loss : float or None
        Share of its datagrams that were lost, both directions together.
    """

    goodput_bps: float | None
    data_bytes: int
    longest_interruption_s: float | None
    interruptions: list[Interruption]
    mean_packet_delay_s: float | None
    p95_packet_delay_s: float | None
    throughput_cov: float | None
    subflows: list[PathShare]
    offered_bps: float | None = None
    goodput_to_end_bps: float | None = None
    longest_interruption_cause: str | None = None
    longest_interruption_after_start_s: float | None = None
    longest_interruption_after_start_cause: str | None = None
    iperf_bytes: int | None = None
    completed: bool | None = False
    incomplete: str | None = None
    bytes_agree: bool | None = None
    iperf_error: str | None = None
    protocol: str | None = None
    fallback: bool = False
    closed: str | None = None
    sending_start_s: float | None = None
    sending_end_s: float | None = None
    matched_packets: int = 0
    lost_packets: int | None = None
    retransmissions: int | None = None
    reinjections: int | None = None
    resends: int | None = None
    duplicate_bytes: int = 0
    delay_quantiles_s: list[float] = field(default_factory=list)
    completion_time_s: float | None = None
    response_time_s: float | None = None
    message_delay_s: float | None = None
    datagram_delay_s: float | None = None
    datagram_loss: float | None = None
    series: Series | None = None
    trace: Trace | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class ApplicationResult:
    """What one application got. What could not be measured, or does not apply, is ``None``.

    Attributes
    ----------
    name, user, kind, direction, transport : str
        As in the plan; "up" is towards the host. The transport "tcp" is multipath TCP in runs of
        several paths.
    offered_bps : float or None
        On average; of requests, what there would be if every response came at once.
    duration_s : float or None
        For how long something could begin.
    items : int or None
        Messages, datagrams or files of the schedule, or requests that were asked.
    completed : int or None
        Those that arrived in whole; of requests, the responses.
    received_bytes : int or None
        Also of what did not arrive in whole.
    goodput_bps : float or None
        That, divided by `duration_s`; of a bulk transfer, what iperf3's receiver says.
    mean_time_s, p95_time_s, longest_time_s : float or None
        Of a file, from its moment in the schedule, before its connection is opened, until its last
        byte arrived; of a message, from its moment until its last byte arrived; of a datagram, from
        being sent until it arrived; of a request, from being sent until its response had arrived.
        Only of those that were completed.
    time_quantiles_s : list of float
        Below which 0, 1, …, 100 % of these times lie; empty if there are none.
    lost_packets, loss : int or float or None
        Datagrams that were sent and did not arrive, and their share.
    duplicates : int or None
        Datagrams that came again.
    jitter_s : float or None
        Mean difference of the transit times of datagrams that arrived one after the other.
    latest_begin_s : float or None
        The longest that a message or file began after its moment.
    retransmissions : int or None
        Of a bulk transfer, as iperf3 says.
    errors : dict of str to int
        What the network did to it, and how often.
    """

    name: str
    user: str
    kind: str
    direction: str
    transport: str
    offered_bps: float | None = None
    duration_s: float | None = None
    items: int | None = None
    completed: int | None = None
    received_bytes: int | None = None
    goodput_bps: float | None = None
    mean_time_s: float | None = None
    p95_time_s: float | None = None
    longest_time_s: float | None = None
    time_quantiles_s: list[float] = field(default_factory=list)
    lost_packets: int | None = None
    loss: float | None = None
    duplicates: int | None = None
    jitter_s: float | None = None
    latest_begin_s: float | None = None
    retransmissions: int | None = None
    errors: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class QueueResult:
    """A switch queue: what was set and what it sent.

    Attributes
    ----------
    tx_bytes : int
        Sent while the run was sampled.
    tx_errors : int
        Packets that the queue dropped.
    settings : list of [t_s, min_bps, max_bps]
        As deployed by the controller.
    rates : list of [t_s, rate_bps]
        From the difference of two samples at least 0.5 s apart, at the time of the later one.
    backlog : list of [t_s, packets, bytes]
        What waited in it; each holds until the next. Empty if that was not recorded.
    """

    datapath: str
    port: str
    queue_id: int
    user: str | None
    via: str | None
    tx_bytes: int
    tx_errors: int
    settings: list[list[float]]
    rates: list[list[float]]
    backlog: list[list[float]] = field(default_factory=list)


@dataclass(frozen=True)
class HandoverStory:
    """What a handover set off, from its cause to its effect. Times are run time, seconds.

    Attributes
    ----------
    number : int
        Handovers count from 1 over all users, in order of time.
    what : str
        "satcom → uav" for a user of one path, "joins uav" or "leaves uav" for one of several.
    relay : str
        The access point that was joined or left.
    cause_after_s, cause_before_s : float or None
        The link changed after the first and before the second: stamps before and after the
        command, the later one drawn in by the first evidence at the controller. The second is
        ``None`` if the command did not end.
    trigger : str or None
        What the controller heard; ``None`` if it decided nothing.
    solve_s, solve_time_s, relative_gap : float or None
        When the flow allocation was solved, how long that took, and what its certificate leaves.
    deployed_s, deploy_time_s : float or None
        When every switch had confirmed its flow entries (barrier) and queues (OVSDB), and how
        long that took. A `trigger` that expected the change may be earlier than it.
    verify_time_s : float or None
        How long reading back took of what the switches hold, before `deployed_s`; ``None`` if that
        was not done.
    queues_set, entries_added, entries_removed : int
    last_on_old_s : float or None
        The last data packet that reached the host over the path that was left.
    first_on_new_s : float or None
        The first data packet that reached the host over the path that serves from now on; ``None``
        if there was none, or if that path had been in use all the time.
    path_was_in_use : bool
    interruption : Interruption or None
        The longest time without progress from the cause until the next handover of this user.
    goodput_before_bps, goodput_lowest_bps : float or None
        Over the 5 s before, and the lowest of any second since.
    goodput_back_s : float or None
        Begin of the first second with 90 % of the goodput before (of what was offered, if that is
        less), once it had fallen below that at the interruption or after; ``None`` if there was
        none, or if it never fell (`goodput_fell`).
    goodput_fell : bool
        Some second since had less than that.
    """

    number: int
    user: str
    what: str
    relay: str
    cause_after_s: float
    cause_before_s: float | None
    trigger: str | None = None
    solve_s: float | None = None
    solve_time_s: float | None = None
    relative_gap: float | None = None
    deployed_s: float | None = None
    deploy_time_s: float | None = None
    verify_time_s: float | None = None
    queues_set: int = 0
    entries_added: int = 0
    entries_removed: int = 0
    last_on_old_s: float | None = None
    first_on_new_s: float | None = None
    path_was_in_use: bool = False
    interruption: Interruption | None = None
    goodput_before_bps: float | None = None
    goodput_lowest_bps: float | None = None
    goodput_back_s: float | None = None
    goodput_fell: bool = False

    @property
    def cause_s(self) -> float:
        """The middle of the time in which the link changed."""
        if self.cause_before_s is None:
            return self.cause_after_s
        return (self.cause_after_s + self.cause_before_s) / 2

    @property
    def cause_error_s(self) -> float | None:
        """How far `cause_s` may be off; ``None`` if that is not known."""
        if self.cause_before_s is None:
            return None
        return (self.cause_before_s - self.cause_after_s) / 2


@dataclass(frozen=True)
class AllocationPeriod:
    """What a path was given, and what it carried, while one allocation was in force.

    Attributes
    ----------
    start_s, end_s : float
        From the deployment to the next one; within the time that the user was sending.
    solved_bps : float
        The path flow of the solution.
    min_bps, max_bps : float or None
        Rates of its queue.
    captured_bps : float or None
        Frames of the user that arrived at the host over this path.
    counted_bps : float or None
        What the counter of the queue grew by.
    """

    user: str
    via: str
    port: str | None
    queue_id: int | None
    start_s: float
    end_s: float
    solved_bps: float
    min_bps: float | None
    max_bps: float | None
    captured_bps: float | None
    counted_bps: float | None


@dataclass(frozen=True)
class CounterCheck:
    """A counter of the kernel or of Open vSwitch beside what the captures show.

    Attributes
    ----------
    node, what : str
    captured, counted : int
    tolerance : int
        By how much they may differ and still agree.
    note : str
        Why they may differ.
    at_most : bool
        The captures may show any part of what was counted, but not more.
    """

    node: str
    what: str
    captured: int
    counted: int
    tolerance: int = 0
    note: str = ""
    at_most: bool = False

    @property
    def agrees(self) -> bool:
        """Whether they differ by no more than the tolerance, or as `at_most` allows."""
        if self.at_most and self.captured <= self.counted:
            return True
        return abs(self.captured - self.counted) <= self.tolerance


@dataclass(frozen=True)
class Spread:
    """Of several times, the median and the one that 95 % do not exceed, seconds."""

    median_s: float
    p95_s: float


@dataclass(frozen=True)
class HandoverLatency:
    """From associations to what the controller deployed because of them.

    Attributes
    ----------
    associations : int
        How many led to a deployment.
    detection : Spread
        From the association, as its access point tells of it, until the controller had heard of it.
    waiting : Spread
        From then until it was taken up: the decision before it had to be in force.
    solve : Spread
        The policy's decision, from stating the problem to the rates of queues.
    deploy : Spread
        Until switches had confirmed all entries and queues, and they had been read back.
    total : Spread
        All of it.
    """

    associations: int
    detection: Spread
    waiting: Spread
    solve: Spread
    deploy: Spread
    total: Spread


@dataclass(frozen=True)
class Chart:
    """Where everything was: east and north in metres, up above the sea.

    Attributes
    ----------
    tracks : dict of list of [t_s, east_m, north_m, up_m]
        By node.
    ranges_m : dict
        Slant range of each access point.
    """

    tracks: dict[str, list[list[float]]]
    ranges_m: dict[str, float]


@dataclass(frozen=True)
class CaptureQuality:
    """How far a capture can be trusted."""

    file: str
    node: str
    interface: str
    position: str
    packets: int
    snap_length_bytes: int | None
    received: int | None
    dropped: int | None
    damaged: bool
    large_packets: int
    unmapped_bytes: int
    clock: str
    recorder: str
    remarks: list[str]


@dataclass(frozen=True)
class Band:
    """A time in which something held for a user: in range of an access point, a handover."""

    user: str
    kind: str
    start_s: float
    end_s: float
    label: str


@dataclass(frozen=True)
class Solve:
    """One solution of the flow allocation, as the controller logged it."""

    t_s: float
    trigger: str
    relative_gap: float | None
    solve_time_s: float | None
    path_flows: list[dict[str, Any]]


@dataclass(frozen=True)
class RunResult:
    """Everything the analysis says about one run; see docs/analysis.md for each figure."""

    state: str
    reason: str | None
    run: str
    scenario: str
    protocol: str
    seed: int | None
    backend: str
    users: dict[str, UserResult]
    jain: float | None
    solves: int
    handovers: int
    fingerprint: str = ""
    created: str = ""
    duration_s: float | None = None
    goodput_bps: float | None = None
    reference_goodput_bps: float | None = None
    reference: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    handover_s: list[float] = field(default_factory=list)
    associations: int = 0
    queues: list[QueueResult] = field(default_factory=list)
    captures: list[CaptureQuality] = field(default_factory=list)
    capture_drops: int | None = None
    machine: MachineLoad | None = None
    overloaded: bool = False
    remarks: list[str] = field(default_factory=list)
    bands: list[Band] = field(default_factory=list)
    solve_log: list[Solve] = field(default_factory=list)
    handover_stories: list[HandoverStory] = field(default_factory=list)
    handover_latency: HandoverLatency | None = None
    allocation: list[AllocationPeriod] = field(default_factory=list)
    counter_checks: list[CounterCheck] = field(default_factory=list)
    applications: list[ApplicationResult] = field(default_factory=list)
    chart: Chart | None = None
    environment: dict[str, Any] = field(default_factory=dict)
    references_bps: dict[str, float] = field(default_factory=dict)

    @property
    def mean_user_goodput_bps(self) -> float | None:
        """Average over the users that were measured."""
        found = [each.goodput_bps for each in self.users.values() if each.goodput_bps is not None]
        return sum(found) / len(found) if found else None

    def to_json(self) -> dict[str, Any]:
        """Plain data for result.json; numbers that are not finite become ``None``."""
        # Points of figures are for the page only.
        users = {name: replace(user, trace=None) for name, user in self.users.items()}
        told_run = replace(self, users=users)
        plain: dict[str, Any] = _finite({"format": FORMAT, **asdict(told_run)})
        for user in plain["users"].values():
            del user["trace"]
        plain["mean_user_goodput_bps"] = self.mean_user_goodput_bps
        for told, story in zip(plain["handover_stories"], self.handover_stories, strict=True):
            told |= _finite({"cause_s": story.cause_s, "cause_error_s": story.cause_error_s})
        for told, check in zip(plain["counter_checks"], self.counter_checks, strict=True):
            told["agrees"] = check.agrees
        # environment.json lies beside result.json.
        del plain["environment"]
        return plain


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return value
