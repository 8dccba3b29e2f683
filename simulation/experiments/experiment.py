"""What an experiment is, and how it measures."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulation.network import Connection, Link, Source
from simulation.simulator import Counters, Simulation

Progress = Callable[[str, float], None]
"""Gets what is being simulated, and the part of it that is done, from 0 to 1."""


@dataclass(frozen=True)
class Row:
    """One quantity.

    Attributes
    ----------
    quantity : str
        What it is.
    unit : str
        Its unit.
    simulated : float
        Our value, from packets.
    paper : float, optional
        The paper's value, if it gives one.
    balance : float, optional
        Our value, from the balance of increase and decrease without packets.
    recalled : bool
        Whether the paper's value comes from memory rather than from a copy of it.
    """

    quantity: str
    unit: str
    simulated: float
    paper: float | None = None
    balance: float | None = None
    recalled: bool = False


@dataclass(frozen=True)
class Experiment:
    """A simulation to make, and what it shows.

    Attributes
    ----------
    name, summary, section : str
        Where `section` is a part of the paper.
    simulate : callable
        Gets seed and progress; returns the rows.
    """

    name: str
    summary: str
    section: str
    simulate: Callable[[int, Progress], list[Row]]


@dataclass(frozen=True)
class Measured:
    """What happened in a stretch of simulated time."""

    before: Counters
    after: Counters

    @property
    def duration_s(self) -> float:
        """Length of the stretch."""
        return self.after.time_s - self.before.time_s

    def rates(self) -> NDArray[np.float64]:
        """Return packets per second of each connection."""
        packets = self.after.delivered_packets - self.before.delivered_packets
        return packets / self.duration_s

    def subflow_rates(self, connection: int) -> NDArray[np.float64]:
        """Return packets per second of each subflow of a connection."""
        after, before = (c.subflow_packets[connection] for c in (self.after, self.before))
        return (after - before) / self.duration_s

    def link_losses(self) -> NDArray[np.float64]:
        """Return the part of packets that each link dropped or lost."""
        taken = self.after.link_packets - self.before.link_packets
        dropped = self.after.link_drops - self.before.link_drops
        dropped = dropped + self.after.link_losses - self.before.link_losses
        return dropped / np.maximum(taken + dropped, 1)


def measure(
    links: Sequence[Link],
    connections: Sequence[Connection],
    *,
    warm_s: float,
    measured_s: float,
    seed: int,
    what: str,
    progress: Progress,
    sources: Sequence[Source] = (),
) -> Measured:
    """Simulate, and return what happened after the start."""
    simulation = Simulation(links, connections, sources, seed)
    end_s = warm_s + measured_s
    progress(what, 0.0)

    def shown(time_s: float) -> None:
        progress(what, time_s / end_s)

    simulation.run(warm_s, shown)
    before = simulation.counters()
    simulation.run(end_s, shown)
    return Measured(before, simulation.counters())


def fairness(rates: NDArray[np.float64]) -> float:
    """Jain's index: (Σx)²/(n Σx²)."""
    return float(rates.sum() ** 2 / (len(rates) * (rates**2).sum()))
