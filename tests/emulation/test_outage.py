"""A controller that is killed and comes back, with a real process."""

import json
import sys
from pathlib import Path

from tactical.emulation.control import ControllerProcess
from tactical.emulation.events import EventLog
from tactical.emulation.outage import ControllerOutage
from tactical.emulation.processes import Process


def test_the_controller_is_killed_once_and_started_once(tmp_path: Path) -> None:
    said = 'import sys; print(sys.stdin.readline(), file=open(sys.argv[1], "a"), flush=True)'
    argv = [sys.executable, "-c", f"{said}; sys.stdin.read()", str(tmp_path / "told")]

    def start() -> Process:
        return Process(argv, tmp_path / "controller.log", piped=True)

    with EventLog(tmp_path) as events:
        control = ControllerProcess(start, events)
        outage = ControllerOutage((4.0, 6.0), control, events)
        first = control.process
        outage.follow(3.9)
        assert first.status is None and not outage.away
        outage.follow(4.0)
        outage.follow(5.0)
        assert first.status is not None and outage.away
        control.report("ship1", "uav", True)
        outage.follow(6.0)
        outage.follow(7.0)
        assert control.process is not first and not outage.away
        assert control.process.status is None
        control.close()
    told = [json.loads(line) for line in (tmp_path / "told").read_text().split("\n") if line]
    joined = {"user": "ship1", "access_point": "uav", "associated": True}
    assert told == [joined]
    lines = (tmp_path / "events.jsonl").read_text().splitlines()
    states = [e["data"]["state"] for e in map(json.loads, lines) if e["kind"] == "controller"]
    assert states == ["killed", "started"]
