"""Which MPTCP subflows there are, from the TCP handshakes that pass. Pure.

RFC 8684: the server's key is in the SYN/ACK of the first subflow (MP_CAPABLE, section 3.1); a
further subflow names its connection by the token of that key (MP_JOIN, section 3.2).
"""

from __future__ import annotations

import hashlib
import ipaddress
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

_MPTCP = 30
_MP_CAPABLE, _MP_JOIN = 0, 1
_SYN, _ACK = 0x02, 0x10


@dataclass(frozen=True)
class Handshake:
    """A TCP segment with SYN.

    `key` is the sender's key if the segment holds one, `token` names the connection that it
    asks to join.
    """

    source: str
    source_port: int
    destination: str
    destination_port: int
    answer: bool
    multipath: bool = False
    key: bytes | None = None
    token: int | None = None


def token_of(key: bytes) -> int:
    """The token of a key: the first 32 bits of its SHA-256 (RFC 8684, section 3.2)."""
    return int.from_bytes(hashlib.sha256(key).digest()[:4], "big")


def read_handshake(frame: bytes) -> Handshake | None:
    """Read an Ethernet frame; None if it is no IPv4 TCP segment with SYN, or is damaged."""
    try:
        return _read(frame)
    except (struct.error, IndexError):
        return None


def _read(frame: bytes) -> Handshake | None:
    if frame[12:14] != b"\x08\x00" or frame[14] >> 4 != 4:
        return None
    ip_header_bytes = 4 * (frame[14] & 0x0F)
    fragment = struct.unpack_from("!H", frame, 20)[0] & 0x1FFF
    if frame[23] != 6 or ip_header_bytes < 20 or fragment:
        return None
    tcp = frame[14 + ip_header_bytes :]
    flags, header_bytes = tcp[13], 4 * (tcp[12] >> 4)
    if not flags & _SYN or header_bytes < 20:
        return None
    source_port, destination_port = struct.unpack_from("!HH", tcp)
    found = Handshake(
        str(ipaddress.IPv4Address(frame[26:30])),
        source_port,
        str(ipaddress.IPv4Address(frame[30:34])),
        destination_port,
        bool(flags & _ACK),
    )
    options = tcp[20:header_bytes]
    while options:
        if options[0] == 0:
            break
        if options[0] == 1:
            options = options[1:]
            continue
        length = options[1]
        if length < 2 or length > len(options):
            break
        if options[0] == _MPTCP and length >= 4:
            found = _with_multipath(found, options[:length])
        options = options[length:]
    return found


def _with_multipath(found: Handshake, option: bytes) -> Handshake:
    kind = option[2] >> 4
    if kind == _MP_CAPABLE:
        return replace(found, multipath=True, key=option[4:12] if len(option) >= 12 else None)
    if kind == _MP_JOIN:
        # The token is in the SYN only; the answer has an HMAC in its place.
        asks = len(option) == 12 and not found.answer
        token = struct.unpack_from("!I", option, 4)[0] if asks else None
        return replace(found, multipath=True, token=token)
    return found


Ends = tuple[str, int, str, int]
"""Address and port of the client, then of the server."""


@dataclass(frozen=True)
class Subflows:
    """Subflows by their ends, and the connection that each belongs to.

    A connection is named by its token, a subflow whose key was not seen by its own ends.
    """

    connection: Mapping[Ends, int | None] = field(default_factory=dict)

    LIMIT = 10_000
    """Subflows that are remembered; the oldest are forgotten first."""

    def after(self, handshake: Handshake) -> Subflows:
        """The same with what a handshake tells."""
        h = handshake
        ends: Ends = (h.source, h.source_port, h.destination, h.destination_port)
        if h.answer:
            ends = (h.destination, h.destination_port, h.source, h.source_port)
        token = h.token
        if h.answer and h.key is not None:
            token = token_of(h.key)
        known = dict(self.connection)
        # A SYN that is sent again must not undo what its answer told.
        known[ends] = token if token is not None else known.get(ends)
        while len(known) > self.LIMIT:
            del known[next(iter(known))]
        return Subflows(known)
