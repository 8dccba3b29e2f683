"""Data that come again, and why: by TCP, by another subflow, by the same one, or for nothing."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from captures.coverage import cover
from captures.packets import ACK, FIN, RST, SYN, Packets
from captures.streams import Half, Stream

I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

_REORDERING_NS = 3_000_000
"""Without TCP timestamps and handshake: a gap filled later than this was filled by repeating."""


@dataclass(frozen=True)
class TcpRepeats:
    """What one direction of a subflow sent again at the TCP level, by position in `Half.rows`.

    Attributes
    ----------
    retransmitted : bool array
        SYN, FIN or data that were sent before, all or in part, under the same sequence numbers.
    inferred : bool array
        Those of them whose first copy is not in the capture, because it was lost before.
    reordered : bool array
        Data that come late, but were not sent later than what overtook them.
    """

    retransmitted: Mask
    inferred: Mask
    reordered: Mask


def tcp_repeats(packets: Packets, half: Half, round_trip_ns: int | None) -> TcpRepeats:
    """Find retransmissions, also of packets that were lost before they came to the capture.

    Data that fill a gap were either overtaken on the way or sent again. The TCP timestamp tells:
    it is that of the sending (RFC 7323), so it is later than that of the packet behind the gap only
    if the data were sent again. Without timestamps they must come later by a round trip, which is
    what it takes to notice a loss.

    Parameters
    ----------
    packets : Packets
    half : Half
    round_trip_ns : int or None
        Of the subflow, if it is known.
    """
    retransmitted, inferred, reordered = np.zeros((3, len(half.rows)), dtype=np.bool_)
    flags = packets.flags[half.rows]
    syn, fin = (flags & SYN != 0).astype(np.int64), (flags & FIN != 0).astype(np.int64)
    length = half.payload_bytes + syn + fin
    counts = np.flatnonzero((length > 0) & ~half.keep_alive & (flags & RST == 0))
    first, length = (half.position - syn)[counts], length[counts]
    if not len(counts) or (first[1:] == (first + length)[:-1]).all():
        return TcpRepeats(retransmitted, inferred, reordered)
    fresh = cover(first - first.min(), length).fresh
    # One byte may be that of a window probe, which the data themselves follow.
    repeated = (fresh == 0) | (length - fresh > 1)
    retransmitted[counts[repeated]] = True

    reached = np.maximum.accumulate(first + length)
    late = np.flatnonzero(~repeated & (half.payload_bytes[counts] > 0))
    late = late[late > 0]
    late = late[first[late] < reached[late - 1]]
    # Part of it may be new data behind the gap; then the packet is not late.
    late = late[(first + length)[late] <= reached[late - 1]]
    if len(late):
        overtaken_by = half.rows[counts[np.searchsorted(reached, first[late], side="right")]]
        rows = half.rows[counts[late]]
        waited = packets.time_ns[rows] - packets.time_ns[overtaken_by]
        again = waited > (_REORDERING_NS if round_trip_ns is None else round_trip_ns)
        own, other = packets.time_value[rows], packets.time_value[overtaken_by]
        stamped = (own >= 0) & (other >= 0)
        later = (own - other + (1 << 31) & 0xFFFFFFFF) - (1 << 31) > 0
        again = np.where(stamped, later, again)
        retransmitted[counts[late[again]]] = True
        inferred[counts[late[again]]] = True
        reordered[counts[late[~again]]] = True
    return TcpRepeats(retransmitted, inferred, reordered)


def handshake_ns(packets: Packets, stream: Stream) -> tuple[int, int] | None:
    """Time from SYN to SYN/ACK and from there to the client's first ACK, if all three are there.

    Their sum is a round trip wherever the capture was made; which of them is the shorter one tells
    where that was.
    """
    there, back = packets.flags[stream.forward], packets.flags[stream.backward]
    syn = stream.forward[there & (SYN | ACK) == SYN]
    answer = stream.backward[back & (SYN | ACK) == SYN | ACK]
    if not len(syn) or not len(answer):
        return None
    last = stream.forward[(there & (SYN | RST | ACK) == ACK) & (stream.forward > answer[0])]
    if not len(last):
        return None
    # Of repeated SYNs the last before the answer; it may be the first that was answered, too.
    asked = syn[syn < answer[0]]
    times = packets.time_ns[[asked[-1] if len(asked) else syn[0], answer[0], last[0]]].tolist()
    first, second = times[1] - times[0], times[2] - times[1]
    return (first, second) if first >= 0 and second >= 0 else None


def capture_side(handshake: tuple[int, int] | None) -> str | None:
    """Which end the capture was made at: "client", "server", or ``None``: unclear.

    Parameters
    ----------
    handshake : tuple of int or None
        See `handshake_ns`.
    """
    if handshake is None or sum(handshake) < _SHORTEST_NS:
        return None
    to_server, to_client = handshake
    if to_server * _NEARER < to_client:
        return "server"
    if to_client * _NEARER < to_server:
        return "client"
    return None


_SHORTEST_NS = 1_000_000
"""Round trips below this say nothing: the ends answer no faster."""

_NEARER = 5
"""One end counts as near if it is so many times nearer than the other one."""
