"""Packet-level simulation of links, queues, TCP and multipath congestion control."""

from simulation.compilation import prepare
from simulation.congestion import ALGORITHMS
from simulation.network import Connection, Link, Path, Source
from simulation.scheduling import SCHEDULERS
from simulation.simulator import Counters, Simulation, SimulationError

__all__ = [
    "ALGORITHMS",
    "SCHEDULERS",
    "Connection",
    "Counters",
    "Link",
    "Path",
    "Simulation",
    "SimulationError",
    "Source",
    "prepare",
]
