"""Whether the machine that ran the network kept up with it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

from analysis.run.directory import number

BUSY = 0.95
"""Share of CPU time in use from which a second counts as busy throughout."""
LONGEST_BUSY_SHARE = 0.25
STALL_S = 0.1
"""Lateness of a timer, or of a sample, from which the machine counts as stalled.

In real time on an emulated processor: ten runs on an idle machine had timers up to 3 to 23 ms late,
one whose processors eight others shared 1.9 s (docs/fidelity.md).
"""


@dataclass(frozen=True)
class MachineLoad:
    """What ``host.jsonl`` says about the run.

    Attributes
    ----------
    seconds : int
        Samples, one a second.
    busy_seconds : int
        Those in which the processor had next to nothing to spare.
    latest_timer_s : float
        The worst lateness of a timer. Delays are at least this uncertain.
    dropped_packets : int
        Those that the kernel received and had no room for (its backlog).
    """

    seconds: int
    busy_seconds: int
    latest_timer_s: float
    dropped_packets: int = 0

    @property
    def overloaded(self) -> bool:
        """Whether the figures of the run show the machine rather than the network.

        True if a timer was late by more than `STALL_S`, or received packets were dropped for want
        of time. A busy processor alone is no sign of it: timers and packets go before programs,
        which only makes these slow (`slow_control`).
        """
        return self.latest_timer_s > STALL_S or self.dropped_packets > 0

    @property
    def slow_control(self) -> bool:
        """Whether programs (controller, handovers) had to wait for each other a lot."""
        return self.busy_seconds > LONGEST_BUSY_SHARE * self.seconds

    def __str__(self) -> str:
        dropped = f", {self.dropped_packets} packets dropped" if self.dropped_packets else ""
        return (
            f"processor busy in {self.busy_seconds} of {self.seconds} s, "
            f"timers up to {self.latest_timer_s * 1e3:.0f} ms late{dropped}"
        )


def machine_load(samples: Sequence[Mapping[str, Any]]) -> MachineLoad | None:
    """Sum up the samples of ``host.jsonl``; None if there are none that can be read."""
    busy = [share for row in samples if (share := number(row.get("cpu_busy"))) is not None]
    late = [lag for row in samples if (lag := number(row.get("timer_late_s"))) is not None]
    if not busy or not late:
        return None
    dropped = sum(number(row.get("softirq_dropped")) or 0 for row in samples)
    return MachineLoad(len(busy), sum(share >= BUSY for share in busy), max(late), int(dropped))


def stalls(samples: Sequence[Mapping[str, Any]]) -> list[tuple[float, float]]:
    """When the machine stood still, as far as its samples show.

    Parameters
    ----------
    samples : sequence of mapping
        Rows of ``host.jsonl`` with their run time ``t_s``.

    Returns
    -------
    list of (float, float)
        Begin and end in run time, seconds: from when a timer was due, or the next sample was, to
        the sample. In order of time; they may overlap.
    """
    found: list[tuple[float, float]] = []
    times = sorted(at for row in samples if (at := number(row.get("t_s"))) is not None)
    steps = [after - before for before, after in pairwise(times)]
    period = median(steps) if steps else 0.0
    found += [
        (before + period, after)
        for before, after in pairwise(times)
        if after - before > period + STALL_S
    ]
    for row in samples:
        at, late = number(row.get("t_s")), number(row.get("timer_late_s"))
        if at is not None and late is not None and late > STALL_S:
            found.append((at - late, at))
    return sorted(found)
