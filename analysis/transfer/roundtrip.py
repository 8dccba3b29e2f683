"""Round-trip times from what a capture holds: acknowledgments, or TCP timestamps.

Both measure from the place of the capture to the other end and back, with the time that end takes
to acknowledge.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class RoundTrips:
    """Samples in order of time.

    Attributes
    ----------
    time_ns : int64 array
        When the answer was seen.
    rtt_s : float64 array
        Since the packet that it answers.
    """

    time_ns: I64
    rtt_s: F64


def from_acknowledgments(
    sent_ns: I64, start: I64, end: I64, repeated: Mask, answered_ns: I64, acknowledged: I64
) -> RoundTrips:
    """One sample for each acknowledgment of new data that was sent only once.

    Parameters
    ----------
    sent_ns : int64 array
        Times of data, ascending.
    start, end : int64 array
        Its first byte, and the one after its last, in any numbering that counts bytes.
    repeated : bool array
        Those that were sent before. Data that was sent twice gives no sample, nor does an
        acknowledgment that covers any of it (Karn and Partridge, SIGCOMM 1987): it may answer
        either, and came late in any case.
    answered_ns, acknowledged : int64 array
        Times of acknowledgments, ascending, and up to which byte each goes.

    Returns
    -------
    RoundTrips
        Each from the last data that the acknowledgment covers.
    """
    edge = np.maximum.accumulate(acknowledged) if len(acknowledged) else acknowledged
    before = np.r_[np.iinfo(np.int64).min, edge[:-1]] if len(edge) else edge
    rising = edge > before
    at_ns, upper, lower = answered_ns[rising], edge[rising], before[rising]

    first = ~repeated
    order = np.argsort(end[first], kind="stable")
    ends, times = end[first][order], sent_ns[first][order]
    last = np.searchsorted(ends, upper, side="right") - 1
    usable = (last >= 0) & (ends[last] > lower) if len(ends) else np.zeros(len(upper), np.bool_)

    again_start, again_end = np.sort(start[repeated]), np.sort(end[repeated])
    touched = np.searchsorted(again_start, upper, side="left")
    touched -= np.searchsorted(again_end, lower, side="right")
    usable &= touched == 0
    at_ns, last = at_ns[usable], last[usable]
    rtt_ns = at_ns - times[last]
    real = rtt_ns >= 0
    return RoundTrips(at_ns[real], rtt_ns[real] / 1e9)


def from_timestamps(
    value_ns: I64, value: I64, echo_ns: I64, echo: I64, *, data: Mask | None = None
) -> RoundTrips:
    """One sample for each TCP timestamp value, from its first packet to its first echo.

    Parameters
    ----------
    value_ns, value : int64 array
        Times of packets one way, ascending, and their TSval (RFC 7323); -1 for none.
    echo_ns, echo : int64 array
        Times of packets the other way, ascending, and their TSecr; -1 for none.
    data : bool array, optional
        Packets one way that ask for an answer. A value whose first packet does not gives no
        sample: its echo waits for the other side to have something to say.

    Returns
    -------
    RoundTrips
        As K. Nichols's pping does (2017).
    """
    has_value, has_echo = value >= 0, echo > 0
    if data is not None:
        values, first = np.unique(value[has_value], return_index=True)
        asking = data[has_value][first]
        values, first = values[asking], first[asking]
    else:
        values, first = np.unique(value[has_value], return_index=True)
    echoes, first_echo = np.unique(echo[has_echo], return_index=True)
    _, here, there = np.intersect1d(values, echoes, assume_unique=True, return_indices=True)
    asked_ns = value_ns[has_value][first[here]]
    answered_ns = echo_ns[has_echo][first_echo[there]]
    rtt_ns = answered_ns - asked_ns
    real = rtt_ns >= 0
    order = np.argsort(answered_ns[real], kind="stable")
    return RoundTrips(answered_ns[real][order], rtt_ns[real][order] / 1e9)
