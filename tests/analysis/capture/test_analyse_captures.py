"""Captures on their own: one, pairs of the same run, pieces; as figures, frames, page and table."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pyarrow import parquet

from analysis.capture.analyse import analyse_captures
from analysis.capture.document import capture_document
from analysis.capture.frames import (
    PACKET_COLUMNS,
    connections_frame,
    export_packets,
    interruptions_frame,
    packet_frames,
    packets_frame,
    series_frame,
    subflows_frame,
)
from analysis.capture.places import PlacesError
from analysis.capture.result import CaptureAnalysis
from analysis.presentation.capture_page import capture_figures, capture_report
from analysis.presentation.capture_text import capture_table
from captures import Capture, read, summary

DATA = Path(__file__).parents[2] / "captures" / "data"
SHARED = Path(__file__).parents[4] / "shared" / "captures"


def load(name: str) -> Capture:
    return read(DATA / f"{name}.pcap.gz")


def retimed(capture: Capture, offset_s: float, skew: float = 0.0) -> Capture:
    """The capture as a clock that is ahead and gains would have stamped it."""
    packets = capture.packets
    since = packets.time_ns - packets.time_ns[0]
    moved = packets.time_ns + round(offset_s * 1e9) + np.round(skew * since).astype(np.int64)
    return replace(capture, packets=replace(packets, time_ns=moved))


def part(capture: Capture, rows: np.ndarray) -> Capture:
    return replace(capture, packets=capture.packets.select(rows))


@pytest.fixture(scope="module")
def pair() -> CaptureAnalysis:
    return analyse_captures([load("csum_server"), load("csum_client")])


def test_a_pair_is_found_and_its_sides_are_told_apart(pair: CaptureAnalysis) -> None:
    client, server = pair.places
    assert [client.files, server.files] == [(1,), (0,)]
    assert all(each.seen_at == (0, 1) for each in pair.connections)
    assert server.clock is not None
    assert server.clock.may_be_one_clock


def test_a_pair_measures_what_was_sent_and_what_arrived(pair: CaptureAnalysis) -> None:
    data = pair.connections[1]
    found = data.client_to_server
    assert found.captured_bytes == found.in_order_bytes == found.acknowledged_bytes == 523_685
    assert found.complete
    assert found.payload_bytes - found.captured_bytes == found.redundant_bytes == 1389
    # Nothing was lost, so everything that left arrived, later by 10 to 250 ms.
    for subflow in data.subflows:
        way = subflow.client_to_server
        assert way.lost_packets == 0
        assert way.one_way_delay is not None
        assert way.one_way_delay.samples == way.data_packets
        assert 0 < way.one_way_delay.min_s < way.one_way_delay.max_s < 0.3
        assert way.round_trip is not None
        assert way.round_trip.median_s > way.one_way_delay.median_s
    assert sum(each.client_to_server.fresh_bytes for each in data.subflows) == 523_685


@pytest.mark.parametrize(("offset_s", "skew"), [(0.2, 0.0), (-1000.0, 0.0), (5.0, 100e-6)])
def test_times_of_another_clock_are_corrected(
    pair: CaptureAnalysis, offset_s: float, skew: float
) -> None:
    captures = [load("csum_client"), retimed(load("csum_server"), offset_s, skew)]
    found = analyse_captures(captures)
    clock = found.places[1].clock
    assert clock is not None
    assert clock.applied
    # Four seconds are too short to tell the skew, which moves the bounds by so much.
    drift_s = 4.2 * skew + 1e-6
    assert clock.lowest_offset_s <= offset_s + drift_s
    assert clock.highest_offset_s >= offset_s - drift_s
    for ours, theirs in zip(found.connections, pair.connections, strict=True):
        for a, b in zip(ours.subflows, theirs.subflows, strict=True):
            one, other = a.client_to_server.one_way_delay, b.client_to_server.one_way_delay
            if one is not None and other is not None:
                assert one.median_s == pytest.approx(other.median_s, abs=1e-3)


def test_the_same_clock_can_be_insisted_on() -> None:
    captures = [load("csum_client"), retimed(load("csum_server"), 0.2)]
    found = analyse_captures(captures, same_clock=True)
    way = found.connections[1].subflows[0].client_to_server
    assert way.one_way_delay is not None
    assert way.one_way_delay.min_s > 0.2


@pytest.mark.parametrize("cut", ["time", "interface"])
def test_files_of_one_host_are_read_as_one(pair: CaptureAnalysis, cut: str) -> None:
    server, client = load("csum_server"), load("csum_client")
    packets = client.packets
    if cut == "time":
        first = np.arange(len(packets)) < len(packets) // 2
    else:
        ours = int.from_bytes(bytes([10, 0, 1, 1]))
        first = (packets.source_low == ours) | (packets.destination_low == ours)
    found = analyse_captures([part(client, first), server, part(client, ~first)])
    assert [each.files for each in found.places] == [(0, 2), (1,)]
    for ours_, theirs in zip(found.connections, pair.connections, strict=True):
        assert replace(ours_.client_to_server, trace=None) == replace(
            theirs.client_to_server, trace=None
        )


def test_three_places_are_one_too_many() -> None:
    client = load("csum_client")
    with pytest.raises(PlacesError, match="more than two places"):
        analyse_captures([client, load("csum_server"), client])


def test_files_of_different_traffic_stand_side_by_side() -> None:
    found = analyse_captures([load("csum_client"), load("v6_client")])
    assert len(found.places) == 2
    assert {each.seen_at for each in found.connections} == {(0,), (1,)}
    assert any("different networks" in each for each in found.remarks)


def test_bytes_are_those_of_the_captures_package() -> None:
    for name in ("csum_server", "v6_client", "fallback_client", "mpfail1sf_client"):
        capture = load(name)
        analysis = analyse_captures([capture])
        document = capture_document(analysis, [capture])
        plain = summary(capture)
        for kind in ("connections", "tcp_connections"):
            assert len(document[kind]) == len(plain[kind])
            for ours, theirs in zip(document[kind], plain[kind], strict=True):
                for way in ("client_to_server", "server_to_client"):
                    assert {key: ours[way][key] for key in theirs[way]} == theirs[way]
                    assert ours[way]["goodput_bps"] is None or set(ours[way]["goodput_bps"]) == {
                        "announced",
                        "captured",
                        "in_order",
                        "acknowledged",
                    }
        json.dumps(document, allow_nan=False)


def test_a_document_of_several_files_holds_each_and_all_together(pair: CaptureAnalysis) -> None:
    captures = [load("csum_server"), load("csum_client")]
    document = capture_document(pair, captures)
    assert document["frames"] == 2 * 736
    assert [each["frames"] for each in document["files"]] == [736, 736]
    assert document["damage"] is None
    (_, data) = document["connections"]
    assert data["client_to_server"]["captured_bytes"] == 523_685
    # Moments are on the wall clock, as those of each file.
    assert abs(data["opened_s"] - document["files"][0]["connections"][1]["opened_s"]) < 0.1
    json.dumps(document, allow_nan=False)


def test_the_truth_of_a_large_capture() -> None:
    path = SHARED / "made" / "two_paths_server.pcap.gz"
    if not path.is_file():
        pytest.skip(f"the shared captures are not on this machine ({SHARED})")
    found = analyse_captures([path])
    data = found.connections[1].client_to_server
    assert data.in_order_bytes == 621_412_352 + 37
    assert data.longest_stall_s == pytest.approx(2.48, abs=0.005)
    assert max(each.length_s for each in data.interruptions) == data.longest_stall_s
    fresh = [each.client_to_server.fresh_bytes for each in found.connections[1].subflows]
    assert [round(each / 1e6, 1) for each in fresh] == [507.6, 113.8]
    assert found.connections[1].capture_side == "server"
    # The paths were of 15 and 40 ms each way.
    to_client = [each.server_to_client.timestamp_round_trip for each in
                 found.connections[1].subflows]  # fmt: skip
    assert [round(each.min_s, 2) for each in to_client if each is not None] == [0.03, 0.08]
    assert found.files[0].large_frames == 75_050


@pytest.mark.parametrize("name", ["csum_client", "v6_client", "fallback_client"])
def test_frames_say_what_the_connections_say(name: str) -> None:
    capture = load(name)
    frame = packets_frame(capture)
    assert list(frame.columns) == list(PACKET_COLUMNS)
    assert len(frame) == len(capture.packets)
    analysis = analyse_captures([capture])
    connections = connections_frame(analysis).set_index(["connection", "direction"])
    subflows = subflows_frame(analysis).set_index(["connection", "subflow", "direction"])
    grouped = frame.groupby(["connection", "direction"], observed=True)
    for key, rows in grouped:
        assert rows.fresh_bytes.sum() == connections.captured_bytes[key]
        assert rows.payload_bytes.sum() == connections.payload_bytes[key]
        if rows.in_order_bytes.notna().any():
            assert rows.in_order_bytes.max() == connections.in_order_bytes[key]
    for key, rows in frame.groupby(["connection", "subflow", "direction"], observed=True):
        assert len(rows) == subflows.packets[key]
        assert rows.retransmitted.sum() <= subflows.retransmissions[key]
    assert len(interruptions_frame(analysis)) == connections.interruptions.sum()


def test_pieces_of_a_frame_are_the_frame() -> None:
    capture = load("csum_client")
    whole = packets_frame(capture).astype(str)
    pieces = [each.astype(str) for each in packet_frames(capture, rows=100)]
    assert len(pieces) == 8
    pd.testing.assert_frame_equal(pd.concat(pieces, ignore_index=True), whole)


def test_series_add_up_to_the_data(pair: CaptureAnalysis) -> None:
    data = pair.connections[1]
    series = series_frame(data)
    step_s = series.index[1] - series.index[0]
    assert series.goodput_bps.sum() * step_s / 8 == pytest.approx(523_685)
    paths = [name for name in series if name != "goodput_bps"]
    assert paths == ["10.0.1.1_bps", "10.0.2.1_bps"]
    assert series[paths].sum().sum() * step_s / 8 == pytest.approx(523_685)
    with pytest.raises(ValueError, match="no series"):
        series_frame(pair.connections[0])


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_packets_are_exported(tmp_path: Path, suffix: str) -> None:
    captures = [load("csum_client"), load("csum_server")]
    path = export_packets(captures, tmp_path / f"packets{suffix}")
    if suffix == ".csv":
        back = pd.read_csv(path, parse_dates=["time"])
    else:
        back = pd.read_parquet(path)
        described = parquet.read_schema(path).field("data_sequence").metadata
        assert described[b"description"].decode() == PACKET_COLUMNS["data_sequence"]
    assert list(back.columns) == list(PACKET_COLUMNS)
    assert back.groupby("file").fresh_bytes.sum().tolist() == [523_685 + 455 + 331] * 2
    assert back.time[0] == pd.Timestamp(captures[0].packets.time_ns[0], tz="UTC")
    with pytest.raises(ValueError, match="must end in"):
        export_packets(captures, tmp_path / "packets.xls")


def test_the_page_holds_what_was_measured(
    pair: CaptureAnalysis, tmp_path: Path, check_page
) -> None:
    page = check_page(capture_report(pair, tmp_path / "report.html"))
    words = " ".join(page.words)
    for said in ("523 685", "10.0.2.1:59575", "sender idle", "csum_server.pcap.gz", "clock"):
        assert said in words
    assert len(page.images) == 8
    assert all(page.images)


def test_any_capture_has_a_page(tmp_path: Path, check_page) -> None:
    capture = load("csum_client")
    none = part(capture, np.zeros(len(capture.packets), dtype=np.bool_))
    damaged = replace(capture, damage="cut off", remarks=("cut off <here>",))
    for name, each, said in (
        ("none", none, "No TCP connection"),
        ("damaged", damaged, "cut off <here>"),
        ("fallback", load("fallback_client"), "multipath refused"),
    ):
        page = check_page(capture_report(analyse_captures([each]), tmp_path / f"{name}.html"))
        assert said in " ".join(page.words)


def test_figures_are_saved_for_a_paper(pair: CaptureAnalysis, tmp_path: Path) -> None:
    names = []
    for name, plot in capture_figures(pair, width_in=3.5):
        names.append(name)
        if name not in ("t1-sequence", "t1-one-way-delay"):
            continue
        plot.save(tmp_path / f"{name}.svg")
        plot.save(tmp_path / f"{name}.pdf")
        assert (tmp_path / f"{name}.svg").read_text().count("<svg") == 1
        assert (tmp_path / f"{name}.pdf").read_bytes().startswith(b"%PDF")
        assert plot.figure.get_figwidth() == 3.5
    assert {"t1-throughput", "t1-sequence", "t1-one-way-delay", "interruptions"} <= set(names)


def test_the_table_is_short_whatever_the_capture(pair: CaptureAnalysis) -> None:
    text = capture_table(pair)
    assert "523 685" in text
    many = replace(pair, connections=pair.connections * 50, remarks=("remark",) * 50)
    lines = capture_table(many).splitlines()
    assert len(lines) < 300
    assert "80 smaller connections are not listed; --json has all" in lines[-1]
