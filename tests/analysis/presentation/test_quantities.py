"""A quantity has the same digits wherever it is told."""

import re

import pytest

from analysis import RunResult, table
from analysis.presentation.comparison_text import comparison_text
from analysis.presentation.quantities import jain, megabits, milliseconds, seconds
from analysis.run.compare import compare


@pytest.mark.parametrize(
    ("written", "value", "expected"),
    [
        (megabits, 1_234_567.0, "1.235"),
        (megabits, 123_456_789.0, "123.457"),
        (seconds, 12.345, "12.35"),
        (seconds, 0.0123, "0.012"),
        (seconds, 0.0, "0.00"),
        (milliseconds, 0.34567, "345.7"),
        (milliseconds, 0.0034567, "3.46"),
        (milliseconds, 0.00034567, "0.346"),
        (jain, 0.98765, "0.9877"),
        (milliseconds, None, "–"),
    ],
)
def test_digits_follow_the_quantity(written, value, expected):
    assert written(value) == expected


def cell(text: str, label: str) -> str:
    (line,) = [line for line in text.splitlines() if line.startswith(f"{label}  ")]
    return re.split(r"\s{2,}", line)[-1]


def test_a_run_and_a_comparison_write_the_same(fdm: RunResult) -> None:
    compared = comparison_text(compare([fdm.to_json()]))
    for label, compared_as in (
        ("goodput, mean of users", "goodput, mean of users"),
        ("Jain index", "Jain index of the run"),
    ):
        assert cell(compared, compared_as) == cell(table([fdm]), label)


def test_an_interval_has_the_digits_of_its_mean(sptcp: RunResult, fdm: RunResult) -> None:
    runs = []
    for seed, run in enumerate((sptcp, fdm, sptcp, fdm)):
        document = run.to_json() | {"seed": seed // 2, "parameters": {}, "state": "done"}
        for user in document["users"].values():
            user["mean_packet_delay_s"] *= 1 + 0.001 * seed
        runs.append(document)
    text = comparison_text(compare(runs))
    (delays,) = [line for line in text.splitlines() if line.startswith("packet delay, mean")]
    assert re.search(r"ms +\d+\.\d ± \d+\.\d +\d+\.\d ± \d+\.\d$", delays)
    (apart,) = [line for line in text.splitlines() if re.search("– .*packet delay, mean", line)]
    assert re.search(r"[+-]\d+\.\d \[[+-]\d+\.\d, [+-]\d+\.\d\], 2 seeds", apart)
