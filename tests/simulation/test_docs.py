"""What docs/simulation.md shows."""

import re
from pathlib import Path

from simulation import ALGORITHMS

PAGE = (Path(__file__).parents[2] / "docs" / "simulation.md").read_text(encoding="utf-8")


def test_the_example_runs():
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    names: dict = {}
    exec(example, names)
    both, one = names["rate_bps"]
    # One TCP's share of the first link, and the second link for itself.
    assert 8e6 < both < 14e6
    assert 15e6 < both + one < 18e6


def test_every_algorithm_is_explained():
    assert set(ALGORITHMS) == set(re.findall(r"^\| `(\w+)` \|", PAGE, re.M))
