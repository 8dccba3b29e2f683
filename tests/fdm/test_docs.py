"""The example in the documentation runs, and the figures quoted from it are its figures."""

from pathlib import Path

import pytest

import fdm

PAGE = (Path(__file__).parents[2] / "docs" / "flow-deviation.md").read_text(encoding="utf-8")


@pytest.fixture
def example():
    names: dict[str, object] = {}
    exec(PAGE.partition("```python\n")[2].partition("```")[0], names)  # our own page
    return names


def test_the_example_gives_the_figures_beside_it(example):
    rates = example["rates"]
    assert (rates[0, (1, 5), 5].min_bps, rates[0, (1, 5), 5].max_bps) == (388_267, 388_267)
    assert "388 267 bit/s" in PAGE
    assert rates[0, (0, 4), 4].min_bps == 2_611_732
    assert "2 611 732 guaranteed" in PAGE
    assert rates[0, (0, 4), 4].max_bps / 1e6 == pytest.approx(23.75, abs=1e-5)


def test_the_table_of_kappa_is_right(example):
    rows = [
        [float(cell.strip().split()[0]) for cell in line.strip("| ").split("|")]
        for line in PAGE.partition("| κ |")[2].splitlines()[2:8]
    ]
    assert len(rows) == 6
    for kappa, uav_mbps, delay_ms in rows:
        solution = fdm.solve(example["network"], example["demands"], kappa=kappa)
        assert solution.link_flows_bps[5] / 1e6 == pytest.approx(uav_mbps, abs=6e-4)
        assert solution.mean_packet_delay_s * 1e3 == pytest.approx(delay_ms, abs=0.06)
