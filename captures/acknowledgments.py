"""What the receiver has acknowledged, and when."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from captures.mapping import relative_numbers
from captures.packets import ACK, DSS_ACK, DSS_ACK8, RST, Packets
from captures.streams import Half, unwrap

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]


@dataclass(frozen=True)
class Acknowledgments:
    """Data bytes acknowledged over the course of a capture.

    Attributes
    ----------
    row : int32 array
        Positions in `Packets` of packets that acknowledge, ascending.
    data_bytes : int64 array
        Acknowledged by them and all before; never less than 0.
    """

    row: I32
    data_bytes: I64

    @property
    def total(self) -> int:
        """At the end."""
        return int(self.data_bytes[-1]) if len(self.row) else 0

    def before(self, row: I64) -> I64:
        """Data bytes acknowledged before each of these packets."""
        last = np.searchsorted(self.row, row) - 1
        if not len(self.row):
            return np.zeros(len(row), dtype=np.int64)
        return np.where(last >= 0, self.data_bytes[last], 0)


def by_tcp(packets: Packets, half: Half, opposite: I32) -> Acknowledgments:
    """Of one direction of a stream, by the packets (rows) of the other one."""
    rows = opposite[packets.flags[opposite] & (ACK | RST) == ACK]
    if not len(half.rows):
        rows = rows[:0]
    numbers = packets.acknowledgment[rows].astype(np.int64)
    data_bytes = unwrap(numbers - half.initial & 0xFFFFFFFF) - 1
    # The acknowledgment of a FIN counts one more.
    return _running(rows, data_bytes, None if half.end is None else half.end - 1)


def by_data(
    packets: Packets, opposite: list[I32], initial: int | None, end: int | None
) -> Acknowledgments:
    """Of one direction of a multipath connection, by DSS on any subflow.

    Parameters
    ----------
    packets : Packets
    opposite : list of int32 array
        Rows of the other direction of each subflow.
    initial : int or None
        Initial data sequence number of this direction.
    end : int or None
        Position of the DATA_FIN, whose acknowledgment counts one more.
    """
    rows = np.sort(np.concatenate(opposite))
    rows = rows[packets.dss_flags[rows] & DSS_ACK != 0]
    if initial is None:
        rows = rows[:0]
    if not len(rows):
        return Acknowledgments(rows, np.zeros(0, dtype=np.int64))
    numbers = packets.data_acknowledgment[rows]
    changed = np.ones(len(rows), dtype=np.bool_)
    changed[1:] = numbers[1:] != numbers[:-1]
    rows, numbers = rows[changed], numbers[changed]
    long = packets.dss_flags[rows] & DSS_ACK8 != 0
    data_bytes = relative_numbers(numbers, long, initial or 0)
    return _running(rows, data_bytes, end)


def _running(row: I32, data_bytes: I64, end: int | None) -> Acknowledgments:
    limited = data_bytes if end is None else np.minimum(data_bytes, end)
    return Acknowledgments(row, np.maximum.accumulate(np.maximum(limited, 0)))
