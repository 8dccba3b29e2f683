"""Faults on purpose, on real processes."""

import json
import signal
import subprocess
import sys

import pytest

from tactical.emulation.events import EventLog
from tactical.emulation.injection import Injection, Kill


@pytest.mark.parametrize("text", ["hostapd@10", "tactical.controller@0.5", "a@b@3"])
def test_a_kill_is_written_as_it_is_read(text):
    assert str(Kill.parse(text)) == text


@pytest.mark.parametrize("text", ["", "hostapd", "hostapd@", "@3", "hostapd@-1", "x@nan", "x@inf"])
def test_what_is_no_kill_is_refused(text):
    with pytest.raises(ValueError, match="is not NAME@SECONDS"):
        Kill.parse(text)


def test_the_named_process_is_killed_when_it_is_time_and_no_other(tmp_path):
    victim, other = (
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", word])
        for word in ("victim", "other")
    )
    try:
        with EventLog(tmp_path) as events:
            injection = Injection(Kill("victim", 5.0), events)
            injection.follow(4.9)
            assert victim.poll() is None
            injection.follow(5.1)
            assert victim.wait(10) == -signal.SIGKILL
            injection.follow(6.0)
            Injection(Kill("nobody", 0.0), events).follow(1.0)
        assert other.poll() is None
    finally:
        for process in (victim, other):
            process.kill()
            process.wait()
    written = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert [event["kind"] for event in written] == ["killed", "error"]
    assert written[0]["data"] == {"process": "victim", "pid": victim.pid}
