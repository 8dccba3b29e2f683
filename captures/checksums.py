"""DSS checksums: over a mapping's data, however many packets carry them (RFC 8684, 3.3.1)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from captures.coverage import cover
from captures.mapping import Mappings
from captures.options import Capable
from captures.packets import DSS_MAP8, Packets
from captures.streams import Half

I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]
Mask = NDArray[np.bool_]

_M64 = (1 << 64) - 1


@dataclass(frozen=True)
class Checksums:
    """Checksums that one side sent, in DSS or MP_CAPABLE.

    Attributes
    ----------
    verified, failed : int
        Options whose checksum is right or wrong for the payload in the capture.
    unchecked : int
        Options of which some payload, or the key behind a short sequence number, is missing.
    """

    verified: int = 0
    failed: int = 0
    unchecked: int = 0

    def __add__(self, other: "Checksums") -> "Checksums":
        return Checksums(
            self.verified + other.verified,
            self.failed + other.failed,
            self.unchecked + other.unchecked,
        )


def verify(
    packets: Packets,
    half: Half,
    known: Mappings,
    initial: int | None,
    of_first_data: dict[int, Capable],
) -> Checksums:
    """Check the checksums that one direction of a subflow carries.

    The sums of the packets' payloads are enough if the packets fill a mapping exactly; where one
    begins at an odd byte of it, the two bytes of its sum change places.

    Parameters
    ----------
    packets : Packets
    half : Half
    known : Mappings
        Of this direction.
    initial : int or None
        Initial data sequence number, if the key is known: 4-byte numbers are part of a checksum
        as the 8-byte ones they stand for.
    of_first_data : dict
        MP_CAPABLE options that map the payload of their packets (rows).
    """
    rows = half.rows[known.packet]
    checksum = packets.dss_checksum[rows].astype(np.int64)
    sequence = packets.data_sequence[rows]
    long = packets.dss_flags[rows] & DSS_MAP8 != 0
    if initial is not None:
        expanded = known.data.view(np.uint64) + np.uint64(initial + 1 & _M64)
        sequence = np.where(long, sequence, expanded)
    subflow_sequence = packets.subflow_sequence[rows].astype(np.int64)
    length = packets.mapping_bytes[rows].astype(np.int64)
    certain = long if initial is None else np.ones(len(rows), dtype=np.bool_)
    for index in np.flatnonzero(np.isin(rows, list(of_first_data))).tolist():
        capable = of_first_data[int(rows[index])]
        checksum[index] = -1 if capable.checksum is None else capable.checksum
        subflow_sequence[index], length[index] = 1, capable.data_bytes or 0
    use = (checksum >= 0) & ~known.infinite
    if not use.any():
        return Checksums()
    claimed = _Claimed(
        known.start[use],
        known.length[use],
        sequence[use],
        subflow_sequence[use],
        length[use],
        checksum[use],
    )
    exact, data = _payload_sums(packets, half, claimed.start, claimed.size)
    checkable = exact & certain[use]
    right = _folded(data + claimed.header_sum()) == 0xFFFF
    return Checksums(
        verified=int((checkable & right).sum()),
        failed=int((checkable & ~right).sum()),
        unchecked=int((~checkable).sum()),
    )


@dataclass(frozen=True)
class _Claimed:
    start: I64
    size: I64
    data_sequence: U64
    subflow_sequence: I64
    length: I64
    checksum: I64

    def header_sum(self) -> I64:
        """Of the pseudo-header, which includes the checksum."""
        words = np.stack([self.data_sequence >> np.uint64(shift) for shift in (48, 32, 16, 0)])
        number = (words & np.uint64(0xFFFF)).astype(np.int64).sum(axis=0)
        subflow = (self.subflow_sequence >> 16) + (self.subflow_sequence & 0xFFFF)
        header: I64 = number + subflow + self.length + self.checksum
        return header


def _payload_sums(packets: Packets, half: Half, start: I64, size: I64) -> tuple[Mask, I64]:
    """Whether the packets fill these ranges of the subflow exactly, and the sums of the bytes."""
    carries = np.flatnonzero((half.payload_bytes > 0) & ~half.keep_alive)
    at, size_of_packet = half.position[carries], half.payload_bytes[carries]
    # Each byte once, as it came first.
    new = cover(at - 1, size_of_packet).fresh > 0
    carries, at, size_of_packet = carries[new], at[new], size_of_packet[new]
    order = np.argsort(at, kind="stable")
    at, size_of_packet = at[order], size_of_packet[order]
    sums = packets.payload_sum[half.rows[carries[order]]].astype(np.int64)
    known = sums >= 0
    sums = np.where(at % 2 == 1, _swapped(sums), sums)

    def running(values: I64) -> I64:
        return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(values)])

    total, unknown = running(np.where(known, sums, 0)), running((~known).astype(np.int64))
    broken = running((at[1:] != (at + size_of_packet)[:-1]).astype(np.int64))
    stop = start + size
    first, last = np.searchsorted(at, start), np.searchsorted(at, stop)  # `last` is one after
    exact = size == 0
    inside = np.flatnonzero((first < last) & ~exact)
    a, b = first[inside], last[inside]
    exact[inside] = (
        (at[a] == start[inside])
        & ((at + size_of_packet)[b - 1] == stop[inside])
        & (broken[b - 1] == broken[a])
        & (unknown[b] == unknown[a])
    )
    data = _folded(np.where(exact & (size > 0), total[last] - total[first], 0))
    return exact, np.where(start % 2 == 1, _swapped(data), data)


def _swapped(sums: I64) -> I64:
    return (sums & 0xFF) << 8 | sums >> 8


def _folded(sums: I64) -> I64:
    """Ones' complement sum as 16 bits."""
    for _ in range(4):
        sums = (sums & 0xFFFF) + (sums >> 16)
    return sums
