"""The parameters in the documentation are those of the code, and its error messages real."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import pytest

import scenarios
from scenarios import DirectMove, Experiment, Parameter, Scenario, ScenarioError

PAGE = (Path(__file__).parents[2] / "docs" / "scenarios.md").read_text(encoding="utf-8")


def test_the_table_of_parameters_is_complete_and_current():
    for row in scenarios.describe(DirectMove()):
        value = row.value if isinstance(row.value, str) else f"{row.value:.12g}"
        line = f"| `{row.key}` | {value} | {row.unit} | {row.meaning} | {row.expected} |"
        assert line in PAGE
    assert PAGE.count("| `") == len(scenarios.describe(DirectMove()))


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


@dataclass(frozen=True)
class Patrol(Experiment):
    """As shown on the page."""

    name: ClassVar[str] = "patrol"
    speed_mps: Annotated[
        float, Parameter(unit="m/s", meaning="speed of the ship", minimum=0, above=True)
    ] = 8.0

    def build(self, seed: int) -> Scenario:
        return DirectMove().build(seed)


def test_an_experiment_of_ones_own_is_checked_and_described():
    assert scenarios.describe(Patrol())[0].expected == "a number in m/s, above 0"
    assert scenarios.to_toml(Patrol(speed_mps=9)) == 'experiment = "patrol"\nspeed_mps = 9.0\n'
    with pytest.raises(ScenarioError, match="speed_mps must be a number in m/s, above 0, not 0"):
        Patrol(speed_mps=0)
