"""Allocation beside what was achieved, and what waited, in a real run (fdm, in virtual time)."""

import json
from pathlib import Path

import pytest

from analysis import RunResult, analyse, report
from analysis.presentation.run_figures import allocation, allocation_table, backlog, chart


def test_every_allocation_in_force_is_told(fdm: RunResult) -> None:
    periods = fdm.allocation
    starts = sorted({each.start_s for each in periods})
    # The start, two entries and two exits, some ships a tenth of a second after each other.
    assert len({each.start_s for each in periods if each.start_s > 4}) == 4
    for each in periods:
        assert starts[0] <= each.start_s < each.end_s
        assert each.min_bps is not None
        assert each.max_bps is not None
        assert each.min_bps <= each.solved_bps + 1 <= each.max_bps + 2
    both = [each for each in periods if each.end_s - each.start_s > 5 and each.start_s < 6]
    assert {(each.user, each.via) for each in both} == {
        (user, via) for user in ("ship1", "ship2") for via in ("satcom", "uav")
    }
    # Two ships share the UAV, and the rest of what each sends goes over the satellite.
    by_user = {
        user: sum(each.solved_bps for each in both if each.user == user)
        for user in ("ship1", "ship2")
    }
    assert by_user["ship1"] == by_user["ship2"] == pytest.approx(4e5 * 1.07, rel=1e-3)


def test_captures_and_counters_see_the_same_rates(fdm: RunResult) -> None:
    long = [
        each
        for each in fdm.allocation
        if each.end_s - each.start_s > 5 and each.counted_bps is not None
    ]
    assert len(long) >= 4
    for each in long:
        assert each.captured_bps is not None
        assert each.counted_bps is not None
        # Counters are a second apart, and data arrive up to 0.25 s later.
        assert each.captured_bps == pytest.approx(each.counted_bps, rel=0.25)


def test_a_path_that_was_taken_away_carried_nothing(copy: Path) -> None:
    solve = {
        "trigger": "made up",
        "path_flows": [
            {"user": "ship1", "via": "satcom", "rate_bps": 1e6},
            {"user": "ship9", "via": "satcom", "rate_bps": 1e6},
            {"user": "ship2", "via": "moon", "rate_bps": None},
        ],
    }
    common = {"seq": 0, "t_mono_s": 0.0, "node": "controller"}
    with (copy / "events.jsonl").open("a") as file:
        for t_s, kind, data in ((1.0, "solve", solve), (1.1, "assignment", {"trigger": "made up"})):
            file.write(json.dumps({**common, "t_s": t_s, "kind": kind, "data": data}) + "\n")
    (period,) = analyse(copy).allocation
    # Without switch queues and their samples only the captures tell.
    assert (period.user, period.via, period.queue_id, period.counted_bps) == (
        "ship1",
        "satcom",
        None,
        None,
    )
    assert period.captured_bps == pytest.approx(1e6, rel=0.3)


def test_backlog_is_that_of_the_queues_that_were_used(fdm: RunResult) -> None:
    waiting = {
        (each.user, each.via): max(packets for _, packets, _ in each.backlog)
        for each in fdm.queues
        if each.user
    }
    assert set(waiting) == {(user, via) for user in ("ship1", "ship2") for via in ("satcom", "uav")}
    assert all(0 < packets < 20 for packets in waiting.values())
    for queue in fdm.queues:
        times = [at for at, _, _ in queue.backlog]
        assert times == sorted(times)


def test_frames_are_more_than_the_data_in_them(fdm: RunResult) -> None:
    for user in fdm.users.values():
        assert user.series is not None
        for via, rates in user.series.frames_bps.items():
            data = user.series.arriving_bps[via]
            assert all(frames >= payload for frames, payload in zip(rates, data, strict=True))
        total = sum(sum(each) for each in user.series.frames_bps.values()) / 8
        # Headers of 94 bytes at most on segments of about 1400, and data that came twice.
        assert 1.04 < total / user.data_bytes < 1.2


def test_figures_of_a_run(fdm: RunResult, mptcp: RunResult, tmp_path: Path) -> None:
    plots = [allocation(fdm), backlog(fdm), chart(fdm)]
    for plot in plots:
        assert plot is not None
        assert plot.draw().svg("x").startswith("<svg")
    assert fdm.chart is not None
    assert fdm.chart.ranges_m == {"uav": 319.4}
    assert set(fdm.chart.tracks) == {"ship1", "ship2", "uav"}
    assert "ship1 over uav" in plots[0].description or "ship1 over satcom" in plots[0].description
    page = report([fdm], tmp_path / "fdm.html").read_text()
    for heading in ("Handovers, from cause to effect", "Allocated and achieved", "Data quality"):
        assert heading in page
    # A run without positions, solves and samples has none of these figures.
    assert [allocation(mptcp), backlog(mptcp), chart(mptcp)] == [None, None, None]
    assert allocation_table(mptcp) == ""
