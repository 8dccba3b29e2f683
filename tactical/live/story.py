"""Tells a run as a list of short stories: each handover from its cause to its effect. Pure.

A story is begun by what happened (a ship comes into range, a link is cut) and gets a part for each
thing that follows: associated, solved, deployed, first goodput. Parts are found by the trigger that
the controller gives: it names who and where.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from .records import Record

STORIES_KEPT = 200
ARRIVING_BPS = 20e3
"""More than handshakes and keepalives make: a path that carries so much carries data."""
_WAITED_FOR_S = 15.0
"""An effect that has not come by then is not waited for."""
_HEARD = re.compile(r"(\S+) (?:heard at|associated with|dissociated from) (\S+)")

Story = dict[str, Any]


class Teller:
    """Makes stories of records.

    Parameters
    ----------
    put
        Called with the number and content of every story that is new or has gone on; with None for
        one that is not kept any longer.
    relay_of_port : mapping
        Name of a switch port to the relay whose link ends there.
    """

    def __init__(
        self, put: Callable[[str, Story | None], None], relay_of_port: Mapping[str, str]
    ) -> None:
        self._put = put
        self._relay_of_port = relay_of_port
        self._stories: dict[str, Story] = {}
        self._told = 0
        self._open: dict[tuple[str, str], str] = {}
        """Handovers by user and relay."""
        self._by_trigger: dict[str, str] = {}
        self._links: dict[str, tuple[bool, str]] = {}
        """Whether a relay's link is up, and the story that says so."""
        self._carried: dict[str, tuple[float, str]] = {}
        """What a relay's link carries, in bit/s, and why."""
        self._awaited: dict[tuple[str, str], tuple[str, float]] = {}
        """Stories that wait for data of a user over a relay, and since when."""

    def hear(self, record: Record) -> None:
        """Go on telling with one more record."""
        match record.kind:
            case "association":
                self._association(record)
            case "solve":
                self._solve(record)
            case "assignment":
                self._assignment(record)
            case "link_up" | "link_down":
                self._link(record, up=record.kind == "link_up")
            case "link_change":
                self._link_changed(record)
            case "subflow_priority" if "expected_in_s" in record.data:
                left, via = duration(record.data["expected_in_s"]), record.data.get("via")
                text = f"{record.data.get('user')} will leave {via} in {left}: a backup now"
                self._begin(record, "controller", text)
            case "killed":
                text = f"{record.data.get('process')} is killed on purpose"
                self._begin(record, "error", text, good=False)
            case "command":
                self._begin(record, "command", _commanded(record.data))
            case "state":
                state, reason = record.data.get("state"), record.data.get("reason")
                text = f"{state}: {reason}" if reason else str(state)
                self._begin(record, "state", text, good=None if state != "failed" else False)
            case "controller":
                self._begin(record, "controller", f"controller {record.data.get('state')}")
            case "error":
                text = f"{record.node}: {record.data.get('message', '')}"
                self._begin(record, "error", text, good=False)

    def carries(self, user: str, via: str, rate_bps: float, t_s: float | None) -> None:
        """Data of a user are measured on a path."""
        if (user, via) not in self._awaited or t_s is None:
            return
        number, since_s = self._awaited[user, via]
        waited_s = t_s - since_s
        if waited_s < 0:
            return
        if waited_s > _WAITED_FOR_S:
            del self._awaited[user, via]
        elif rate_bps >= ARRIVING_BPS:
            del self._awaited[user, via]
            text = f"{rate(rate_bps)} over {via}, seen {duration(waited_s)} after"
            self._part(number, "goodput", text)

    # -- what begins and continues stories -----------------------------------------------

    def _association(self, record: Record) -> None:
        user, relay = record.node, str(record.data.get("access_point", ""))
        state = str(record.data.get("state", ""))
        if state in ("associating", "dissociating"):
            joins = state == "associating"
            what = f"{user} {'comes into range of' if joins else 'leaves'} {relay}"
            self._begin(record, "handover", what)
            self._open[user, relay] = self._last
        elif state in ("associated", "dissociated"):
            number = self._open.get((user, relay))
            if number is None:
                self._begin(record, "handover", f"{user} {state} {relay}")
                self._open[user, relay] = number = self._last
            took_s = _between(self._stories.get(number, {}).get("t_s"), record.t_s)
            known = "" if took_s is None else f" in {duration(took_s)}"
            self._part(number, state, f"{state}{known}")
            if state == "associated" and record.t_s is not None:
                self._awaited[user, relay] = (number, record.t_s)

    def _link(self, record: Record, up: bool) -> None:
        port = str(record.data.get("port", ""))
        relay = self._relay_of_port.get(port)
        name = f"{record.node} {port}" if relay is None else relay
        known = self._links.get(name)
        if known is None or known[0] is not up:
            self._begin(record, "link", f"{name} is {'up again' if up else 'down'}", good=up)
            self._links[name] = (up, self._last)
        number = self._links[name][1]
        self._by_trigger[f"port {port} {'up' if up else 'down'}"] = number

    def _link_changed(self, record: Record) -> None:
        cause, down = str(record.data.get("cause") or ""), record.data.get("loss") == 1.0
        carried_bps = 0.0 if down else float(record.data["rate_bps"])
        if self._carried.get(record.node) == (carried_bps, cause):
            return  # its delay only, which moves all the time where satellites do
        self._carried[record.node] = (carried_bps, cause)
        what = "is down" if down else f"carries {rate(carried_bps)}"
        because = f": {cause}" if cause else ""
        self._begin(record, "link", f"{record.node} {what}{because}", good=False if down else None)
        for port, relay in self._relay_of_port.items():
            if relay == record.node:
                self._by_trigger[f"capacity of {relay}:{port}"] = self._last

    def _story_of(self, trigger: str) -> str | None:
        found = _HEARD.fullmatch(trigger)
        if found is not None:
            return self._open.get((found[1], found[2]))
        return self._by_trigger.get(trigger)

    def _solve(self, record: Record) -> None:
        data, trigger = record.data, str(record.data.get("trigger", ""))
        number = self._story_of(trigger)
        if number is None:
            self._begin(record, "controller", trigger)
            self._by_trigger[trigger] = number = self._last
        took, gap = data.get("solve_time_s"), data.get("relative_gap")
        text = "solved" + (f" in {duration(took)}" if isinstance(took, int | float) else "")
        if isinstance(gap, int | float):
            text += f", gap {gap:.0e}" if gap else ", gap 0"
        if data.get("feasible") is False:
            text += ", demand does not fit"
        self._part(number, "solved", text)

    def _assignment(self, record: Record) -> None:
        data, trigger = record.data, str(record.data.get("trigger", ""))
        number = self._story_of(trigger)
        if number is None:
            self._begin(record, "controller", trigger)
            number = self._last
        took = data.get("deploy_time_s")
        since_s = _between(self._stories.get(number, {}).get("t_s"), record.t_s)
        text = "deployed" + (f" in {duration(took)}" if isinstance(took, int | float) else "")
        if since_s is not None and since_s > 0:
            text += f", {duration(since_s)} after the cause"
        self._part(number, "deployed", text)
        # The next change with the same trigger is another story.
        self._by_trigger.pop(trigger, None)

    # -- telling -------------------------------------------------------------------------

    @property
    def _last(self) -> str:
        return str(self._told)

    def _begin(self, record: Record, kind: str, text: str, good: bool | None = None) -> None:
        self._told += 1
        story: Story = {"t_s": record.t_s, "kind": kind, "text": text, "parts": []}
        if good is not None:
            story["good"] = good
        self._stories[self._last] = story
        self._put(self._last, dict(story))
        oldest = str(self._told - STORIES_KEPT)
        if self._stories.pop(oldest, None) is not None:
            self._put(oldest, None)

    def _part(self, number: str, kind: str, text: str) -> None:
        story = self._stories.get(number)
        if story is not None:
            story["parts"] = [*story["parts"], {"kind": kind, "text": text}]
            self._put(number, dict(story))


def duration(seconds: float) -> str:
    """A short time for people: ``350 µs``, ``12 ms``, ``1.24 s``."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1e3:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"


def rate(rate_bps: float) -> str:
    """A rate for people: ``388 kbit/s``, ``2.14 Mbit/s``."""
    return f"{rate_bps / 1e3:.0f} kbit/s" if rate_bps < 1e6 else f"{rate_bps / 1e6:.2f} Mbit/s"


def _commanded(command: Mapping[str, Any]) -> str:
    match command:
        case {"do": "place", "node": node}:
            return f"{node} is moved by hand"
        case {"do": "link", "relay": relay, "up": up}:
            return f"the link of {relay} is {'healed' if up else 'cut'} by hand"
        case {"do": "demand", "user": user, "rate_bps": rate_bps}:
            return f"{rate(float(rate_bps))} are planned for {user}"
        case {"do": "policy", "policy": policy}:
            return "flow deviation allocates" if policy == "fdm" else "nobody allocates any more"
        case {"do": "play", "playing": playing}:
            return "nodes go on" if playing else "nodes stop"
        case {"do": "speed", "speed": speed}:
            return f"nodes move {float(speed):g} times as fast"
    return str(command.get("do"))


def _between(start_s: object, end_s: float | None) -> float | None:
    if not isinstance(start_s, int | float) or end_s is None:
        return None
    return max(0.0, end_s - start_s)
