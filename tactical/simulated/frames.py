"""Bytes of simulated packets: Ethernet, IPv4, TCP, multipath TCP (RFC 8684); data are zeros."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass
from functools import cache

from captures.authentication import join_hmac, token_and_initial_sequence
from simulation.transfers import Packet, Subflow, Transfer

VERSION = 1
"""Of multipath TCP."""

_CAPABLE, _JOIN, _DSS, _REMOVE_ADDRESS, _PRIO = 0, 1, 2, 4, 5
_KIND = 30
_HMAC_SHA256 = 0x01
_FLAGS = {"F": 0x01, "S": 0x02, "R": 0x04, "P": 0x08, "A": 0x10}
_ECE, _CWR = 0x40, 0x80
_EPHEMERAL = (32768, 60999)
"""net.ipv4.ip_local_port_range."""

_WINDOW_SHIFT, _WINDOW_BYTES = 7, 6 << 20
_CLOCK_S = 10.0
"""Timestamps begin a little after 0."""


@dataclass(frozen=True)
class _Connection:
    keys: tuple[int, int]
    token: int
    first_sequence: tuple[int, int]


@dataclass(frozen=True)
class _Ends:
    address: bytes
    port: int
    first_sequence: tuple[int, int]
    nonces: tuple[int, int]


class Frames:
    """Makes frames of packets.

    Parameters
    ----------
    server_address : str
    draws : random.Random
        Ports, keys and initial sequence numbers.
    """

    def __init__(self, server_address: str, draws: random.Random) -> None:
        self._server = _packed(server_address)
        self._draws = draws
        self._connections: dict[Transfer, _Connection] = {}
        self._subflows: dict[Subflow, _Ends] = {}
        self._ports: dict[Transfer, int] = {}
        self._identification = 0

    def expect(self, transfer: Transfer, port: int) -> None:
        """Tell the port of the server that a transfer goes to."""
        self._ports[transfer] = port
        keys = (self._draws.getrandbits(64), self._draws.getrandbits(64))
        own, theirs = (token_and_initial_sequence(key, VERSION) for key in keys)
        self._connections[transfer] = _Connection(keys, theirs[0], (own[1] + 1, theirs[1] + 1))

    def begin(self, subflow: Subflow, address: str) -> None:
        """Tell the address that a subflow is sent from."""
        draws = self._draws
        used = {ends.port for ends in self._subflows.values()}
        port = draws.randint(*_EPHEMERAL)
        while port in used:
            port = draws.randint(*_EPHEMERAL)
        self._subflows[subflow] = _Ends(
            _packed(address),
            port,
            (draws.getrandbits(32), draws.getrandbits(32)),
            (draws.getrandbits(32), draws.getrandbits(32)),
        )

    def datagram(self, packet: Packet) -> bytes:
        """The IPv4 packet without its payload, whose checksums count it."""
        ends = self._subflows[packet.subflow]
        server_port = self._ports[packet.subflow.transfer]
        client = ends.address
        options = self._options(packet)
        header_bytes = 20 + len(options)
        flags = _flags(packet.flags) | _congestion_flags(packet)
        own, other = ends.first_sequence[:: 1 if packet.forward else -1]
        acknowledgment = (other + packet.acknowledgment) & 0xFFFFFFFF if "A" in packet.flags else 0
        ports = (ends.port, server_port) if packet.forward else (server_port, ends.port)
        addresses = client + self._server if packet.forward else self._server + client
        window = 0xFFFF if "S" in packet.flags else _WINDOW_BYTES >> _WINDOW_SHIFT
        fields = (
            *ports,
            (own + packet.sequence) & 0xFFFFFFFF,
            acknowledgment,
            header_bytes // 4 << 12 | flags,
            window,
        )
        segment = struct.pack("!HHIIHHHH", *fields, 0, 0) + options
        length = header_bytes + packet.length
        checksum = _checksum(addresses + struct.pack("!HH", 6, length) + segment)
        segment = segment[:16] + checksum.to_bytes(2, "big") + segment[18:]
        self._identification = (self._identification + 1) & 0xFFFF
        congestion = 3 if packet.marked else 2 if packet.capable else 0  # RFC 3168, 5
        datagram = struct.pack(
            "!BBHHHBBH", 0x45, congestion, 20 + length, self._identification, 0x4000, 64, 6, 0
        )
        checksum = _checksum(datagram + addresses)
        return datagram[:10] + checksum.to_bytes(2, "big") + addresses + segment

    def _options(self, packet: Packet) -> bytes:
        echo_s = packet.echo_s + _CLOCK_S if "A" in packet.flags else 0.0
        stamps = (int((packet.sent_s + _CLOCK_S) * 1e3), int(echo_s * 1e3))
        timestamps = struct.pack("!BBII", 8, 10, *stamps)
        if "S" in packet.flags:
            options = struct.pack("!BBHBB", 2, 4, 1460, 4, 2) + timestamps
            options += struct.pack("!BBBB", 1, 3, 3, _WINDOW_SHIFT)
        else:
            options = b"\x01\x01" + timestamps
            if packet.sacks:
                options += struct.pack("!BBBB", 1, 1, 5, 2 + 8 * len(packet.sacks))
                first = self._subflows[packet.subflow].first_sequence[
                    0 if not packet.forward else 1
                ]
                for block in packet.sacks:
                    edges = [(first + edge) & 0xFFFFFFFF for edge in block]
                    options += struct.pack("!II", *edges)
        if packet.subflow.multipath:
            options += self._multipath(packet)
        return options + b"\x01" * (-len(options) % 4)

    def _multipath(self, packet: Packet) -> bytes:
        connection = self._connections[packet.subflow.transfer]
        ends = self._subflows[packet.subflow]
        number = packet.subflow.number
        match packet.signal:
            case "capable syn":
                return _option(_CAPABLE, VERSION, bytes([_HMAC_SHA256]))
            case "capable syn ack":
                key = connection.keys[1].to_bytes(8, "big")
                return _option(_CAPABLE, VERSION, bytes([_HMAC_SHA256]) + key)
            case "capable ack":
                keys = b"".join(key.to_bytes(8, "big") for key in connection.keys)
                return _option(_CAPABLE, VERSION, bytes([_HMAC_SHA256]) + keys)
            case "join syn":
                rest = struct.pack("!BII", number, connection.token, ends.nonces[0])
                return _option(_JOIN, packet.backup, rest)
            case "join syn ack":
                proof = join_hmac(VERSION, connection.keys[::-1], ends.nonces[::-1])[:8]
                rest = b"\x00" + proof + ends.nonces[1].to_bytes(4, "big")
                return _option(_JOIN, 0, rest)
            case "join ack":
                proof = join_hmac(VERSION, connection.keys, ends.nonces)[:20]
                return _option(_JOIN, 0, b"\x00" + proof)
            case "prio":
                return _option(_PRIO, packet.backup, b"")
            case "remove address":
                return _option(_REMOVE_ADDRESS, 0, bytes([packet.data_sequence & 0xFF]))
        own, other = (
            connection.first_sequence if packet.forward else connection.first_sequence[::-1]
        )
        answered = (other + packet.data_acknowledgment) & 0xFFFFFFFFFFFFFFFF
        if not packet.length and not packet.data_end:
            return _option(_DSS, 0, struct.pack("!BQ", 0x03, answered))
        sequence = (own + packet.data_sequence) & 0xFFFFFFFFFFFFFFFF
        flags = 0x0F | (0x10 if packet.data_end else 0)
        at = packet.sequence if packet.length else 0
        length = packet.length + packet.data_end
        return _option(_DSS, 0, struct.pack("!BQQIH", flags, answered, sequence, at, length))


@cache
def _flags(letters: str) -> int:
    return sum(_FLAGS[letter] for letter in letters)


def _congestion_flags(packet: Packet) -> int:
    """ECE and CWR; in a handshake they agree on their use (RFC 3168, 6.1.1)."""
    if "S" in packet.flags:
        return _ECE if "A" in packet.flags else _ECE | _CWR
    return (_ECE if packet.congested else 0) | (_CWR if packet.reduced else 0)


@cache
def ethernet(source: str, destination: str) -> bytes:
    """The header of a frame that carries IPv4."""
    return bytes.fromhex(destination.replace(":", "") + source.replace(":", "")) + b"\x08\x00"


def _option(subtype: int, low: int, rest: bytes) -> bytes:
    return bytes([_KIND, 3 + len(rest), subtype << 4 | int(low)]) + rest


def _packed(address: str) -> bytes:
    return bytes(int(part) for part in address.split("."))


def _checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071) of an even number of bytes that are not all zeros.

    A sum with the carries added in is the number that the bytes are, modulo 65535.
    """
    return 0xFFFF - (int.from_bytes(data, "big") % 0xFFFF or 0xFFFF)
