"""Argument lists of the recorders, and their final counters."""

import shutil
import subprocess
from pathlib import Path

import pytest

from captures import RecorderCounters, parse_counters, recorder_arguments

DUMPCAP = """Capturing on 'ship1-eth0'
File: captures/ship1-eth0.pcapng
Packets captured: 6376
Packets received/dropped on interface 'ship1-eth0': 6376/12 (pcap:12/dumpcap:0/flushed:0) (99.8%)
"""
TCPDUMP = """tcpdump: listening on eth0, link-type EN10MB (Ethernet), snapshot length 128 bytes
33 packets captured
36 packets received by filter
3 packets dropped by kernel
"""


def test_dumpcap_counters() -> None:
    assert parse_counters(DUMPCAP) == RecorderCounters(received=6376, dropped=12)


def test_tcpdump_counters() -> None:
    assert parse_counters(TCPDUMP) == RecorderCounters(received=33, dropped=3)


def test_several_interfaces_are_added_up() -> None:
    assert parse_counters(DUMPCAP + DUMPCAP) == RecorderCounters(received=12752, dropped=24)


def test_a_killed_recorder_said_nothing() -> None:
    assert parse_counters("Capturing on 'eth0'\n") == RecorderCounters(None, None)


@pytest.mark.parametrize("recorder", ["dumpcap", "tcpdump"])
def test_arguments_name_interface_file_and_snap_length(recorder: str) -> None:
    arguments = recorder_arguments("eth7", "out.pcapng", snap_length_bytes=128, recorder=recorder)
    assert arguments[0] == recorder
    assert arguments[arguments.index("-i") + 1] == "eth7"
    assert arguments[arguments.index("-s") + 1] == "128"
    assert arguments[arguments.index("-w") + 1] == "out.pcapng"


@pytest.mark.parametrize("recorder", ["dumpcap", "tcpdump"])
def test_the_program_knows_these_options(recorder: str, tmp_path: Path) -> None:
    if shutil.which(recorder) is None:
        pytest.skip(f"{recorder} is not installed")
    # A file of the test's own: a recorder that fails removes its file.
    file = tmp_path / "out.pcapng"
    ring = {"ring_files": 3, "ring_kibibytes": 1000} if recorder == "dumpcap" else {}
    arguments = recorder_arguments("no-such-interface", file, recorder=recorder, only="tcp", **ring)
    said = subprocess.run(arguments, capture_output=True, text=True, timeout=20, check=False)
    # It got as far as looking for the interface (or for the right to).
    assert said.returncode != 0
    assert "no-such-interface" in said.stderr
    assert "usage" not in said.stderr.lower()
    assert "invalid option" not in said.stderr


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"interface": ""}, "interface"),
        ({"snap_length_bytes": 60}, "118"),
        ({"buffer_mebibytes": 0}, "buffer"),
        ({"recorder": "snoop"}, "snoop"),
        ({"ring_files": 3}, "ring_kibibytes"),
        ({"ring_files": 0, "ring_kibibytes": 9}, "at least 1"),
        ({"ring_files": 3, "ring_kibibytes": 9, "recorder": "tcpdump"}, "tcpdump"),
    ],
)
def test_impossible_arguments_are_refused(wrong: dict[str, object], named: str) -> None:
    given: dict[str, object] = {"interface": "eth0", "file": "x", **wrong}
    with pytest.raises(ValueError, match=named):
        recorder_arguments(**given)  # type: ignore[arg-type]


def test_a_ring_of_files() -> None:
    arguments = recorder_arguments("eth7", "out.pcapng", ring_files=4, ring_kibibytes=1000)
    assert [arguments[at + 1] for at, each in enumerate(arguments) if each == "-b"] == [
        "filesize:1000",
        "files:4",
    ]
