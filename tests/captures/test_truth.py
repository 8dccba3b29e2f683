"""Every figure of every shared capture against what is known about it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from captures import Capture, Packets, Stream, read, streams, summary
from captures.coverage import cover
from captures.packets import DSS_ACK, DSS_ACK8, DSS_FIN, DSS_MAP, DSS_MAP8

OPTIONS = (
    "MP_CAPABLE",
    "MP_JOIN",
    "DSS",
    "ADD_ADDR",
    "REMOVE_ADDR",
    "MP_PRIO",
    "MP_FAIL",
    "MP_FASTCLOSE",
    "MP_TCPRST",
)

# Where we differ from tshark, which the truth was made with, and why.
REFUSED = "an opening refused is plain TCP that fell back, in either version"
FIRST_OF_A_LENGTHLESS_PACKET = "a payload length of 0 is a packet larger than 64 kB, and TCP"
EXCEPTIONS = {
    ("dpi_mp_rejected2.pcap", "mptcp_streams"): (0, REFUSED),
    ("dpi_mp_rejected2.pcap", "versions"): ([], REFUSED),
    ("dpi_mp_rejected2.pcap", "tokens"): ([], REFUSED),
    ("dpi_mp_rejected2.pcap", "data_level 0"): (None, REFUSED),
    ("made/fallback_client.pcap", "versions"): ([], REFUSED),
    ("made/fallback_server.pcap", "versions"): ([], REFUSED),
    ("nasty/bigtcp_ipv6_len0.pcap", "tcp_frames"): (1, FIRST_OF_A_LENGTHLESS_PACKET),
    ("nasty/bigtcp_ipv6_len0.pcap", "tcp_streams"): (1, FIRST_OF_A_LENGTHLESS_PACKET),
    ("nasty/bigtcp_ipv6_len0.pcap", "directions"): (
        [("c2s", 79_968)],
        FIRST_OF_A_LENGTHLESS_PACKET,
    ),
    ("nasty/ipv6_http_atomic_frag.pcap", "stream 0 c2s rexmit"): (
        0,
        "data stand behind their acknowledgment in the file, by their stamps they come before",
    ),
    ("made/mpfail1sf_client.pcap", "data_level 1"): (
        {"c2s": (190_021, 65_160, 190_021), "s2c": (0, 0, 0)},
        "65,160 bytes were mapped, 124,861 followed after the fallback",
    ),
    ("made/mpfail1sf_server.pcap", "data_level 1"): (
        {"c2s": (190_021, 65_160, 190_021), "s2c": (0, 0, 0)},
        "65,160 bytes were mapped, 124,861 followed after the fallback",
    ),
}


def test_every_figure(shared: Path, truth: dict[str, Any]) -> None:
    differences = {}
    compared = 0
    for name, entry in truth.items():
        expected = _expected(entry)
        found = _found(read(shared / name), sorted(entry["data_level"]))
        for field in expected:
            compared += 1
            if found.get(field) != expected[field]:
                differences[name, field] = found.get(field), expected[field]
    allowed = {key: value for key, (value, _) in EXCEPTIONS.items()}
    assert {key: found for key, (found, _) in differences.items()} == allowed, differences
    assert compared > 1000


def _expected(entry: dict[str, Any]) -> dict[str, Any]:
    tokens = {int(token) for token in entry["expected_tokens"] + entry["join_tokens"]}
    known: dict[str, Any] = {
        **{name: entry[name] for name in ("frames", "tcp_frames", "tcp_streams", "mptcp_streams")},
        **{name: entry[name] for name in ("dsn8", "dsn4", "dack8", "dack4", "data_fin")},
        "option_counts": entry["option_counts"],
        "frames_with_option": entry["frames_with_option"],
        "versions": entry["versions"],
        "tokens": sorted(tokens),
        "directions": sorted((each["dir"], each["payload"]) for each in entry["directions"]),
    }
    nothing = {"payload": 0, "dsn_announced": 0, "dsn_captured": 0}
    for number, level in entry["data_level"].items():
        known[f"data_level {number}"] = {
            way: tuple(level.get(way, nothing)[key] for key in nothing) for way in ("c2s", "s2c")
        }
    for each in entry["directions"]:
        place = f"stream {each['tcp_stream']} {each['dir']}"
        for key in ("src", "dst", "pkts", "payload", "wire", "unique_tcp_bytes"):
            known[f"{place} {key}"] = each[key]
        for key in ("rexmit", "ooo", "reinj"):
            known[f"{place} {key}"] = each[key]
    return known


def _found(capture: Capture, numbers: list[str]) -> dict[str, Any]:
    packets, document = capture.packets, summary(capture)
    flags = packets.dss_flags

    def count(wanted: int, set_bits: int) -> int:
        return int((flags & wanted == set_bits).sum())

    multipath = document["connections"]
    options = {name: int((packets.mptcp >> bit & 1).sum()) for bit, name in enumerate(OPTIONS)}
    tokens = {each[side] for each in multipath for side in ("client_token", "server_token")}
    found: dict[str, Any] = {
        **{name: document[name] for name in ("frames", "tcp_frames", "tcp_streams")},
        "mptcp_streams": len(multipath),
        "dsn8": count(DSS_MAP | DSS_MAP8, DSS_MAP | DSS_MAP8),
        "dsn4": count(DSS_MAP | DSS_MAP8, DSS_MAP),
        "dack8": count(DSS_ACK | DSS_ACK8, DSS_ACK | DSS_ACK8),
        "dack4": count(DSS_ACK | DSS_ACK8, DSS_ACK),
        "data_fin": count(DSS_FIN, DSS_FIN),
        "option_counts": {name: many for name, many in options.items() if many},
        "frames_with_option": int((packets.mptcp != 0).sum()),
        "versions": sorted({str(each["version"]) for each in multipath} - {"None"}),
        "tokens": sorted(tokens - {None}),
        "directions": [],
    }
    names = ("payload_bytes", "announced_bytes", "captured_bytes")
    ways = {"c2s": "client_to_server", "s2c": "server_to_client"}
    for number in numbers:
        if int(number) < len(multipath):
            each = multipath[int(number)]
            found[f"data_level {number}"] = {
                short: tuple(each[way][name] for name in names) for short, way in ways.items()
            }
    repeats = {
        (subflow["client"], subflow["server"], subflow["opened_s"]): subflow
        for each in multipath + document["tcp_connections"]
        for subflow in each["subflows"]
    }
    for index, stream in enumerate(streams(packets)):
        ends = (str(stream.client), str(stream.server), stream.opened_ns / 1e9)
        for short, way in ways.items():
            forward = short == "c2s"
            if len(stream.forward if forward else stream.backward):
                values = _direction(packets, stream, forward)
                found["directions"].append((short, values["payload"]))
                seen = repeats[ends][way]
                values["rexmit"] = seen["retransmissions"]
                values["ooo"] = seen["reordered"]
                values["reinj"] = seen["reinjections"]
                found |= {f"stream {index} {short} {key}": v for key, v in values.items()}
    found["directions"].sort()
    return found


def _direction(packets: Packets, stream: Stream, forward: bool) -> dict[str, Any]:
    half = stream.half(packets, forward=forward)
    carries = half.payload_bytes > 0
    ends = (stream.client, stream.server) if forward else (stream.server, stream.client)
    return {
        "src": f"{ends[0].address}:{ends[0].port}",
        "dst": f"{ends[1].address}:{ends[1].port}",
        "pkts": len(half.rows),
        "payload": int(half.payload_bytes.sum()),
        "wire": int(packets.wire_bytes[half.rows].sum()),
        "unique_tcp_bytes": cover(half.position[carries] - 1, half.payload_bytes[carries]).total,
    }


@pytest.mark.parametrize("side", ["client", "server"])
def test_all_checksums_are_right(shared: Path, side: str) -> None:
    quality = summary(read(shared / "made" / f"csum_{side}.pcap"))["quality"]
    assert quality["checksums"] == {"verified": 471, "failed": 0, "unchecked": 0}


@pytest.mark.parametrize("side", ["client", "server"])
def test_bytes_before_and_after_a_fallback(shared: Path, side: str) -> None:
    document = summary(read(shared / "made" / f"mpfail1sf_{side}.pcap"))
    fallen = next(each for each in document["connections"] if each["fallback"])
    flow = fallen["client_to_server"]
    assert flow["captured_bytes"] - flow["fallback_bytes"] == flow["announced_bytes"] == 65_160
    assert flow["fallback_bytes"] == 124_861
    said = [each["what"] for each in fallen["signals"]]
    assert said.count("MP_FAIL") > 0


@pytest.mark.parametrize("side", ["client", "server"])
def test_an_aborted_connection(shared: Path, side: str) -> None:
    document = summary(read(shared / "made" / f"v6_{side}.pcap"))
    aborted = next(each for each in document["connections"] if each["closed"] == "fastclose")
    flow = aborted["client_to_server"]
    assert (flow["announced_bytes"], flow["captured_bytes"]) == (260_989, 202_525)
    reset = next(each for each in aborted["signals"] if each["what"] == "MP_FASTCLOSE")
    assert reset["verified"] is True


def test_hmacs_of_others_are_right(shared: Path) -> None:
    joined = summary(read(shared / "mptcp-v0.pcap"))["connections"][0]["subflows"]
    assert [each["verified"] for each in joined] == [None, True]
    # Of an early Linux kernel.
    said = summary(read(shared / "mptcp-aa-v1.pcap"))["connections"][0]["signals"]
    assert [each["verified"] for each in said if each["what"] == "ADD_ADDR"] == [True]


def test_two_paths_over_a_hundred_seconds(shared: Path) -> None:
    capture = read(shared / "made" / "two_paths_server.pcap.gz")
    document = summary(capture)
    assert document["quality"]["capture_side"] == "server"
    assert document["quality"]["offload_frames"] > 0
    found = max(document["connections"], key=lambda each: each["client_to_server"]["payload_bytes"])
    flow = found["client_to_server"]
    for name in ("announced", "captured", "in_order", "acknowledged", "end"):
        assert flow[f"{name}_bytes"] == 621_412_352 + 37  # iperf3's count, and its cookie
    assert flow["longest_stall_s"] == pytest.approx(2.48, abs=0.005)
    assert flow["resends"] == 387
    fresh = [each["client_to_server"]["fresh_bytes"] for each in found["subflows"]]
    assert [round(each / 1e6, 1) for each in fresh] == [507.6, 113.8]
    # The client saw itself repeat 73 packets on the first path. Nearly all of them had been lost
    # before they came here, and are recognised by their time stamps. (On the second path the
    # server's interface had cut the client's 31 large packets into more.)
    first = found["subflows"][0]["client_to_server"]
    assert (first["retransmissions"], first["inferred_retransmissions"]) == (73, 72)
    assert all(each["verified"] for each in found["subflows"] if each["join"])
    assert np.isclose(found["last_s"] - found["opened_s"], 100.7, atol=0.1)
