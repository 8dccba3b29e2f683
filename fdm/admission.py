"""What to let in when demands do not fit: max-min fair rates.

Rates are max-min fair if no demand can get more without taking from one that has no more (D.
Bertsekas, R. Gallager, "Data Networks", 1992, section 6.5.2; over all routings: D. Nace,
M. Pióro, "Max-min fairness and its applications to routing and load-balancing in communication
networks", IEEE Comm. Surveys 10(4), 2008). All demands rise together; those that a bottleneck
holds are fixed, and the others go on.

Where the compiled loops can be used, networks of some hundred links and demands are filled exactly,
by linear programs (`fdm.simplex`). Otherwise the level at which a bottleneck holds is found by
cuts: a level that does not fit comes with link lengths that prove it, and the same lengths bound
the level from above.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from fdm.certificate import largest_share
from fdm.delay import Kleinrock
from fdm.network import Demand, Network, counted
from fdm.routing import FITS, Routing, link_flows, utilisation
from fdm.shortest import shortest_paths

_LEVEL = 1e-4
"""Relative precision of the levels; what is let in errs on the low side by as much."""

_HELD = 0.02
"""Demands whose distance is more than this part of the largest are held by the bottleneck."""


class _Fit(NamedTuple):
    fits: bool
    lengths: Sequence[float]
    routing: Routing | None = None


_EXACT = 700
"""Links and demands together up to which the linear programs are quicker than cuts."""


def _filled(
    network: Network, demands: Sequence[Demand], capacity_share: float, together: bool = False
) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """Return rates and the lengths of the last bottleneck; None where this is not the way."""
    from fdm.paths import compact, usable

    if len(network.links) + len(demands) > _EXACT or not usable():
        return None
    from fdm import simplex

    filled: Any = simplex.filled  # arguments as tuples, which types cannot follow

    problem = compact(network, demands, Kleinrock(1.0).terms(network))
    origin, destination, rate = problem.commodities
    if not len(rate):
        return (0.0,) * len(demands), ()
    room = network.arrays.capacity * capacity_share
    scale = float(room.max())
    asked = rate / rate.max() if together else (rate / scale).clip(max=float(len(room)))
    done, held, proof = filled(
        *problem.ends, origin, destination, asked,
        room / scale, together, 50 * (len(room) + len(rate)) + 1000,
    )  # fmt: skip
    if not done:
        return None
    rates = [0.0] * len(demands)
    for number, got, wanted in zip(
        problem.order.tolist(), (held * scale).tolist(), rate.tolist(), strict=True
    ):
        rates[number] = got if together else min(got, wanted)
    return tuple(rates), tuple(proof.clip(min=0.0).tolist())  # rounding may leave −1e-16


def max_min(
    network: Network, demands: Sequence[Demand], capacity_share: float
) -> tuple[float, ...]:
    """Return max-min fair rates within a share of all capacities.

    Parameters
    ----------
    network, demands
        The problem; demands without a path must be 0.
    capacity_share : float
        Share of every capacity that may be used, above 0 and below 1.
    """
    exact = _filled(network, demands, capacity_share)
    if exact is not None:
        return exact[0]
    usable = Network(
        network.nodes,
        [
            link._replace(capacity_bps=counted(link.capacity_bps * capacity_share))
            for link in network.links
        ],
    )
    rates = [0.0] * len(demands)
    routing: Routing | None = None
    rising = {number for number, demand in enumerate(demands) if demand.rate_bps > 0.0}
    level = 0.0
    while rising:
        reached, lengths, routing = _highest(usable, demands, rates, rising, level, routing)
        level = max(level, reached)
        for number in rising:
            rates[number] = min(level, demands[number].rate_bps)
        if lengths is None:
            break
        satisfied = {number for number in rising if demands[number].rate_bps <= level}
        rising -= satisfied
        found = shortest_paths(usable, demands, lengths)
        farthest = max((found[number].length for number in rising), default=0.0)
        rising -= {number for number in rising if found[number].length >= _HELD * farthest}
    return tuple(rates)


class Share(NamedTuple):
    """A share of all demands that fits, the least multiple proved not to fit, and the proof."""

    share: float
    bound: float
    proof: tuple[float, ...]


def largest_fitting(
    network: Network, demands: Sequence[Demand], bound: float, proof: tuple[float, ...]
) -> Share:
    """Return the largest share of all demands that fits, to about 1e-7 of it.

    Parameters
    ----------
    network, demands
        The problem; demands without a path must be 0.
    bound, proof
        A share that is proved not to be exceeded, and the link lengths that prove it.
    """
    exact = _filled(network, demands, 1.0, together=True)
    if exact is not None and sum(exact[1]) > 0.0:
        share = sum(exact[0]) / sum([demand.rate_bps for demand in demands])
        proved = _proved(network, demands, exact[1])
        if proved < bound:
            bound, proof = proved, exact[1]
        return Share(share, bound, proof)
    highest = bound
    for _ in range(60):
        share = highest * (1.0 - _SHARE)
        fit = _fit(
            network,
            [demand._replace(rate_bps=counted(demand.rate_bps * share)) for demand in demands],
        )
        if fit.fits:
            return Share(share, bound, proof)
        proved = _proved(network, demands, fit.lengths)
        if proved < bound:
            bound, proof = proved, tuple(fit.lengths)
        highest = min(proved, share)
    return Share(highest, bound, proof)


def _proved(network: Network, demands: Sequence[Demand], lengths: Sequence[float]) -> float:
    return largest_share(network, demands, lengths, shortest_paths(network, demands, lengths))


_SHARE = 1e-7


def _highest(
    network: Network,
    demands: Sequence[Demand],
    rates: Sequence[float],
    rising: set[int],
    low: float,
    routing: Routing | None,
) -> tuple[float, Sequence[float] | None, Routing | None]:
    """Return how high the level can go, and the lengths that stop it; None if nothing does."""
    level = max(demands[number].rate_bps for number in rising)
    lengths: Sequence[float] | None = None
    for _ in range(60):
        wanted = [
            demand._replace(
                rate_bps=counted(min(level, demand.rate_bps) if number in rising else rates[number])
            )
            for number, demand in enumerate(demands)
        ]
        fit = _fit(network, wanted, routing)
        routing = fit.routing
        if fit.fits:
            return level, lengths, routing
        lengths = fit.lengths
        found = shortest_paths(network, wanted, lengths)
        room = sum(
            length * link.capacity_bps
            for length, link in zip(lengths, network.links, strict=True)
            if link.capacity_bps > 0.0
        )
        for number, demand in enumerate(wanted):
            if number not in rising and demand.rate_bps > 0.0:
                room -= demand.rate_bps * found[number].length
        # Σ min(level, demand)·distance = room, one demand after the other reaching its own rate.
        spread = sum(found[number].length for number in rising)
        cut = level
        for number in sorted(rising, key=lambda number: demands[number].rate_bps):
            cut = room / spread if spread > 0.0 else level
            if cut <= demands[number].rate_bps:
                break
            room -= demands[number].rate_bps * found[number].length
            spread -= found[number].length
        below = min(level * (1.0 - _LEVEL), cut * (1.0 - _LEVEL))
        if below <= low * (1.0 + _LEVEL):
            return low, lengths, routing
        level = below
    return low, lengths, routing


def _fit(network: Network, demands: Sequence[Demand], routing: Routing | None = None) -> _Fit:
    """Return whether demands fit the capacities, and lengths that tell bottlenecks if not."""
    from fdm.paths import columns_of, compact, path_flows, routing_of, usable

    if not any(demand.rate_bps > 0.0 for demand in demands):
        return _Fit(True, ())
    delay = Kleinrock(1.0)
    free = Network(network.nodes, [link._replace(delay_s=0.0) for link in network.links])
    if usable():
        problem = compact(free, demands, delay.terms(free))
        start = columns_of([tuple(paths.items()) for paths in routing]) if routing else None
        found = path_flows(problem, start, gap=1.0)
        return _Fit(found.fits, found.proof, routing_of(found.columns))
    from fdm.flow_deviation import phase_1
    from fdm.interior_point import interior_point

    begun = phase_1(free, demands, delay, iterations=30)
    if begun.share == 1.0:
        return _Fit(True, ())
    refined = interior_point(free, demands, delay, begun.routing, 1e-6, 1e8 / _widest(network))
    flow = link_flows(free, refined.routing)
    lengths = delay.lengths(free, flow)
    bound = largest_share(free, demands, lengths, shortest_paths(free, demands, lengths))
    left = sum(refined.left_bps) / sum(demand.rate_bps for demand in demands)
    return _Fit(bound * FITS >= 1.0 and left < 1e-6 and utilisation(free, flow) < FITS, lengths)


def _widest(network: Network) -> float:
    return max(link.capacity_bps for link in network.links)
