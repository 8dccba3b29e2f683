"""Groups of runs, their intervals and paired differences; the numbers are checked by hand."""

import json
import math
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis import RunDirectoryError, write
from analysis.presentation.comparison_page import comparison_report
from analysis.presentation.comparison_text import comparison_text
from analysis.run.compare import compare, figures_of, load
from tactical.cli import main

DATA = Path(__file__).parents[1] / "data"


def result(protocol: str, seed: int, goodput_bps: float, **more: Any) -> dict[str, Any]:
    """A result as result.json has it, with what is compared."""
    user = {
        "goodput_bps": goodput_bps,
        "mean_packet_delay_s": 0.25,
        "longest_interruption_after_start_s": 0.5,
        "delay_quantiles_s": [0.1, 0.2, 0.3],
        "matched_packets": 100,
    }
    return {
        "state": "done",
        "run": f"{protocol}-{seed}",
        "scenario": "direct-move",
        "protocol": protocol,
        "seed": seed,
        "users": {"ship1": user},
        "parameters": {"satcom.delay_s": 0.25},
        "jain": 1.0,
        **more,
    }


def test_student_interval_and_paired_difference() -> None:
    """t(0.975, 2) = 4.302653 (any table of Student's distribution)."""
    rates = {"mptcp": [1.0, 2.0, 3.0], "fdm": [2.0, 3.1, 3.9]}
    found = compare(
        [
            result(protocol, seed, rate * 1e6)
            for protocol, values in rates.items()
            for seed, rate in enumerate(values)
        ]
    )
    assert [group.label for group in found.groups] == ["mptcp", "fdm"]
    mptcp = found.groups[0].estimates["goodput_bps"]
    half = 4.302653 * 1.0 / math.sqrt(3)
    assert mptcp.mean == pytest.approx(2e6)
    assert mptcp.low == pytest.approx((2 - half) * 1e6, rel=1e-6)
    assert mptcp.high == pytest.approx((2 + half) * 1e6, rel=1e-6)
    (paired,) = [each for each in found.differences if each.figure == "goodput_bps"]
    assert (paired.first, paired.second) == ("mptcp", "fdm")
    # Seed by seed 1, 1.1, 0.9: far narrower than the groups, and certain.
    assert paired.estimate.values == pytest.approx([1e6, 1.1e6, 0.9e6])
    assert paired.estimate.low == pytest.approx((1 - 4.302653 * 0.1 / math.sqrt(3)) * 1e6, rel=1e-6)
    assert paired.certain


@given(st.lists(st.floats(1e3, 1e9), min_size=2, max_size=8), st.floats(0.5, 0.99))
def test_intervals_hold_their_mean_and_widen_with_confidence(
    rates: list[float], confidence: float
) -> None:
    runs = [result("fdm", seed, rate) for seed, rate in enumerate(rates)]
    low = compare(runs, confidence=confidence).groups[0].estimates["goodput_bps"]
    high = compare(runs, confidence=confidence + 0.009).groups[0].estimates["goodput_bps"]
    assert low.low is not None
    assert low.high is not None
    assert high.low is not None
    assert low.low <= low.mean <= low.high
    assert high.low <= low.low


def test_one_seed_has_no_interval_and_says_so() -> None:
    found = compare([result("sptcp", 1, 1e6), result("fdm", 1, 3e6)])
    assert all(each.low is None for group in found.groups for each in group.estimates.values())
    assert all(each.certain is None for each in found.differences)
    assert found.remarks == [
        "sptcp: one seed only, so there is no interval",
        "fdm: one seed only, so there is no interval",
    ]
    text = comparison_text(found)
    assert "±" not in text
    assert "+2.000 (one seed, no interval)" in text


def test_groups_are_what_differs_in_the_seed_only() -> None:
    slow = {"parameters": {"satcom.delay_s": 0.5, "uav.channel": 1, "of.this.version": "x"}}
    fast = {"parameters": {"satcom.delay_s": 0.25, "uav.channel": 1}}
    runs = [
        *(result("fdm", seed, 1e6 + seed, **slow) for seed in (1, 2)),
        *(result("fdm", seed, 2e6 + seed, **fast) for seed in (1, 2)),
        result("sptcp", 1, 1e6, **fast),
    ]
    found = compare(runs)
    assert [(group.label, group.seeds) for group in found.groups] == [
        ("sptcp satcom.delay_s=0.25", [1]),
        ("fdm satcom.delay_s=0.25", [1, 2]),
        ("fdm satcom.delay_s=0.5", [1, 2]),
    ]
    # Groups are compared over the seeds that both have.
    pairs = {
        (each.first, each.second): each
        for each in found.differences
        if each.figure == "goodput_bps"
    }
    first = pairs["sptcp satcom.delay_s=0.25", "fdm satcom.delay_s=0.25"]
    assert first.estimate.values == [1e6 + 1]


def test_failed_repeated_and_overloaded_runs_are_told_of() -> None:
    found = compare(
        [
            result("fdm", 1, 1e6),
            result("fdm", 1, 3e6, run="again"),
            result("fdm", 2, 2e6, overloaded=True),
            result("fdm", 3, 9e6, state="failed", reason="no room"),
        ]
    )
    (group,) = found.groups
    assert group.estimates["goodput_bps"].values == [2e6, 2e6]
    assert any("fdm-3 is left out: it failed (no room)" in each for each in found.remarks)
    assert any("seed 1 2 times" in each for each in found.remarks)
    assert any("could not keep up" in each and "fdm-2" in each for each in found.remarks)
    with pytest.raises(ValueError, match="no room"):
        compare([result("fdm", 3, 9e6, state="failed", reason="no room")])


def test_delays_are_pooled_by_packets() -> None:
    many = result("fdm", 1, 1e6)
    few = result("fdm", 2, 1e6)
    few["users"]["ship1"] |= {"delay_quantiles_s": [0.5, 0.6, 0.7], "matched_packets": 300}
    (group,) = compare([many, few]).groups
    shares = {round(value, 6): share for value, share in group.delay_cdf}
    assert shares[0.3] == pytest.approx(0.25)
    assert shares[0.6] == pytest.approx(0.25 + 0.75 / 2)
    assert shares[0.7] == pytest.approx(1.0)


@pytest.fixture
def studies(tmp_path: Path) -> list[Path]:
    """Real runs as a study leaves them: two protocols, two seeds."""
    directories = []
    for protocol in ("sptcp", "mptcp"):
        for seed in (1, 2):
            directory = Path(shutil.copytree(DATA / protocol, tmp_path / f"{protocol}-{seed}"))
            text = (directory / "run.toml").read_text()
            (directory / "run.toml").write_text(text.replace("seed = 1", f"seed = {seed}"))
            directories.append(directory)
    return directories


def test_real_runs_from_the_command_line(
    studies: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "comparison.html"
    asked = ["compare", *map(str, studies), "--report", str(page)]
    assert main([*asked, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    sptcp, mptcp = document["groups"]
    assert (sptcp["seeds"], mptcp["seeds"]) == ([1, 2], [1, 2])
    # The same run under two seeds: a mean without doubt.
    goodput = sptcp["estimates"]["goodput_bps"]
    assert goodput["low"] == goodput["mean"] == goodput["high"]
    assert sptcp["estimates"]["handover_interruption_s"]["mean"] > 1.0
    text = page.read_text()
    assert text.count("<svg") == 3
    assert "https://" not in text
    assert main(asked) == 0
    assert "mptcp duration_s=5 – sptcp duration_s=6" in capsys.readouterr().out


def test_results_are_measured_again_only_where_they_are_old(studies: list[Path]) -> None:
    directory = studies[0]
    write(directory)
    stored = directory / "result.json"
    document = json.loads(stored.read_text()) | {"jain": 0.123}
    stored.write_text(json.dumps(document))
    assert figures_of(load(directory))["jain"] == 0.123
    # Events that are newer than the result, another format, damage: measured again.
    later = stored.stat().st_mtime + 10
    os.utime(directory / "events.jsonl", (later, later))
    assert figures_of(load(directory))["jain"] != 0.123
    os.utime(directory / "events.jsonl", (0, 0))
    stored.write_text(json.dumps(document | {"format": 1}))
    assert figures_of(load(directory))["jain"] != 0.123
    stored.write_text("{")
    assert figures_of(load(directory))["jain"] != 0.123
    stored.unlink()
    os.mkfifo(stored)  # a writer is not waited for
    assert figures_of(load(directory))["jain"] != 0.123


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["/nothing"], "expected a run directory"),
        ([str(DATA / "mptcp"), "--confidence", "95"], "between 0 and 1"),
        ([str(DATA / "mptcp"), "--report", "/nothing/x.html"], "/nothing/x.html"),
        ([str(DATA / "mptcp/plan.json")], "no run directory"),
    ],
)
def test_what_cannot_be_compared(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *arguments]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert len(told.splitlines()) == 1


def test_no_run_directory_is_told_of(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError):
        load(tmp_path)


def test_report_of_one_run(tmp_path: Path) -> None:
    found = compare([load(DATA / "mptcp")])
    page = comparison_report(found, tmp_path / "one.html").read_text()
    assert "one seed only" in page
    assert "<h2>Differences</h2>" not in page


def test_who_waited_for_whom_shows_in_each_second_only() -> None:
    """Two users that take turns are equal in the end, and never meanwhile."""
    series = {"start_s": 0.0, "step_s": 1.0}
    user = {"sending_start_s": 1.0, "sending_end_s": 5.0, "throughput_cov": 0.2}
    turns = {
        "ship1": {**user, "interruptions": [1], "series": {**series, "goodput_bps": [9, 2, 0, 2]}},
        "ship2": {
            **user,
            "interruptions": [],
            "series": {**series, "goodput_bps": [0, 0, 2, 0, 2]},
        },
    }
    figures = figures_of(result("fdm", 0, 1e6, users=turns, handovers=3))
    assert (figures["jain"], figures["jain_over_time"]) == (1.0, 0.5)
    assert (figures["handovers"], figures["interruptions"]) == (3.0, 1.0)
    assert figures["throughput_cov"] == 0.2
    alone = {"ship1": turns["ship1"]}
    assert figures_of(result("fdm", 0, 1e6, users=alone))["jain_over_time"] is None
