"""The packets around an event, chosen by our reader and decoded by tshark."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from analysis import analyse
from analysis.run.directory import read_run
from analysis.run.excerpt import (
    Excerpt,
    ExcerptError,
    Source,
    excerpt,
    moment_of_capture,
    moment_of_run,
    sources_of_run,
)
from captures import connections, read
from tactical.cli import main

DATA = Path(__file__).parents[1] / "data"

needs_tshark = pytest.mark.skipif(
    shutil.which("tshark") is None or shutil.which("editcap") is None,
    reason="tshark and editcap are not installed",
)


@pytest.fixture(scope="module")
def joining() -> Excerpt:
    files = read_run(DATA / "mptcp")
    stories = analyse(DATA / "mptcp").handover_stories
    moment = moment_of_run(files, stories, "handover:1:new", None)
    assert moment.user == "ship1"
    return excerpt(sources_of_run(files), moment, window_s=0.12, port=5201)


@needs_tshark
def test_a_subflow_joins(joining: Excerpt) -> None:
    packets = joining.packets
    assert joining.found == len(packets) > 0
    assert [each.t_s for each in packets] == sorted(each.t_s for each in packets)
    assert all(abs(each.t_s) <= 0.12 for each in packets)
    handshake = [
        each for each in packets if each.interface == "ship1-wlan0" and "SYN" in each.flags
    ]
    assert {each.flags for each in handshake} == {"SYN", "SYN ACK"}
    assert {each.subflow for each in handshake} == {"1"}
    assert all(each.options[0].startswith("Join Connection: ") for each in handshake)
    assert any("receiver's token" in each.options[0] for each in handshake)


@needs_tshark
def test_data_lies_where_the_reader_says(joining: Excerpt) -> None:
    capture = read(DATA / "mptcp/captures/host-eth0.pcapng.gz")
    expected: dict[int, int] = {}
    for connection in connections(capture.packets):
        flow = connection.forward
        first = np.unique(flow.row, return_index=True)[1]
        rows = capture.packets.frame[flow.row[first]].tolist()
        expected |= dict(zip(rows, flow.position[first].tolist(), strict=True))
    at_host = [each for each in joining.packets if each.node == "host" and each.payload_bytes]
    assert at_host
    for each in at_host:
        assert each.data_position == expected[each.frame]
        # DSS says where its mapping lies, which is the data of this packet or before it.
        assert any("DSN" in option for option in each.options)


@needs_tshark
def test_what_changes_something_is_kept_first() -> None:
    file = DATA / "mptcp/captures/ship1-eth0.pcapng.gz"
    moment = moment_of_capture(read(file), 3.0)
    few = excerpt([Source(file)], moment, window_s=10.0, limit=12)
    assert few.found > 500
    assert len(few.packets) == 12
    telling = [each for each in few.packets if {"SYN", "FIN", "RST"} & set(each.flags.split())]
    assert len(telling) >= 8
    assert moment_of_capture(read(file), moment.at_ns / 1e9).at_ns == pytest.approx(
        moment.at_ns, abs=1000
    )


@needs_tshark
def test_inside_a_running_event_loop() -> None:
    """As in a notebook."""
    import asyncio

    file = DATA / "sptcp/captures/ship1-eth0.pcapng.gz"

    async def cell() -> Excerpt:
        return excerpt([Source(file)], moment_of_capture(read(file), 0.0), window_s=0.2, limit=5)

    assert len(asyncio.run(cell()).packets) == 5


@needs_tshark
def test_a_damaged_capture_gives_what_is_before_the_damage(tmp_path: Path) -> None:
    import gzip

    whole = gzip.decompress((DATA / "sptcp/captures/ship1-eth0.pcapng.gz").read_bytes())
    file = tmp_path / "cut.pcapng"
    file.write_bytes(whole[: len(whole) // 2])
    found = excerpt([Source(file)], moment_of_capture(read(file), 0.0), window_s=60.0, limit=500)
    assert 100 < len(found.packets) <= found.found


@pytest.mark.parametrize(
    ("around", "said"),
    [
        ("handover:9", "4 handovers"),
        ("handover:1:middle", "cause, solve, deployed"),
        ("handover:1:solve", "no such moment"),
        ("handover:one", "KIND:N"),
        ("meteor:1", "no event 'meteor'"),
        ("association:99", "8 events"),
    ],
)
def test_events_that_are_not_there(around: str, said: str) -> None:
    stories = analyse(DATA / "mptcp").handover_stories
    with pytest.raises(ExcerptError, match=said):
        moment_of_run(read_run(DATA / "mptcp"), stories, around, None)


def test_without_the_start_of_the_traffic_times_cannot_be_brought_together(copy: Path) -> None:
    (copy / "events.jsonl").write_text("")
    with pytest.raises(ExcerptError, match="epoch_s"):
        moment_of_run(read_run(copy), [], None, 3.0)


@needs_tshark
def test_the_command_prints_a_table_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["inspect", str(DATA / "mptcp"), "--around", "association:2", "--window", "0.1"]
    assert main([*asked, "--interface", "ship1-wlan0"]) == 0
    table = capsys.readouterr().out.splitlines()
    assert table[0].startswith("association 2 (ship1) at 2.0")
    assert "Join Connection" in table[2]
    assert main([*asked, "--interface", "ship1-wlan0", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert len(document["packets"]) == document["found"] == len(table) - 2
    assert document["packets"][0]["interface"] == "ship1-wlan0"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["inspect", str(DATA / "mptcp")], "--around KIND:N or --at"),
        (["inspect", str(DATA / "mptcp"), "--at", "1", "--node", "ship9"], "ship1 ship1-eth0"),
        (["inspect", str(DATA / "mptcp/plan.json"), "--at", "1"], "no capture file"),
        (["inspect", "/nothing", "--at", "1"], "No such file"),
        (["inspect", str(DATA / "mptcp"), "--at", "1", "--window", "-1"], "0 or more"),
        (["inspect", str(DATA / "mptcp"), "--at", "1", "--window", "1e400"], "0 or more"),
        (["inspect", str(DATA / "mptcp"), "--at", "inf"], "seconds of the run"),
        (["inspect", str(DATA / "mptcp"), "--at=-1e308"], "seconds of the run"),
        (["inspect", str(DATA / "mptcp"), "--at", "1", "--limit", "0"], "1 or more"),
        (["inspect", str(DATA / "mptcp/plan.json"), "--around", "solve:1"], "no run directory"),
    ],
)
def test_what_cannot_be_shown_is_told_in_one_sentence(
    asked: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(asked) == 2
    told = capsys.readouterr().err
    assert said in told
    assert len(told.splitlines()) == 1


def test_without_tshark(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert main(["inspect", str(DATA / "mptcp"), "--at", "1"]) == 2
    assert "tshark is not installed" in capsys.readouterr().err
