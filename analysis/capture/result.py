"""What an analysis of captures finds.

Times count in seconds from the first packet of the captures of the same traffic, by the clock of
the first of two places.
"""

from dataclasses import dataclass
from typing import Any

from analysis.capture.clock import ClockRelation
from analysis.transfer.interruption import Interruption
from analysis.transfer.trace import Trace


@dataclass(frozen=True)
class Summary:
    """Some samples of a delay, seconds."""

    samples: int
    min_s: float
    mean_s: float
    median_s: float
    p95_s: float
    max_s: float


@dataclass(frozen=True)
class SubflowDirection:
    """One direction of one subflow.

    Attributes
    ----------
    packets, data_packets : int
        All packets, and those with data.
    payload_bytes, fresh_bytes : int
        Carried, repeats included; and data that no subflow had carried before.
    throughput_bps : float or None
        Payload over the time from its first to its last data packet.
    retransmissions, reinjections, resends : int
        Packets that TCP sent again; with data that only other subflows had carried; and with data
        that this one had carried, under other TCP sequence numbers.
    redundant : int
        Data packets that brought the receiver nothing.
    lost_packets : int or None
        Data packets that left the sender's place and were not seen at the receiver's; ``None``
        without captures of both.
    round_trip : Summary or None
        From data to its acknowledgment.
    timestamp_round_trip : Summary or None
        From a TCP timestamp to its first echo.
    one_way_delay : Summary or None
        Between the two places.
    largest_flight_bytes, mean_flight_bytes : int, float or None
        Sent and not acknowledged; the mean is over time.
    """

    packets: int
    data_packets: int
    payload_bytes: int
    fresh_bytes: int
    throughput_bps: float | None
    retransmissions: int
    reinjections: int
    resends: int
    redundant: int
    lost_packets: int | None
    round_trip: Summary | None
    timestamp_round_trip: Summary | None
    one_way_delay: Summary | None
    largest_flight_bytes: int
    mean_flight_bytes: float | None


@dataclass(frozen=True)
class SubflowResult:
    """A subflow of multipath TCP, or the only one of a TCP connection.

    Attributes
    ----------
    join : bool
        Added by MP_JOIN.
    by_server : bool
        The connection's server opened it.
    verified : bool or None
        Whether the HMACs of MP_JOIN are right; ``None`` where the keys are not known.
    backup : bool
    closed : str
        "orderly", "reset" or "open".
    interfaces : tuple of str
        That its packets were recorded on, as far as files name them.
    opened_s, last_s : float
    handshake_s : float or None
        From the SYN to its answer, at the first place.
    """

    client: str
    server: str
    join: bool
    by_server: bool
    verified: bool | None
    backup: bool
    closed: str
    interfaces: tuple[str, ...]
    opened_s: float
    last_s: float
    handshake_s: float | None
    client_to_server: SubflowDirection
    server_to_client: SubflowDirection


@dataclass(frozen=True)
class ReorderingResult:
    """Pieces of data that others overtook (RFC 4737)."""

    pieces: int
    ratio: float
    over_other_subflow: int
    largest_extent: int
    mean_extent: float | None
    largest_late_s: float | None


@dataclass(frozen=True)
class HeadOfLine:
    """Data that arrived and waited for earlier data.

    Attributes
    ----------
    blocked_s : float
        Time in which any data waited.
    mean_wait_s, longest_wait_s : float or None
        Of a byte that arrived, from then until it was in order; and of a piece.
    largest_waiting_bytes : int
    """

    blocked_s: float
    mean_wait_s: float | None
    longest_wait_s: float | None
    largest_waiting_bytes: int


@dataclass(frozen=True)
class DirectionResult:
    """Data in one direction of a connection.

    Attributes
    ----------
    payload_bytes : int
        TCP payload, repeats included.
    announced_bytes, captured_bytes, in_order_bytes, acknowledged_bytes : int
        Covered by mappings; by packets, each byte once; complete from the start; acknowledged.
    goodput_bps : dict of str to float, or None
        Each of the four over the time from `start_s` to `end_s`.
    unmapped_bytes : int
        Payload that no mapping puts anywhere.
    end_bytes : int or None
        All the sender had, if it said so.
    complete : bool
        All of it was acknowledged.
    start_s, end_s : float or None
        First data; last time that data became complete.
    completion_time_s : float or None
        From the connection's first packet to the acknowledgment of all data; ``None`` if it is
        not complete.
    retransmissions, reinjections, resends, redundant : int
        Of all subflows, as in `SubflowDirection`; as the sender's place saw it, if there are two.
    redundant_bytes : int
        Payload that arrived beyond `captured_bytes`.
    longest_stall_s : float or None
        Longest time between two moments in which data became complete.
    interruptions : tuple of Interruption
        Stalls over the limit, with their cause.
    data_round_trip : Summary or None
        From a byte of data to its DATA_ACK (TCP's own acknowledgment without multipath TCP).
    reordering : ReorderingResult or None
    head_of_line : HeadOfLine or None
        ``None`` without data.
    trace : Trace or None
        Series for figures, of the transfers with most data.
    """

    payload_bytes: int
    announced_bytes: int
    captured_bytes: int
    in_order_bytes: int
    acknowledged_bytes: int
    goodput_bps: dict[str, float] | None
    unmapped_bytes: int
    end_bytes: int | None
    complete: bool
    start_s: float | None
    end_s: float | None
    completion_time_s: float | None
    retransmissions: int
    reinjections: int
    resends: int
    redundant: int
    redundant_bytes: int
    longest_stall_s: float | None
    interruptions: tuple[Interruption, ...]
    data_round_trip: Summary | None
    reordering: ReorderingResult | None
    head_of_line: HeadOfLine | None
    trace: Trace | None


@dataclass(frozen=True)
class SignalResult:
    """An MPTCP option about subflows, addresses or failures.

    Attributes
    ----------
    time_s : float
    what : str
        Name of the option, as in RFC 8684.
    subflow : int
        It was sent on: index into the subflows as the first place saw them.
    direction : str
        "client_to_server" or "server_to_client".
    fields : dict
        What it says.
    """

    time_s: float
    what: str
    subflow: int
    direction: str
    fields: dict[str, Any]


@dataclass(frozen=True)
class ConnectionResult:
    """A connection of multipath TCP, or one of TCP.

    Attributes
    ----------
    protocol : str
        "mptcp" or "tcp".
    version : int or None
    fallback : bool
        Multipath TCP was asked for, TCP used.
    client_token, server_token : int or None
    origin_s : float
        Where times count from, seconds since the epoch.
    seen_at : tuple of int
        Positions in `CaptureAnalysis.places`: one, or the client's and the server's.
    capture_side : str or None
        Of a single place: "client", "server", "between", or not known.
    round_trip_to_client_s, round_trip_to_server_s : float or None
        Shortest, from the first place.
    closed : str
    opened_s, last_s : float
    """

    protocol: str
    version: int | None
    fallback: bool
    client: str
    server: str
    client_token: int | None
    server_token: int | None
    origin_s: float
    seen_at: tuple[int, ...]
    capture_side: str | None
    round_trip_to_client_s: float | None
    round_trip_to_server_s: float | None
    closed: str
    opened_s: float
    last_s: float
    subflows: tuple[SubflowResult, ...]
    signals: tuple[SignalResult, ...]
    client_to_server: DirectionResult
    server_to_client: DirectionResult

    def near_receiver(self, *, forward: bool) -> bool:
        """Whether the only capture was made near the side that gets the data of a direction."""
        return self.capture_side == ("server" if forward else "client")

    def round_trip(self, subflow: SubflowResult, *, forward: bool) -> Summary | None:
        """Round trips of a subflow that say something about the path of a direction's data.

        Near the receiver those of the acknowledgments do not; what its timestamps tell of the
        way to the sender and back does.
        """
        way, opposite = subflow.client_to_server, subflow.server_to_client
        if not forward:
            way, opposite = opposite, way
        if self.near_receiver(forward=forward):
            return opposite.timestamp_round_trip
        return way.round_trip or way.timestamp_round_trip

    @property
    def captured_bytes(self) -> int:
        """Data of both directions."""
        return self.client_to_server.captured_bytes + self.server_to_client.captured_bytes


@dataclass(frozen=True)
class InterfaceResult:
    """TCP packets of one interface of a file: `name` is the file's where it names none."""

    name: str
    packets: int
    wire_bytes: int
    mean_rate_bps: float | None
    peak_rate_bps: float | None


@dataclass(frozen=True)
class FileQuality:
    """How far a file can be trusted.

    Attributes
    ----------
    snap_length_bytes : int or None
        ``None`` if packets were kept whole.
    snapped_frames : int
        That were longer than what was kept.
    received, dropped : int or None
        The recorder's counters, if the file holds them.
    large_frames, largest_frame_bytes : int
        Over 1526 bytes: offloads glued packets together. Such a file counts too few packets.
    clock : str
        Resolution of its stamps as the file says it.
    clock_resolution_s : float or None
        As the stamps show it: the largest step they are all multiples of.
    steps_back, largest_step_back_s : int, float
        Stamps below the one before, of the same interface.
    damage : str or None
        What ended the reading early; what lies before is used.
    """

    file: str
    frames: int
    tcp_frames: int
    start_epoch_s: float | None
    duration_s: float | None
    link_types: tuple[int, ...]
    snap_length_bytes: int | None
    snapped_frames: int
    received: int | None
    dropped: int | None
    large_frames: int
    largest_frame_bytes: int
    undecoded: int
    fragments: int
    clock: str
    clock_resolution_s: float | None
    steps_back: int
    largest_step_back_s: float
    damage: str | None
    recorder: str
    remarks: tuple[str, ...]
    interfaces: tuple[InterfaceResult, ...]


@dataclass(frozen=True)
class PlaceResult:
    """A place: its files; `clock` relates its clock to that of the place before, if it has one."""

    files: tuple[int, ...]
    start_epoch_s: float
    clock: ClockRelation | None


@dataclass(frozen=True)
class Fairness:
    """Jain's index over time, of transfers in one direction that compete.

    Attributes
    ----------
    place : int
    direction : str
        "client_to_server" or "server_to_client".
    edges_s : list of float
        Limits of the steps.
    index : list of float
        NaN where fewer than two were under way.
    mean : float
        Over the steps that have one.
    """

    place: int
    direction: str
    edges_s: list[float]
    index: list[float]
    mean: float


@dataclass(frozen=True)
class CaptureAnalysis:
    """Everything the analysis says about some captures; see docs/analysis.md for each figure."""

    files: tuple[FileQuality, ...]
    places: tuple[PlaceResult, ...]
    connections: tuple[ConnectionResult, ...]
    tcp_streams: int
    unmapped_bytes: int
    fairness: tuple[Fairness, ...]
    remarks: tuple[str, ...]
    listed_gap_s: float

    def largest(self, most: int) -> tuple[ConnectionResult, ...]:
        """The connections with most data, at most so many, in order of time."""
        by_size = sorted(
            range(len(self.connections)), key=lambda each: -self.connections[each].captured_bytes
        )
        return tuple(self.connections[each] for each in sorted(by_size[:most]))

    @property
    def frames(self) -> int:
        """Packets in all files."""
        return sum(each.frames for each in self.files)

    @property
    def tcp_frames(self) -> int:
        """TCP packets in all files."""
        return sum(each.tcp_frames for each in self.files)
