import signal
import sys
from pathlib import Path

import pytest

from tactical.emulation.processes import Process
from tactical.host import CommandError

SLEEP = ("sleep", "60")


def script(text: str) -> tuple[str, ...]:
    return (sys.executable, "-c", text)


def test_ready_when_it_says_so(tmp_path: Path) -> None:
    process = Process(
        script("import sys, time; print('READY', file=sys.stderr, flush=True); time.sleep(60)"),
        tmp_path / "log",
    )
    process.wait_for_text("READY", 20.0)
    assert process.status is None
    assert process.stop() == -signal.SIGTERM


def test_failure_before_it_is_ready_shows_command_status_and_words(tmp_path: Path) -> None:
    process = Process(script("import sys; sys.exit('no such radio')"), tmp_path / "log")
    with pytest.raises(CommandError) as caught:
        process.wait_for_text("READY", 20.0)
    assert "no such radio" in str(caught.value)
    assert "status 1" in str(caught.value)
    assert sys.executable in str(caught.value)


def test_not_ready_in_time_is_an_error_too(tmp_path: Path) -> None:
    process = Process(SLEEP, tmp_path / "log")
    with pytest.raises(CommandError, match=r"was not ready after 0\.1 s"):
        process.wait_for_text("READY", 0.1)
    process.stop()


def test_missing_program(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="no-such-program"):
        Process(("no-such-program",), tmp_path / "log")


def test_one_that_ignores_the_polite_signal_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tactical.emulation.processes.STOP_GRACE_S", 0.2)
    ignoring = (
        "import signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        "print('up', file=sys.stderr, flush=True); time.sleep(60)"
    )
    process = Process(script(ignoring), tmp_path / "log")
    process.wait_for_text("up", 20.0)
    assert process.stop() == -signal.SIGKILL


def test_output_and_errors_go_to_their_own_files(tmp_path: Path) -> None:
    both = "import sys; print('result'); print('trouble', file=sys.stderr)"
    process = Process(script(both), tmp_path / "log", tmp_path / "out")
    assert process.wait(20.0) == 0
    assert (tmp_path / "out").read_text() == "result\n"
    assert process.said() == "trouble\n"
