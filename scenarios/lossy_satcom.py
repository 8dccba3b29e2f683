"""Lossy SATCOM: direct move with random loss on the satellite path."""

from dataclasses import dataclass, field
from typing import ClassVar

from scenarios.components import Satcom
from scenarios.direct_move import DirectMove


@dataclass(frozen=True)
class LossySatcom(DirectMove):
    """Direct move over a satellite that loses packets at random.

    A loss-based congestion control takes every lost packet for congestion. At a share p lost,
    a round trip R and segments of M bit it gets about M/R·√(3/(2p)) (M. Mathis et al., "The
    macroscopic behavior of the TCP congestion avoidance algorithm", ACM CCR 27(3), 1997):
    0.39 Mbit/s for 1420 bytes, 0.5 s and 0.5 %. That is near the averages which Zhao et al. 2018
    report for direct move, whose source names no limit, and far from the 3 Mbit/s that are sent:
    here the UAV's 1 Mbit/s, a fiftieth of the satellite's rate, carries most of the data.

    Everything else is as in direct move.
    """

    name: ClassVar[str] = "lossy-satcom"

    satcom: Satcom = field(default_factory=lambda: Satcom(loss=0.005))
