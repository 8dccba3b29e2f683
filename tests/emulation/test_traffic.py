"""A transfer is over when either side has ended before its time."""

import signal
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

import scenarios
from tactical.emulation.plan import Plan, make_plan
from tactical.emulation.processes import EmulationError, Process
from tactical.emulation.traffic import check_transfers

END_S = 10.0


@pytest.fixture
def plan() -> Plan:
    plan = make_plan(scenarios.load("direct-move", []).build(0), "mptcp")
    first, *_ = plan.transfers
    return replace(plan, transfers=(replace(first, start_s=0.0, duration_s=END_S),))


@pytest.fixture
def sides(plan: Plan, tmp_path: Path) -> Iterator[dict[str, Process]]:
    """Two processes that stay, in place of iperf3's."""
    (tmp_path / "traffic").mkdir()
    with ExitStack() as stack:
        started = {}
        for side in ("client", "server"):
            started[side] = Process(("sleep", "60"), tmp_path / f"{side}.log")
            stack.callback(started[side].stop)
        yield started


def check(plan: Plan, sides: dict[str, Process], run_dir: Path, run_time_s: float) -> None:
    name = plan.transfers[0].name
    check_transfers(plan, {name: sides["client"]}, {name: sides["server"]}, run_dir, run_time_s)


@pytest.mark.parametrize("side", ["client", "server"])
def test_a_side_that_ends_early_is_a_fault_that_names_it(plan, sides, tmp_path, side) -> None:
    check(plan, sides, tmp_path, END_S / 2)
    sides[side].stop(signal.SIGKILL)
    with pytest.raises(EmulationError, match=f"iperf3 {side} ended with status -9"):
        check(plan, sides, tmp_path, END_S / 2)


def test_a_server_may_end_when_the_time_is_over(plan, sides, tmp_path) -> None:
    sides["server"].stop(signal.SIGKILL)
    check(plan, sides, tmp_path, END_S)


def test_a_client_that_failed_is_a_fault_also_then(plan, sides, tmp_path) -> None:
    sides["client"].stop(signal.SIGKILL)
    with pytest.raises(EmulationError, match="ship1 ended after"):
        check(plan, sides, tmp_path, END_S)


def test_what_iperf3_says_is_the_reason(plan, sides, tmp_path) -> None:
    said = tmp_path / "traffic" / f"{plan.transfers[0].name}-server.json"
    said.write_text('{"error": "the client has unexpectedly closed the connection"}')
    sides["server"].stop()
    with pytest.raises(EmulationError, match="unexpectedly closed"):
        check(plan, sides, tmp_path, END_S / 2)
