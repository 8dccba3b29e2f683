import json
from pathlib import Path

import pytest

from analysis import analyse, table
from analysis.run.machine import machine_load


def samples(busy: list[float], late: float = 0.001, dropped: int = 0) -> list[dict[str, float]]:
    return [{"cpu_busy": share, "timer_late_s": late, "softirq_dropped": dropped} for share in busy]


@pytest.mark.parametrize(
    ("rows", "overloaded", "slow_control"),
    [
        (samples([0.4] * 100), False, False),
        (samples([1.0] * 25 + [0.4] * 75), False, False),
        (samples([1.0] * 26 + [0.4] * 74, late=0.023), False, True),
        (samples([0.4] * 99) + samples([0.4], late=0.11), True, False),
        (samples([0.4] * 99) + samples([0.4], dropped=1), True, False),
    ],
    ids=["idle", "busy at handovers", "busy for long", "a late timer", "a dropped packet"],
)
def test_verdict(rows: list[dict[str, float]], overloaded: bool, slow_control: bool) -> None:
    load = machine_load(rows)
    assert load is not None
    assert load.overloaded is overloaded
    assert load.slow_control is slow_control


@pytest.mark.parametrize("rows", [[], [{}], [{"cpu_busy": "much"}]])
def test_without_samples_there_is_no_verdict(rows: list[dict[str, object]]) -> None:
    assert machine_load(rows) is None


def test_an_overloaded_run_says_so_wherever_its_figures_are(copy: Path) -> None:
    lines = [json.dumps(row) for row in samples([1.0] * 10, late=2.4)]
    (copy / "host.jsonl").write_text("\n".join(lines) + '\n{"cpu_')
    result = analyse(copy)
    assert result.overloaded
    assert result.to_json()["overloaded"] is True
    assert "OVERLOADED" in table([result])
    assert "busy in 10 of 10 s, timers up to 2400 ms late" in table([result])
    assert any("could not keep up" in remark for remark in result.remarks)
