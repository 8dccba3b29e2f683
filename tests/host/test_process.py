"""Commands and supervised children, with real processes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tactical.host.process import Child, CommandError, run


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie that nobody has reaped does not)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def wait_until(condition, limit_s=10.0) -> bool:
    limit = time.monotonic() + limit_s
    while time.monotonic() < limit:
        if condition():
            return True
        time.sleep(0.02)
    return bool(condition())


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def started(argv, log, **options) -> Child:
    child = Child(argv, log, **options)
    assert wait_until(lambda: "ready" in lines_of(log)), lines_of(log)
    return child


def test_run_returns_what_was_printed():
    done = run(["sh", "-c", "cat; echo oops >&2; exit 3"], timeout_s=10, check=False, stdin="hi")
    assert (done.status, done.stdout, done.stderr) == (3, "hi", "oops\n")


@pytest.mark.parametrize(
    ("argv", "status", "message"),
    [
        (["sh", "-c", "echo first; echo why >&2; exit 4"], 4, r"ended with status 4: why$"),
        (["no-such-command-here"], None, r"cannot be started \(No such file or directory\)$"),
        (["sleep", "60"], None, r"`sleep 60` did not end within 0.2 s$"),
    ],
)
def test_a_failed_command_says_what_and_why(argv, status, message):
    with pytest.raises(CommandError, match=message) as caught:
        run(argv, timeout_s=0.2 if argv[0] == "sleep" else 10)
    assert caught.value.argv == tuple(argv)
    assert caught.value.status == status


def test_a_command_out_of_time_takes_its_children_with_it(tmp_path):
    pid_file = tmp_path / "pid"
    with pytest.raises(CommandError):
        run(["sh", "-c", f"sleep 60 & echo $! > {pid_file}; wait"], timeout_s=0.5)
    assert wait_until(lambda: not alive(int(pid_file.read_text())))


def test_a_child_ends_with_its_own_status_and_its_output_is_logged(tmp_path):
    log = tmp_path / "log"
    child = Child(["sh", "-c", "echo out; echo err >&2; exit 7"], log)
    assert child.wait(10) == 7
    assert lines_of(log) == ["out", "err"]
    assert child.last_lines(1) == ["err"]
    assert child.stop() == 7


def test_stop_lets_a_child_clean_up(tmp_path):
    log = tmp_path / "log"
    script = "trap 'echo cleaned; exit 5' TERM; echo ready; while :; do sleep 0.05; done"
    child = started(["sh", "-c", script], log)
    assert child.poll() is None
    assert child.stop(grace_s=10) == 5
    assert lines_of(log) == ["ready", "cleaned"]


def test_a_child_that_does_not_listen_is_killed_with_its_group(tmp_path):
    log = tmp_path / "log"
    script = "trap '' TERM; sleep 60 & echo $!; echo ready; while :; do sleep 0.05; done"
    child = started(["sh", "-c", script], log)
    assert child.stop(grace_s=0.3) == -signal.SIGKILL
    assert wait_until(lambda: not alive(int(lines_of(log)[0])))


def test_what_a_child_leaves_in_its_group_ends_with_it(tmp_path):
    log = tmp_path / "log"
    child = Child(["sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!"], log)
    assert child.wait(10) == 0
    assert wait_until(lambda: not alive(int(lines_of(log)[0])))


def test_a_deadline_kills_and_keeps_the_reason(tmp_path):
    child = Child(["sleep", "60"], tmp_path / "log")
    child.kill_unless(lambda: False, 0.1, "did not come up")
    assert child.wait(10) == -signal.SIGKILL
    assert child.failure == "did not come up"


def test_a_deadline_that_is_met_does_not_kill(tmp_path):
    child = Child(["sleep", "0.5"], tmp_path / "log")
    child.kill_unless(lambda: True, 0.0, "did not come up")
    assert child.wait(10) == 0
    assert child.failure is None


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=lambda n: n.name)
@pytest.mark.parametrize("death_signal", [signal.SIGKILL, signal.SIGTERM], ids=lambda n: n.name)
def test_a_child_does_not_outlive_this_process(tmp_path, number, death_signal):
    log = tmp_path / "log"
    code = (
        "import pathlib, signal, sys, time\n"
        "from tactical.host.process import Child\n"
        f"child = Child(['sh', '-c', 'echo ready; exec sleep 60'], pathlib.Path({str(log)!r}),"
        f" death_signal=signal.{death_signal.name})\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    try:
        assert wait_until(lambda: "ready" in lines_of(log))
        assert alive(pid)
        os.killpg(parent.pid, number)
        parent.wait(10)
        assert wait_until(lambda: not alive(pid))
    finally:
        parent.kill()
        parent.stdout.close()
        if alive(pid):
            os.kill(pid, signal.SIGKILL)


def test_the_first_lines_of_much_output_are_in_the_message_and_all_in_the_error():
    with pytest.raises(CommandError) as caught:
        run(["sh", "-c", "echo fault >&2; seq 500 >&2; exit 1"], timeout_s=10)
    assert ": fault / 1 / 2 / 3 / 4 / … / 496 / 497 / 498 / 499 / 500" in str(caught.value)
    assert len(caught.value.stderr.splitlines()) == 501


def test_the_end_of_a_child_is_told_with_the_name_of_the_signal_and_little_of_its_log(tmp_path):
    script = "printf 'x%.0s' $(seq 5000); echo; echo the last; kill -9 $$"
    child = Child(["sh", "-c", script], tmp_path / "log")
    child.wait(10)
    told = child.ending("the worker")
    assert told.startswith("the worker ended by SIGKILL: …xxx")
    assert told.endswith("/ the last")
    assert len(told) < 400


def test_a_traceback_ends_a_child_without_its_underlining(tmp_path):
    script = "printf '    poll(limit)\\n    ^^^~~~^^^\\nOverflowError: too large\\n'; exit 1"
    child = Child(["sh", "-c", script], tmp_path / "log")
    child.wait(10)
    told = child.ending("the worker")
    assert told == "the worker ended with status 1: poll(limit) / OverflowError: too large"


def test_a_status_that_is_not_of_the_command_has_its_own_meaning(tmp_path):
    meaning = {255: "the machine failed"}.get
    child = Child(["sh", "-c", "exit 255"], tmp_path / "log", meaning=meaning)
    child.wait(10)
    assert child.ending("the worker") == "the machine failed"
