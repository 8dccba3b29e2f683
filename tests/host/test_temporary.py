"""Temporary directories of machines, left behind by a killed process or not."""

import os
import signal
import subprocess
import sys
import tempfile
import time

import pytest

from tactical.host import temporary
from tactical.host.temporary import TemporaryDirectory


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_directory_of_a_killed_process_goes_with_the_next_start_and_one_in_use_stays(place):
    code = (
        "import time\n"
        "from tactical.host.temporary import TemporaryDirectory\n"
        "made = TemporaryDirectory(); print(made.path, flush=True); time.sleep(600)\n"
    )
    environment = {**os.environ, "TMPDIR": str(place)}
    owner = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert owner.stdout is not None
    with owner.stdout:
        theirs = place / owner.stdout.readline().strip()
    (theirs / "file").touch()
    long_ago = time.time() - 1000
    os.utime(theirs, (long_ago, long_ago))
    try:
        temporary.remove_stale()
        assert theirs.exists(), "in use"
    finally:
        owner.send_signal(signal.SIGKILL)
        owner.wait(10)
    mine = TemporaryDirectory()
    assert list(place.iterdir()) == [mine.path]
    mine.remove()
    assert list(place.iterdir()) == []


def test_what_is_not_ours_or_young_is_left_alone(place):
    for name in (f"{temporary.PREFIX}young", "other"):
        (place / name).mkdir()
    (place / f"{temporary.PREFIX}file").touch()
    long_ago = time.time() - 1000
    os.utime(place / "other", (long_ago, long_ago))
    temporary.remove_stale()
    assert len(list(place.iterdir())) == 3
