"""Byte ranges that arrive in some order: what was new, and how far it is complete.

`fill` is the one loop that goes range by range, plain Python that Numba can compile
(`captures.compiled`); everything around it works on whole columns.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from captures.compiled import fast

I64 = NDArray[np.int64]

# A range asks for about as much work as so many bytes of a capture file.
_RANGE_BYTES = 40


@dataclass(frozen=True)
class Coverage:
    """What a series of byte ranges covers.

    Attributes
    ----------
    fresh : int64 array
        Bytes of each range that no earlier one had.
    edge : int64 array
        After each range: how many bytes from the start are complete.
    total : int
        Bytes covered.
    gaps : int
        Holes that remain below the highest byte.
    """

    fresh: I64
    edge: I64
    total: int
    gaps: int


def cover(first: I64, length: I64) -> Coverage:
    """Cover bytes from 0 on with ranges in the given order.

    Parameters
    ----------
    first : int64 array
        First byte of each range. What lies below 0 does not count.
    length : int64 array
        Bytes in each range.

    Returns
    -------
    Coverage
    """
    fresh, edge = np.empty_like(first), np.empty_like(first)
    if not len(first):
        return Coverage(fresh, edge, 0, 0)
    if first[0] == 0 and (length >= 0).all() and (first[1:] == (first + length)[:-1]).all():
        # Nothing repeated, nothing missing: the usual case.
        return Coverage(length.copy(), first + length, int(first[-1] + length[-1]), 0)
    total, gaps = fast(fill, _RANGE_BYTES * len(first))(first, length, fresh, edge)
    return Coverage(fresh, edge, int(total), int(gaps))


def union_bytes(first: I64, length: I64) -> int:
    """How many bytes ranges cover together, whatever their order."""
    order = np.argsort(first, kind="stable")
    start, stop = first[order], (first + length)[order]
    if not len(start):
        return 0
    before = np.maximum.accumulate(stop)[:-1]
    new = stop[1:] - np.maximum(start[1:], before)
    return int(stop[0] - start[0] + np.maximum(new, 0).sum())


def fill(first: I64, length: I64, fresh: I64, edges: I64) -> tuple[int, int]:
    """Cover bytes from 0 on with ranges in the given order.

    Parameters
    ----------
    first, length : int64 arrays
        The ranges. What lies below 0 does not count.
    fresh, edges : int64 arrays
        Filled in: bytes that no earlier range had; bytes complete from the start after it.

    Returns
    -------
    total, gaps : int
        Bytes covered, and holes that remain below the highest one.
    """
    room, islands, edge = 64, 0, 0
    # Islands above the edge: disjoint, not touching, ascending.
    low = np.zeros(room, dtype=np.int64)
    high = np.zeros(room, dtype=np.int64)
    for index in range(len(first)):
        start, stop = max(first[index], 0), first[index] + length[index]
        fresh[index] = 0
        if stop > start and stop > edge:
            start = max(start, edge)
            if islands == 0 and start == edge:
                fresh[index] = stop - start
                edge = stop
            else:
                # The islands from i up to (not including) j touch this range and melt into it.
                i, above = 0, islands
                while i < above:
                    middle = (i + above) // 2
                    if high[middle] < start:
                        i = middle + 1
                    else:
                        above = middle
                j = i
                new = stop - start
                left, right = start, stop
                while j < islands and low[j] <= stop:
                    new -= max(min(stop, high[j]) - max(start, low[j]), 0)
                    left = min(left, low[j])
                    right = max(right, high[j])
                    j += 1
                fresh[index] = new
                if i == j:
                    if islands == room:
                        low = np.concatenate((low, np.zeros(room, dtype=np.int64)))
                        high = np.concatenate((high, np.zeros(room, dtype=np.int64)))
                        room *= 2
                    for k in range(islands, i, -1):
                        low[k], high[k] = low[k - 1], high[k - 1]
                    islands += 1
                elif j > i + 1:
                    gone = j - i - 1
                    for k in range(j, islands):
                        low[k - gone], high[k - gone] = low[k], high[k]
                    islands -= gone
                low[i], high[i] = left, right
                if low[0] <= edge:
                    edge = high[0]
                    for k in range(1, islands):
                        low[k - 1], high[k - 1] = low[k], high[k]
                    islands -= 1
        edges[index] = edge
    total = edge
    for k in range(islands):
        total += high[k] - low[k]
    return total, islands
