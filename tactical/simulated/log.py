"""The event log of a simulated run: as that of an emulated one, in simulated time."""

from __future__ import annotations

import json
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from simulation.transfers import Loop

SET_UP_S = 100.0
"""The monotonic clock of a simulated machine at run time 0."""

EPOCH_S = 946_684_800.0 + SET_UP_S
"""The wall clock at run time 0: it begins on 1 January 2000, as in virtual time."""


class SimulatedLog:
    """Writes ``events.jsonl``, ``samples.jsonl`` and ``solves.jsonl``; a context manager.

    Parameters
    ----------
    run_dir : Path
        Where the files are.
    loop : Loop
        Whose time is run time.
    """

    def __init__(self, run_dir: Path, loop: Loop) -> None:
        self._loop = loop
        self._number = 0
        self._events = (run_dir / "events.jsonl").open("a")
        self._samples = (run_dir / "samples.jsonl").open("a")
        self._solves = (run_dir / "solves.jsonl").open("a")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for stream in (self._events, self._samples, self._solves):
            stream.close()

    def write(self, kind: str, node: str, /, **data: Any) -> dict[str, Any]:
        """Append an event that happens now; returns it."""
        now_s = self._loop.now_s
        stamp = {"t_s": round(now_s, 6), "t_mono_s": round(SET_UP_S + now_s, 6)}
        event = {"seq": self._number, **stamp, "kind": kind, "node": node, "data": data}
        self._number += 1
        line = json.dumps(event) + "\n"
        self._events.write(line)
        if kind in ("state", "position"):
            self._events.flush()
        if kind == "solve":
            self._solves.write(line)
        return event

    def sample(self, datapath: str, **data: Any) -> None:
        """Append a sample of counters."""
        now_s = self._loop.now_s
        stamp = {"t_s": round(now_s, 6), "t_mono_s": round(SET_UP_S + now_s, 6)}
        self._samples.write(json.dumps({**stamp, "datapath": datapath, **data}) + "\n")
