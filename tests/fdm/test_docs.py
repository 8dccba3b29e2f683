"""The examples in the documentation run, and the figures quoted from them are theirs."""

import re
import shlex
from pathlib import Path

import pytest

import fdm
from tactical import cli

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "flow-deviation.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def example():
    names: dict[str, object] = {}
    for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(code, names)  # our own page
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
    assert [row[0] for row in rows] == [0.3, 0.6, 1.0, 2.0, 5.0, 10.0]
    for kappa, uav_mbps, delay_ms in rows:
        solution = fdm.solve(example["network"], example["demands"], kappa=kappa)
        assert solution.link_flows_bps[5] / 1e6 == pytest.approx(uav_mbps, abs=6e-4)
        assert solution.mean_packet_delay_s * 1e3 == pytest.approx(delay_ms, abs=0.06)


def test_calibration_from_measured_waits_moves_the_share_as_it_says(example):
    calibration = example["calibration"]
    assert f"κ is {calibration.kappa:.2f}, from which the samples are off by" in PAGE
    assert f"off by {100 * calibration.error:.0f} %" in PAGE
    uav_mbps = example["calibrated"].link_flows_bps[5] / 2e6
    assert f"each ship then gets {uav_mbps:.3f} Mbit/s of the UAV" in PAGE
    bursts = fdm.calibrate([fdm.DelaySample(0.83 * 4e6, 4e6, 49e-3 + 8000 / 4e6)], 8000)
    solution = fdm.solve(example["network"], example["demands"], kappa=bursts.kappa)
    uav_mbps = solution.link_flows_bps[5] / 2e6
    assert f"κ = {bursts.kappa:.1f}, and {uav_mbps:.3f} Mbit/s for each ship" in PAGE


def test_commands_run(capsys, monkeypatch, tmp_path):
    (block,) = re.findall(r"```sh\n(tactical solve.*?)```", PAGE, re.DOTALL)
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    monkeypatch.chdir(tmp_path)
    for line in block.splitlines():
        assert cli.main(shlex.split(line)[1:]) == 0
    assert (tmp_path / "tac10.svg").exists()
    assert "388268" in capsys.readouterr().out


def test_pictures_are_there():
    for image in re.findall(r"!\[[^]]*\]\((.*?)\)", PAGE):
        assert (ROOT / "docs" / image).is_file()
