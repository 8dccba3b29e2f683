"""Byte ranges that arrive in some order: what was new, and how far it is complete.

This is the one loop in the package that goes range by range; everything around it works on whole
columns.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]


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
    starts: Sequence[int] = np.maximum(first, 0).tolist()
    stops: Sequence[int] = (first + length).tolist()
    fresh, edges = [0] * len(starts), [0] * len(starts)
    edge = 0
    # Islands above the edge, disjoint, not touching, ascending.
    low: list[int] = []
    high: list[int] = []
    for index, (start, stop) in enumerate(zip(starts, stops, strict=True)):
        if stop <= start or stop <= edge:
            edges[index] = edge
            continue
        start = max(start, edge)
        if not low and start == edge:
            fresh[index] = stop - start
            edge = stop
            edges[index] = edge
            continue
        # The islands from i up to (not including) j touch this range and melt into it.
        i = bisect_left(high, start)
        j = i
        new = stop - start
        while j < len(low) and low[j] <= stop:
            new -= max(min(stop, high[j]) - max(start, low[j]), 0)
            j += 1
        if i < j:
            start, stop = min(start, low[i]), max(stop, high[j - 1])
        low[i:j], high[i:j] = [start], [stop]
        fresh[index] = new
        if low[0] <= edge:
            edge = high[0]
            del low[0], high[0]
        edges[index] = edge
    total = edge + sum(high) - sum(low)
    return Coverage(
        np.array(fresh, dtype=np.int64), np.array(edges, dtype=np.int64), total, len(low)
    )
