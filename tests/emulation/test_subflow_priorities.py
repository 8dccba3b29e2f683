"""Endpoints follow what the controller says of their paths, whichever comes first."""

from pathlib import Path

import scenarios
from tactical.emulation.commands import Command
from tactical.emulation.events import EventLog
from tactical.emulation.plan import make_plan
from tactical.emulation.subflow_priorities import SubflowPriorities


def test_endpoints_are_changed_when_they_are_there_and_only_then(tmp_path: Path) -> None:
    plan = make_plan(scenarios.load("direct-move").build(0), "fdm")
    ran: list[str] = []

    def run(command: Command) -> None:
        ran.append(str(command))

    with EventLog(tmp_path) as events:

        def say(user: str, via: str, backup: bool) -> None:
            events.write("subflow_priority", "controller", user=user, via=via, backup=backup)

        priorities = SubflowPriorities(plan, events)
        priorities.added("ship1", "satcom")
        say("ship1", "satcom", True)  # nothing can be run yet
        say("ship2", "uav", True)  # its radio has not joined yet
        priorities.begin(run)
        say("ship1", "satcom", True)
        priorities.end()
        assert ran == ["[ship1] ip mptcp endpoint change id 1 backup"]
        priorities.added("ship2", "uav")
        assert ran[1:] == ["[ship2] ip mptcp endpoint change id 2 backup"]
        priorities.removed("ship2", "uav")
        priorities.added("ship2", "uav")
        assert len(ran) == 2, "the next endpoint begins as no backup"
