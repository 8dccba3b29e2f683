"""From the bytes of a frame to the fields of its TCP packet: link layer, IP, TCP, options.

`decode` is the loop over frames. It is plain Python that Numba can compile (`captures.compiled`),
so that the fast path and the readable one are the same lines. That asks for two habits: numbers
are read with `_u8` ... `_u64` only, which return 0 beyond the captured end and so can never touch
a byte outside the frame; and everything stays within 64-bit signed integers.

Layers understood, nested up to `_MOST_LAYERS` deep:

- links (LINKTYPE_ numbers of www.tcpdump.org/linktypes.html): Ethernet, BSD loopback, PPP, Cisco
  HDLC, PPPoE, Linux cooked (SLL, SLL2), raw IP, 802.11 data frames with or without radiotap, PPI,
  Prism or AVS headers, IP over FireWire, OpenBSD encapsulation, Apple's PKTAP;
- between link and IP: VLAN tags, LLC/SNAP, PPPoE, PPP, MPLS;
- IPv4 and IPv6 with extension headers, jumbograms, authentication headers;
- tunnels: IP in IP, 6in4, GRE (also Ethernet and ERSPAN in it), VXLAN, GENEVE, GTP-U.
"""

import numpy as np
from numpy.typing import NDArray

from captures.packets import (
    DSS,
    DSS_ACK,
    DSS_ACK8,
    DSS_MAP,
    DSS_MAP8,
    MP_CAPABLE,
    MP_JOIN,
    MP_TCPRST,
)
from captures.records import (
    RECORD_CAPTURED_BYTES,
    RECORD_INTERFACE,
    RECORD_OFFSET,
    RECORD_TIME_NS,
    RECORD_WIRE_BYTES,
)

I64 = NDArray[np.int64]
I32 = NDArray[np.int32]
U32 = NDArray[np.uint32]
Buffer = bytearray | NDArray[np.uint8]
"""Bytes that yield integers: a bytearray where nothing is compiled, an array where it is."""

LARGEST_PLAIN_FRAME_BYTES = 1526
"""A packet above this on a 1500-byte Ethernet was glued together or not yet cut by an offload."""

MOST_OPTIONS = 13
"""MPTCP options in one TCP header: 40 bytes of options, at least 3 each."""

KEY_WORDS = 11
"""Version of IP, source and destination address (4 words of 32 bits each), and the two ports."""

FRAGMENT_FIELDS = 14
"""Row or -1, version, 8 address words, identification, first byte, bytes, whether more follow."""

LARGEST_LENGTH = (1 << 31) - 1
"""What a column of lengths can hold; no packet is longer."""

_MOST_LAYERS = 16

# EtherTypes (www.iana.org/assignments/ieee-802-numbers), and `_BY_NIBBLE` for IP of either version.
_IPV4, _IPV6, _BY_NIBBLE, _ETHERNET, _PPP = 0x0800, 0x86DD, 1 << 16, 0x6558, 0x880B
_VLAN_A, _VLAN_B, _VLAN_C, _VLAN_D = 0x8100, 0x88A8, 0x9100, 0x9200
_MPLS, _MPLS_MULTICAST, _PPPOE = 0x8847, 0x8848, 0x8864
_ERSPAN_2, _ERSPAN_3 = 0x88BE, 0x22EB
_LONGEST_802_3 = 1500  # below, the field is a length and LLC follows

# Protocol numbers (www.iana.org/assignments/protocol-numbers).
_ICMP, _IP4, _TCP, _UDP, _IP6, _GRE, _AUTHENTICATION, _ICMP6 = 1, 4, 6, 17, 41, 47, 51, 58
_HOP_BY_HOP, _ROUTING, _FRAGMENT, _DESTINATION = 0, 43, 44, 60
_MOBILITY, _HIP, _SHIM6 = 135, 139, 140
_VXLAN, _GENEVE, _GTP_U = 4789, 6081, 2152  # UDP ports


# Rows of the table of values that `decode` fills, named like the columns of
# `captures.packets.Packets`. Numbers of 64 bits are there as signed ones with the same bits.
(
    FRAME,
    TIME_NS,
    INTERFACE,
    CAPTURED_BYTES,
    WIRE_BYTES,
    FLOW,
    IP_ID,
    SEQUENCE,
    ACKNOWLEDGMENT,
    FLAGS,
    WINDOW,
    PAYLOAD_BYTES,
    PAYLOAD_SUM,
    TIME_VALUE,
    TIME_ECHO,
    WINDOW_SCALE,
    MPTCP,
    DSS_FLAGS,
    DATA_ACKNOWLEDGMENT,
    DATA_SEQUENCE,
    SUBFLOW_SEQUENCE,
    MAPPING_BYTES,
    DSS_CHECKSUM,
) = range(23)

# What `decode` counts; the last three are of the latest call only, but for four-tuples.
(
    FRAMES,
    PACKETS,
    FIRST_NS,
    LAST_NS,
    LARGEST,
    LARGE,
    SNAPPED,
    UNDECODED,
    ENCRYPTED,
    AGGREGATED,
    TUNNELLED,
    QUOTED,
    FRAGMENTS,
    FLOWS,
    OPTIONS,
) = range(15)

COUNTERS = 15

OPTION_PACKET, OPTION_SUBTYPE, OPTION_START = range(3)
"""Of each option of multipath TCP that is kept as it is."""


def _u8(data: Buffer, at: int, limit: int) -> int:
    # Adding makes a signed number of an unsigned byte; so do the products below.
    return data[at] + 0 if at < limit else 0


def _u16(data: Buffer, at: int, limit: int) -> int:
    return data[at] * 256 + data[at + 1] if at + 2 <= limit else 0


def _u32(data: Buffer, at: int, limit: int) -> int:
    if at + 4 > limit:
        return 0
    return (data[at] * 256 + data[at + 1]) * 65536 + data[at + 2] * 256 + data[at + 3]


def _u64(data: Buffer, at: int, limit: int) -> int:
    """Eight bytes, as a signed number."""
    if at + 8 > limit:
        return 0
    high = _u32(data, at, limit)
    return (high - (1 << 32) if high >> 31 else high) * (1 << 32) + _u32(data, at + 4, limit)


def _wireless(data: Buffer, at: int, limit: int, tally: I64) -> tuple[int, int]:
    """EtherType (0: none) behind an 802.11 header, and where its packet starts."""
    kind, flags = _u8(data, at, limit), _u8(data, at + 1, limit)
    # Type 2 is data; subtypes with bit 0x40 carry none.
    if kind & 0x0C != 0x08 or kind & 0x40:
        return 0, at
    if flags & 0x40:
        tally[ENCRYPTED] += 1
        return 0, at
    body = at + 24
    if flags & 3 == 3:  # from one access point to another: a fourth address
        body += 6
    if kind & 0x80:
        aggregated = _u8(data, body, limit) & 0x80
        # With the order flag, QoS frames have an HT control field.
        body += 6 if flags & 0x80 else 2
        if aggregated:
            # Only the first of the packets in an A-MSDU is looked at.
            tally[AGGREGATED] += 1
            body += 14
    return (_u16(data, body + 6, limit), body + 8) if _is_snap(data, body, limit) else (0, body)


def _is_snap(data: Buffer, at: int, limit: int) -> bool:
    """LLC header of SNAP with an EtherType (the organisation is 0, or 0xF8 for bridge tunnels)."""
    return _u32(data, at, limit) == 0xAAAA0300 and _u16(data, at + 4, limit) in (0, 0xF8)


def _radiotap(data: Buffer, at: int, limit: int, tally: I64) -> tuple[int, int]:
    """The same behind a radiotap header (www.radiotap.org)."""
    size = _u8(data, at + 2, limit) | _u8(data, at + 3, limit) << 8
    field = at + 8
    present = _u8(data, at + 4, limit)
    word_end = _u8(data, at + 7, limit)
    for _ in range(32):
        if not word_end & 0x80:
            break
        word_end = _u8(data, field + 3, limit)
        field += 4
    frame = at + size
    padded = False
    if present & 2:
        if present & 1:  # the time comes first, aligned to eight bytes
            field = at + (field - at + 7) // 8 * 8 + 8
        padded = field < frame and _u8(data, field, limit) & 0x20 != 0
    kind, body = _wireless(data, frame, limit, tally)
    if padded and kind == 0:
        # Padding brings the body to a multiple of four bytes; LLC was looked for too early.
        start = frame + (body - frame + 3) // 4 * 4
        if start > body and _is_snap(data, start, limit):
            return _u16(data, start + 6, limit), start + 8
    return kind, body


def _link(data: Buffer, link: int, at: int, limit: int, tally: I64) -> tuple[int, int]:
    """EtherType of what the frame carries (-1: unknown link type), and where that starts."""
    if link == 1:
        return _ETHERNET, at
    if link == 113:
        return _u16(data, at + 14, limit), at + 16
    if link == 276:
        return _u16(data, at, limit), at + 20
    if link in (12, 14, 101, 228, 229):
        return _BY_NIBBLE, at
    if link in (0, 108):
        return _BY_NIBBLE, at + 4
    if link in (9, 50):
        if _u8(data, at, limit) == 0x0F or _u8(data, at, limit) == 0x8F:  # Cisco HDLC
            return _u16(data, at + 2, limit), at + 4
        return _PPP, at
    if link == 166:  # a direction byte instead of the address
        return _PPP, at + (2 if _u8(data, at + 1, limit) == 3 else 1)
    if link == 104:
        return _u16(data, at + 2, limit), at + 4
    if link == 51:
        return _PPPOE, at
    if link == 105:
        return _wireless(data, at, limit, tally)
    if link == 127:
        return _radiotap(data, at, limit, tally)
    if link == 119:
        if _u32(data, at, limit) & 0xFFFFF000 == 0x80211000:  # an AVS header after all
            return _wireless(data, at + _u32(data, at + 4, limit), limit, tally)
        return _wireless(data, at + 144, limit, tally)
    if link == 163:
        return _wireless(data, at + _u32(data, at + 4, limit), limit, tally)
    if link == 192:
        size = _u8(data, at + 2, limit) | _u8(data, at + 3, limit) << 8
        inner = _u8(data, at + 4, limit) | _u8(data, at + 5, limit) << 8
        if inner == 105:
            return _wireless(data, at + size, limit, tally)
        return (_ETHERNET, at + size) if inner == 1 else (0, at)
    if link == 138:
        return _u16(data, at + 16, limit), at + 18
    if link == 109:
        return _BY_NIBBLE, at + 12
    if link == 258:  # Apple's, with the link type of the interface and the length of the header
        inner = _u8(data, at + 8, limit)
        at += _u8(data, at, limit) | _u8(data, at + 1, limit) << 8
        if inner == 1:
            return _ETHERNET, at
        return (_BY_NIBBLE, at if inner else at + 4) if inner in (0, 12, 14, 101) else (0, at)
    return -1, at


def _unwrap(data: Buffer, kind: int, at: int, limit: int) -> tuple[int, int]:
    """Peel layers off until there is IP; 0 if there is none."""
    for _ in range(_MOST_LAYERS):
        if kind in (_IPV4, _IPV6):
            return kind, at
        if kind == _ETHERNET:
            kind = _u16(data, at + 12, limit)
            at += 14
        elif kind in (_VLAN_A, _VLAN_B, _VLAN_C, _VLAN_D):
            kind = _u16(data, at + 2, limit)
            at += 4
        elif kind == _PPPOE:
            kind = _PPP if _u16(data, at, limit) == 0x1100 else 0
            at += 6
        elif kind == _PPP:
            if _u16(data, at, limit) == 0xFF03:
                at += 2
            protocol = _u8(data, at, limit)
            if protocol & 1:  # compressed to one byte
                at += 1
            else:
                protocol = _u16(data, at, limit)
                at += 2
            if protocol == 0x21:
                kind = _IPV4
            elif protocol == 0x57:
                kind = _IPV6
            else:
                kind = _MPLS if protocol == 0x0281 else 0
        elif kind in (_MPLS, _MPLS_MULTICAST):
            last = _u8(data, at + 2, limit) & 1
            at += 4
            if last:
                kind = _BY_NIBBLE
            elif at >= limit:
                return 0, at
        elif kind == _BY_NIBBLE:
            version = _u8(data, at, limit) >> 4
            if version == 4:
                return _IPV4, at
            return (_IPV6 if version == 6 else 0), at
        elif kind <= _LONGEST_802_3 and _is_snap(data, at, limit):
            kind = _u16(data, at + 6, limit)
            at += 8
        else:
            return 0, at
    return 0, at


def _gre(data: Buffer, at: int, limit: int) -> tuple[int, int]:
    """EtherType and position of what is in a GRE packet (RFC 2784, RFC 2890)."""
    flags = _u8(data, at, limit)
    kind = _u16(data, at + 2, limit)
    if _u8(data, at + 1, limit) & 7 or flags & 0x40:
        return 0, at  # another version, or source routing
    numbered = flags & 0x10
    at += 4
    for bit in (0x80, 0x20, 0x10):
        if flags & bit:
            at += 4
    if kind == _ERSPAN_2:
        return _ETHERNET, at + (8 if numbered else 0)
    if kind == _ERSPAN_3:
        return _ETHERNET, at + 12 + (8 if _u8(data, at + 11, limit) & 1 else 0)
    return kind, at


def _udp(data: Buffer, at: int, limit: int) -> tuple[int, int]:
    """EtherType and position of what is in a UDP tunnel; 0 if it is none."""
    port = _u16(data, at + 2, limit)
    if port == _VXLAN and _u8(data, at + 8, limit) & 0x08:
        return _ETHERNET, at + 16
    if port == _GENEVE and _u8(data, at + 8, limit) >> 6 == 0:
        return _u16(data, at + 10, limit), at + 16 + (_u8(data, at + 8, limit) & 0x3F) * 4
    if port == _GTP_U and _u8(data, at + 8, limit) >> 4 == 3 and _u8(data, at + 9, limit) == 255:
        flags = _u8(data, at + 8, limit)
        body = at + 16
        if flags & 7:
            following = _u8(data, body + 3, limit)
            body += 4
            for _ in range(_MOST_LAYERS):
                size = _u8(data, body, limit) * 4
                if not following or not size:
                    break
                following = _u8(data, body + size - 1, limit)
                body += size
        return _BY_NIBBLE, body
    return 0, at


def _quotes_tcp(data: Buffer, protocol: int, at: int, limit: int) -> bool:
    """Whether an ICMP message is about a TCP packet, whose beginning it holds."""
    kind = _u8(data, at, limit)
    if protocol == _ICMP:
        return kind in (3, 4, 5, 11, 12) and _u8(data, at + 17, limit) == _TCP
    return 0 < kind < 5 and _u8(data, at + 14, limit) == _TCP


def _jumbo_bytes(data: Buffer, at: int, end: int, limit: int) -> int:
    """Payload length in the jumbo option of a hop-by-hop header (RFC 2675); -1 without one."""
    at += 2
    for _ in range(256):
        if at >= end or at >= limit:
            break
        kind = _u8(data, at, limit)
        if kind == 0xC2:
            return _u32(data, at + 2, limit) if at + 6 <= limit else -1
        at += 1 if kind == 0 else 2 + _u8(data, at + 1, limit)
    return -1


# What `_find_tcp` returns, apart from positions.
_NOTHING, _WHOLE, _FIRST_FRAGMENT, _LATER_FRAGMENT = 0, 1, 2, 3


def _find_tcp(
    data: Buffer, kind: int, at: int, limit: int, tally: I64
) -> tuple[int, int, int, int, int, int]:
    """The TCP header inside IP, through extension headers and tunnels.

    Returns what was found, the version of IP, where the IP header, its payload and (for IPv6) the
    fragment header are, and where the IP packet ends (-1 where its header does not say: a length
    of 0 is a packet of 64 kB or more, or one not yet cut by an offload).
    """
    tunnelled = False
    for _ in range(_MOST_LAYERS):
        kind, at = _unwrap(data, kind, at, limit)
        if kind == _IPV4:
            head = _u8(data, at, limit)
            transport = at + (head & 15) * 4
            if head >> 4 != 4 or transport < at + 20:
                break
            length = _u16(data, at + 2, limit)
            end = at + length if length else -1
            protocol = _u8(data, at + 9, limit)
            fragment = _u16(data, at + 6, limit)
            fragmented = fragment & 0x3FFF != 0
            later = fragment & 0x1FFF != 0
            fragment_at = at
        elif kind == _IPV6:
            if _u8(data, at, limit) >> 4 != 6:
                break
            length = _u16(data, at + 4, limit)
            end = at + 40 + length if length else -1
            protocol = _u8(data, at + 6, limit)
            transport = at + 40
            fragmented = later = False
            fragment_at = at
        else:
            break
        for _ in range(_MOST_LAYERS):
            if protocol == _AUTHENTICATION:
                size = _u8(data, transport + 1, limit) * 4 + 8
            elif kind == _IPV6 and protocol == _FRAGMENT:
                size = 8
                fragment_at = transport
                fragmented = _u16(data, transport + 2, limit) & 0xFFF9 != 0
                later = _u16(data, transport + 2, limit) & 0xFFF8 != 0
            elif kind == _IPV6 and protocol in (
                _HOP_BY_HOP,
                _ROUTING,
                _DESTINATION,
                _MOBILITY,
                _HIP,
                _SHIM6,
            ):
                size = _u8(data, transport + 1, limit) * 8 + 8
                if protocol == _HOP_BY_HOP and end < 0:
                    jumbo = _jumbo_bytes(data, transport, transport + size, limit)
                    if jumbo >= 0:
                        end = at + 40 + jumbo
            else:
                break
            if transport + 8 > limit or later:
                break
            protocol = _u8(data, transport, limit)
            transport += size
        version = 4 if kind == _IPV4 else 6
        if later and kind == _IPV6:
            protocol = _u8(data, fragment_at, limit)
            transport = fragment_at + 8
        # In later fragments of IPv6, what precedes TCP may be in the first one.
        if protocol == _TCP or (later and kind == _IPV6 and protocol == _DESTINATION):
            if tunnelled:
                tally[TUNNELLED] += 1
            found = _WHOLE
            if fragmented:
                found = _LATER_FRAGMENT if later else _FIRST_FRAGMENT
            return found, version, at, transport, fragment_at, end
        if later:
            break
        if protocol in (_ICMP, _ICMP6) and _quotes_tcp(data, protocol, transport, limit):
            tally[QUOTED] += 1
        if protocol == _IP4:
            kind, at = _IPV4, transport
        elif protocol == _IP6:
            kind, at = _IPV6, transport
        elif protocol == _GRE:
            kind, at = _gre(data, transport, limit)
        elif protocol == _UDP:
            kind, at = _udp(data, transport, limit)
        else:
            break
        tunnelled = True
    return _NOTHING, 0, at, at, at, -1


def _address_words(data: Buffer, version: int, at: int, limit: int, key: I64) -> None:
    """Version and addresses of an IP packet into the first nine words of a key."""
    key[0] = version
    if version == 4:
        for word in range(1, 9):
            key[word] = 0
        key[4] = _u32(data, at + 12, limit)
        key[8] = _u32(data, at + 16, limit)
    else:
        for word in range(8):
            key[1 + word] = _u32(data, at + 8 + 4 * word, limit)


def _slot(key: I64, slots: I32, table: U32) -> int:
    """Where a key is in the hash table, or the empty slot where it belongs."""
    mixed = 0
    for word in key:
        # 31 bits times 31 bits stays within a signed 64-bit number.
        mixed = ((mixed ^ int(word) ^ int(word) >> 31) & 0x7FFFFFFF) * 0x5BD1E995
        mixed ^= mixed >> 29
    last = len(slots) - 1
    place = mixed & last
    while True:
        index = slots[place]
        if index < 0:
            return place
        same = True
        for word in range(KEY_WORDS):
            if table[index, word] != key[word]:
                same = False
                break
        if same:
            return place
        place = (place + 1) & last


def place_keys(table: U32, count: int, slots: I32, key: I64) -> None:
    """Fill an empty hash table with the first `count` keys; `key` is scratch space."""
    for index in range(count):
        for word in range(KEY_WORDS):
            key[word] = table[index, word]
        slots[_slot(key, slots, table)] = index


def _payload_sum(data: Buffer, at: int, stop: int) -> int:
    """Ones' complement sum of 16-bit words (RFC 1071), without the final inversion."""
    high = low = 0
    for position in range(at, stop - 1, 2):
        high += data[position]
        low += data[position + 1]
    if (stop - at) & 1:
        high += data[stop - 1]
    total = (high << 8) + low
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def _options(
    data: Buffer,
    at: int,
    stop: int,
    row: int,
    kept: int,
    values: I64,
    options: I64,
    option_bytes: NDArray[np.uint8],
) -> int:
    """Decode TCP options into row `row`; returns how many MPTCP options are kept raw so far."""
    present = 0
    while at < stop:
        kind = _u8(data, at, stop)
        if kind == 0:
            break
        if kind == 1:
            at += 1
            continue
        length = _u8(data, at + 1, stop)
        if length < 2 or at + length > stop:
            break
        if kind == 8 and length == 10:
            values[TIME_VALUE, row] = _u32(data, at + 2, stop)
            values[TIME_ECHO, row] = _u32(data, at + 6, stop)
        elif kind == 3 and length == 3:
            values[WINDOW_SCALE, row] = min(_u8(data, at + 2, stop), 14)  # RFC 7323: at most 14
        elif kind == 30 and length >= 3:
            subtype = _u8(data, at + 2, stop) >> 4
            if subtype == DSS:
                present |= 1 << DSS
                _dss(data, at, length, stop, row, values)
            else:
                if subtype == MP_CAPABLE:
                    known = length in (4, 12, 20, 22, 24)
                elif subtype == MP_JOIN:
                    known = length in (12, 16, 24)
                else:
                    known = subtype <= MP_TCPRST
                if known:
                    present |= 1 << subtype
                start = int(options[OPTION_START, kept])
                for offset in range(length):
                    option_bytes[start + offset] = data[at + offset]
                options[OPTION_PACKET, kept] = row
                options[OPTION_SUBTYPE, kept] = subtype
                kept += 1
                options[OPTION_START, kept] = start + length
        at += length
    values[MPTCP, row] = present
    return kept


def _dss(data: Buffer, at: int, length: int, stop: int, row: int, values: I64) -> None:
    """Data sequence signal (RFC 8684, section 3.3)."""
    flags = _u8(data, at + 3, stop) & 31
    acknowledgment = 0
    if flags & DSS_ACK:
        acknowledgment = 8 if flags & DSS_ACK8 else 4
    sequence = 0
    if flags & DSS_MAP:
        sequence = 8 if flags & DSS_MAP8 else 4
    needed = 4 + acknowledgment + (sequence + 6 if sequence else 0)
    if length < needed:
        return
    values[DSS_FLAGS, row] = flags
    at += 4
    if acknowledgment == 8:
        values[DATA_ACKNOWLEDGMENT, row] = _u64(data, at, stop)
    elif acknowledgment == 4:
        values[DATA_ACKNOWLEDGMENT, row] = _u32(data, at, stop)
    at += acknowledgment
    if sequence:
        if sequence == 8:
            values[DATA_SEQUENCE, row] = _u64(data, at, stop)
        else:
            values[DATA_SEQUENCE, row] = _u32(data, at, stop)
        at += sequence
        values[SUBFLOW_SEQUENCE, row] = _u32(data, at, stop)
        values[MAPPING_BYTES, row] = _u16(data, at + 4, stop)
        if length >= needed + 2:
            values[DSS_CHECKSUM, row] = _u16(data, at + 6, stop)


def decode(
    data: Buffer,
    records: I64,
    count: int,
    links: I64,
    values: I64,
    options: I64,
    option_bytes: NDArray[np.uint8],
    fragments: I64,
    tally: I64,
    unknown_link: I64,
    table: U32,
    slots: I32,
    key: I64,
) -> int:
    """Decode the TCP packets among frames.

    Parameters
    ----------
    data : bytes
        Holds the frames.
    records : int64 array (5, n)
        Of each frame, see `captures.records`.
    count : int
        Frames.
    links : int64 array
        LINKTYPE_ of each interface.
    values : int64 array (23, n)
        Room for the columns of `count` packets.
    options : int64 array (3, MOST_OPTIONS * n + 1)
        Room for options of multipath TCP: packet, subtype, start in `option_bytes`. The first
        starts at 0; behind the last one is where it ends.
    option_bytes : uint8 array (40 * n)
        Room for the options themselves.
    fragments : int64 array (n, FRAGMENT_FIELDS)
        Room for what there is to know about IP fragments.
    tally : int64 array (COUNTERS)
        Counted up.
    unknown_link : int64 array
        Frames of each interface whose link type is unknown, counted up.
    table, slots : uint32 array (n, KEY_WORDS), int32 array
        Directed four-tuples so far and the hash table over them, with room for `count` more.
    key : int64 array (KEY_WORDS)
        Scratch space.

    Returns
    -------
    int
        Packets found.
    """
    row = kept = 0
    pieces = 0
    flows = int(tally[FLOWS])
    frames = int(tally[FRAMES])
    for index in range(count):
        start = int(records[RECORD_OFFSET, index])
        size = int(records[RECORD_CAPTURED_BYTES, index])
        limit = start + size
        length = min(int(records[RECORD_WIRE_BYTES, index]), LARGEST_LENGTH)
        number = int(records[RECORD_INTERFACE, index])
        frames += 1
        if number < 0:
            continue
        tally[LAST_NS] = records[RECORD_TIME_NS, index]
        if tally[PACKETS] == 0:
            tally[FIRST_NS] = tally[LAST_NS]
        tally[PACKETS] += 1
        if length > tally[LARGEST]:
            tally[LARGEST] = length
        if length > size:
            tally[SNAPPED] += 1
        kind, at = _link(data, int(links[number]), start, limit, tally)
        if kind < 0:
            unknown_link[number] += 1
            continue
        if kind == 0:
            continue
        found, version, ip, transport, fragment_at, end = _find_tcp(data, kind, at, limit, tally)
        if found == _NOTHING:
            continue
        wire_end = start + length
        end = wire_end if end < 0 or end > wire_end else end
        if found != _WHOLE:
            _address_words(data, version, ip, limit, key)
            fragments[pieces, 0] = -1
            for word in range(9):
                fragments[pieces, 1 + word] = key[word]
            if version == 4:
                control = _u16(data, ip + 6, limit)
                fragments[pieces, 10] = _u16(data, ip + 4, limit)
                fragments[pieces, 11] = (control & 0x1FFF) * 8
                fragments[pieces, 13] = control >> 13 & 1
                body = transport
            else:
                control = _u16(data, fragment_at + 2, limit)
                fragments[pieces, 10] = _u32(data, fragment_at + 4, limit)
                fragments[pieces, 11] = control & 0xFFF8
                fragments[pieces, 13] = control & 1
                body = fragment_at + 8
            fragments[pieces, 12] = max(end - body, 0)
            pieces += 1
        if found == _LATER_FRAGMENT:
            continue
        # Without the flags (byte 14) a TCP packet is of no use.
        if transport + 14 > limit:
            tally[UNDECODED] += 1
            continue
        if found == _FIRST_FRAGMENT:
            # What the later ones carry comes on top of what is between the two headers' ends.
            fragments[pieces - 1, 0] = row
        if length > LARGEST_PLAIN_FRAME_BYTES:
            tally[LARGE] += 1

        _address_words(data, version, ip, limit, key)
        key[9] = _u16(data, transport, limit)
        key[10] = _u16(data, transport + 2, limit)
        place = _slot(key, slots, table)
        if slots[place] < 0:
            for word in range(KEY_WORDS):
                table[flows, word] = key[word]
            slots[place] = flows
            flows += 1

        values[FRAME, row] = frames
        values[TIME_NS, row] = records[RECORD_TIME_NS, index]
        values[INTERFACE, row] = number
        values[CAPTURED_BYTES, row] = size
        values[WIRE_BYTES, row] = length
        values[FLOW, row] = slots[place]
        values[IP_ID, row] = _u16(data, ip + 4, limit) if version == 4 else -1
        values[SEQUENCE, row] = _u32(data, transport + 4, limit)
        values[ACKNOWLEDGMENT, row] = _u32(data, transport + 8, limit)
        values[FLAGS, row] = data[transport + 13]
        values[WINDOW, row] = _u16(data, transport + 14, limit)
        header = (_u8(data, transport + 12, limit) >> 4) * 4
        body = transport + header
        payload = max(end - body, 0)
        values[PAYLOAD_BYTES, row] = payload
        values[PAYLOAD_SUM, row] = -1
        if found == _WHOLE and body + payload <= limit:
            values[PAYLOAD_SUM, row] = _payload_sum(data, body, body + payload)
        values[TIME_VALUE, row] = -1
        values[TIME_ECHO, row] = -1
        values[WINDOW_SCALE, row] = -1
        values[DSS_FLAGS, row] = 0
        values[DATA_ACKNOWLEDGMENT, row] = 0
        values[DATA_SEQUENCE, row] = 0
        values[SUBFLOW_SEQUENCE, row] = 0
        values[MAPPING_BYTES, row] = -1
        values[DSS_CHECKSUM, row] = -1
        kept = _options(
            data, transport + 20, min(body, limit), row, kept, values, options, option_bytes
        )
        row += 1
    tally[FRAMES] = frames
    tally[FLOWS] = flows
    tally[OPTIONS] = kept
    tally[FRAGMENTS] = pieces
    return row
