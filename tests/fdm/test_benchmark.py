"""The benchmark runs, and what it needs of others is what they have."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

import fdm

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "fdm.py"
DATA = Path(__file__).parent / "data"


def test_one_instance_beside_the_reference():
    quick = ("--without", "roads", "large", "--repeat", "2", "--changes", "5", "--json")
    done = subprocess.run(
        [sys.executable, SCRIPT, DATA / "tac2.json", *quick],
        capture_output=True,
        text=True,
        check=True,
    )
    (row,) = json.loads(done.stdout)["instances"]
    assert (row["name"], row["links"], row["demands"]) == ("tac2", 6, 2)
    assert abs(row["error"]) <= 1e-9
    assert row["warm_worst_gap"] <= 1e-6
    assert abs(row["reference_error"]) <= 1e-6
    assert 0.0 < row["warm_ms"] <= row["warm_p99_ms"]
    assert row["ratio"] == row["reference_ms"] / row["cold_ms"]
    assert "tac2 " in done.stderr  # the table, where standard output is for a program


def test_sioux_falls_is_met_to_all_digits_of_the_published_optimum():
    pytest.importorskip(
        "aequilibrae", reason="AequilibraE, which brings the data of Sioux Falls, is not installed"
    )
    spec = importlib.util.spec_from_file_location("benchmark_of_fdm", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    network, demands = benchmark.sioux_falls()
    solution = fdm.solve(network, demands, delay=fdm.Bpr(), gap=1e-12)
    assert (len(network.links), len(demands)) == (76, 528)
    assert solution.objective == pytest.approx(benchmark.SIOUX_FALLS, rel=1e-10)
