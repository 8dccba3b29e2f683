"""The suite on a real network, as a user starts it; its criteria are the test."""

import json
import subprocess
import sys

import pytest

from tactical.host import HostError, choose

pytestmark = pytest.mark.emulation


def test_the_emulated_network_does_what_it_is_told_to(tmp_path, monkeypatch):
    try:
        machine = choose()
    except HostError as error:
        pytest.skip(str(error))
    if machine.name == "vm" and not machine.virtual_time:
        pytest.skip("in real time the figures say how busy this machine is")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-m", "tactical", "calibrate", "--quick", "--json"],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    document = json.loads(done.stdout)
    assert document["passed"]
    assert {row["verdict"] for row in document["rows"]} == {"ok", ""}
    (kept,) = (tmp_path / "tactical" / "calibration").glob("*.json")
    assert json.loads(kept.read_text()) == document
