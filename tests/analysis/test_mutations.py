"""Files of a real run in which values are of another type, size or missing: never a failure."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from analysis import analyse, report, stories_text
from analysis.run.compare import compare

ODD = [None, -1, 1e300, float("nan"), "x", [], {}, True, "\ud800", 10**30, [[[]]], 0, ""]
FILES = ["events.jsonl", "counters.json", "plan.json", "host.jsonl", "traffic/ship1-client.json"]


def mutated(value: Any, chance: random.Random) -> Any:
    """The same with about one value in thirty changed, and one in a hundred left out."""
    if chance.random() < 0.01:
        return chance.choice(ODD)
    if isinstance(value, dict):
        kept = {key: each for key, each in value.items() if chance.random() > 0.01}
        return {key: mutated(each, chance) for key, each in kept.items()}
    if isinstance(value, list):
        return [mutated(each, chance) for each in value if chance.random() > 0.01]
    return chance.choice(ODD) if chance.random() < 0.03 else value


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_a_run_whose_files_are_odd_is_analysed_as_far_as_it_goes(
    fdm_copy: Path, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    for name in chance.sample(FILES, chance.randint(1, 3)):
        file = fdm_copy / name
        if name.endswith(".jsonl"):
            lines = [json.loads(line) for line in file.read_text().splitlines()]
            file.write_text("\n".join(json.dumps(mutated(line, chance)) for line in lines))
        else:
            file.write_text(json.dumps(mutated(json.loads(file.read_text()), chance)))
    result = analyse(fdm_copy)
    document = result.to_json()
    json.dumps(document, allow_nan=False)
    assert isinstance(stories_text([result]), str)
    if seed == 1:
        assert report([result], tmp_path / "report.html").stat().st_size > 10_000
    if result.state == "done" and result.users:
        assert compare([document]).groups[0].runs == ["fdm"]


def test_users_with_different_links(fdm_copy: Path, tmp_path: Path) -> None:
    plan = json.loads((fdm_copy / "plan.json").read_text())
    del plan["users"]["ship1"]["interfaces"]["ship1-wlan0"]
    (fdm_copy / "plan.json").write_text(json.dumps(plan))
    result = analyse(fdm_copy)
    series = result.users["ship1"].series
    assert series is not None
    assert list(series.arriving_bps) == ["satcom"]
    report([result], tmp_path / "report.html")
