"""Records on their way out: JSON lines, and whoever listens."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any

from .logic import Record

Line = dict[str, Any]

LINES_WAITING = 10_000
"""Lines that wait for a slow reader; what comes when there are so many is lost, and counted."""
_END_S = 2.0


class RecordWriter:
    """Writes records as JSON lines, stamped with the monotonic clock; safe from any thread.

    The stream has a thread of its own: a network must not wait for whoever reads about it.
    """

    def __init__(self, stream: IO[str] | None) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._listeners: list[Callable[[Line], None]] = []
        self._lost = 0
        self._waiting: queue.SimpleQueue[Line | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write, daemon=True, name="records")
        if stream is not None:
            self._thread.start()

    def listen(self, listener: Callable[[Line], None]) -> Callable[[], None]:
        """Let `listener` have every line too, until the function returned is called."""
        with self._lock:
            self._listeners.append(listener)

        def end() -> None:
            with self._lock, suppress(ValueError):
                self._listeners.remove(listener)

        return end

    def __call__(self, record: Record) -> None:
        with self._lock:
            line = _line(record)
            for listener in self._listeners:
                listener(line)
            if self._stream is None:
                return
            if self._waiting.qsize() >= LINES_WAITING:
                self._lost += 1
                return
            if self._lost:
                message = f"{self._lost} records were lost, which nobody read in time"
                self._waiting.put(_line(Record("error", "controller", {"message": message})))
                self._lost = 0
            self._waiting.put(line)

    def close(self) -> None:
        """Let what waits be written, as far as it is read within two seconds."""
        self._waiting.put(None)
        if self._thread.ident is not None:
            self._thread.join(_END_S)

    def _write(self) -> None:
        stream = self._stream
        assert stream is not None
        while (line := self._waiting.get()) is not None:
            try:
                stream.write(json.dumps(line) + "\n")
                if self._waiting.empty():
                    stream.flush()
            except (OSError, ValueError):
                self._stream = None  # whoever read it has gone; the network is served all the same
                return
        with suppress(OSError, ValueError):
            stream.flush()


def _line(record: Record) -> Line:
    return {
        "t_mono_s": time.monotonic(),
        "kind": record.kind,
        "node": record.node,
        "data": record.data,
    }
