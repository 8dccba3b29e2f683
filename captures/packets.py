"""TCP packets as columns: one array for each header field.

What does not fit into a column of its own is beside them: the directed four-tuples (`Flows`),
because packets share them, and the rarer options of multipath TCP (`Options`), because few packets
have one.
"""

import mmap
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from ipaddress import IPv4Address, IPv6Address
from typing import Any

import numpy as np
from numpy.typing import NDArray

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16

# Subtypes of the MPTCP option (RFC 8684, section 8).
MP_CAPABLE, MP_JOIN, DSS, ADD_ADDR, REMOVE_ADDR, MP_PRIO, MP_FAIL, MP_FASTCLOSE, MP_TCPRST = range(
    9
)

DSS_ACK, DSS_ACK8, DSS_MAP, DSS_MAP8, DSS_FIN = 1, 2, 4, 8, 16

I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
U32 = NDArray[np.uint32]
U8 = NDArray[np.uint8]
Mask = NDArray[np.bool_]
Rows = I64 | I32 | Mask


@dataclass(frozen=True)
class Flows:
    """Directed four-tuples: one direction of a TCP connection each.

    Attributes
    ----------
    ip_version : uint8 array
        4 or 6.
    source_high, source_low, destination_high, destination_low : uint64 array
        Addresses as two halves (an IPv4 address is in the low one); see `address`.
    source_port, destination_port : int32 array
    """

    ip_version: U8
    source_high: U64
    source_low: U64
    destination_high: U64
    destination_low: U64
    source_port: I32
    destination_port: I32

    def __len__(self) -> int:
        return len(self.ip_version)

    def numbers(self, others: "Flows") -> tuple[I64, I64]:
        """Numbers for these and for the others that are equal where the four-tuples are."""
        known: dict[tuple[int, ...], int] = {}

        def of(flows: "Flows") -> I64:
            rows = zip(*(getattr(flows, each.name).tolist() for each in fields(flows)), strict=True)
            return np.array([known.setdefault(row, len(known)) for row in rows], dtype=np.int64)

        return of(self), of(others)

    @classmethod
    def from_keys(cls, keys: U32) -> "Flows":
        """Take them apart from the 32-bit words of `captures.headers` (n, KEY_WORDS)."""
        words = keys.astype(np.uint64)
        half = np.uint64(32)
        return cls(
            ip_version=keys[:, 0].astype(np.uint8),
            source_high=words[:, 1] << half | words[:, 2],
            source_low=words[:, 3] << half | words[:, 4],
            destination_high=words[:, 5] << half | words[:, 6],
            destination_low=words[:, 7] << half | words[:, 8],
            source_port=keys[:, 9].astype(np.int32),
            destination_port=keys[:, 10].astype(np.int32),
        )


@dataclass(frozen=True)
class Options:
    """Options of multipath TCP other than DSS, as they are in the packets.

    Attributes
    ----------
    row : int64 array
        Position in `Packets`, ascending; a packet may have several.
    subtype : int64 array
        ``MP_CAPABLE`` to ``MP_TCPRST`` (RFC 8684, section 8), or what else the packet has.
    start : int64 array
        Option `i` is ``data[start[i]:start[i + 1]]``, with its kind and length.
    data : uint8 array
    """

    row: I64
    subtype: I64
    start: I64
    data: U8

    def __len__(self) -> int:
        return len(self.row)

    def raw(self, index: int) -> bytes:
        """One option, with its kind and length."""
        return self.data[self.start[index] : self.start[index + 1]].tobytes()

    def of(self, row: int) -> tuple[tuple[int, bytes], ...]:
        """Subtype and bytes of each option of one packet."""
        low, high = np.searchsorted(self.row, [row, row + 1])
        return tuple((int(self.subtype[i]), self.raw(i)) for i in range(low, high))

    def take(self, index: I64, row: I64) -> "Options":
        """Options at these positions, as those of packets `row`."""
        size = (self.start[1:] - self.start[:-1])[index]
        start = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
        at = np.repeat(self.start[index] - start[:-1], size) + np.arange(start[-1])
        return Options(row, self.subtype[index], start, self.data[at])

    def select(self, rows: Rows) -> "Options":
        """Those of the packets at these positions, or where a mask is true."""
        if not len(self.row):
            return self
        if rows.dtype == np.bool_:
            position = np.cumsum(rows) - 1
            index = np.flatnonzero(rows[self.row])
            return self.take(index, position[self.row[index]].astype(np.int64))
        order = np.argsort(rows, kind="stable")
        ordered = rows[order]
        first = np.searchsorted(ordered, self.row, side="left")
        copies = np.searchsorted(ordered, self.row, side="right") - first
        copied: I64 = np.repeat(np.arange(len(self.row)), copies)
        nth = np.arange(len(copied)) - np.repeat(np.cumsum(copies) - copies, copies)
        row = order[np.repeat(first, copies) + nth]
        sorted_row = np.argsort(row, kind="stable")
        return self.take(copied[sorted_row], row[sorted_row].astype(np.int64))


@dataclass(frozen=True)
class Packets:
    """TCP packets, one array entry each, in file order.

    Columns are as narrow as their values allow. Differences of `uint32` columns wrap modulo
    2**32, as those of TCP's own numbers do; widen what you selected where you need anything else.

    Attributes
    ----------
    frame : int32 array
        Number in the file, from 1, as Wireshark shows it.
    time_ns : int64 array
        Time stamp, nanoseconds since the epoch.
    interface : int32 array
        Index into `Capture.interfaces`.
    captured_bytes, wire_bytes : int32 array
        Bytes kept, and bytes the whole frame had.
    flow : int32 array
        Directed four-tuple, index into `flows`.
    ip_id : int32 array
        IPv4 identification, -1 for IPv6.
    sequence, acknowledgment : uint32 array
        As on the wire.
    flags : uint8 array
    window : int32 array
        As on the wire, not scaled.
    payload_bytes : int32 array
        TCP payload of the whole packet, captured or not, with all its IP fragments.
    payload_sum : int32 array
        Ones' complement sum of the payload as 16-bit big-endian words (the last byte of an odd
        number is followed by 0), not inverted; -1 where the payload was not captured whole.
    time_value, time_echo : int64 array
        TCP timestamp option, -1 without one.
    window_scale : int8 array
        Shift of the window scale option, -1 without one.
    mptcp : int16 array
        Bit ``1 << subtype`` for each MPTCP option present.
    dss_flags : uint8 array
        Flags of DSS, 0 without one or where its length contradicts them.
    data_acknowledgment : uint64 array
        As in DSS: 4 or 8 bytes, see `dss_flags`.
    data_sequence : uint64 array
        Data sequence number in DSS, of the *mapping*, not of the packet.
    subflow_sequence : uint32 array
        Relative subflow sequence number in DSS.
    mapping_bytes : int32 array
        Data-level length in DSS, -1 without a mapping.
    dss_checksum : int32 array
        Checksum in DSS, -1 without one.
    options : Options
        All options of multipath TCP other than DSS.
    flows : Flows
        May have a four-tuple more than once, after `merge` or `concatenate`.
    """

    frame: I32
    time_ns: I64
    interface: I32
    captured_bytes: I32
    wire_bytes: I32
    flow: I32
    ip_id: I32
    sequence: U32
    acknowledgment: U32
    flags: U8
    window: I32
    payload_bytes: I32
    payload_sum: I32
    time_value: I64
    time_echo: I64
    window_scale: NDArray[np.int8]
    mptcp: NDArray[np.int16]
    dss_flags: U8
    data_acknowledgment: U64
    data_sequence: U64
    subflow_sequence: U32
    mapping_bytes: I32
    dss_checksum: I32
    options: Options
    flows: Flows
    pages: tuple[mmap.mmap, ...] = field(default=(), repr=False)
    """Of columns in files, see `release`."""

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def ip_version(self) -> U8:
        """4 or 6, for each packet."""
        return self.flows.ip_version[self.flow]

    @property
    def source_high(self) -> U64:
        """Upper half of each packet's source address; 0 for IPv4."""
        return self.flows.source_high[self.flow]

    @property
    def source_low(self) -> U64:
        """Lower half of each packet's source address."""
        return self.flows.source_low[self.flow]

    @property
    def destination_high(self) -> U64:
        """Upper half of each packet's destination address; 0 for IPv4."""
        return self.flows.destination_high[self.flow]

    @property
    def destination_low(self) -> U64:
        """Lower half of each packet's destination address."""
        return self.flows.destination_low[self.flow]

    @property
    def source_port(self) -> I32:
        """Of each packet."""
        return self.flows.source_port[self.flow]

    @property
    def destination_port(self) -> I32:
        """Of each packet."""
        return self.flows.destination_port[self.flow]

    def select(self, rows: Rows) -> "Packets":
        """The packets at these positions, or where a mask is true."""
        return Packets(
            **{name: getattr(self, name)[rows] for name in COLUMNS},
            options=self.options.select(rows),
            flows=self.flows,
        )

    def source(self, row: int) -> str:
        """Source address of one packet as text."""
        flow, flows = self.flow[row], self.flows
        return address(
            int(flows.ip_version[flow]), int(flows.source_high[flow]), int(flows.source_low[flow])
        )

    def destination(self, row: int) -> str:
        """Destination address of one packet as text."""
        flow, flows = self.flow[row], self.flows
        return address(
            int(flows.ip_version[flow]),
            int(flows.destination_high[flow]),
            int(flows.destination_low[flow]),
        )

    def release(self) -> None:
        """Give memory back, if the columns are so large that they are in a file.

        Nothing is lost; what is needed again is read again.
        """
        for pages in self.pages:
            pages.madvise(mmap.MADV_DONTNEED)


_OWN = {"options", "flows", "pages"}
COLUMNS = tuple(each.name for each in fields(Packets) if each.name not in _OWN)
"""Names of the arrays with one entry a packet."""


def concatenate(parts: Sequence[Packets]) -> Packets:
    """Several sets of packets as one; `frame` and `interface` keep their file's meaning.

    Parameters
    ----------
    parts : sequence of Packets
        At least one.
    """
    if len(parts) == 1:
        return parts[0]
    first_row = np.cumsum([0, *map(len, parts)])
    first_flow = np.cumsum([0, *(len(each.flows) for each in parts)])
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(each, name) for each in parts]) for name in COLUMNS
    }
    columns["flow"] = np.concatenate(
        [each.flow + np.int32(first) for each, first in zip(parts, first_flow, strict=False)]
    )
    options = [each.options for each in parts]
    sizes = np.concatenate([np.diff(each.start) for each in options])
    return Packets(
        **columns,
        options=Options(
            row=np.concatenate(
                [each.row + first for each, first in zip(options, first_row, strict=False)]
            ),
            subtype=np.concatenate([each.subtype for each in options]),
            start=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            data=np.concatenate([each.data[: each.start[-1]] for each in options]),
        ),
        flows=Flows(
            **{
                each.name: np.concatenate([getattr(part.flows, each.name) for part in parts])
                for each in fields(Flows)
            }
        ),
    )


def address(version: int, high: int, low: int) -> str:
    """Text of an address kept as two 64-bit halves."""
    if version == 4:
        return str(IPv4Address(low & 0xFFFFFFFF))
    return str(IPv6Address((high << 64) | low))
