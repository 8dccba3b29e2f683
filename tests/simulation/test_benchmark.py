"""The benchmark runs, and compares what is the same."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from simulation import compilation

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "simulation.py"


@pytest.mark.skipif(not compilation.available(), reason="Numba is switched off")
def test_compiled_beside_uncompiled():
    done = subprocess.run(
        [sys.executable, SCRIPT, "--without", "start", "tree", "large", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    plain, compiled = found["python"], found["python_compiled"]
    assert plain["hops"] == compiled["hops"] > 20_000
    assert plain["hops_per_s"] < compiled["hops_per_s"]
    assert "htsim" in done.stderr  # for people, where standard output is for a program
