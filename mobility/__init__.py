"""Where nodes are, and when they are within range of each other.

A trajectory is a function of time: it answers for any instant, so nothing is sampled and
nothing depends on how often somebody looks. Distances are metres in a local frame (x east,
y north, z up), times are seconds of run time, speeds are metres per second.

>>> from mobility import Fixed, Straight, range_crossings
>>> ship = Straight(start_m=(-1300.0, 0.0, 0.0), velocity_mps=(10.0, 0.0, 0.0))
>>> drone = Fixed(position_m=(0.0, 0.0, 300.0))
>>> [(c.time_s, c.entering) for c in range_crossings(ship, drone, range_m=500.0, until_s=200.0)]
[(90.0, True), (170.0, False)]

Models that are random are made for the length of a run, from a seed:

>>> from mobility import Area, random_walk
>>> walk = random_walk(
...     Area.square(1000.0), speed_mps=(5.0, 15.0), leg_s=(5.0, 20.0), duration_s=100.0, seed=1
... )
>>> range_crossings(walk, drone, range_m=500.0, until_s=100.0)[0].entering
True

What needs a package that takes long to import is in a module of its own: `mobility.traces` (files),
`mobility.geodesy` (charts) and `mobility.satellites` (orbits).
"""

from mobility.association import Association, Reluctance, Selection, associations
from mobility.coverage import (
    Contact,
    Contacts,
    Crossing,
    contact_schedule,
    distance_m,
    in_range,
    range_crossings,
)
from mobility.fleet import Fleet
from mobility.models import (
    Area,
    gauss_markov,
    random_walk,
    random_waypoint,
    reference_point_group,
    station_keeping,
)
from mobility.orbit import Orbit, Racetrack
from mobility.trajectory import (
    Between,
    Fixed,
    Legs,
    Path,
    Straight,
    Together,
    Trajectory,
    Vector,
)

__all__ = [
    "Area",
    "Association",
    "Between",
    "Contact",
    "Contacts",
    "Crossing",
    "Fixed",
    "Fleet",
    "Legs",
    "Orbit",
    "Path",
    "Racetrack",
    "Reluctance",
    "Selection",
    "Straight",
    "Together",
    "Trajectory",
    "Vector",
    "associations",
    "contact_schedule",
    "distance_m",
    "gauss_markov",
    "in_range",
    "random_walk",
    "random_waypoint",
    "range_crossings",
    "reference_point_group",
    "station_keeping",
]
