"""Whether the machine that ran the network kept up with it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.rundirectory import number

BUSY = 0.95
"""Share of CPU time in use from which a second counts as busy throughout."""
LONGEST_BUSY_SHARE = 0.25
LONGEST_LATENESS_S = 0.25


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
    """

    seconds: int
    busy_seconds: int
    latest_timer_s: float

    @property
    def overloaded(self) -> bool:
        """Whether the figures of the run show the machine rather than the network.

        True if more than a quarter of the seconds were busy, or a timer was late by more than
        the delay of the longest path here.
        """
        return (
            self.busy_seconds > LONGEST_BUSY_SHARE * self.seconds
            or self.latest_timer_s > LONGEST_LATENESS_S
        )

    def __str__(self) -> str:
        return (
            f"processor busy in {self.busy_seconds} of {self.seconds} s, "
            f"timers up to {self.latest_timer_s * 1e3:.0f} ms late"
        )


def machine_load(samples: Sequence[Mapping[str, Any]]) -> MachineLoad | None:
    """Sum up the samples of ``host.jsonl``; None if there are none that can be read."""
    busy = [share for row in samples if (share := number(row.get("cpu_busy"))) is not None]
    late = [lag for row in samples if (lag := number(row.get("timer_late_s"))) is not None]
    if not busy or not late:
        return None
    return MachineLoad(len(busy), sum(share >= BUSY for share in busy), max(late))
