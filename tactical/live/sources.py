"""Where the state of the page comes from: a recording that is played, or a run that goes on.

A run that goes on is followed only, or steered by whoever started it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from analysis.run.directory import RunDirectoryError, read_run

from .. import steering
from ..host.hermetic import IMAGE_NAME
from ..playback import Playback
from ..tail import Tail
from .pace import Pace
from .records import Record, of_event, of_run, of_sample
from .setup import SetupError, read_setup
from .state import State

_OVER = ("done", "failed")
_TOLD_AFTER_TRAFFIC = ("state", "error")
_PLACED_WITHIN_S = 1.0  # the distance of two positions of a node


class CommandRefused(Exception):
    """A command of a viewer that makes no sense here; the text is one sentence."""


class Source(Protocol):
    """What the server shows."""

    mode: str
    """"replay", "live" or "steered"."""
    epoch: int
    """Counts up when the state begins anew, and what viewers have seen is worth nothing."""
    state: State

    def advance(self, now_s: float) -> None:
        """Take in what has happened until `now_s` of a monotonic clock."""
        ...

    def command(self, command: Mapping[str, Any], now_s: float) -> None:
        """Carry out what the steering viewer wants.

        Raises
        ------
        CommandRefused
            If it cannot be done; nothing has changed.
        """
        ...


class Replay:
    """A run that has ended, as a recording with a position.

    It is over when the data have arrived. How the network is taken down afterwards is no part of
    it, but how the run ended is told there.

    Parameters
    ----------
    run_dir : Path
        Its directory.
    epoch : int
        Where to count from.
    at_end : bool
        It is at its end at first, not at its start.

    Raises
    ------
    SetupError
        If the directory does not hold a run.
    """

    mode = "replay"

    def __init__(self, run_dir: Path, *, epoch: int = 1, at_end: bool = False) -> None:
        self.setup = read_setup(run_dir)
        try:
            records = of_run(read_run(run_dir))
        except RunDirectoryError as error:
            raise SetupError(str(error)) from error
        self._from_captures = any(record.kind == "arrival" for record in records)
        start_s = _all_placed_s(records)
        end_s = max(start_s, _arrived_s(records))
        self._records = [r for r in records if r.order <= end_s or r.kind in _TOLD_AFTER_TRAFFIC]
        self.playback = Playback(end_s, start_s, position_s=end_s if at_end else start_s)
        self.epoch = epoch
        self._begin()

    def _begin(self) -> None:
        self.state = State(self.setup, from_captures=self._from_captures)
        self._next = 0

    def advance(self, now_s: float) -> None:
        position_s = self.playback.position(now_s)
        if self._next and self._due_s(self._next - 1) > position_s:
            self.epoch += 1
            self._begin()
        while self._next < len(self._records) and self._due_s(self._next) <= position_s:
            self.state.apply(self._records[self._next])
            self._next += 1
        self.state.at(position_s)
        playback = self.playback
        at_end = position_s >= playback.end_s
        self.state.store.put("playback", "playing", playback.playing and not at_end)
        self.state.store.put("playback", "speed", playback.speed)
        self.state.store.put("playback", "end_s", playback.end_s)

    def _due_s(self, number: int) -> float:
        return min(self._records[number].order, self.playback.end_s)

    def command(self, command: Mapping[str, Any], now_s: float) -> None:
        try:
            match command:
                case {"do": "play", "playing": bool(playing)}:
                    self.playback = self.playback.play(playing, now_s)
                case {"do": "speed", "speed": float() | int() as speed}:
                    self.playback = self.playback.at_speed(float(speed), now_s)
                case {"do": "seek", "t_s": float() | int() as t_s}:
                    self.playback = self.playback.seek(float(t_s), now_s)
                case _:
                    raise CommandRefused("a recording can be played, paused and searched only")
        except ValueError as error:
            raise CommandRefused(str(error)) from error


def _all_placed_s(records: Sequence[Record]) -> float:
    """When it has been told of every node where it begins: a little later than 0.

    A recording that begins at 0 would open with an empty map.
    """
    first_s: dict[str, float] = {}
    for record in records:
        if record.kind == "position" and record.t_s is not None:
            first_s.setdefault(record.node, record.t_s)
    return max((at_s for at_s in first_s.values() if 0.0 <= at_s < _PLACED_WITHIN_S), default=0.0)


def _arrived_s(records: Sequence[Record]) -> float:
    """When all data had arrived; of a run that did not come so far, its last record."""
    for record in records:
        collecting = record.kind == "state" and record.data.get("state") == "collecting"
        if collecting and record.t_s is not None:
            return record.t_s
    return max((record.t_s for record in records if record.t_s is not None), default=0.0)


class Following:
    """A run that goes on, read from its directory while it is written.

    In virtual time only its events are there before its end.

    Parameters
    ----------
    run_dir : Path
        Its directory.
    """

    mode = "live"

    def __init__(self, run_dir: Path) -> None:
        setup = read_setup(run_dir)
        self.epoch = 1
        self._run_dir = run_dir
        self._events = Tail(run_dir / "events.jsonl")
        self._samples = Tail(run_dir / "samples.jsonl")
        self._described = bool(setup.ports)
        self.state = State(setup)

    def advance(self, now_s: float) -> None:
        if not self._described and (self._run_dir / "network.json").exists():
            self._described = True
            with suppress(SetupError):  # half written; only rates of wired ports need it
                self.state.setup = read_setup(self._run_dir)
        found: list[Record] = [r for line in self._events.read() if (r := of_event(line))]
        found += [of_sample(line) for line in self._samples.read()]
        for record in sorted(found, key=lambda record: record.order):
            self.state.apply(record)

    def recording(self) -> Replay | None:
        """The run as a recording, at its end; None while it goes on.

        One in virtual time is not over before its files are back from the guest's memory.
        """
        told_over = self.state.store.get("run", "phase") in _OVER
        if not told_over or (self._run_dir / IMAGE_NAME).exists():
            return None
        try:
            return Replay(self._run_dir, epoch=self.epoch + 1, at_end=True)
        except SetupError:
            return None  # its files are being rewritten just now

    def command(self, command: Mapping[str, Any], now_s: float) -> None:
        raise CommandRefused("this run is watched only, until it is over")


class Worker(Protocol):
    """The worker of a run; see `tactical.host.process.Child`."""

    def say(self, text: bytes) -> None: ...

    def halt(self) -> None: ...

    def go_on(self) -> None: ...


class Steered(Following):
    """A run that goes on and does what the steering viewer wants.

    Parameters
    ----------
    run_dir : Path
        Its directory.
    worker : Worker
        Who makes the run, and is told commands. In virtual time it is kept from being faster than
        people's time.
    """

    mode = "steered"

    def __init__(self, run_dir: Path, worker: Worker) -> None:
        super().__init__(run_dir)
        self._worker = worker
        self._pace = Pace()
        self._halted = False
        setup = self.state.setup
        self._names = steering.Names(
            nodes=(*setup.stations, *setup.access_points),
            relays=[link.relay for link in setup.links],
            users=[user.name for user in setup.users],
        )

    def advance(self, now_s: float) -> None:
        super().advance(now_s)
        if self.state.setup.time == "virtual":
            self._keep_pace(now_s)

    def _keep_pace(self, now_s: float) -> None:
        run = self.state.store.section("run")
        traffic_flows = run.get("phase") == "running" and "t_s" in run
        ahead = traffic_flows and self._pace.ahead_s(run["t_s"], now_s) > 0.0
        if ahead != self._halted:
            self._halted = ahead
            if ahead:
                self._worker.halt()
            else:
                self._worker.go_on()

    def command(self, command: Mapping[str, Any], now_s: float) -> None:
        phase = self.state.store.get("run", "phase")
        if phase != "running":
            raise CommandRefused(f"only a run whose traffic flows is steered; this one is {phase}")
        try:
            said = steering.read(command, self._names)
        except steering.CommandError as error:
            raise CommandRefused(str(error)) from error
        self._worker.say(json.dumps(steering.document(said)).encode() + b"\n")


def open_run(run_dir: Path) -> Replay | Following:
    """The source for a run directory: a recording, or a run that goes on.

    Raises
    ------
    SetupError
        If the directory does not hold a run.
    """
    states = [
        e.get("data") for e in Tail(run_dir / "events.jsonl").read() if e.get("kind") == "state"
    ]
    over = any(isinstance(each, dict) and each.get("state") in _OVER for each in states)
    return Replay(run_dir) if over else Following(run_dir)
