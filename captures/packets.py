"""TCP packets as columns: every header field of every packet, decoded for many packets at once.

`read` is the way in:

>>> capture = read("tests/captures/data/v6_client.pcap")      # doctest: +SKIP
>>> capture.packets.payload_bytes.sum()                         # doctest: +SKIP

Link layers understood: Ethernet with up to four VLAN tags, Linux cooked (SLL, SLL2), BSD
loopback, raw IP, and unencrypted 802.11 data frames, with or without radiotap. Options are
decoded as far as the snap length reaches.
"""

from dataclasses import dataclass, fields, replace
from ipaddress import IPv4Address, IPv6Address
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from captures.container import Header, Interface, Records, batches

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16

# Subtypes of the MPTCP option (RFC 8684, section 8).
MP_CAPABLE, MP_JOIN, DSS, ADD_ADDR, REMOVE_ADDR, MP_PRIO, MP_FAIL, MP_FASTCLOSE, MP_TCPRST = range(
    9
)

DSS_ACK, DSS_ACK8, DSS_MAP, DSS_MAP8, DSS_FIN = 1, 2, 4, 8, 16

# A packet above this on a 1500-byte Ethernet was glued together or not yet cut by an offload.
LARGEST_PLAIN_FRAME_BYTES = 1526

_ETHERNET, _NULL, _LOOP, _SLL, _SLL2 = 1, 0, 108, 113, 276
_RAW = (12, 14, 101, 228, 229)
_IEEE802_11, _RADIOTAP = 105, 127
_VLAN = (0x8100, 0x88A8, 0x9100, 0x9200)
_IPV4, _IPV6 = 0x0800, 0x86DD
_HOP_BY_HOP, _ROUTING, _FRAGMENT, _AUTHENTICATION, _DESTINATION, _TCP = 0, 43, 44, 51, 60, 6

I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Packets:
    """TCP packets, one array entry each, in file order.

    Attributes
    ----------
    frame : int64 array
        Number in the file, from 1, as Wireshark shows it.
    time_ns : int64 array
        Time stamp, nanoseconds since the epoch.
    interface : int32 array
        Index into `Capture.interfaces`.
    captured_bytes, wire_bytes : int64 array
        Bytes kept, and bytes the whole frame had.
    ip_version : int64 array
        4 or 6.
    source_high, source_low, destination_high, destination_low : uint64 array
        Addresses as two halves (an IPv4 address is in the low one); see `address`.
    source_port, destination_port : int64 array
    ip_id : int64 array
        IPv4 identification, -1 for IPv6.
    sequence, acknowledgment : int64 array
        As on the wire, modulo 2**32.
    flags, window : int64 array
        As on the wire, window not scaled.
    payload_bytes : int64 array
        TCP payload of the whole packet, captured or not.
    time_value, time_echo : int64 array
        TCP timestamp option, -1 without one.
    mptcp : int64 array
        Bit `1 << subtype` for each MPTCP option present.
    capable_version : int64 array
        Version of MP_CAPABLE, -1 without one.
    capable_keys : int64 array
        Keys in MP_CAPABLE: 0, 1 or 2.
    sender_key, receiver_key : uint64 array
        Keys of MP_CAPABLE.
    capable_data_bytes : int64 array
        Data length in MP_CAPABLE (version 1), -1 without one.
    join_token : int64 array
        Token of the SYN of a joining subflow, -1 without one.
    join_backup : bool array
        Backup flag of MP_JOIN.
    dss_flags : int64 array
        Flags of DSS, 0 without one or where its length contradicts them.
    data_acknowledgment : uint64 array
        As in DSS: 4 or 8 bytes, see `dss_flags`.
    data_sequence : uint64 array
        Data sequence number in DSS, of the *mapping*, not of the packet.
    subflow_sequence : int64 array
        Relative subflow sequence number in DSS.
    mapping_bytes : int64 array
        Data-level length in DSS, -1 without a mapping.
    """

    frame: I64
    time_ns: I64
    interface: NDArray[np.int32]
    captured_bytes: I64
    wire_bytes: I64
    ip_version: I64
    source_high: U64
    source_low: U64
    destination_high: U64
    destination_low: U64
    source_port: I64
    destination_port: I64
    ip_id: I64
    sequence: I64
    acknowledgment: I64
    flags: I64
    window: I64
    payload_bytes: I64
    time_value: I64
    time_echo: I64
    mptcp: I64
    capable_version: I64
    capable_keys: I64
    sender_key: U64
    receiver_key: U64
    capable_data_bytes: I64
    join_token: I64
    join_backup: Mask
    dss_flags: I64
    data_acknowledgment: U64
    data_sequence: U64
    subflow_sequence: I64
    mapping_bytes: I64

    def __len__(self) -> int:
        return len(self.frame)

    def select(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> "Packets":
        """The packets at these positions, or where a mask is true."""
        return Packets(**{name: getattr(self, name)[rows] for name in _COLUMNS})

    def source(self, row: int) -> str:
        """Source address of one packet as text."""
        return address(
            int(self.ip_version[row]), int(self.source_high[row]), int(self.source_low[row])
        )

    def destination(self, row: int) -> str:
        """Destination address of one packet as text."""
        return address(
            int(self.ip_version[row]),
            int(self.destination_high[row]),
            int(self.destination_low[row]),
        )


_COLUMNS = tuple(field.name for field in fields(Packets))


@dataclass(frozen=True)
class Capture:
    """A capture file: its TCP packets and what is known about the recording.

    Attributes
    ----------
    path : Path
        The file.
    packets : Packets
        All TCP packets that could be decoded.
    interfaces : tuple of Interface
        With link type, snap length and time resolution.
    frames : int
        All packets in the file.
    first_ns, last_ns : int or None
        Time of the first and last packet.
    largest_frame_bytes : int
        On the wire.
    large_frames : int
        TCP packets too large for a 1500-byte Ethernet: segmentation offload was on.
    snapped_frames : int
        Packets that were longer than what was kept.
    undecoded : int
        TCP packets whose header was not captured far enough to be used.
    fragments : int
        Later IP fragments; their bytes are in no column.
    received, dropped : int or None
        The recorder's counters, if it stored them in the file.
    application : str
        The recorder, if it wrote its name.
    damaged : bool
        The file ends early; everything before is here.
    remarks : tuple of str
        Whatever else the reader of the results should know.
    """

    path: Path
    packets: Packets
    interfaces: tuple[Interface, ...]
    frames: int
    first_ns: int | None
    last_ns: int | None
    largest_frame_bytes: int
    large_frames: int
    snapped_frames: int
    undecoded: int
    fragments: int
    received: int | None
    dropped: int | None
    application: str
    damaged: bool
    remarks: tuple[str, ...]


def address(version: int, high: int, low: int) -> str:
    """Text of an address kept as two 64-bit halves."""
    if version == 4:
        return str(IPv4Address(low & 0xFFFFFFFF))
    return str(IPv6Address((high << 64) | low))


def read(path: str | PathLike[str]) -> Capture:
    """Read a capture file, as far as it can be read.

    Parameters
    ----------
    path : str or path
        pcap (micro- or nanoseconds, either byte order) or pcapng, optionally compressed by gzip.

    Returns
    -------
    Capture
        `damaged` and `remarks` say what was wrong with the file, if anything.

    Raises
    ------
    OSError
        If the file cannot be opened.
    """
    path = Path(path)
    header = Header()
    tally = _Tally()
    parts = [_decode(records, header.interfaces, tally) for records in batches(path, header)]
    remarks = list(header.remarks)
    for link_type, count in sorted(tally.unknown_links.items()):
        remarks.append(f"{count} packets of link type {link_type}, which is not decoded")
    if tally.undecoded:
        remarks.append(f"{tally.undecoded} TCP headers were cut off by the snap length")
    if tally.fragments:
        remarks.append(f"{tally.fragments} IP fragments without a TCP header are not counted")
    if tally.large:
        remarks.append(
            f"{tally.large} packets larger than an Ethernet frame: segmentation offload was on"
        )
    return Capture(
        path=path,
        packets=concatenate(parts),
        interfaces=tuple(header.interfaces),
        frames=tally.frames,
        first_ns=tally.first_ns,
        last_ns=tally.last_ns,
        largest_frame_bytes=tally.largest,
        large_frames=tally.large,
        snapped_frames=tally.snapped,
        undecoded=tally.undecoded,
        fragments=tally.fragments,
        received=header.received,
        dropped=header.dropped,
        application=header.application,
        damaged=header.damaged,
        remarks=tuple(remarks),
    )


def concatenate(parts: "list[Packets] | tuple[Packets, ...]") -> Packets:
    """Several sets of packets as one; `frame` and `interface` keep their file's meaning."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return _decode(_NO_RECORDS, [], _Tally())
    return Packets(
        **{name: np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS}
    )


def merge(captures: "list[Capture] | tuple[Capture, ...]") -> Packets:
    """Packets of several captures of one host, in order of time.

    Parameters
    ----------
    captures : sequence of Capture
        Recorded with the same clock.

    Returns
    -------
    Packets
        Here `interface` is the position in `captures`; `frame` still counts in the own file.
    """
    parts = [
        replace(each.packets, interface=np.full(len(each.packets), index, dtype=np.int32))
        for index, each in enumerate(captures)
    ]
    together = concatenate(parts)
    return together.select(np.argsort(together.time_ns, kind="stable"))


@dataclass
class _Tally:
    frames: int = 0
    first_ns: int | None = None
    last_ns: int | None = None
    largest: int = 0
    large: int = 0
    snapped: int = 0
    undecoded: int = 0
    fragments: int = 0

    def __post_init__(self) -> None:
        self.unknown_links: dict[int, int] = {}


_NONE = np.zeros(0, dtype=np.int64)
_NO_RECORDS = Records(b"", _NONE, _NONE, _NONE, _NONE, _NONE.astype(np.int32))


class _Bytes:
    """Numbers at given positions of a buffer; 0 where they reach beyond the packet's end."""

    def __init__(self, data: bytes) -> None:
        self._size = len(data)
        padded = np.frombuffer(data + bytes(8), dtype=np.uint8)
        # Overlapping big-endian numbers, one starting at each byte.
        self._views = {
            width: np.ndarray((len(padded) - width + 1,), f">u{width}", padded, strides=(1,))
            for width in (1, 2, 4, 8)
        }

    def number(self, position: I64, end: I64, width: int) -> I64:
        found = self._views[width][np.minimum(position, self._size)].astype(np.int64)
        return np.where(position + width <= end, found, 0)

    def wide(self, position: I64, end: I64) -> U64:
        found = self._views[8][np.minimum(position, self._size)].astype(np.uint64)
        return np.where(position + 8 <= end, found, np.uint64(0))


def _decode(records: Records, interfaces: list[Interface], tally: _Tally) -> Packets:
    data = _Bytes(records.data)
    start, end = records.offset, records.offset + records.captured_bytes
    first_frame = tally.frames + 1
    tally.frames += len(start)
    if len(start):
        if tally.first_ns is None:
            tally.first_ns = int(records.time_ns[0])
        tally.last_ns = int(records.time_ns[-1])
        tally.largest = max(tally.largest, int(records.wire_bytes.max()))
        tally.snapped += int((records.wire_bytes > records.captured_bytes).sum())

    version, network = _network_layer(data, records, interfaces, tally)
    found = _transport_layer(data, version, network, end, tally)
    at, transport, payload_end, ip_id = found

    # Without the flags (byte 14) a TCP packet is of no use.
    usable = transport + 14 <= end[at]
    tally.undecoded += int((~usable).sum())
    at, transport, payload_end, ip_id = (
        at[usable],
        transport[usable],
        payload_end[usable],
        ip_id[usable],
    )
    limit, version, network = end[at], version[at], network[at]
    wire_end = start[at] + records.wire_bytes[at]
    # A length of 0 is a packet of 64 kB or more (BIG TCP, or not yet cut by an offload).
    payload_end = np.where(payload_end < 0, wire_end, np.minimum(payload_end, wire_end))

    offset_and_flags = data.number(transport + 12, limit, 2)
    header_bytes = (offset_and_flags >> 12) * 4
    wire = records.wire_bytes[at]
    tally.large += int((wire > LARGEST_PLAIN_FRAME_BYTES).sum())
    is_v4 = version == 4
    zero = np.uint64(0)

    def half(v4_at: int, v6_at: int) -> tuple[U64, U64]:
        low4 = data.number(network + v4_at, limit, 4).astype(np.uint64)
        high6 = data.wide(network + v6_at, limit)
        low6 = data.wide(network + v6_at + 8, limit)
        return np.where(is_v4, zero, high6), np.where(is_v4, low4, low6)

    source_high, source_low = half(12, 8)
    destination_high, destination_low = half(16, 24)
    options_end = np.minimum(transport + np.maximum(header_bytes, 20), limit)
    return Packets(
        frame=first_frame + at,
        time_ns=records.time_ns[at],
        interface=records.interface[at],
        captured_bytes=records.captured_bytes[at],
        wire_bytes=wire,
        ip_version=version,
        source_high=source_high,
        source_low=source_low,
        destination_high=destination_high,
        destination_low=destination_low,
        source_port=data.number(transport, limit, 2),
        destination_port=data.number(transport + 2, limit, 2),
        ip_id=ip_id,
        sequence=data.number(transport + 4, limit, 4),
        acknowledgment=data.number(transport + 8, limit, 4),
        flags=offset_and_flags & 0xFF,
        window=data.number(transport + 14, limit, 2),
        payload_bytes=np.maximum(payload_end - transport - header_bytes, 0),
        **_options(data, transport + 20, options_end),
    )


def _network_layer(
    data: _Bytes, records: Records, interfaces: list[Interface], tally: _Tally
) -> tuple[I64, I64]:
    """IP version (0: not IP) and position of the IP header of each packet."""
    start, end = records.offset, records.offset + records.captured_bytes
    version = np.zeros(len(start), dtype=np.int64)
    network = start.copy()
    links = np.array([each.link_type for each in interfaces], dtype=np.int64)
    link = links[records.interface] if len(start) else version
    for link_type in np.unique(link):
        here = np.flatnonzero(link == link_type)
        position, limit = start[here], end[here]
        if link_type in (_ETHERNET, _SLL, _SLL2):
            skip, type_at = {_ETHERNET: (14, 12), _SLL: (16, 14), _SLL2: (20, 0)}[int(link_type)]
            kind = data.number(position + type_at, limit, 2)
            position = position + skip
            for _ in range(4):
                tagged = np.isin(kind, _VLAN)
                if not tagged.any():
                    break
                kind = np.where(tagged, data.number(position + 2, limit, 2), kind)
                position = np.where(tagged, position + 4, position)
            version[here] = np.select([kind == _IPV4, kind == _IPV6], [4, 6], 0)
        elif link_type in (_IEEE802_11, _RADIOTAP):
            if link_type == _RADIOTAP:
                # Its length is little-endian.
                size = data.number(position + 2, limit, 2)
                position = position + ((size & 0xFF) << 8 | size >> 8)
            kind, position = _wireless(data, position, limit)
            version[here] = np.select([kind == _IPV4, kind == _IPV6], [4, 6], 0)
        elif link_type in (_NULL, _LOOP, *_RAW):
            position = position + (4 if link_type in (_NULL, _LOOP) else 0)
            nibble = data.number(position, limit, 1) >> 4
            version[here] = np.where((nibble == 4) | (nibble == 6), nibble, 0)
        else:
            count = tally.unknown_links.get(int(link_type), 0)
            tally.unknown_links[int(link_type)] = count + len(here)
        network[here] = position
    return version, network


def _wireless(data: _Bytes, position: I64, limit: I64) -> tuple[I64, I64]:
    """EtherType (0: none) behind an 802.11 header, and where its packet starts."""
    control = data.number(position, limit, 2)
    frame, flags = control >> 8, control & 0xFF
    # Type 2 is data; subtypes with bit 0x40 (no data) and encrypted frames hold no packet.
    plain = (frame & 0x0C == 0x08) & (frame & 0x40 == 0) & (flags & 0x40 == 0)
    header = 24 + np.where(flags & 3 == 3, 6, 0) + np.where(frame & 0x80 != 0, 2, 0)
    # +HTC, bit 0x80 of a QoS frame's flags, adds four bytes.
    header += np.where((frame & 0x80 != 0) & (flags & 0x80 != 0), 4, 0)
    llc = position + header
    snap = data.number(llc, limit, 4) == 0xAAAA0300
    return np.where(plain & snap, data.number(llc + 6, limit, 2), 0), llc + 8


def _transport_layer(
    data: _Bytes, version: I64, network: I64, end: I64, tally: _Tally
) -> tuple[I64, I64, I64, I64]:
    """Of the TCP packets: index, position of the TCP header, end of the IP packet, IPv4 ID.

    The end is -1 where the IP header gives no length.
    """
    four, six = np.flatnonzero(version == 4), np.flatnonzero(version == 6)

    position, limit = network[four], end[four]
    head = data.number(position, limit, 1)
    header_bytes = (head & 15) * 4
    total = data.number(position + 2, limit, 2)
    tcp = (data.number(position + 9, limit, 1) == _TCP) & (header_bytes >= 20) & (head >> 4 == 4)
    later = (data.number(position + 6, limit, 2) & 0x1FFF) != 0
    tally.fragments += int((tcp & later).sum())
    keep = tcp & ~later
    at4 = four[keep]
    transport4 = (position + header_bytes)[keep]
    end4 = np.where(total == 0, -1, position + total)[keep]
    id4 = data.number(position + 4, limit, 2)[keep]

    position, limit = network[six], end[six]
    length = data.number(position + 4, limit, 2)
    following = data.number(position + 6, limit, 1)
    transport = position + 40
    fragment = np.zeros(len(six), dtype=np.bool_)
    for _ in range(8):
        simple = np.isin(following, (_HOP_BY_HOP, _ROUTING, _DESTINATION))
        part = following == _FRAGMENT
        authentication = following == _AUTHENTICATION
        extended = (simple | part | authentication) & (transport + 8 <= limit)
        if not extended.any():
            break
        fragment |= extended & part & (data.number(transport + 2, limit, 2) & 0xFFF8 != 0)
        units = data.number(transport + 1, limit, 1)
        size = np.select([part, authentication], [8, units * 4 + 8], units * 8 + 8)
        following = np.where(extended, data.number(transport, limit, 1), following)
        transport = np.where(extended, transport + size, transport)
    tcp = (following == _TCP) & (data.number(position, limit, 1) >> 4 == 6)
    tally.fragments += int((tcp & fragment).sum())
    keep = tcp & ~fragment
    at6 = six[keep]
    transport6 = transport[keep]
    end6 = np.where(length == 0, -1, position + 40 + length)[keep]

    at = np.concatenate([at4, at6])
    order = np.argsort(at, kind="stable")
    return (
        at[order],
        np.concatenate([transport4, transport6])[order],
        np.concatenate([end4, end6])[order],
        np.concatenate([id4, np.full(len(at6), -1, dtype=np.int64)])[order],
    )


def _options(data: _Bytes, position: I64, end: I64) -> dict[str, Any]:
    """TCP options, one step along all packets at a time."""
    count = len(position)

    def signed(fill: int) -> I64:
        return np.full(count, fill, dtype=np.int64)

    time_value, time_echo = signed(-1), signed(-1)
    mptcp, capable_version, capable_keys = signed(0), signed(-1), signed(0)
    capable_data_bytes, join_token = signed(-1), signed(-1)
    sender_key, receiver_key = np.zeros((2, count), dtype=np.uint64)
    join_backup = np.zeros(count, dtype=np.bool_)
    dss_flags, subflow_sequence, mapping_bytes = signed(0), signed(0), signed(-1)
    data_acknowledgment, data_sequence = np.zeros((2, count), dtype=np.uint64)

    rows = np.flatnonzero(position < end)
    at, stop = position[rows], end[rows]
    while len(rows):
        kind = data.number(at, stop, 1)
        length = np.where(kind <= 1, 1, data.number(at + 1, stop, 1))
        whole = (length >= np.where(kind <= 1, 1, 2)) & (at + length <= stop) & (kind != 0)
        rows, at, stop, kind, length = (x[whole] for x in (rows, at, stop, kind, length))

        here = np.flatnonzero((kind == 8) & (length == 10))
        time_value[rows[here]] = data.number(at[here] + 2, stop[here], 4)
        time_echo[rows[here]] = data.number(at[here] + 6, stop[here], 4)

        option = np.flatnonzero((kind == 30) & (length >= 3))
        subtype = data.number(at[option] + 2, stop[option], 1) >> 4

        here = option[(subtype == MP_CAPABLE) & np.isin(length[option], (4, 12, 20, 22, 24))]
        row, p, e, n = rows[here], at[here], stop[here], length[here]
        mptcp[row] |= 1 << MP_CAPABLE
        capable_version[row] = data.number(p + 2, e, 1) & 15
        capable_keys[row] = np.select([n == 4, n == 12], [0, 1], 2)
        sender_key[row] = np.where(n >= 12, data.wide(p + 4, e), np.uint64(0))
        receiver_key[row] = np.where(n >= 20, data.wide(p + 12, e), np.uint64(0))
        capable_data_bytes[row] = np.where(n >= 22, data.number(p + 20, e, 2), -1)

        here = option[(subtype == MP_JOIN) & np.isin(length[option], (12, 16, 24))]
        row, p, e, n = rows[here], at[here], stop[here], length[here]
        mptcp[row] |= 1 << MP_JOIN
        join_token[row] = np.where(n == 12, data.number(p + 4, e, 4), -1)
        join_backup[row] = data.number(p + 2, e, 1) & 1 == 1

        here = option[subtype == DSS]
        mptcp[rows[here]] |= 1 << DSS
        p, e = at[here], stop[here]
        flags = data.number(p + 3, e, 1) & 31
        ack_bytes = np.select([flags & DSS_ACK == 0, flags & DSS_ACK8 != 0], [0, 8], 4)
        dsn_bytes = np.select([flags & DSS_MAP == 0, flags & DSS_MAP8 != 0], [0, 8], 4)
        tail = np.where(dsn_bytes > 0, 6, 0)
        fits = length[here] >= 4 + ack_bytes + dsn_bytes + tail
        here, p, e = here[fits], p[fits], e[fits]
        flags, ack_bytes, dsn_bytes = flags[fits], ack_bytes[fits], dsn_bytes[fits]
        row = rows[here]
        dss_flags[row] = flags
        data_acknowledgment[row] = _either(data, p + 4, e, ack_bytes)
        data_sequence[row] = _either(data, p + 4 + ack_bytes, e, dsn_bytes)
        p = p + 4 + ack_bytes + dsn_bytes
        mapped = dsn_bytes > 0
        subflow_sequence[row] = np.where(mapped, data.number(p, e, 4), 0)
        mapping_bytes[row] = np.where(mapped, data.number(p + 4, e, 2), -1)

        here = option[(subtype >= ADD_ADDR) & (subtype <= MP_TCPRST)]
        mptcp[rows[here]] |= 1 << (data.number(at[here] + 2, stop[here], 1) >> 4)

        at = at + length
        on = at < stop
        rows, at, stop = rows[on], at[on], stop[on]
    return {
        "time_value": time_value,
        "time_echo": time_echo,
        "mptcp": mptcp,
        "capable_version": capable_version,
        "capable_keys": capable_keys,
        "sender_key": sender_key,
        "receiver_key": receiver_key,
        "capable_data_bytes": capable_data_bytes,
        "join_token": join_token,
        "join_backup": join_backup,
        "dss_flags": dss_flags,
        "data_acknowledgment": data_acknowledgment,
        "data_sequence": data_sequence,
        "subflow_sequence": subflow_sequence,
        "mapping_bytes": mapping_bytes,
    }


def _either(data: _Bytes, position: I64, end: I64, width: I64) -> U64:
    """A number of 8, 4 or (0) no bytes."""
    short = data.number(position, end, 4).astype(np.uint64)
    return np.select([width == 8, width == 4], [data.wide(position, end), short], np.uint64(0))
