"""Records on their way out: JSON lines, and whoever listens."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any

from .logic import Record

Line = dict[str, Any]


class RecordWriter:
    """Writes records as JSON lines, stamped with the monotonic clock; safe from any thread."""

    def __init__(self, stream: IO[str] | None) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._listeners: list[Callable[[Line], None]] = []

    def listen(self, listener: Callable[[Line], None]) -> Callable[[], None]:
        """Let `listener` have every line too, until the function returned is called."""
        with self._lock:
            self._listeners.append(listener)

        def end() -> None:
            with self._lock, suppress(ValueError):
                self._listeners.remove(listener)

        return end

    def __call__(self, record: Record) -> None:
        line = {
            "t_mono_s": time.monotonic(),
            "kind": record.kind,
            "node": record.node,
            "data": record.data,
        }
        with self._lock:
            for listener in self._listeners:
                listener(line)
            if self._stream is None:
                return
            try:
                self._stream.write(json.dumps(line) + "\n")
                self._stream.flush()
            except (OSError, ValueError):
                self._stream = None  # whoever read it has gone; the network is served all the same
