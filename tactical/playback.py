"""The position in something that is played: a recording, or the movement of a network.

Pure: the current time is an argument.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

SLOWEST, FASTEST = 0.1, 50.0


@dataclass(frozen=True)
class Playback:
    """Where it is, and how it goes on.

    Attributes
    ----------
    end_s : float
        Run time of the end; infinite where there is none.
    start_s : float
        Run time of the start, which nothing is before.
    position_s : float
        Run time at the moment `at_s` of the viewer's clock.
    playing : bool
    speed : float
        Seconds of run time for each second.
    """

    end_s: float
    start_s: float = 0.0
    position_s: float = 0.0
    at_s: float = 0.0
    playing: bool = False
    speed: float = 1.0

    def position(self, now_s: float) -> float:
        """Run time now; it stays at the end."""
        gone_s = (now_s - self.at_s) * self.speed if self.playing else 0.0
        return min(self.end_s, self.position_s + max(0.0, gone_s))

    def _fixed(self, now_s: float) -> Playback:
        return replace(self, position_s=self.position(now_s), at_s=now_s)

    def play(self, playing: bool, now_s: float) -> Playback:
        """Go on or stop; going on at the end begins again."""
        here = self._fixed(now_s)
        if playing and here.position_s >= self.end_s:
            here = replace(here, position_s=here.start_s)
        return replace(here, playing=playing)

    def at_speed(self, speed: float, now_s: float) -> Playback:
        """Go on at another speed.

        Raises
        ------
        ValueError
            If it is not between `SLOWEST` and `FASTEST`.
        """
        if not SLOWEST <= speed <= FASTEST:
            raise ValueError(f"speed: expected {SLOWEST:g} to {FASTEST:g}, not {speed:g}")
        return replace(self._fixed(now_s), speed=speed)

    def seek(self, position_s: float, now_s: float) -> Playback:
        """Go to a moment; one outside of the recording means its nearer end.

        Raises
        ------
        ValueError
            If it is no finite number.
        """
        if not math.isfinite(position_s):
            raise ValueError(f"position: expected a number of seconds, not {position_s}")
        return replace(self, position_s=min(max(self.start_s, position_s), self.end_s), at_s=now_s)
