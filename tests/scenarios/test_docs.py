"""The parameters in the documentation are those of the code, and its error messages real."""

import doctest
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import scenarios
from scenarios import DirectMove, ScenarioError

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "scenarios.md").read_text(encoding="utf-8")


def test_the_table_of_parameters_is_complete_and_current():
    for row in scenarios.describe(DirectMove()):
        value = row.value if isinstance(row.value, str) else f"{row.value:.12g}"
        line = f"| `{row.key}` | {value} | {row.unit} | {row.meaning} | {row.expected} |"
        assert line in PAGE
    assert PAGE.count("| `") == len(scenarios.describe(DirectMove()))


def test_the_session_shown_is_what_happens():
    done = doctest.testfile(str(ROOT / "docs" / "scenarios.md"), module_relative=False)
    assert done.attempted and not done.failed


def test_every_experiment_is_on_the_page():
    for name in scenarios.EXPERIMENTS:
        assert f"| {name} |" in PAGE or f"## {name}\n" in PAGE


@pytest.mark.parametrize("option", ["satcom.delya_s=0.3", "satcom.delay_s=250ms"])
def test_the_messages_shown_are_the_messages_given(option):
    with pytest.raises(ScenarioError) as caught:
        scenarios.load("direct-move", [option])
    assert f"    {caught.value}\n" in PAGE


def test_the_file_shown_is_read(tmp_path):
    shown = PAGE.partition("```toml\n")[2].partition("```")[0]
    (tmp_path / "my.toml").write_text(shown)
    experiment = scenarios.load("direct-move", [], tmp_path / "my.toml")
    assert isinstance(experiment, DirectMove)
    assert (experiment.entry_time_s, experiment.satcom.loss) == (30.0, 0.005)


@pytest.fixture
def with_patrol(tmp_path) -> Path:
    """A directory with the scenarios, and the one of the page added as the page says."""
    blocks = [block.partition("```")[0] for block in PAGE.split("```python\n")[1:]]
    module = next(block for block in blocks if "class Patrol" in block)
    naming = next(block for block in blocks if "_SHIPPED" in block)
    shutil.copytree(ROOT / "scenarios", tmp_path / "scenarios")
    (tmp_path / "scenarios/patrol.py").write_text(module)
    listing = tmp_path / "scenarios/__init__.py"
    text = listing.read_text()
    imported, _, named = naming.partition("\n\n")
    before = named.replace("    Patrol,\n", "")
    assert before in text
    listing.write_text(text.replace(before, f"{imported}\n{named}"))
    return tmp_path


def tactical(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command, with the scenarios of a directory."""
    return subprocess.run(
        [sys.executable, "-m", "tactical", *arguments],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(directory), str(ROOT)])},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_an_experiment_of_ones_own_is_added_as_shown(with_patrol):
    assert (
        "patrol               One ship that passes a UAV."
        in tactical(with_patrol, "scenarios").stdout.splitlines()
    )
    checked = tactical(with_patrol, "check", "patrol", "--set", "speed_mps=10")
    assert checked.stderr == ""
    assert "speed of the ship: a number in m/s, above 0" in checked.stdout
    assert "At 11.7157 s ship enters the range of uav." in checked.stdout
    assert "At 68.2843 s ship leaves the range of uav." in checked.stdout
    refused = tactical(with_patrol, "check", "patrol", "--set", "speed_mps=0")
    assert refused.returncode == 2
    assert "speed_mps must be a number in m/s, above 0, not 0" in refused.stderr
