"""Where nodes are, and when they are within range of each other.

A trajectory is a function of time: it answers for any instant, so nothing is sampled and
nothing depends on how often somebody looks. Distances are metres in a local frame (x east,
y north, z up), times are seconds of run time, speeds are metres per second.

>>> from mobility import Fixed, Straight, range_crossings
>>> ship = Straight(start_m=(-1300.0, 0.0, 0.0), velocity_mps=(10.0, 0.0, 0.0))
>>> drone = Fixed(position_m=(0.0, 0.0, 300.0))
>>> [(c.time_s, c.entering) for c in range_crossings(ship, drone, range_m=500.0, until_s=200.0)]
[(90.0, True), (170.0, False)]
"""

from mobility.coverage import Crossing, in_range, range_crossings
from mobility.trajectory import Fixed, Leg, Straight, Trajectory, Vector

__all__ = [
    "Crossing",
    "Fixed",
    "Leg",
    "Straight",
    "Trajectory",
    "Vector",
    "in_range",
    "range_crossings",
]
