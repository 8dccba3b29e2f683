"""An interior point method on path flows, for networks where flow deviation converges slowly.

The problem is restricted to the paths seen so far, solved by a primal-dual barrier method, and
widened by the shortest path of every demand at that solution, until no demand gains by another
path (column generation).

With h the path flows, c(h) their lengths, A the matrix of links and paths and W the curvature of
D on the links, a Newton step towards h·z = μ (z a path's length beyond that of its demand) is

    dh = q·(r − Aᵀ·u),    u = W·A·dh,    q = h/z,    r = μ/h − c,

with A and r taken relative to their q-weighted mean over the paths of the same demand, which
keeps every demand satisfied. Eliminating dh leaves

    (W⁻¹ + A·q·Aᵀ)·u = A·q·r,

a system as large as the number of links in use, however many demands and paths there are.

The barrier also decides between equally good answers. Link flows are unique at the optimum, the
share of each demand in them is not; the method converges to the centre of all optimal answers,
which treats demands alike that have the same choice.

What does not fit at first begins on an imaginary path of its demand, long but without limit.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fdm.delay import Delay
from fdm.network import Demand, Network
from fdm.routing import Routing
from fdm.shortest import Path, shortest_paths

Array = NDArray[np.float64]

_TO_BOUNDARY = 0.995  # part of the way to a zero flow or a full link that one step may go
_CENTRING = 0.1  # factor on the barrier from step to step
_STEPS = 80  # Newton steps for one set of paths; a dozen is usual
_ROUNDS = 80  # how often paths are added; a dozen is usual
_PATIENCE = 6  # rounds without a smaller gap before rounding is taken to be the reason


class Refined(NamedTuple):
    """What the method found.

    Attributes
    ----------
    routing : Routing
        Path flows that fit the capacities.
    left_bps : tuple of float
        For each demand, what stayed on its imaginary path.
    iterations : int
        Newton steps.
    """

    routing: Routing
    left_bps: tuple[float, ...]
    iterations: int


@np.errstate(all="ignore")  # numbers beyond all measure end in steps that are not taken
def interior_point(
    network: Network,
    demands: Sequence[Demand],
    delay: Delay,
    routing: Routing,
    gap: float = 1e-9,
    imaginary_s: float | None = None,
) -> Refined:
    """Improve path flows until their relative gap is reached or no longer shrinks.

    Parameters
    ----------
    network, demands, delay
        The problem: queues (family 0 of `fdm.delay.Terms`); every demand above 0 has a path.
    routing : Routing
        Flows that fit the capacities. They may fall short of the demands if `imaginary_s` is
        given.
    gap : float
        Relative gap to reach.
    imaginary_s : float, optional
        Give every demand an imaginary path of this length in seconds.

    Notes
    -----
    Flows are in packets per second inside, so that lengths are seconds.
    """
    sending = [number for number, demand in enumerate(demands) if demand.rate_bps > 0.0]
    rates = [demands[number].rate_bps / delay.packet_bits for number in sending]
    restricted = _Restricted(network, delay, rates, imaginary_s)
    for group, number in enumerate(sending):
        restricted.begin(
            group, {path: rate / delay.packet_bits for path, rate in routing[number].items()}
        )
    best_gap, best_flow, best_columns = np.inf, restricted.flow, list(restricted.columns)
    precision, patience, steps = 0.1, _PATIENCE, 0
    for _ in range(_ROUNDS):
        restricted.arrange()
        steps += restricted.minimise(precision)
        lengths = restricted.link_lengths() / delay.packet_bits
        shortest = shortest_paths(
            network, [demands[number] for number in sending], lengths.tolist()
        )
        now = restricted.relative_gap([found.length * delay.packet_bits for found in shortest])
        patience = _PATIENCE if now < best_gap else patience - 1
        if now < best_gap:
            best_gap, best_flow, best_columns = now, restricted.flow, list(restricted.columns)
        fresh = [
            (group, found.path)
            for group, found in enumerate(shortest)
            if found.path is not None and (group, found.path) not in restricted.known
        ]
        if now <= gap or patience == 0:
            break
        precision = max(0.1 * now, 0.1 * gap)
        restricted.widen(fresh)
    refined: Routing = [{} for _ in demands]
    left = [0.0] * len(demands)
    for (group, path), flow in zip(best_columns, best_flow.tolist(), strict=True):
        if path is None:
            left[sending[group]] = flow * delay.packet_bits
        else:
            refined[sending[group]][path] = flow * delay.packet_bits
    return Refined(refined, tuple(left), steps)


class _Restricted:
    """The problem on the paths seen so far."""

    def __init__(
        self,
        network: Network,
        delay: Delay,
        rates: Sequence[float],
        imaginary_s: float | None,
    ) -> None:
        self.capacity: Array = (
            np.array([link.capacity_bps for link in network.links]) / delay.packet_bits
        )
        terms = delay.terms(network)
        self.delay_s: Array = np.array(terms.linear) * delay.packet_bits
        self.kappa: Array = np.array(terms.scale)
        self.rates: Array = np.array(rates)
        self.imaginary_s = imaginary_s
        self.columns: list[tuple[int, Path | None]] = []  # demand and path; None is imaginary
        self.known: set[tuple[int, Path | None]] = set()
        self.flow: Array = np.zeros(0)
        # Filled by arrange().
        self.owner = np.zeros(0, dtype=np.intp)
        self.first = np.zeros(0, dtype=np.intp)
        self.used = np.zeros(0, dtype=np.intp)
        self.incidence: Array = np.zeros((0, 0))
        self.extra_s: Array = np.zeros(0)

    def begin(self, group: int, paths: dict[Path, float]) -> None:
        """Give a demand its first paths, all of them with some flow."""
        rate = float(self.rates[group])
        if self.imaginary_s is not None:
            carried = sum(paths.values())
            kept = min(carried, rate * (1.0 - 1e-3))
            self._append(group, None, rate - kept)
            paths = {path: flow * kept / carried for path, flow in paths.items()}
        for path, flow in paths.items():
            self._append(group, path, flow)

    def _append(self, group: int, path: Path | None, flow: float) -> None:
        self.columns.append((group, path))
        self.known.add((group, path))
        self.flow = np.append(self.flow, flow)

    def widen(self, fresh: Sequence[tuple[int, Path]]) -> None:
        """Add paths, each with a little of its demand's flow."""
        if not fresh:
            return
        spare = self.capacity.copy()
        spare[self.used] -= self.incidence @ self.flow
        crowd = np.zeros(len(self.capacity))
        for group, path in fresh:
            for link in path:
                crowd[link] += self.rates[group]
        shared = crowd > 0.0
        share = min(1e-2, 0.1 * float(np.min(spare[shared] / crowd[shared])))
        groups = {group for group, _ in fresh}
        shrink = np.where(np.isin(self.owner, list(groups)), 1.0 - share, 1.0)
        self.flow = self.flow * shrink
        for group, path in fresh:
            self._append(group, path, share * float(self.rates[group]))

    def arrange(self) -> None:
        """Sort paths by demand and set up the matrix of links and paths."""
        order = sorted(range(len(self.columns)), key=lambda column: self.columns[column][0])
        self.columns = [self.columns[column] for column in order]
        self.flow = self.flow[order]
        self.owner = np.array([group for group, _ in self.columns], dtype=np.intp)
        self.first = np.searchsorted(self.owner, np.arange(len(self.rates)))
        # Rounding must not make a demand drift over many rounds.
        self.flow = self.flow * (self.rates / self._by_demand(self.flow))[self.owner]
        self.used = np.array(
            sorted({link for _, path in self.columns for link in path or ()}), dtype=np.intp
        )
        row = {link: number for number, link in enumerate(self.used.tolist())}
        self.incidence = np.zeros((len(self.used), len(self.columns)))
        for column, (_, path) in enumerate(self.columns):
            for link in path or ():
                self.incidence[row[link], column] = 1.0
        self.extra_s = np.array(
            [(self.imaginary_s or 0.0) if path is None else 0.0 for _, path in self.columns]
        )

    def _by_demand(self, values: Array) -> Array:
        total: Array = np.add.reduceat(values, self.first, axis=-1)
        return total

    def link_lengths(self) -> Array:
        """Return the length of every link of the network in seconds."""
        flow = np.zeros(len(self.capacity))
        flow[self.used] = self.incidence @ self.flow
        spare = self.capacity - flow
        with np.errstate(divide="ignore", invalid="ignore"):
            lengths: Array = np.where(
                spare > 0.0, self.kappa * self.capacity / spare**2 + self.delay_s, np.inf
            )
        return lengths

    def relative_gap(self, shortest_s: Sequence[float]) -> float:
        """Return the gap of the whole problem, given the shortest length of each demand."""
        lengths = self.incidence.T @ self.link_lengths()[self.used] + self.extra_s
        least = np.array(shortest_s)
        if self.imaginary_s is not None:
            least = np.minimum(least, self.imaginary_s)
        total = float(self.flow @ lengths)
        if not total > 0.0:
            return 0.0
        return max(0.0, float(self.flow @ (lengths - least[self.owner])) / total)

    def minimise(self, precision: float) -> int:
        """Take Newton steps until the relative gap among these paths is at most `precision`."""
        capacity, delay_s = self.capacity[self.used], self.delay_s[self.used]
        kappa = self.kappa[self.used]
        surplus: Array | None = None
        for step in range(_STEPS):
            flow = self.flow
            spare = capacity - self.incidence @ flow
            lengths = self.incidence.T @ (kappa * capacity / spare**2 + delay_s) + self.extra_s
            beyond = lengths - np.minimum.reduceat(lengths, self.first)[self.owner]
            excess = float(flow @ beyond)
            if excess <= precision * float(flow @ lengths):
                return step
            if surplus is None:
                surplus = np.maximum(beyond, excess / len(flow) / flow)
            barrier = _CENTRING * min(float(flow @ surplus), excess) / len(flow)

            change = self._direction(lengths, surplus, spare, barrier)
            if change is None:
                break
            ahead = self._line_search(change, lengths, spare, barrier)
            if ahead == 0.0:
                break
            turn = (barrier - surplus * change) / flow - surplus
            surplus = surplus + _within(surplus, turn) * turn
            self.flow = flow + ahead * change
            # Away from h·z = μ by orders of magnitude, surplus says nothing any more.
            surplus = np.clip(surplus, 1e-8 * barrier / self.flow, 1e8 * barrier / self.flow)
        return _STEPS

    def _direction(
        self, lengths: Array, surplus: Array, spare: Array, barrier: float
    ) -> Array | None:
        """Return the Newton step of the path flows, or None where rounding has the last word."""
        capacity = self.capacity[self.used]
        # Surplus of a used path vanishes; a floor keeps rounding from being blown up, and is too
        # small to slow a step down.
        weight = self.flow / np.maximum(surplus, 1e-10 * lengths)
        total = self._by_demand(weight)
        pull = barrier / self.flow - lengths
        pull = pull - (self._by_demand(weight * pull) / total)[self.owner]
        mean = self._by_demand(self.incidence * weight) / total
        # Scaled by the root of the curvature, the matrix is the identity plus something positive.
        root = np.sqrt(2.0 * self.kappa[self.used] * capacity / spare**3)
        centred = (self.incidence - mean[:, self.owner]) * root[:, None]
        system = (centred * weight) @ centred.T
        system[np.diag_indices_from(system)] += 1.0
        try:
            links = np.linalg.solve(system, centred @ (weight * pull))
        except np.linalg.LinAlgError:
            return None
        change: Array = weight * (pull - centred.T @ links)
        change = change - weight * (self._by_demand(change) / total)[self.owner]
        return change if bool(np.all(np.isfinite(change))) else None

    def _line_search(self, change: Array, lengths: Array, spare: Array, barrier: float) -> float:
        """Return how far to go along a step so that the barrier function falls; 0 if nowhere."""
        ahead = min(_within(self.flow, change), _within(spare, -(self.incidence @ change)))
        value = self._barrier_value(self.flow, barrier)
        slope = float(change @ (lengths - barrier / self.flow))
        while ahead > 1e-12:
            reached = self._barrier_value(self.flow + ahead * change, barrier)
            if reached <= value + 1e-4 * ahead * slope + 1e-14 * abs(value):
                return ahead
            ahead *= 0.5
        return 0.0

    def _barrier_value(self, flow: Array, barrier: float) -> float:
        carried = self.incidence @ flow
        spare = self.capacity[self.used] - carried
        packets = self.kappa[self.used] * carried / spare + self.delay_s[self.used] * carried
        return float(packets.sum() + self.extra_s @ flow - barrier * np.log(flow).sum())


def _within(values: Array, change: Array) -> float:
    """Return how much of a change keeps positive values positive, at most 1."""
    falling = change < 0.0
    if not bool(falling.any()):
        return 1.0
    return min(1.0, _TO_BOUNDARY * float(np.min(-values[falling] / change[falling])))
