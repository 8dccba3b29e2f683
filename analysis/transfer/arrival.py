"""The order in which data arrives: reordering, and what waits for what came late."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Reordering:
    """Reordered pieces of data (RFC 4737, section 3.3, numbered by bytes as in section 3.4).

    Attributes
    ----------
    reordered : bool array
        The piece brings bytes that a piece with higher ones overtook.
    extent : int64 array
        Of each reordered piece: the pieces since the earliest that overtook it (section 4.2.1).
    late_s : float64 array
        Of each reordered piece: the time since that one (section 4.2.2).
    other_subflow : bool array
        Of each reordered piece: that one came over another subflow.
    """

    reordered: Mask
    extent: I64
    late_s: F64
    other_subflow: Mask


def reordering(time_ns: I64, position: I64, fresh: I64, subflow: I64) -> Reordering:
    """Find the pieces of data that others overtook.

    Parameters
    ----------
    time_ns : int64 array
        When each piece was seen, ascending.
    position : int64 array
        Its first byte.
    fresh : int64 array
        Bytes in it that had not been seen before; pieces without any are duplicates, not late.
    subflow : int64 array
        What it came over.

    Returns
    -------
    Reordering
    """
    new = np.flatnonzero(fresh > 0)
    highest = np.maximum.accumulate(position[new]) if len(new) else position[new]
    reordered = np.zeros(len(position), dtype=np.bool_)
    late = position[new] < highest
    reordered[new[late]] = True
    # The highest position only rises, so the first one above is found by bisection.
    overtaking = np.searchsorted(highest, position[new][late], side="right")
    at = np.flatnonzero(late)
    first, own = new[overtaking], new[at]
    return Reordering(
        reordered=reordered,
        extent=at - overtaking,
        late_s=(time_ns[own] - time_ns[first]) / 1e9,
        other_subflow=subflow[own] != subflow[first],
    )


@dataclass(frozen=True)
class Waiting:
    """Data that had arrived but waited for earlier data: head-of-line blocking.

    Attributes
    ----------
    time_ns : int64 array
        When the amount that waits changed (at each piece).
    waiting_bytes : int64 array
        From then on.
    blocked_s : float
        Time in which any data waited.
    wait_s : float64 array
        Of each piece that brought new bytes: time until all of it was in order; NaN if it never
        was.
    """

    time_ns: I64
    waiting_bytes: I64
    blocked_s: float
    wait_s: F64


def waiting(time_ns: I64, position: I64, length: I64, fresh: I64, in_order: I64) -> Waiting:
    """Measure head-of-line blocking at the place of the capture.

    Parameters
    ----------
    time_ns : int64 array
        When each piece was seen, ascending.
    position, length : int64 array
        Its first byte, and its bytes.
    fresh : int64 array
        Bytes in it that had not been seen before.
    in_order : int64 array
        After it: bytes complete from the start.

    Returns
    -------
    Waiting
    """
    buffered = np.cumsum(fresh) - in_order
    lasting_ns = np.diff(time_ns)
    blocked_ns = int(lasting_ns[buffered[:-1] > 0].sum()) if len(buffered) > 1 else 0
    new = fresh > 0
    released = np.searchsorted(in_order, (position + length)[new], side="left")
    known = released < len(in_order)
    wait_s = np.full(int(new.sum()), np.nan)
    wait_s[known] = (time_ns[released[known]] - time_ns[new][known]) / 1e9
    return Waiting(time_ns, buffered, blocked_ns / 1e9, wait_s)


def gaps(progress_ns: I64, start_ns: int, end_ns: int) -> tuple[I64, I64]:
    """Times without progress: starts and lengths, nanoseconds.

    Parameters
    ----------
    progress_ns : int64 array
        When data became complete, ascending.
    start_ns, end_ns : int
        From when to when the transfer was under way.

    Returns
    -------
    start_ns, length_ns : int64 array
        One entry between any two moments of progress.
    """
    inside = progress_ns[(progress_ns > start_ns) & (progress_ns < end_ns)]
    moments = np.r_[np.int64(start_ns), inside, np.int64(max(end_ns, start_ns))]
    return moments[:-1], np.diff(moments)
