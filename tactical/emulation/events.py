"""The event log of a run: one JSON object a line, numbered, in run time."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

Event = dict[str, Any]


class EventLog:
    """Writes ``events.jsonl`` (and ``samples.jsonl``, ``solves.jsonl``) from any thread.

    Run time is 0 when traffic starts.  Events of the set-up are written before that moment is
    known, with `t_s` null; the collection of the run fills them in (negative) from `t_mono_s`.
    """

    def __init__(self, run_dir: Path) -> None:
        self._zero_s: float | None = None
        self._lock = threading.Condition()
        self._sequence = 0
        self._events = (run_dir / "events.jsonl").open("a")
        self._samples = (run_dir / "samples.jsonl").open("a")
        self._solves = (run_dir / "solves.jsonl").open("a")
        self._seen: list[Event] = []

    def __enter__(self) -> EventLog:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._lock:
            for stream in (self._events, self._samples, self._solves):
                stream.close()

    @property
    def now_s(self) -> float:
        """Run time; only after :meth:`start`."""
        assert self._zero_s is not None
        return time.monotonic() - self._zero_s

    def start(self) -> None:
        """Run time is 0 now."""
        self._zero_s = time.monotonic()

    def write(self, kind: str, node: str, t_mono_s: float | None = None, /, **data: Any) -> None:
        """Append an event; `t_mono_s` is when it happened, if that was not just now."""
        moment = time.monotonic() if t_mono_s is None else t_mono_s
        with self._lock:
            run_time = None if self._zero_s is None else round(moment - self._zero_s, 6)
            stamp = {"t_s": run_time, "t_mono_s": round(moment, 6)}
            if self._events.closed:
                return
            if kind == "sample":
                self._samples.write(json.dumps({**stamp, "datapath": node, **data}) + "\n")
                self._samples.flush()
                return
            event = {"seq": self._sequence, **stamp, "kind": kind, "node": node, "data": data}
            self._sequence += 1
            line = json.dumps(event) + "\n"
            self._events.write(line)
            self._events.flush()
            if kind == "solve":
                self._solves.write(line)
                self._solves.flush()
            self._seen.append(event)
            self._lock.notify_all()

    def wait_for(self, matches: Callable[[Event], bool], timeout_s: float) -> Event | None:
        """The first event that `matches`, past or future; None after `timeout_s`."""
        deadline = time.monotonic() + timeout_s
        checked = 0
        with self._lock:
            while True:
                for event in self._seen[checked:]:
                    if matches(event):
                        return event
                checked = len(self._seen)
                left = deadline - time.monotonic()
                if left <= 0:
                    return None
                self._lock.wait(left)
