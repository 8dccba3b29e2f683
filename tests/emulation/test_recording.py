"""What is recorded, how much of it there may be, and what keeps it from being recorded."""

import gzip
import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

import scenarios
from captures import read
from tactical.emulation.events import EventLog
from tactical.emulation.plan import CapturePoint, Plan, make_plan
from tactical.emulation.processes import Process
from tactical.emulation.recording import (
    RING_FILES,
    SHARE_OF_FREE_SPACE,
    _join,
    _ring_files,
    _stop,
    expected_bytes,
    problem_at_start,
    recorder_command,
    ring_kibibytes,
    room_bytes,
)

DATA = Path(__file__).parents[1] / "analysis/data/mptcp/captures"


def plan(*overrides: str) -> Plan:
    return make_plan(scenarios.load("direct-move", list(overrides)).build(1), "fdm")


def test_capture_points_of_all_three_sides() -> None:
    points = plan().capture_points
    assert [(each.node, each.interface, each.side) for each in points] == [
        ("ship1", "ship1-eth0", "station"),
        ("ship1", "ship1-wlan0", "station"),
        ("ship2", "ship2-eth0", "station"),
        ("ship2", "ship2-wlan0", "station"),
        ("host", "host-eth0", "host"),
        ("uav", "uav-wlan1", "access point"),
    ]
    assert all(each.position.startswith(f"{each.side} side: ") for each in points)
    # Switches and their radios are in the machine's own namespace.
    assert [recorder_command(plan(), each, Path("run")).node for each in points][-2:] == [
        "host",
        None,
    ]


def test_what_captures_take_grows_with_the_traffic() -> None:
    short, long = expected_bytes(plan()), expected_bytes(plan("duration_s=200"))
    assert long == pytest.approx(2 * short, rel=0.01)  # but for signalling
    # A run of 30 s with 2 × 3 Mbit/s has left 7.5 MB.
    assert 7.5e6 < expected_bytes(plan("duration_s=30", "entry_time_s=8")) < 40e6


@pytest.mark.parametrize("scenario", ["direct-move", "convoy"])
def test_rings_fill_the_room_and_hold_what_each_recorder_may_see(scenario: str) -> None:
    fleet = make_plan(scenarios.load(scenario, []).build(1), "mptcp")
    room = room_bytes(fleet)
    rings = ring_kibibytes(fleet, int(SHARE_OF_FREE_SPACE * room))
    whole = {point.interface: 1024 * RING_FILES * size for point, size in rings.items()}
    assert 0.9 * SHARE_OF_FREE_SPACE * room < sum(whole.values()) <= SHARE_OF_FREE_SPACE * room
    # Each of these bits is recorded in a packet of at most 1500 bytes with an acknowledgment.
    kept = 2 * fleet.snap_length_bytes / 1500 / 8
    sent = {t.user: t.rate_bps * t.duration_s for t in fleet.transfers}
    assert whole[fleet.host.name] > kept * sum(sent.values())
    assert all(whole[radio.interface] > kept * sum(sent.values()) for radio in fleet.radios)
    for station, interfaces in fleet.stations.items():
        assert all(whole[each.name] > kept * sent[station] for each in interfaces)


def test_a_disk_that_is_too_small_is_told_of_before_the_run(tmp_path: Path) -> None:
    if shutil.which("dumpcap") is None:
        pytest.skip("dumpcap is not installed")
    assert problem_at_start([plan()], tmp_path) is None
    free = shutil.disk_usage(tmp_path).free
    many = 2 + free // expected_bytes(plan())
    said = problem_at_start([plan()] * many, tmp_path)
    assert said is not None
    assert re.fullmatch(rf"{tmp_path}: the captures may take \d+ MB, but only \d+ MB are .*", said)


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    if shutil.which("dumpcap") is None:
        pytest.skip("dumpcap is not installed")
    said = problem_at_start([plan()], tmp_path / "gone")
    assert said == f"{tmp_path}/gone: No such file or directory; nothing could be recorded there"


def test_files_of_a_ring_become_one_capture(tmp_path: Path) -> None:
    target = tmp_path / "ship1-eth0.pcapng"
    whole = gzip.decompress((DATA / "ship1-eth0.pcapng.gz").read_bytes())
    for number in (3, 1, 2):
        (tmp_path / f"ship1-eth0_0000{number}_2026010112000{number}.pcapng").write_bytes(whole)
    (tmp_path / "ship1-eth01_00001_20260101120000.pcapng").write_bytes(b"of another interface")
    files = _ring_files(target)
    assert [each.name[12:16] for each in files] == ["0001", "0002", "0003"]
    _join(files, target)
    assert {each.name for each in tmp_path.iterdir()} == {
        "ship1-eth01_00001_20260101120000.pcapng",
        "ship1-eth0.pcapng",
    }
    alone = read(DATA / "ship1-eth0.pcapng.gz")
    joined = read(target)
    assert not joined.damaged
    assert joined.frames == 3 * alone.frames


_RECORD_LOOPBACK = """
ip link set lo up
{ sleep 1; ping -q -c 300 -i 0.002 127.0.0.1; touch "$1"; } > /dev/null &
shift
exec "$@"
"""


def test_a_ring_that_is_full_forgets_its_oldest_files(tmp_path: Path) -> None:
    if os.geteuid() != 0 or shutil.which("dumpcap") is None or shutil.which("ping") is None:
        pytest.skip("needs root, dumpcap and ping, to record in a namespace of its own")
    if subprocess.run(["unshare", "-n", "ip", "link"], capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody make a network namespace")
    (tmp_path / "captures").mkdir()
    (tmp_path / "captures").chmod(0o777)
    point = CapturePoint("host", "lo", "host")
    recorder = recorder_command(plan(), point, tmp_path, file_kibibytes=5)
    over = tmp_path / "over"
    shell = ("unshare", "-n", "sh", "-c", _RECORD_LOOPBACK, "sh", str(over))
    process = Process((*shell, *recorder.argv), tmp_path / "recorder.log")
    with EventLog(tmp_path) as events:
        process.wait_for_text("File:", 30.0)
        for _ in range(300):
            if over.exists():
                break
            time.sleep(0.1)
        _stop(point, process, tmp_path, events)
    told = json.loads((tmp_path / "events.jsonl").read_text())["data"]
    written = process.said().count("File: ")
    assert written > RING_FILES
    assert told["overwritten_files"] == written - RING_FILES
    assert told["received"] > 300
    assert told["dropped"] == 0
    # One capture of what is left, which a reader takes as it is.
    (file,) = (tmp_path / "captures").iterdir()
    capture = read(file)
    assert not capture.damaged
    assert 50 < capture.frames < 500
    assert file.stat().st_size < 1024 * 6 * RING_FILES
