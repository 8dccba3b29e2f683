"""The event log of a run: one JSON object a line, numbered, in run time."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import IO, Any

Event = dict[str, Any]


class EventLog:
    """Writes ``events.jsonl`` (and ``samples.jsonl``, ``solves.jsonl``) from any thread.

    Run time is 0 when traffic starts.  Events of the set-up are written before that moment is
    known, with `t_s` null; the collection of the run fills them in (negative) from `t_mono_s`.

    Parameters
    ----------
    run_dir
        Where the files are.
    tell
        Also gets every line of ``events.jsonl``.
    tell_sample
        Also gets every line of ``samples.jsonl``.
    """

    def __init__(
        self,
        run_dir: Path,
        tell: Callable[[str], None] | None = None,
        tell_sample: Callable[[str], None] | None = None,
    ) -> None:
        self._tell = tell
        self._tell_sample = tell_sample
        self._zero_s: float | None = None
        self._lock = threading.Condition()
        self._sequence = 0
        self._events = (run_dir / "events.jsonl").open("a")
        self._samples = (run_dir / "samples.jsonl").open("a")
        self._solves = (run_dir / "solves.jsonl").open("a")
        self._seen: list[Event] = []
        self._subscribers: list[tuple[str, SimpleQueue[Event | None]]] = []
        self.fault: str | None = None
        """Why something could not be written, once that has happened."""

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
                with suppress(OSError):  # what a full disk did not take has been told
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
                line = json.dumps({**stamp, "datapath": node, **data})
                self._append(self._samples, line)
                if self._tell_sample is not None:
                    self._tell_sample(line)
                return
            event = {"seq": self._sequence, **stamp, "kind": kind, "node": node, "data": data}
            self._sequence += 1
            line = json.dumps(event)
            self._append(self._events, line)
            if self._tell is not None:
                self._tell(line)
            if kind == "solve":
                self._append(self._solves, line)
            self._seen.append(event)
            for wanted, queue in self._subscribers:
                if wanted == kind:
                    queue.put(event)
            self._lock.notify_all()

    def _append(self, stream: IO[str], line: str) -> None:
        """Append a line; what cannot be written goes to standard error, once with the reason."""
        try:
            stream.write(line + "\n")
            stream.flush()
        except OSError as error:
            if self.fault is None:
                self.fault = f"{stream.name}: {error.strerror}"
                print(self.fault, file=sys.stderr, flush=True)
            print(line, file=sys.stderr, flush=True)

    def subscribe(self, *kinds: str) -> SimpleQueue[Event | None]:
        """A queue that gets every later event of these kinds; None is for the reader's own use."""
        queue: SimpleQueue[Event | None] = SimpleQueue()
        with self._lock:
            self._subscribers += [(kind, queue) for kind in kinds]
        return queue

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
