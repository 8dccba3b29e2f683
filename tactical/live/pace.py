"""Keeps the clock of a machine in virtual time from going faster than people's. Pure."""

from __future__ import annotations

LEAST_LEAD_S = 0.05


class Pace:
    """How far a run is ahead of a clock that goes as people's does.

    A run that falls behind, as its processor is emulated, does not make up for it afterwards.
    """

    def __init__(self) -> None:
        self._begun: tuple[float, float] | None = None

    def ahead_s(self, run_s: float, now_s: float) -> float:
        """For how long a run is to wait that is at `run_s` when the other clock says `now_s`."""
        begun_s, at_s = self._begun or (run_s, now_s)
        lead_s = (run_s - begun_s) - (now_s - at_s)
        if self._begun is None or lead_s < 0.0:
            self._begun, lead_s = (run_s, now_s), 0.0
        return lead_s if lead_s >= LEAST_LEAD_S else 0.0
