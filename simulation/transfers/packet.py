"""Packets, as the ends of a subflow exchange them."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simulation.transfers.subflow import Subflow

ETHERNET_BYTES, IP_BYTES, TCP_BYTES = 14, 20, 20
TIMESTAMP_BYTES = 12
DATA_ACK_BYTES, MAPPING_BYTES = 12, 28
"""A DSS option with an acknowledgment of 64 bits; with a mapping and a sequence of 64 bits, too."""

SIGNAL_BYTES = {
    "capable syn": 4, "capable syn ack": 12, "capable ack": 20,
    "join syn": 12, "join syn ack": 16, "join ack": 24,
    "prio": 4, "remove address": 4,
}  # fmt: skip
"""Signals of multipath TCP and the length of their options (RFC 8684, 3)."""


class Packet:
    """A TCP segment of a subflow.

    Sequence numbers are relative: a SYN has 0, the first byte of data 1.

    Attributes
    ----------
    subflow : Subflow
    forward : bool
        Whether it comes from the end that opened the connection, which sends the data.
    flags : str
        Letters of S(YN), A(CK), P(SH), F(IN), R(ST).
    sequence, length : int
        The first byte, and how many bytes of data.
    acknowledgment : int
        The next byte that is expected.
    sacks : tuple of (int, int)
        Blocks of bytes that have arrived beyond that (RFC 2018).
    sent_s : float
        When it was sent.
    echo_s : float
        When that was sent which it answers (RFC 7323).
    data_sequence : int
        Of the first byte, in the connection; with "remove address" the number of the address.
    data_acknowledgment : int
        The next byte of the connection that is expected.
    data_end : bool
        Whether a DATA_FIN follows the data.
    signal : str
        A key of `SIGNAL_BYTES`, or nothing.
    backup : bool
        What a join or prio says.
    capable, marked : bool
        Whether queues may mark it in place of dropping it, and whether one has (RFC 3168, 5).
    congested, reduced : bool
        What the ends tell each other of that: ECE and CWR (RFC 3168, 6.1).
    tag : object
        The network's own, None at first.
    """

    __slots__ = (
        "acknowledgment", "backup", "capable", "congested", "data_acknowledgment", "data_end",
        "data_sequence", "echo_s", "flags", "forward", "length", "marked", "reduced", "sacks",
        "sent_s", "sequence", "signal", "size_bytes", "subflow", "tag",
    )  # fmt: skip

    def __init__(
        self,
        subflow: "Subflow",
        forward: bool,
        flags: str,
        sequence: int,
        acknowledgment: int,
        sent_s: float,
        *,
        length: int = 0,
        sacks: tuple[tuple[int, int], ...] = (),
        echo_s: float = 0.0,
        data_sequence: int = 0,
        data_acknowledgment: int = 0,
        data_end: bool = False,
        signal: str = "",
        backup: bool = False,
        capable: bool = False,
        congested: bool = False,
        reduced: bool = False,
    ) -> None:
        self.subflow, self.forward, self.flags = subflow, forward, flags
        self.sequence, self.acknowledgment, self.length = sequence, acknowledgment, length
        self.sacks, self.sent_s, self.echo_s = sacks, sent_s, echo_s
        self.data_sequence, self.data_acknowledgment = data_sequence, data_acknowledgment
        self.data_end, self.signal, self.backup = data_end, signal, backup
        self.capable, self.congested, self.reduced = capable, congested, reduced
        self.marked = False
        self.tag: object = None
        options = TIMESTAMP_BYTES
        if "S" in flags:
            options += 8  # maximum segment size, selective acknowledgments and window scale
        if sacks:
            options += 4 + 8 * len(sacks)
        if signal:
            options += SIGNAL_BYTES[signal]
        elif subflow.multipath and "S" not in flags:
            options += MAPPING_BYTES if length or data_end else DATA_ACK_BYTES
        self.size_bytes = ETHERNET_BYTES + IP_BYTES + TCP_BYTES + -(-options // 4) * 4 + length
