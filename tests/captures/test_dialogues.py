"""TCP and multipath TCP dialogues made by hand, one for each thing that the two sides can do."""

import hashlib
import hmac
import struct
from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from captures import Connection, connections, read, streams, summary
from captures.packets import ACK, FIN, RST, SYN

CLIENT, SERVER = ("10.0.0.1", 40000), ("10.0.0.2", 80)
SECOND = ("10.0.1.1", 40001)
KEYS = (0x1111222233334444, 0xA1B2C3D4E5F60718)
Address = tuple[str, int]


class Tape:
    """Records what `Talk` says, as a pcap file of raw IP packets."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "dialogue.pcap"
        self._records: list[bytes] = []
        self.time_ns = 1_700_000_000_000_000_000
        self.snap_length = 262144

    def add(self, packet: bytes, after_ms: float) -> None:
        self.time_ns += int(after_ms * 1e6)
        seconds, rest = divmod(self.time_ns, 10**9)
        kept = packet[: self.snap_length]
        head = struct.pack("<IIII", seconds, rest, len(kept), len(packet))
        self._records.append(head + kept)

    def move(self, index: int, to: int) -> None:
        """A packet recorded earlier or later; its stamp goes with its place."""
        heads = [record[:8] for record in self._records]
        self._records.insert(to, self._records.pop(index))
        self._records = [h + r[8:] for h, r in zip(heads, self._records, strict=True)]

    def lose(self, index: int) -> None:
        del self._records[index]

    @property
    def path(self) -> Path:
        head = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 101)
        self._file.write_bytes(head + b"".join(self._records))
        return self._file

    def found(self) -> tuple[Connection, ...]:
        return connections(read(self.path).packets)

    def only(self) -> Connection:
        (connection,) = self.found()
        return connection


class Talk:
    """One TCP stream; sequence numbers go on by themselves."""

    def __init__(
        self,
        tape: Tape,
        client: Address = CLIENT,
        server: Address = SERVER,
        initial: tuple[int, int] = (1000, 0xFFFFFF00),
        stamps: bool = False,
    ) -> None:
        self._tape, self._ends, self._stamps = tape, (client, server), stamps
        self.initial = initial
        self.next = list(initial)

    def send(
        self,
        side: int,
        flags: int,
        payload: bytes = b"",
        options: bytes = b"",
        *,
        at: int | None = None,
        ack: int | None = None,
        window: int = 65535,
        after_ms: float = 1.0,
        sent_ms: int | None = None,
    ) -> None:
        """A packet of the client (0) or the server (1); `at` and `ack` are relative numbers."""
        sequence = self.next[side] if at is None else self.initial[side] + at
        other = self.next[1 - side] if ack is None else self.initial[1 - side] + ack
        if self._stamps:
            value = self._tape.time_ns // 10**6 if sent_ms is None else sent_ms
            options += struct.pack(">BBIIBB", 8, 10, value & 0xFFFFFFFF, 0, 1, 1)
        options += bytes([1]) * (-len(options) % 4)
        tcp = struct.pack(
            ">HHIIBBHHH",
            self._ends[side][1],
            self._ends[1 - side][1],
            sequence & 0xFFFFFFFF,
            other & 0xFFFFFFFF if flags & ACK else 0,
            (5 + len(options) // 4) << 4,
            flags,
            window,
            0,
            0,
        )
        body = tcp + options + payload
        source, destination = (ip_address(self._ends[i][0]).packed for i in (side, 1 - side))
        head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(body), 0, 0, 64, 6, 0)
        self._tape.add(head + source + destination + body, after_ms)
        end = sequence + len(payload) + (flags & SYN != 0) + (flags & FIN != 0)
        self.next[side] = max(self.next[side], end)

    def open(self, syn: bytes = b"", answer: bytes = b"", last: bytes | None = b"") -> "Talk":
        self.send(0, SYN, options=syn)
        self.send(1, SYN | ACK, options=answer)
        if last is not None:
            self.send(0, ACK, options=last)
        return self

    def close(self) -> None:
        self.send(0, FIN | ACK)
        self.send(1, FIN | ACK)
        self.send(0, ACK)


@pytest.fixture
def tape(tmp_path: Path) -> Tape:
    return Tape(tmp_path)


# Options ------------------------------------------------------------------------------------------


def option(subtype: int, nibble: int, rest: bytes) -> bytes:
    return bytes([30, len(rest) + 3, subtype << 4 | nibble]) + rest


def capable(version: int, *keys: int, flags: int = 1, data: int | None = None) -> bytes:
    rest = bytes([flags]) + b"".join(key.to_bytes(8, "big") for key in keys)
    return option(0, version, rest + (b"" if data is None else struct.pack(">H", data)))


def hashed(version: int, key: int) -> tuple[int, int]:
    digest = (hashlib.sha256 if version else hashlib.sha1)(key.to_bytes(8, "big")).digest()
    return int.from_bytes(digest[:4], "big"), int.from_bytes(digest[-8:], "big")


def dss(
    *,
    ack: int | None = None,
    dsn: int | None = None,
    ssn: int = 0,
    size: int = 0,
    fin: bool = False,
    short: bool = False,
    checksum: int | None = None,
) -> bytes:
    width, flags, rest = (4 if short else 8), 16 * fin, b""
    if ack is not None:
        flags |= 1 if short else 3
        rest += (ack % (1 << 8 * width)).to_bytes(width, "big")
    if dsn is not None:
        flags |= 4 if short else 12
        rest += (dsn % (1 << 8 * width)).to_bytes(width, "big") + struct.pack(">IH", ssn, size)
        rest += b"" if checksum is None else struct.pack(">H", checksum)
    return option(2, 0, bytes([flags]) + rest)


def joining(
    version: int, token: int, keys: Sequence[int], *, backup: bool = False, wrong: bool = False
) -> tuple[bytes, bytes, bytes]:
    """The three MP_JOINs of a subflow that the owner of the first key opens."""
    nonces = (0x01020304, 0x0A0B0C0D)
    algorithm = "sha256" if version else "sha1"

    def mac(order: tuple[int, int]) -> bytes:
        key = b"".join(keys[i].to_bytes(8, "big") for i in order)
        message = b"".join(nonces[i].to_bytes(4, "big") for i in order)
        return hmac.digest(key, message, algorithm)

    last = mac((0, 1))[:20]
    if wrong:
        last = bytes([last[0] ^ 1]) + last[1:]
    return (
        option(1, backup, bytes([2]) + struct.pack(">II", token, nonces[0])),
        option(1, backup, bytes([2]) + mac((1, 0))[:8] + struct.pack(">I", nonces[1])),
        option(1, 0, bytes(1) + last),
    )


def opened(tape: Tape, version: int = 1, **more: Any) -> tuple[Talk, int, int]:
    """A multipath connection; also the data sequence numbers of both sides' first bytes."""
    talk = Talk(tape, **more)
    syn = capable(1) if version else capable(0, KEYS[0])
    talk.open(syn, capable(version, KEYS[1]), capable(version, *KEYS))
    there, back = (hashed(version, key)[1] + 1 for key in KEYS)
    return talk, there, back


# Streams ------------------------------------------------------------------------------------------


def payloads(tape: Tape) -> list[int]:
    return [each.forward.captured_bytes for each in tape.found()]


def test_a_four_tuple_used_again(tape: Tape) -> None:
    for initial in (1000, 2000, 3000):
        talk = Talk(tape, initial=(initial, 7)).open()
        talk.send(0, ACK, b"x" * (initial // 100))
    assert payloads(tape) == [10, 20, 30]


@pytest.mark.parametrize("end", ["fin", "reset"])
def test_the_same_initial_number_after_the_end(tape: Tape, end: str) -> None:
    for _ in range(2):
        talk = Talk(tape).open()
        talk.send(0, ACK, b"hello")
        if end == "fin":
            talk.close()
        else:
            talk.send(1, RST | ACK)
    assert payloads(tape) == [5, 5]
    assert [each.closed for each in tape.found()] == ["orderly" if end == "fin" else "reset"] * 2


def test_a_syn_sent_again_opens_nothing(tape: Tape) -> None:
    talk = Talk(tape)
    talk.send(0, SYN)
    talk.send(0, SYN, at=0, after_ms=1000)
    talk.send(1, SYN | ACK)
    talk.send(1, SYN | ACK, at=0, after_ms=1000)
    talk.send(0, ACK, b"data")
    (subflow,) = tape.only().subflows
    assert (subflow.forward.retransmissions, subflow.backward.retransmissions) == (1, 1)
    assert tape.only().forward.captured_bytes == 4


def test_roles_change_on_a_four_tuple(tape: Tape) -> None:
    Talk(tape).open().close()
    talk = Talk(tape, client=SERVER, server=CLIENT, initial=(9, 11)).open()
    talk.send(0, ACK, b"abc")
    first, second = tape.found()
    assert (first.client.port, second.client.port) == (CLIENT[1], SERVER[1])
    assert second.forward.captured_bytes == 3


def test_a_simultaneous_open_is_one_stream(tape: Tape) -> None:
    talk = Talk(tape)
    talk.send(0, SYN)
    talk.send(1, SYN)
    talk.send(0, SYN | ACK, at=0, ack=1)
    talk.send(1, SYN | ACK, at=0, ack=1)
    talk.send(0, ACK, b"12345")
    talk.send(1, ACK, b"123")
    connection = tape.only()
    assert (connection.forward.captured_bytes, connection.backward.captured_bytes) == (5, 3)


def test_half_open_and_refused_streams(tape: Tape) -> None:
    Talk(tape).send(0, SYN)
    talk = Talk(tape, client=SECOND)
    talk.send(0, SYN)
    talk.send(1, RST | ACK)
    assert [each.closed for each in tape.found()] == ["open", "reset"]
    assert payloads(tape) == [0, 0]


def test_a_capture_that_begins_with_an_overtaken_packet(tape: Tape) -> None:
    talk = Talk(tape)
    talk.send(0, ACK, b"b" * 10, at=11)
    talk.send(0, ACK, b"a" * 10, at=1)
    talk.send(0, ACK, b"c" * 10, at=21)
    flow = tape.only().forward
    assert (flow.captured_bytes, flow.in_order_bytes, flow.gaps) == (30, 30, 0)
    # What was recorded before the SYN of another stream on the same four-tuple is not its data.
    Talk(tape, initial=(77, 78)).open()
    assert payloads(tape) == [30, 0]


def test_data_on_a_syn(tape: Tape) -> None:
    talk = Talk(tape)
    talk.send(0, SYN, b"GET /")
    talk.send(1, SYN | ACK)
    talk.send(0, ACK, b" HTTP")
    flow = tape.only().forward
    assert (flow.captured_bytes, flow.in_order_bytes) == (10, 10)


def test_probes_are_no_data(tape: Tape) -> None:
    talk = Talk(tape).open()
    talk.send(0, ACK, b"0123456789")
    talk.send(1, ACK, window=0)
    talk.send(0, ACK, b"!", at=10)  # keep-alive with a byte of garbage
    talk.send(0, ACK, at=10)  # and without
    talk.send(1, ACK)
    talk.send(0, ACK, b"x")  # window probe: a byte of new data
    talk.send(0, ACK, b"x", at=11)
    talk.send(0, ACK, b"xyz", at=11)
    connection = tape.only()
    (subflow,) = connection.subflows
    assert connection.forward.captured_bytes == 13
    assert subflow.forward.retransmissions == 0
    assert not connection.forward.redundant.any()


# Repeats ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stamps", [True, False])
@pytest.mark.parametrize("late_ms", [0.2, 80.0])
def test_a_gap_is_filled(tape: Tape, stamps: bool, late_ms: float) -> None:
    """What was lost before the capture is sent again a round trip later; what was overtaken not."""
    talk = Talk(tape, stamps=stamps)
    talk.send(0, SYN)
    talk.send(1, SYN | ACK, after_ms=0.1)
    talk.send(0, ACK, after_ms=20)
    before_ms = tape.time_ns // 10**6
    talk.send(0, ACK, b"b" * 10, at=11, sent_ms=before_ms)
    sent_ms = before_ms if late_ms < 1 else before_ms + 80
    talk.send(0, ACK, b"a" * 10, at=1, after_ms=late_ms, sent_ms=sent_ms)
    (subflow,) = tape.only().subflows
    again = int(late_ms > 1)
    assert subflow.forward.retransmissions == again
    assert subflow.forward.inferred_retransmissions == again
    assert subflow.forward.reordered == 1 - again
    assert tape.only().forward.in_order_bytes == 20


def test_four_kinds_of_repeat(tape: Tape) -> None:
    talk, dsn, _ = opened(tape)
    second = Talk(tape, client=SECOND)
    second.open(*joining(1, hashed(1, KEYS[1])[0], KEYS))

    def data(sender: Talk, first: int, ssn: int) -> None:
        sender.send(
            0, ACK, b"d" * 100, dss(ack=1, dsn=dsn + first, ssn=ssn, size=100), at=ssn, after_ms=5
        )

    data(talk, 0, 1)
    data(talk, 100, 101)
    data(talk, 0, 1)  # retransmission
    data(second, 100, 1)  # reinjection
    data(talk, 100, 201)  # same data, same subflow, other sequence numbers
    data(second, 200, 101)
    data(talk, 200, 301)  # reinjection
    connection = tape.only()
    flow = connection.forward
    counts = [
        (each.forward.retransmissions, each.forward.reinjections, each.forward.resends)
        for each in connection.subflows
    ]
    assert counts == [(1, 1, 1), (0, 1, 0)]
    assert (flow.captured_bytes, flow.in_order_bytes) == (300, 300)
    assert [each.forward.fresh_bytes for each in connection.subflows] == [200, 100]
    assert int(flow.retransmitted.sum() + flow.reinjected.sum() + flow.resent.sum()) == 4


def test_a_larger_packet_repeats_a_smaller_one(tape: Tape) -> None:
    talk = Talk(tape).open()
    talk.send(0, ACK, b"a" * 10)
    talk.send(0, ACK, b"a" * 10 + b"b" * 10, at=1)
    talk.send(0, ACK, b"c" * 10)
    (subflow,) = tape.only().subflows
    assert (subflow.forward.retransmissions, subflow.forward.fresh_bytes) == (1, 30)
    assert tape.only().forward.redundant.tolist() == [False, False, False]


@pytest.mark.parametrize("at_server", [True, False])
def test_redundant_data(tape: Tape, at_server: bool) -> None:
    """At the sender only what was acknowledged before; at the receiver all that comes again."""
    talk = Talk(tape)
    talk.send(0, SYN)
    talk.send(1, SYN | ACK, after_ms=0.1 if at_server else 20)
    talk.send(0, ACK, after_ms=20 if at_server else 0.1)
    talk.send(0, ACK, b"a" * 10)
    talk.send(0, ACK, b"b" * 10)
    talk.send(1, ACK, ack=11)
    talk.send(0, ACK, b"b" * 10, at=11)
    talk.send(0, ACK, b"a" * 10, at=1)
    connection = tape.only()
    assert connection.capture_side == ("server" if at_server else "client")
    (subflow,) = connection.subflows
    assert subflow.forward.retransmissions == 2
    assert subflow.forward.redundant == (2 if at_server else 1)


# Openings and joins -------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("by_server", [False, True])
@pytest.mark.parametrize("wrong", [False, True])
def test_joins_are_verified(tape: Tape, version: int, by_server: bool, wrong: bool) -> None:
    talk, dsn, back = opened(tape, version)
    keys = KEYS[::-1] if by_server else KEYS
    ends = (SERVER, SECOND) if by_server else (SECOND, SERVER)
    joined = Talk(tape, *ends, initial=(5, 6))
    token = hashed(version, keys[1])[0]
    joined.open(*joining(version, token, keys, backup=True, wrong=wrong))
    short = version == 0
    talk.send(0, ACK, b"x" * 8, dss(ack=back, dsn=dsn, ssn=1, size=8, short=short))
    mapped = dss(ack=back, dsn=dsn + 8, ssn=1, size=4, short=short)
    joined.send(int(by_server), ACK, b"y" * 4, mapped)
    connection = tape.only()
    first, second = connection.subflows
    assert connection.version == version
    assert (first.joined, first.verified) == (False, None)
    assert (second.joined, second.by_server, second.backup) == (True, by_server, True)
    assert second.verified is not wrong
    # Whoever opened it: its client is the side of the connection's client.
    assert (second.client.address, second.client.port) == SECOND
    assert second.forward.fresh_bytes == 4
    assert connection.forward.in_order_bytes == 12
    assert connection.server_token == hashed(version, KEYS[1])[0]


def test_a_join_without_its_connection(tape: Tape) -> None:
    for port in (1, 2):
        joined = Talk(tape, client=(SECOND[0], port))
        joined.open(*joining(1, 0xDEAD, KEYS))
    connection = tape.only()
    assert (connection.protocol, connection.version) == ("mptcp", None)
    assert connection.server_token == 0xDEAD
    assert [each.verified for each in connection.subflows] == [None, None]


def test_keys_used_again_are_another_connection(tape: Tape) -> None:
    """As in a capture that was put together from copies of one."""
    for _ in range(2):
        talk, _, _ = opened(tape)
        joined = Talk(tape, client=SECOND)
        joined.open(*joining(1, hashed(1, KEYS[1])[0], KEYS))
        for each in (joined, talk):
            each.close()
    assert [len(each.subflows) for each in tape.found()] == [2, 2]
    assert all(each.subflows[1].verified for each in tape.found())


@pytest.mark.parametrize("version", [0, 1])
def test_refused(tape: Tape, version: int) -> None:
    syn = capable(1) if version else capable(0, KEYS[0])
    talk = Talk(tape).open(syn)
    talk.send(0, ACK, b"plain")
    connection = tape.only()
    assert (connection.protocol, connection.version, connection.fallback) == ("tcp", None, True)
    assert connection.forward.captured_bytes == 5
    document = summary(read(tape.path))
    assert not document["connections"]
    assert [each["fallback"] for each in document["tcp_connections"]] == [True]


def test_the_client_gives_up_asking(tape: Tape) -> None:
    """Linux leaves MP_CAPABLE out of a SYN that it repeats often."""
    talk = Talk(tape)
    talk.send(0, SYN, options=capable(1))
    talk.send(0, SYN, at=0)
    talk.send(1, SYN | ACK)
    talk.send(0, ACK, b"data")
    connection = tape.only()
    assert (connection.protocol, connection.fallback) == ("tcp", True)


def test_options_that_were_not_captured_are_no_refusal(tape: Tape) -> None:
    """A snap length that shows the option of the SYN, and no longer ones."""
    tape.snap_length = 46
    talk, dsn, back = opened(tape)
    talk.send(0, ACK, bytes(30), dss(ack=back, dsn=dsn, ssn=1, size=30))
    connection = tape.only()
    assert (connection.protocol, connection.version, connection.fallback) == ("mptcp", 1, False)
    assert (connection.forward.captured_bytes, connection.forward.unmapped_bytes) == (0, 30)


def test_no_answer_is_no_refusal(tape: Tape) -> None:
    talk = Talk(tape)
    talk.send(0, SYN, options=capable(1))
    talk.send(1, RST | ACK)
    connection = tape.only()
    assert (connection.protocol, connection.version, connection.fallback) == ("mptcp", 1, False)


# Mappings -----------------------------------------------------------------------------------------


def test_first_data_are_mapped_by_mp_capable(tape: Tape) -> None:
    talk = Talk(tape).open(capable(1), capable(1, KEYS[1]))
    there = hashed(1, KEYS[0])[1] + 1
    talk.send(0, ACK, b"a" * 60, capable(1, *KEYS, data=100))
    talk.send(0, ACK, b"b" * 40)  # the rest of the same mapping
    talk.send(0, ACK, b"c" * 10, dss(dsn=there + 100, ssn=101, size=10))
    flow = tape.only().forward
    assert flow.announced_bytes == flow.captured_bytes == flow.in_order_bytes == 110
    assert not tape.only().fallback


@pytest.mark.parametrize("short", [True, False])
@pytest.mark.parametrize("where", ["first", "last", "all"])
def test_one_mapping_for_several_packets(tape: Tape, short: bool, where: str) -> None:
    talk, dsn, back = opened(tape)
    mapping = dss(dsn=dsn, ssn=1, size=300, short=short)
    for index, name in enumerate(("first", "middle", "last")):
        options = mapping if where in (name, "all") else dss(ack=back)
        talk.send(0, ACK, bytes(100), options)
        position = tape.only().forward.position.tolist()
        if where != "last":
            assert position == [0, 100, 200][: index + 1]
    flow = tape.only().forward
    assert (flow.announced_bytes, flow.captured_bytes, flow.unmapped_bytes) == (300, 300, 0)
    assert flow.position.tolist() == [0, 100, 200]


def test_a_packet_across_mappings(tape: Tape) -> None:
    talk, dsn, _ = opened(tape)
    talk.send(0, ACK, bytes(10), dss(dsn=dsn, ssn=1, size=15))
    talk.send(0, ACK, bytes(25), dss(dsn=dsn + 100, ssn=16, size=20))
    flow = tape.only().forward
    assert flow.position.tolist() == [0, 10, 100]
    assert flow.length.tolist() == [10, 5, 20]
    assert (flow.announced_bytes, flow.captured_bytes, flow.gaps) == (35, 35, 1)


def test_the_first_of_conflicting_mappings_counts(tape: Tape) -> None:
    talk, dsn, back = opened(tape)
    talk.send(0, ACK, options=dss(dsn=dsn, ssn=1, size=10))
    talk.send(0, ACK, options=dss(dsn=dsn + 50, ssn=1, size=10))
    talk.send(0, ACK, bytes(10), dss(ack=back))
    flow = tape.only().forward
    assert flow.position.tolist() == [0]
    assert flow.conflicting_mappings == 1


@pytest.mark.parametrize("short", [True, False])
def test_data_numbers_pass_their_end(tape: Tape, short: bool) -> None:
    """Five times 2**30 bytes of announced data: 4-byte numbers wrap."""
    talk, dsn, back = opened(tape)
    step = 1 << 30
    for index in range(6):
        mapping = dss(ack=back, dsn=dsn + index * step, ssn=1 + 10 * index, size=10, short=short)
        talk.send(0, ACK, bytes(10), mapping)
        talk.send(1, ACK, options=dss(ack=dsn + index * step + 10, short=short))
    flow = tape.only().forward
    assert flow.position.tolist() == [index * step for index in range(6)]
    assert flow.acknowledged_bytes == 5 * step + 10


@pytest.mark.parametrize("with_data", [True, False])
def test_the_end_of_the_data_takes_one_number(tape: Tape, with_data: bool) -> None:
    talk, dsn, _ = opened(tape)
    if with_data:
        talk.send(0, ACK, bytes(10), dss(dsn=dsn, ssn=1, size=11, fin=True))
    else:
        talk.send(0, ACK, bytes(10), dss(dsn=dsn, ssn=1, size=10))
        talk.send(0, ACK, options=dss(dsn=dsn + 10, ssn=0, size=1, fin=True))
    talk.send(1, ACK, options=dss(ack=dsn + 11))
    connection = tape.only()
    flow = connection.forward
    assert (flow.announced_bytes, flow.captured_bytes, flow.acknowledged_bytes) == (10, 10, 10)
    assert flow.end_bytes == 10
    assert flow.complete
    assert connection.closed == "orderly"


# Fallback -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("announced", ["infinite", "MP_FAIL", "silence"])
def test_fallback_in_the_middle(tape: Tape, announced: str) -> None:
    talk, dsn, back = opened(tape)
    talk.send(0, ACK, bytes(10), dss(ack=back, dsn=dsn, ssn=1, size=10))
    talk.send(1, ACK, bytes(5), dss(ack=dsn + 10, dsn=back, ssn=1, size=5))
    if announced == "MP_FAIL":
        talk.send(1, ACK, options=option(6, 0, bytes(1) + struct.pack(">Q", dsn % (1 << 64))))
    first = dss(dsn=dsn + 10, ssn=11, size=0) if announced == "infinite" else b""
    talk.send(0, ACK, bytes(20), first)
    talk.send(0, ACK, bytes(30))
    talk.send(1, ACK, bytes(7))
    talk.close()
    connection = tape.only()
    assert (connection.protocol, connection.fallback) == ("mptcp", True)
    forward, backward = connection.forward, connection.backward
    assert (forward.announced_bytes, forward.captured_bytes, forward.fallback_bytes) == (10, 60, 50)
    assert (backward.announced_bytes, backward.captured_bytes) == (5, 12)
    assert (forward.unmapped_bytes, backward.unmapped_bytes) == (0, 0)
    assert (forward.acknowledged_bytes, forward.end_bytes) == (60, 60)


def test_agreed_but_never_used(tape: Tape) -> None:
    talk = Talk(tape).open(capable(1), capable(1, KEYS[1]))
    talk.send(0, ACK, bytes(40))
    talk.send(1, ACK, bytes(4))
    connection = tape.only()
    assert (connection.protocol, connection.version, connection.fallback) == ("mptcp", 1, True)
    assert connection.forward.captured_bytes == connection.forward.fallback_bytes == 40
    assert connection.forward.announced_bytes == 0


def test_unmapped_data_of_one_subflow_among_several(tape: Tape) -> None:
    opened(tape)
    second = Talk(tape, client=SECOND).open(*joining(1, hashed(1, KEYS[1])[0], KEYS))
    second.send(0, ACK, bytes(9))
    connection = tape.only()
    assert not connection.fallback
    assert (connection.forward.captured_bytes, connection.forward.unmapped_bytes) == (0, 9)


# Checksums ----------------------------------------------------------------------------------------


def checksum(dsn: int, ssn: int, size: int, payload: bytes) -> int:
    content = struct.pack(">QIHH", dsn % (1 << 64), ssn, size, 0) + payload
    content += bytes(len(content) % 2)
    total = sum(struct.unpack(f">{len(content) // 2}H", content))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


@pytest.mark.parametrize("cuts", [(20,), (7, 13), (1, 1, 18), (3, 5, 7, 5), (19, 1)])
@pytest.mark.parametrize("change", ["none", "corrupt", "missing"])
@pytest.mark.parametrize("short", [True, False])
def test_checksums_over_packets_of_any_size(
    tape: Tape, cuts: tuple[int, ...], change: str, short: bool
) -> None:
    talk, dsn, _ = opened(tape)
    payload = bytes(range(200, 220))
    right = checksum(dsn, 1, 20, payload)
    mapping = dss(dsn=dsn, ssn=1, size=20, checksum=right, short=short)
    sent = bytearray(payload)
    sent[11] ^= change == "corrupt"
    at = 0
    for size in cuts:
        talk.send(0, ACK, bytes(sent[at : at + size]), mapping if at == 0 else b"")
        at += size
    if change == "missing":
        tape.lose(-1)
        talk.send(0, ACK, options=mapping)
    found = tape.only().subflows[0].forward.checksums
    if change == "none":
        assert (found.verified, found.failed, found.unchecked) == (1, 0, 0)
    elif change == "corrupt":
        assert (found.verified, found.failed, found.unchecked) == (0, 1, 0)
    else:
        assert (found.verified, found.failed) == (0, 0)
        assert found.unchecked >= 1


def test_checksum_of_first_data_and_of_a_second_mapping(tape: Tape) -> None:
    talk = Talk(tape).open(capable(1, flags=0x81), capable(1, KEYS[1], flags=0x81))
    dsn = hashed(1, KEYS[0])[1] + 1
    rest = bytes([0x81]) + b"".join(key.to_bytes(8, "big") for key in KEYS)
    first = struct.pack(">HH", 3, checksum(dsn, 1, 3, b"abc"))
    talk.send(0, ACK, b"abc", option(0, 1, rest + first))
    second = checksum(dsn + 3, 4, 5, b"defgh")
    talk.send(0, ACK, b"def", dss(dsn=dsn + 3, ssn=4, size=5, checksum=second))
    talk.send(0, ACK, b"gh")
    end = checksum(dsn + 8, 0, 1, b"")
    talk.send(0, ACK, options=dss(dsn=dsn + 8, ssn=0, size=1, fin=True, checksum=end))
    found = tape.only().subflows[0].forward.checksums
    assert (found.verified, found.failed, found.unchecked) == (3, 0, 0)


# Signalling ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("address", ["10.9.8.7", "2001:db8::5"])
@pytest.mark.parametrize("port", [None, 4242])
def test_announced_addresses(tape: Tape, right: bool, address: str, port: int | None) -> None:
    talk, _, _ = opened(tape)
    packed = ip_address(address).packed
    key = b"".join(each.to_bytes(8, "big") for each in KEYS[::-1])  # the server announces
    message = bytes([3]) + packed + struct.pack(">H", port or 0)
    mac = hmac.digest(key, message if right else b"other", "sha256")[-8:]
    told = bytes([3]) + packed + (b"" if port is None else struct.pack(">H", port))
    talk.send(1, ACK, options=option(3, 0, told + mac))
    talk.send(0, ACK, options=option(3, 1, told))
    said = [each for each in tape.only().signals if each.what == "ADD_ADDR"]
    assert [each.forward for each in said] == [False, True]
    assert [each.verified for each in said] == [right, None]
    fields = said[0].fields
    assert (fields["address_id"], fields["address"], fields.get("port")) == (3, address, port)
    assert [each.fields["echo"] for each in said] == [False, True]


def test_priorities_removals_and_resets(tape: Tape) -> None:
    talk, dsn, _ = opened(tape)
    second = Talk(tape, client=SECOND).open(*joining(1, hashed(1, KEYS[1])[0], KEYS))
    second.send(0, ACK, options=option(5, 1, b""))
    second.send(0, ACK, options=option(5, 0, b""))
    second.send(0, ACK, options=option(5, 1, bytes([9])))
    talk.send(0, ACK, options=option(4, 0, bytes([2, 5])))
    second.send(1, RST | ACK, options=option(8, 1, bytes([5])))
    talk.send(0, ACK, options=option(6, 0, bytes(1) + struct.pack(">Q", dsn % (1 << 64))))
    talk.send(0, ACK, options=option(7, 0, bytes(1) + KEYS[1].to_bytes(8, "big")))
    connection = tape.only()
    said = [
        (each.what, each.subflow, each.forward, each.fields)
        for each in connection.signals
        if each.what not in ("MP_CAPABLE", "MP_JOIN")
    ]
    assert said == [
        ("MP_PRIO", 1, True, {"backup": True}),
        ("MP_PRIO", 1, True, {"backup": False}),
        ("MP_PRIO", 1, True, {"backup": True, "address_id": 9}),
        ("REMOVE_ADDR", 0, True, {"address_ids": (2, 5)}),
        (
            "MP_TCPRST",
            1,
            False,
            {"reason": 5, "transient": True, "meaning": "unacceptable performance"},
        ),
        ("MP_FAIL", 0, True, {"data_sequence": dsn % (1 << 64)}),
        ("MP_FASTCLOSE", 0, True, {"key": f"{KEYS[1]:016x}", "verified": True}),
    ]
    assert connection.closed == "fastclose"
    assert connection.subflows[1].closed == "reset"


def test_a_stall_has_start_and_length(tape: Tape) -> None:
    talk = Talk(tape).open()
    for wait_ms in (1, 2, 500, 3):
        talk.send(0, ACK, bytes(10), after_ms=wait_ms)
        if wait_ms == 2:
            before_ns = tape.time_ns
    stall = tape.only().forward.longest_stall
    assert stall is not None
    assert (stall.start_ns, stall.length_ns) == (before_ns, 500_000_000)


def test_streams_of_an_empty_capture(tape: Tape) -> None:
    packets = read(tape.path).packets
    assert (streams(packets), connections(packets)) == ([], ())
