"""The same packets, however they were packed: link layers, tunnels, fragments, containers."""

import bz2
import gzip
import struct
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from captures import Capture, compiled, read
from captures.container import Header, batches
from captures.packets import COLUMNS, MP_CAPABLE, MP_JOIN, Options, Packets, concatenate
from captures.records import LATEST_NS


def tcp(data: bytes, sequence: int = 7, options: bytes = b"") -> bytes:
    header = 20 + len(options)
    return struct.pack(">HHIIBBHHH", 1000, 2000, sequence, 9, header << 2, 16, 500, 0, 0) + (
        options + data
    )


def ipv4(
    body: bytes, protocol: int = 6, *, fragment: int = 0, ident: int = 1, total: int | None = None
) -> bytes:
    total = 20 + len(body) if total is None else total
    return (
        struct.pack(">BBHHHBBH", 0x45, 0, total, ident, fragment, 64, protocol, 0)
        + bytes((192, 0, 2, 1, 192, 0, 2, 2))
        + body
    )


def ipv6(body: bytes, following: int = 6, length: int | None = None) -> bytes:
    length = len(body) if length is None else length
    ends = bytes.fromhex("20010db8" + "0" * 23 + "1" + "20010db8" + "0" * 23 + "2")
    return struct.pack(">IHBB", 6 << 28, length, following, 64) + ends + body


def ethernet(body: bytes, kind: int = 0x0800) -> bytes:
    return bytes(12) + struct.pack(">H", kind) + body


def udp(body: bytes, port: int) -> bytes:
    return ipv4(struct.pack(">HHHH", 5, port, 8 + len(body), 0) + body, 17)


def pcap(frames: Sequence[bytes], link: int = 1, wire: Sequence[int] | None = None) -> bytes:
    wire = [len(each) for each in frames] if wire is None else wire
    packets = b"".join(
        struct.pack("<IIII", 1, 2, len(frame), size) + frame
        for frame, size in zip(frames, wire, strict=True)
    )
    return struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 0, link) + packets


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    body += bytes(-len(body) % 4)
    size = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + size + body + size


def option(code: int, value: bytes, order: str = "<") -> bytes:
    return struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)


def section(order: str = "<") -> bytes:
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def interface(link: int = 1, options: bytes = b"", order: str = "<") -> bytes:
    return block(1, struct.pack(order + "HHI", link, 0, 0) + options, order)


def enhanced(frame: bytes, number: int = 0, ticks: int = 0, order: str = "<") -> bytes:
    head = struct.pack(
        order + "5I", number, ticks >> 32, ticks & 0xFFFFFFFF, len(frame), len(frame)
    )
    return block(6, head + frame, order)


ReadBytes = Callable[[bytes], Capture]


@pytest.fixture
def read_bytes(tmp_path: Path) -> ReadBytes:
    def take(content: bytes) -> Capture:
        file = tmp_path / "capture"
        file.write_bytes(content)
        return read(file)

    return take


FOUR, SIX = ipv4(tcp(b"abc")), ipv6(tcp(b"abc"))
SNAP = b"\xaa\xaa\x03\0\0\0"
QOS = b"\x88\x01" + bytes(24)
INNER = ethernet(FOUR)
LAYERS = {
    "one VLAN tag": (1, ethernet(b"\0\x05\x08\0" + FOUR, 0x8100)),
    "six VLAN tags": (1, ethernet(b"\0\x05\x81\0" * 5 + b"\0\x05\x08\0" + FOUR, 0x88A8)),
    "802.3 with SNAP": (1, ethernet(SNAP + b"\x08\0" + FOUR, len(FOUR) + 8)),
    "two MPLS labels": (1, ethernet(b"\0\0\x10\x40\0\0\x21\x40" + SIX, 0x8847)),
    "PPPoE": (1, ethernet(b"\x11\0\0\1\0\x40\0\x21" + FOUR, 0x8864)),
    "padding to 60 bytes": (1, ethernet(FOUR) + bytes(40)),
    "loopback, little-endian": (0, b"\x02\0\0\0" + FOUR),
    "loopback, network order": (108, b"\0\0\0\x18" + SIX),
    "PPP": (9, b"\xff\x03\0\x57" + SIX),
    "PPP, compressed": (9, b"\x21" + FOUR),
    "PPP with a direction": (166, b"\0\x03\0\x21" + FOUR),
    "Cisco HDLC": (104, b"\x0f\0\x08\0" + FOUR),
    "PPPoE without Ethernet": (51, b"\x11\0\0\1\0\x40\0\x21" + FOUR),
    "raw": (101, SIX),
    "cooked": (113, bytes(14) + b"\x08\0" + FOUR),
    "cooked, VLAN tag": (113, bytes(14) + b"\x81\0\0\x05\x86\xdd" + SIX),
    "cooked, version 2": (276, b"\x86\xdd" + bytes(18) + SIX),
    "802.11": (105, b"\x08\x01" + bytes(22) + SNAP + b"\x08\0" + FOUR),
    "802.11 between access points": (105, b"\x88\x03" + bytes(30) + SNAP + b"\x08\0" + FOUR),
    "802.11 with HT control": (105, b"\x88\x81" + bytes(28) + SNAP + b"\x08\0" + FOUR),
    "radiotap with padding": (
        127,
        struct.pack("<BBHIQB", 0, 0, 17, 3, 0, 0x20) + QOS + b"\0\0" + SNAP + b"\x08\0" + FOUR,
    ),
    "radiotap with two words": (
        127,
        struct.pack("<BBHIIB", 0, 0, 13, 0x80000002, 0, 0) + QOS + SNAP + b"\x08\0" + FOUR,
    ),
    "PPI": (192, struct.pack("<BBHI", 0, 0, 8, 105) + QOS + SNAP + b"\x08\0" + FOUR),
    "PKTAP over Ethernet": (258, struct.pack("<III", 108, 1, 1) + bytes(96) + INNER),
    "PKTAP over raw IP": (258, struct.pack("<III", 108, 1, 12) + bytes(96) + SIX),
    "PKTAP over loopback": (258, struct.pack("<III", 108, 1, 0) + bytes(96) + b"\x1e\0\0\0" + SIX),
    "IPv4 in IPv4": (101, ipv4(FOUR, 4)),
    "IPv6 in IPv4": (101, ipv4(SIX, 41)),
    "IPv4 in IPv6": (101, ipv6(FOUR, 4)),
    "GRE": (101, ipv4(b"\0\0\x08\0" + FOUR, 47)),
    "GRE with key and number": (101, ipv4(b"\x30\0\x86\xdd" + bytes(8) + SIX, 47)),
    "Ethernet in GRE": (101, ipv4(b"\0\0\x65\x58" + INNER, 47)),
    "ERSPAN": (101, ipv4(b"\x10\0\x88\xbe" + bytes(4) + b"\x10" + bytes(7) + INNER, 47)),
    "VXLAN": (101, udp(b"\x08" + bytes(7) + INNER, 4789)),
    "GENEVE": (101, udp(b"\x01\0\x65\x58" + bytes(4) + bytes(4) + INNER, 6081)),
    "GTP-U": (101, udp(b"\x30\xff\0\x2b" + bytes(4) + FOUR, 2152)),
    "hop-by-hop and destination options": (
        101,
        ipv6(b"\x3c\0" + bytes(6) + b"\x06\0" + bytes(6) + tcp(b"abc"), 0),
    ),
    "authentication header": (101, ipv4(b"\x06\x04" + bytes(22) + tcp(b"abc"), 51)),
    "atomic fragment": (101, ipv6(b"\x06\0\0\0" + bytes(4) + tcp(b"abc"), 44)),
}


@pytest.mark.parametrize(("link", "frame"), LAYERS.values(), ids=LAYERS)
def test_layers(read_bytes: ReadBytes, link: int, frame: bytes) -> None:
    """What is inside is found, and a cut anywhere takes nothing but the packet."""
    content = [frame, *(frame[:size] for size in range(len(frame)))]
    packets = read_bytes(pcap(content, link, [len(frame)] * len(content))).packets
    assert packets.frame[0] == 1
    assert packets.payload_bytes[0] == 3
    assert (packets.source_port[0], packets.destination_port[0]) == (1000, 2000)
    assert packets.source(0) in ("192.0.2.1", "2001:db8::1")
    assert packets.sequence.tolist() == [7] * len(packets)


def test_what_is_not_tcp_is_not_taken_for_it(read_bytes: ReadBytes) -> None:
    quoted = ipv4(b"\x03\x04" + bytes(6) + FOUR, 1)
    others = [udp(b"x", 53), quoted, ipv4(b"\0\0\x12\x34" + FOUR, 47), ipv4(tcp(b""), 50)]
    capture = read_bytes(pcap(others, 101))
    assert (capture.frames, len(capture.packets)) == (4, 0)
    assert any("quoted" in remark for remark in capture.remarks)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
@pytest.mark.parametrize("version", [4, 6])
def test_fragments_count_with_their_packet(
    read_bytes: ReadBytes, order: tuple[int, ...], version: int
) -> None:
    whole = tcp(bytes(2000))
    pieces = []
    for at in range(0, len(whole), 1000):
        more = at + 1000 < len(whole)
        if version == 4:
            field = at // 8 | more << 13
            pieces.append(ipv4(whole[at : at + 1000], fragment=field))
        else:
            head = struct.pack(">BBHI", 6, 0, at | more, 77)
            pieces.append(ipv6(head + whole[at : at + 1000], 44))
    capture = read_bytes(pcap([pieces[index] for index in order], 101))
    assert capture.packets.payload_bytes.tolist() == [2000]
    assert capture.packets.payload_sum.tolist() == [-1]
    assert capture.fragments == 2
    assert not capture.remarks
    lacking = read_bytes(pcap([pieces[index] for index in order if index != 2], 101))
    assert lacking.packets.payload_bytes.tolist() == [980]
    assert "not complete" in lacking.remarks[0]


def test_lengths_that_no_header_can_hold(read_bytes: ReadBytes) -> None:
    data = bytes(70_000)
    jumbo = ipv6(b"\x06\0\xc2\x04" + struct.pack(">I", 70_028) + tcp(data), 0, 0)
    frames = [ipv4(tcp(data), total=0), ipv6(tcp(data), length=0), jumbo + bytes(4)]
    capture = read_bytes(pcap(frames, 101))
    assert capture.packets.payload_bytes.tolist() == [70_000] * 3
    assert capture.large_frames == 3


def test_wireless_frames_that_cannot_be_read_are_told_of(read_bytes: ReadBytes) -> None:
    encrypted = b"\x88\x41" + bytes(80)
    inner = bytes(12) + struct.pack(">H", 8 + len(FOUR)) + SNAP + b"\x08\0" + FOUR
    aggregate = b"\x88\x01" + bytes(22) + b"\x80\0" + inner + inner
    capture = read_bytes(pcap([encrypted, aggregate], 105))
    assert len(capture.packets) == 1
    assert len(capture.remarks) == 2


@pytest.mark.parametrize("size", [0, 1, 2, 3, 1000, 65_000])
def test_payload_sums_are_those_of_rfc_1071(read_bytes: ReadBytes, size: int) -> None:
    data = np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8).tobytes()
    capture = read_bytes(pcap([ipv4(tcp(data)), ipv4(tcp(data))[:-1]], 101, [40 + size] * 2))
    words = np.frombuffer(data + bytes(size % 2), dtype=">u2").astype(np.int64).sum()
    expected = int(words) % 0xFFFF or (0xFFFF if words else 0)
    # The second one is not all there, or is cut in its header.
    assert capture.packets.payload_sum.tolist() == [expected, -1]


def test_options_of_tcp(read_bytes: ReadBytes) -> None:
    scale, stamps = b"\x03\x03\x09\x01", b"\x08\x0a" + struct.pack(">II", 5, 6) + b"\1\1"
    capable = b"\x1e\x04\x01\x81"
    dss = struct.pack(">BBBBIIIHH", 30, 20, 0x20, 0x05, 4, 0xFFFFFFFF, 3, 2, 0xBEEF)
    frames = [ipv4(tcp(b"", options=each)) for each in (scale + capable, stamps, dss, b"\x1e\x02")]
    packets = read_bytes(pcap(frames, 101)).packets
    assert packets.window_scale.tolist() == [9, -1, -1, -1]
    assert packets.time_value.tolist() == [-1, 5, -1, -1]
    assert packets.options.of(0) == ((MP_CAPABLE, capable),)
    assert packets.dss_checksum.tolist() == [-1, -1, 0xBEEF, -1]
    assert packets.data_sequence[2] == 0xFFFFFFFF
    assert packets.data_acknowledgment[2] == 4
    assert packets.mapping_bytes.tolist() == [-1, -1, 2, -1]
    assert packets.mptcp.tolist() == [1 << MP_CAPABLE, 0, 4, 0]


@given(st.data())
def test_options_stay_with_their_packets(data: st.DataObject) -> None:
    """Through selection, by a mask or by positions in any order, and concatenation."""
    sizes = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=8))
    row = np.repeat(np.arange(len(sizes)), sizes)
    raw = [bytes((30, 3 + index % 3, MP_JOIN << 4)) + bytes(index % 3) for index in range(len(row))]
    start = np.cumsum([0, *map(len, raw)])
    options = Options(
        row, np.full(len(row), MP_JOIN), start, np.frombuffer(b"".join(raw), dtype=np.uint8)
    )
    if data.draw(st.booleans()):
        mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(sizes))))[: len(sizes)]
        chosen, rows = options.select(mask), np.flatnonzero(mask)
    else:
        rows = np.array(data.draw(st.lists(st.integers(0, len(sizes) - 1), max_size=9)), dtype=int)
        chosen = options.select(rows)
    for new, old in enumerate(rows.tolist()):
        assert chosen.of(new) == options.of(old)
    assert len(chosen) == sum(sizes[old] for old in rows.tolist())


def test_captures_put_together(data: Path) -> None:
    parts = [read(data / name).packets for name in ("csum_client.pcap.gz", "v6_client.pcap.gz")]
    together = concatenate(parts)
    count = len(parts[0])
    for part, rows in (
        (parts[0], np.arange(count)),
        (parts[1], np.arange(count, len(together))),
    ):
        chosen = together.select(rows)
        for name in COLUMNS:
            if name != "flow":
                assert np.array_equal(getattr(chosen, name), getattr(part, name))
        assert np.array_equal(chosen.source_low, part.source_low)
        assert np.array_equal(chosen.destination_port, part.destination_port)
        assert chosen.options.data.tobytes() == part.options.data.tobytes()


def same(one: Packets, other: Packets) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in COLUMNS)


@pytest.mark.parametrize("compression", ["gzip", "zstd", "zstd behind a frame to skip"])
def test_compression(data: Path, tmp_path: Path, compression: str) -> None:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    content = gzip.decompress((data / "csum_client.pcap.gz").read_bytes())
    half = len(content) // 2
    pack: Callable[[bytes], bytes] = gzip.compress if compression == "gzip" else zstd.compress
    # Two members, as `cat` makes them.
    packed = pack(content[:half]) + pack(content[half:])
    if "skip" in compression:
        packed = b"\x53\x2a\x4d\x18\x03\0\0\0abc" + packed
    (tmp_path / "packed").write_bytes(packed)
    (tmp_path / "plain").write_bytes(content)
    found = read(tmp_path / "packed")
    assert not found.remarks
    assert same(found.packets, read(tmp_path / "plain").packets)
    (tmp_path / "packed").write_bytes(packed[: len(packed) * 9 // 10])
    cut = read(tmp_path / "packed")
    assert cut.damaged
    assert len(cut.remarks) == 1
    assert len(cut.packets) > len(found.packets) // 3


def test_other_compression_is_named(read_bytes: ReadBytes) -> None:
    capture = read_bytes(bz2.compress(pcap([FOUR], 101)))
    assert capture.frames == 0
    assert "neither pcap nor pcapng" in capture.remarks[0]


def test_sections_interfaces_and_counters(read_bytes: ReadBytes) -> None:
    """Interfaces are numbered anew in each section, which has a byte order of its own."""

    def counters(number: int, received: int, dropped: int, order: str) -> bytes:
        values = option(4, struct.pack(order + "Q", received), order)
        values += option(5, struct.pack(order + "Q", dropped), order)
        return block(5, struct.pack(order + "III", number, 0, 0) + values, order)

    content = section() + interface(101) + enhanced(FOUR) + counters(0, 10, 1, "<")
    content += block(0x0BAD, b"\0\0\0\0whatever") + block(10, b"secrets!") + block(4, bytes(4))
    content += section(">") + interface(1, order=">") + interface(101, order=">")
    content += enhanced(ethernet(FOUR), 0, order=">") + enhanced(SIX, 1, order=">")
    content += counters(1, 20, 2, ">") + block(3, struct.pack(">I", len(INNER)) + INNER, ">")
    capture = read_bytes(content)
    assert not capture.remarks
    assert capture.packets.interface.tolist() == [0, 1, 2, 1]
    assert capture.packets.frame.tolist() == [1, 3, 4, 5]  # the custom block has a number
    assert (capture.received, capture.dropped) == (30, 3)


def test_records_that_name_their_interface(read_bytes: ReadBytes) -> None:
    content = struct.pack(">IHHiIII", 0xA1B2CD34, 2, 4, 0, 0, 0, 101)
    content += struct.pack(">IIIIIHBB", 1, 2, len(FOUR), len(FOUR), 3, 0x800, 0, 0) + FOUR
    assert read_bytes(content + content[24:]).packets.payload_bytes.tolist() == [3, 3]


@given(
    ticks=st.integers(-(1 << 63), (1 << 63) - 1),
    resolution=st.one_of(st.integers(0, 18), st.integers(0x80, 0x80 + 63)),
    offset=st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-(10**10), 10**10),
)
def test_time_stamps_are_exact(
    tmp_path_factory: pytest.TempPathFactory, ticks: int, resolution: int, offset: int
) -> None:
    options = option(9, bytes((resolution,))) + option(14, struct.pack("<q", offset))
    content = section() + interface(101, options) + enhanced(FOUR, 0, ticks & ((1 << 64) - 1))
    file = tmp_path_factory.getbasetemp() / "stamped"
    file.write_bytes(content)
    capture = read(file)
    exponent = resolution & 0x7F
    divisor = 2**exponent if resolution & 0x80 else 10**exponent
    since = ticks * 10**9 // divisor
    expected = since + offset * 10**9
    if abs(since) < LATEST_NS // 2 and abs(expected) < LATEST_NS:
        assert capture.packets.time_ns.tolist() == [expected]
    else:
        assert abs(int(capture.packets.time_ns[0])) < LATEST_NS


def test_columns_in_files_are_the_same(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = data / "csum_client.pcap.gz"
    once = read(file).packets
    monkeypatch.setattr("captures.reading.MOST_ROWS_IN_MEMORY", 300)
    monkeypatch.setattr("captures.container._FIRST_CHUNK_BYTES", 10_000)
    monkeypatch.setattr("captures.container._CHUNK_BYTES", 10_000)
    spilled = read(file).packets
    assert spilled.pages
    assert same(once, spilled)
    spilled.release()
    assert same(once, spilled)


@pytest.mark.parametrize("kind", ["pcap", "pcapng"])
def test_claimed_lengths_cost_no_memory(tmp_path: Path, kind: str) -> None:
    """A gigabyte that is claimed is neither read nor allocated."""
    claim = 1 << 30
    content = pcap([FOUR], 101)[: -len(FOUR) - 8] + struct.pack("<II", claim, claim) + FOUR
    if kind == "pcapng":
        content = section() + interface(101) + struct.pack("<II", 6, claim) + bytes(100)
    (tmp_path / "file").write_bytes(content)
    header = Header()
    assert list(batches(tmp_path / "file", header)) == []
    assert str(claim) in header.remarks[0]
    # A block of 16 MB, the longest that is believed, is read as far as it goes.
    (tmp_path / "file").write_bytes(
        section() + interface(101) + struct.pack("<II", 6, 16 << 20) + bytes(3_000_000)
    )
    sizes = [len(batch.data) for batch in batches(tmp_path / "file", Header())]
    assert sum(sizes) < 64 << 20


def test_compiled_and_plain_loops_agree(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiled loops against the same lines as Python runs them."""
    shared = Path(__file__).parents[3] / "shared" / "captures"  # more of them, where there are
    if not compiled.available():
        pytest.skip("Numba is switched off (NUMBA_DISABLE_JIT)")
    files = [data / "csum_client.pcap.gz", *sorted(shared.glob("*.pcap*"))]
    files += sorted((shared / "nasty").glob("*"))
    plain = {}
    with monkeypatch.context() as patch:
        patch.setattr("captures.compiled.fast", lambda function, work_bytes: function)
        for file in files:
            plain[file] = read(file)
    compiled.load()
    for file in files:
        one, other = plain[file], read(file)
        assert same(one.packets, other.packets), file
        assert one.remarks == other.remarks
        assert one.frames == other.frames
        assert one.packets.options.data.tobytes() == other.packets.options.data.tobytes()
        assert np.array_equal(one.packets.source_low, other.packets.source_low)
