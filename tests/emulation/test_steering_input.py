import io
import json
import queue
from pathlib import Path

import pytest

import scenarios
from tactical.emulation.events import EventLog
from tactical.emulation.steering_input import heard_commands
from tactical.steering import Link, Play


def test_lines_are_commands_in_their_order_and_others_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [
        '{"do": "link", "relay": "satcom", "up": false}',
        "no JSON",
        '{"do": "link", "relay": "ship1", "up": false}',
        '{"do": "play", "playing": false}',
    ]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines)))
    with EventLog(tmp_path) as events:
        heard = heard_commands(scenarios.load("direct-move").build(seed=0), events)
        assert heard.get(timeout=10) == Link("satcom", up=False)
        assert heard.get(timeout=10) == Play(playing=False)
        with pytest.raises(queue.Empty):
            heard.get_nowait()
    told = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert [(each["kind"], each["node"]) for each in told] == [("error", "run")] * 2
    assert "no JSON" in told[0]["data"]["message"]
    assert "expected one of satcom, uav" in told[1]["data"]["message"]
