"""What happens when nobody can read, or not everything can be shown."""

import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tactical.experiment import Progress
from tactical.progress import reporter
from tactical.streams import Tolerant

STEPS = [Progress(Path("x"), "fdm", "running", float(second), "step") for second in range(40)]


def tactical(arguments: str, redirect: str = "", **environment: str) -> subprocess.CompletedProcess:
    command = f"exec {sys.executable} -m tactical {arguments} {redirect}"
    full = {**os.environ, "PYTHONUNBUFFERED": "", **environment}
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=full)


def show_all() -> None:
    with reporter(["fdm"], 100.0) as show:
        for each in STEPS:
            show(each)


def test_progress_into_a_full_disk_is_silent(monkeypatch):
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stderr", full)
        show_all()


def test_progress_without_standard_error_is_silent(monkeypatch):
    for stream in (None, closed()):
        monkeypatch.setattr(sys, "stderr", stream)
        show_all()


def closed() -> io.TextIOWrapper:
    stream = io.TextIOWrapper(io.BytesIO())
    stream.close()
    return stream


def test_progress_into_a_pipe_without_a_reader_is_silent(monkeypatch):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        monkeypatch.setattr(sys, "stderr", pipe)
        show_all()


def test_progress_on_a_terminal_that_is_closed_is_silent(monkeypatch):
    reading, writing = pty.openpty()
    monkeypatch.setenv("TERM", "xterm")
    with os.fdopen(writing, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        with reporter(["fdm"], 100.0) as show:
            show(STEPS[0])
            os.close(reading)
            for each in STEPS:
                show(each)


@pytest.mark.parametrize("terminal_type", ["dumb", "", "unknown"])
def test_a_terminal_that_cannot_be_drawn_over_gets_plain_lines(monkeypatch, terminal_type):
    reading, writing = pty.openpty()
    monkeypatch.setenv("TERM", terminal_type)
    with os.fdopen(writing, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        with reporter(["fdm"], 100.0) as show:
            show(STEPS[0])
    shown = os.read(reading, 65536).decode()
    os.close(reading)
    assert shown == "fdm       0.0 s  step\r\n"


def test_a_stream_that_works_gets_everything():
    kept = io.StringIO()
    print("all of it", file=Tolerant(Tolerant(kept)), flush=True)
    assert kept.getvalue() == "all of it\n"


@pytest.mark.parametrize("arguments", ["scenarios", "check direct-move --json", "--help"])
def test_output_to_a_full_disk_is_one_sentence(arguments):
    done = tactical(arguments, ">/dev/full")
    assert done.stderr == "tactical: standard output cannot be written: No space left on device\n"
    assert done.returncode == 1


@pytest.mark.parametrize("redirect", ["2>&-", "2>/dev/full", ">&- 2>&-"])
def test_a_mistake_keeps_its_status_when_it_cannot_be_told(redirect):
    assert tactical("run nowhere", redirect).returncode == 2


def test_a_closed_output_is_no_mistake():
    done = tactical("scenarios", ">&-")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_terminal_without_unicode_gets_ascii():
    done = tactical("solve --help", LC_ALL="C", PYTHONUTF8="0", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    done = tactical("check direct-möve", LC_ALL="C", PYTHONUTF8="0", PYTHONIOENCODING="ascii")
    assert done.returncode == 2
    assert "no experiment" in done.stderr
