"""Counters of kernel and switch beside the captures of a real run (fdm, in virtual time)."""

import json
from pathlib import Path

import pytest

from analysis import RunResult, analyse
from analysis.presentation.run_figures import checks_table
from analysis.run.result import CounterCheck


def by_name(result: RunResult) -> dict[tuple[str, str], CounterCheck]:
    """Checks by place and by what is in parentheses, or else the whole name."""
    return {
        (each.node, each.what.partition("(")[2].removesuffix(")") or each.what): each
        for each in result.counter_checks
    }


def test_what_the_kernel_counted_is_what_was_captured(fdm: RunResult) -> None:
    checks = by_name(fdm)
    for user in ("ship1", "ship2"):
        opened, joined = (
            checks[user, f"MPTcpExt{name}"] for name in ("MPCapableSYNTX", "MPJoinSynAckRx")
        )
        # iperf3's control and data connections, each with a second subflow over the radio.
        assert (opened.captured, opened.counted) == (2, 2)
        assert (joined.captured, joined.counted) == (2, 2)
    accepted = checks["host", "MPTcpExtMPJoinAckRx"]
    assert (accepted.captured, accepted.counted) == (4, 4)
    again = checks["host", "MPTcpExtDuplicateData"]
    assert (again.captured, again.counted) == (40, 40)
    assert again.agrees


def test_drops_of_queues_are_the_losses(fdm: RunResult) -> None:
    checks = {each.node: each for each in fdm.counter_checks if "lost behind" in each.what}
    assert set(checks) == {"satcom", "uav"}
    assert all(each.captured == each.counted == 0 for each in checks.values())


def test_retransmissions_that_never_left_are_not_captured(fdm: RunResult) -> None:
    check = by_name(fdm)["ship1", "TcpRetransSegs"]
    assert check.captured < check.counted
    assert check.agrees
    assert "part of it captured" in checks_table(fdm)


def test_a_capture_with_more_than_was_counted_is_no_part_of_it() -> None:
    check = CounterCheck("ship1", "segments", 9, 4, 2, at_most=True)
    assert not check.agrees
    assert not CounterCheck("ship1", "segments", 4, 9, 2).agrees
    assert CounterCheck("ship1", "segments", 4, 6, 2).agrees


def test_counters_that_tell_another_story(fdm_copy: Path) -> None:
    document = json.loads((fdm_copy / "counters.json").read_text())
    document["after"]["nodes"]["ship1"]["protocols"]["MPTcpExtMPJoinSynAckRx"] += 3
    for qdisc in document["after"]["qdiscs"]:
        if qdisc["interface"] == "uav-eth2":
            qdisc["drops"] += 50
    (fdm_copy / "counters.json").write_text(json.dumps(document))
    result = analyse(fdm_copy)
    wrong = {each.what.partition(" (")[0] for each in result.counter_checks if not each.agrees}
    assert {"subflows joined", "data packets lost behind uav"} <= wrong
    assert "differ" in checks_table(result)


@pytest.mark.parametrize("content", [None, "", "[]", '{"before": 1}', '{"after": {"nodes": []}}'])
def test_without_counters_nothing_is_compared(fdm_copy: Path, content: str | None) -> None:
    (fdm_copy / "counters.json").unlink()
    if content is not None:
        (fdm_copy / "counters.json").write_text(content)
    result = analyse(fdm_copy)
    # What Open vSwitch counted is in the samples.
    assert {each.what for each in result.counter_checks} <= {"frames at shore-eth1 (Open vSwitch)"}
    assert result.users["ship1"].bytes_agree


def test_the_recorders_of_all_three_sides(fdm: RunResult) -> None:
    points = {each.interface: each.position.partition(":")[0] for each in fdm.captures}
    assert points == {
        "host-eth0": "host side",
        "ship1-eth0": "station side",
        "ship1-wlan0": "station side",
        "ship2-eth0": "station side",
        "ship2-wlan0": "station side",
        "uav-wlan1": "access point side",
    }


def test_a_recorder_that_had_no_more_room(fdm_copy: Path) -> None:
    text = (fdm_copy / "events.jsonl").read_text()
    assert text.count('"overwritten_files": 0') == 6
    text = text.replace('"overwritten_files": 0', '"overwritten_files": 2', 1)
    (fdm_copy / "events.jsonl").write_text(text)
    remarks = analyse(fdm_copy).remarks
    assert len([each for each in remarks if "overwrote its 2 oldest files" in each]) == 1
