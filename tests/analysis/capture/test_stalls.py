"""Why data stopped, told from the packets of a small TCP connection that each test makes up."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from analysis.capture.analyse import analyse_captures

SYN, ACK = 2, 16


@dataclass(frozen=True)
class Packet:
    """Bytes `first` to `first + size` from the client, or an acknowledgment from the server."""

    at_s: float
    client: bool
    first: int = 0
    size: int = 0
    acknowledges: int = 0
    window: int = 1000
    flags: int = ACK
    identification: int = 0


def write(path: Path, packets: Sequence[Packet]) -> Path:
    """A pcap file of raw IPv4 packets; both sequence numbers start at 1000."""
    out = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)
    for each in packets:
        ends = (b"\x0a\0\0\1", b"\x0a\0\0\2") if each.client else (b"\x0a\0\0\2", b"\x0a\0\0\1")
        ports = (4000, 80) if each.client else (80, 4000)
        syn = each.flags & SYN != 0
        sequence = 1000 + (0 if syn else 1 + (each.first if each.client else 0))
        acknowledgment = 1001 + each.acknowledges if each.flags & ACK else 0
        tcp = struct.pack(
            "!HHIIBBHHH", *ports, sequence, acknowledgment, 5 << 4, each.flags, each.window, 0, 0
        )
        total = 40 + each.size
        ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, total, each.identification, 0, 64, 6, 0, *ends)
        whole = ip + tcp + bytes(each.size)
        seconds, micros = divmod(round(each.at_s * 1e6), 1_000_000)
        out += struct.pack("<IIII", seconds, micros, total, total) + whole
    path.write_bytes(out)
    return path


def opening(near: str) -> list[Packet]:
    """A handshake over 40 ms, as it is seen at one end."""
    answer, third = (0.04, 0.04) if near == "client" else (0.0, 0.04)
    return [
        Packet(0.0, True, flags=SYN),
        Packet(answer, False, flags=SYN | ACK),
        Packet(third, True),
    ]


def data(at_s: float, first: int, identification: int = 0) -> Packet:
    return Packet(at_s, True, first, 100, identification=identification)


def answer(at_s: float, acknowledges: int, window: int = 1000) -> Packet:
    return Packet(at_s, False, acknowledges=acknowledges, window=window)


CASES = {
    "sender idle": (
        "client",
        [data(0.1, 0), answer(0.14, 100), data(3.0, 100), answer(3.04, 200)],
    ),
    "receiver window": (
        "client",
        [data(0.1, 0), answer(0.14, 100, window=0), answer(2.9, 100), data(3.0, 100)],
    ),
    "slow path": (
        "server",
        [data(0.1, 0), data(0.11, 200), data(0.135, 100)],
    ),
    "nothing arrived": (
        "server",
        [data(0.1, 0), answer(0.1, 100), data(3.0, 100), answer(3.0, 200)],
    ),
}


@pytest.mark.parametrize("cause", CASES)
def test_one_capture_tells_the_cause(cause: str, tmp_path: Path) -> None:
    near, packets = CASES[cause]
    path = write(tmp_path / "made.pcap", [*opening(near), *packets])
    limit_s = 0.02 if cause == "slow path" else 0.5
    (connection,) = analyse_captures([path], listed_gap_s=limit_s).connections
    assert connection.capture_side == near
    (found,) = connection.client_to_server.interruptions
    assert found.cause == cause
    assert found.start_s == pytest.approx(0.1)
    assert found.length_s == pytest.approx(0.035 if cause == "slow path" else 2.9)


def test_a_pair_tells_a_silent_path_from_an_idle_sender(tmp_path: Path) -> None:
    """The same packets reach the receiver late: data was on its way."""

    def place(name: str, shift_s: dict[bool, float], late_s: float) -> Path:
        told = [
            Packet(0.0, True, flags=SYN),
            Packet(0.05, False, flags=SYN | ACK),
            Packet(0.1, True),
            data(0.2, 0),
            answer(0.3, 100),
            data(0.5, 100),
            answer(2.6, 200),
        ]
        moved = [
            Packet(**{**each.__dict__, "at_s": each.at_s + shift_s[each.client]}) for each in told
        ]
        moved[5] = Packet(**{**moved[5].__dict__, "at_s": moved[5].at_s + late_s})
        return write(tmp_path / name, moved)

    pair = [place("a.pcap", {True: 0.0, False: 0.04}, 0.0), place("b.pcap", {True: 0.04,
            False: 0.0}, 2.0)]  # fmt: skip
    (connection,) = analyse_captures(pair).connections
    (found,) = connection.client_to_server.interruptions
    assert found.cause == "path silent"
    (other,) = analyse_captures(pair[:1], listed_gap_s=0.2).connections
    assert other.client_to_server.interruptions[0].cause == "sender idle"


def test_data_sent_again_explains_what_waited_for_it(tmp_path: Path) -> None:
    def at(*moments: float) -> list[Packet]:
        first, second, third, again = moments
        return [
            *opening("server"),
            data(first, 0),
            *([data(second, 100)] if second else []),
            data(third, 200),
            data(again, 100, identification=1),
        ]

    # The sender sent bytes 100 to 200 at 0.2 s, and once more at 2.0 s.
    sender = write(tmp_path / "sender.pcap", at(0.1, 0.2, 0.3, 2.0))
    receiver = write(tmp_path / "receiver.pcap", at(0.14, 0.0, 0.34, 2.04))
    (pair,) = analyse_captures([sender, receiver]).connections
    assert [each.cause for each in pair.client_to_server.interruptions] == ["loss recovery"]
    assert pair.subflows[0].client_to_server.lost_packets == 1
    (alone,) = analyse_captures([receiver]).connections
    assert [each.cause for each in alone.client_to_server.interruptions] == ["loss recovery"]
