"""The entry point: checks the problem, runs a method, certifies the answer."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from fdm.certificate import certify, largest_share
from fdm.delay import Kleinrock
from fdm.flow_deviation import Start, phase_1, phase_2
from fdm.network import Demand, Network
from fdm.routing import FITS, Routing, link_flows, scaled, utilisation
from fdm.shortest import shortest_paths
from fdm.solution import PathFlow, Solution

_IMAGINARY_S = (100.0, 1e5, 1e8)
"""Lengths of the imaginary path, in seconds, for demands that may not fit."""

_NOTHING_LEFT = 1e-9
"""Share of a demand on its imaginary path that counts as none."""

_MARGIN = 0.1
"""Part of the gap asked for that the interior point aims at: near saturation the gap is relative
to a sum of length·flow that is many times γT."""

_TRACES = (1e-5, 1e-7)
"""Shares of a demand that are taken for traces of the interior point, the largest first."""

METHODS = ("auto", "flow deviation", "interior point")

_TRIAL_ITERATIONS = 30
"""Deviations that ``auto`` makes before it calls for the interior point."""

_ADMITTED_LOAD = 0.95
"""Utilisation of the bottleneck to which demands are cut when they do not fit."""


def solve(
    network: Network,
    demands: Sequence[Demand],
    *,
    packet_bits: float = 12000.0,
    kappa: float = 1.0,
    start: Solution | None = None,
    gap: float = 1e-9,
    iterations: int = 1000,
    method: str = "auto",
) -> Solution:
    """Split demands over paths so that the mean packet delay is least.

    Parameters
    ----------
    network : Network
        Links with capacity and propagation delay.
    demands : sequence of Demand
        Any number, zero rates included.
    packet_bits : float
        Mean packet in bits.
    kappa : float
        Coefficient of the queueing delay, see `fdm.Kleinrock`.
    start : Solution, optional
        An earlier answer for the same demands in the same order on a network with the same links.
        Its paths are used as far as they still exist. Where several splits between demands are
        equally good, the answer stays near the one it began with.
    gap : float
        Relative gap at which to stop.
    iterations : int
        Limit on the steps of each phase. When it is reached the answer is the best so far, and
        its `relative_gap` says how good that is.
    method : str
        ``flow deviation`` is the classic method, exact and quick on small networks and slow to
        converge on loaded ones; ``interior point`` needs NumPy and converges on both; ``auto``
        begins with the first and goes on with the second when that does not reach the gap.

    Returns
    -------
    Solution
        With its certificate. A demand without a path is admitted at 0 and the others are solved.
        Demands that do not fit together are all cut by the same factor, to where the fullest link
        is at 95 % of its capacity. Both make `feasible` false.

    Raises
    ------
    ValueError
        If the input makes no sense: an unknown node, a demand that begins where it ends, a
        negative or infinite rate, a parameter out of range. Never for numbers that are merely
        awkward.

    Examples
    --------
    Two users share a satellite and a drone. Each gets half of what the drone can usefully carry:

    >>> from fdm import Demand, Link, Network, solve
    >>> network = Network(
    ...     ["user1", "user2", "satellite", "drone", "shore"],
    ...     [
    ...         Link("user1", "satellite", 100e6), Link("user1", "drone", 100e6),
    ...         Link("user2", "satellite", 100e6), Link("user2", "drone", 100e6),
    ...         Link("satellite", "shore", 50e6, 0.25), Link("drone", "shore", 1e6, 0.01),
    ...     ],
    ... )
    >>> solution = solve(network, [Demand("user1", "shore", 3e6), Demand("user2", "shore", 3e6)])
    >>> for flow in solution.path_flows[0]:
    ...     print(flow.path, round(flow.rate_bps))
    (0, 4) 2611732
    (1, 5) 388268
    """
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
    if not gap >= 0.0:
        raise ValueError(f"gap must be 0 or more, not {gap!r}")
    network.check(demands)
    delay = Kleinrock(packet_bits, kappa)

    empty = delay.lengths(network, [0.0] * len(network.links))
    reachable = shortest_paths(network, demands, empty)
    connected = [
        demand if found.path is not None else demand._replace(rate_bps=0.0)
        for demand, found in zip(demands, reachable, strict=True)
    ]
    cut_off = any(
        demand.rate_bps > 0.0 and found.path is None
        for demand, found in zip(demands, reachable, strict=True)
    )
    if not any(demand.rate_bps > 0.0 for demand in connected):
        return _answer(network, connected, delay, [{} for _ in demands], not cut_off, 0, METHODS[1])

    carried = _carried_over(network, connected, start) if start is not None else None
    begun, squeezed = _begin(network, connected, delay, carried, gap, iterations, method)
    routing, admitted = begun.routing, connected
    if begun.share < 1.0:
        factor = _ADMITTED_LOAD / utilisation(network, link_flows(network, routing))
        routing = scaled(routing, factor)
        admitted = [
            demand._replace(rate_bps=demand.rate_bps * begun.share * factor) for demand in connected
        ]

    used, steps, reached = METHODS[1], begun.iterations, False
    if method != METHODS[2] and not squeezed:
        limit = iterations if method == METHODS[1] else min(iterations, _TRIAL_ITERATIONS)
        finish = phase_2(network, admitted, delay, routing, gap, limit)
        routing, steps = finish.routing, steps + finish.iterations
        reached = finish.relative_gap <= gap
    if method != METHODS[1] and not reached:
        from fdm.interior_point import interior_point  # NumPy only where it is needed

        refined = interior_point(network, admitted, delay, routing, _MARGIN * gap)
        used, steps = METHODS[2], steps + refined.iterations
        routing = _pruned(network, admitted, delay, refined.routing, _MARGIN * gap)
    feasible = begun.share == 1.0 and not cut_off
    return _answer(network, admitted, delay, routing, feasible, steps, used, begun.bound)


def _begin(
    network: Network,
    demands: Sequence[Demand],
    delay: Kleinrock,
    routing: Routing | None,
    gap: float,
    iterations: int,
    method: str,
) -> tuple[Start, bool]:
    """Find flows that fit the capacities, for all of every demand or else for a share.

    The second answer is whether it took the interior point to fit all of them.
    """
    if method == METHODS[1]:
        return phase_1(network, demands, delay, routing, iterations), False
    begun = phase_1(network, demands, delay, routing, min(iterations, _TRIAL_ITERATIONS))
    if begun.share == 1.0:
        return begun, False
    share, bound, steps = begun.share, begun.bound, begun.iterations
    if bound * FITS >= 1.0:
        squeezed = _squeezed(network, demands, delay, begun.routing, gap)
        bound, steps = min(bound, squeezed.bound), steps + squeezed.iterations
        if squeezed.routing is not None:
            return Start(squeezed.routing, 1.0, bound, steps), True
    if share < bound * _ADMITTED_LOAD:
        whole = scaled(begun.routing, 1.0 / share)
        begun = phase_1(network, demands, delay, whole, iterations)
        bound, steps = min(bound, begun.bound), steps + begun.iterations
    return Start(begun.routing, begun.share, bound, steps), False


class _Squeezed(NamedTuple):
    routing: Routing | None
    bound: float
    iterations: int


def _squeezed(
    network: Network,
    demands: Sequence[Demand],
    delay: Kleinrock,
    routing: Routing,
    gap: float,
) -> _Squeezed:
    """Fit demands of which only a share has a routing so far, or prove that they do not fit.

    What has no place takes an imaginary path, which is made longer until it is empty or its
    length proves that it cannot be.
    """
    from fdm.interior_point import interior_point

    bound, steps = math.inf, 0
    for imaginary_s in _IMAGINARY_S:
        refined = interior_point(network, demands, delay, routing, gap, imaginary_s)
        steps += refined.iterations
        routing = refined.routing
        left = max(
            left / demand.rate_bps
            for left, demand in zip(refined.left_bps, demands, strict=True)
            if demand.rate_bps > 0.0
        )
        if left <= _NOTHING_LEFT:
            whole = _restored(routing, demands)
            if utilisation(network, link_flows(network, whole)) < FITS:
                return _Squeezed(whole, bound, steps)
        lengths = delay.lengths(network, link_flows(network, routing))
        shortest = shortest_paths(network, demands, lengths)
        bound = min(bound, largest_share(network, demands, lengths, shortest))
        if bound * FITS < 1.0:
            break
    return _Squeezed(None, bound, steps)


def _restored(routing: Routing, demands: Sequence[Demand]) -> Routing:
    """Return the routing with the rates of each demand adding up to its rate again."""
    restored: Routing = []
    for demand, paths in zip(demands, routing, strict=True):
        carried = sum(paths.values())
        factor = demand.rate_bps / carried if carried > 0.0 else 0.0
        restored.append({path: rate * factor for path, rate in paths.items() if rate * factor > 0})
    return restored


def _pruned(
    network: Network,
    demands: Sequence[Demand],
    delay: Kleinrock,
    routing: Routing,
    gap: float,
) -> Routing:
    """Drop paths that carry next to nothing, as long as the gap is kept.

    An interior point leaves a trace of flow on every path it has looked at.
    """
    before = certify(network, demands, link_flows(network, routing), delay).relative_gap
    for trace in _TRACES:
        kept = _restored(
            [
                {path: rate for path, rate in paths.items() if rate > trace * demand.rate_bps}
                for demand, paths in zip(demands, routing, strict=True)
            ],
            demands,
        )
        flow = link_flows(network, kept)
        if utilisation(network, flow) < FITS:
            after = certify(network, demands, flow, delay).relative_gap
            if after <= max(gap, before):
                return kept
    return routing


def _carried_over(network: Network, demands: Sequence[Demand], start: Solution) -> Routing | None:
    """Return an earlier answer as a routing for these demands, or None if it does not apply."""
    if len(start.path_flows) != len(demands):
        return None
    routing: Routing = []
    for demand, flows in zip(demands, start.path_flows, strict=True):
        kept = {
            flow.path: flow.rate_bps
            for flow in flows
            if _leads(network, flow.path, demand) and flow.rate_bps > 0.0
        }
        carried = sum(kept.values())
        if demand.rate_bps > 0.0 and carried <= 0.0:
            return None
        routing.append(
            {path: rate * (demand.rate_bps / carried) for path, rate in kept.items()}
            if demand.rate_bps > 0.0
            else {}
        )
    return routing


def _leads(network: Network, path: tuple[int, ...], demand: Demand) -> bool:
    at = demand.origin
    for number in path:
        if not 0 <= number < len(network.links):
            return False
        link = network.links[number]
        if link.tail != at or link.capacity_bps <= 0.0:
            return False
        at = link.head
    return bool(at == demand.destination)


def _answer(
    network: Network,
    demands: Sequence[Demand],
    delay: Kleinrock,
    routing: Routing,
    feasible: bool,
    iterations: int,
    method: str,
    bound: float = math.inf,
) -> Solution:
    flow = link_flows(network, routing)
    certificate = certify(network, demands, flow, delay)
    packets_per_s = sum(demand.rate_bps for demand in demands) / delay.packet_bits
    return Solution(
        feasible=feasible,
        gamma_T=certificate.gamma_T,
        mean_packet_delay_s=certificate.gamma_T / packets_per_s if packets_per_s > 0.0 else 0.0,
        lower_bound=certificate.lower_bound,
        relative_gap=certificate.relative_gap,
        iterations=iterations,
        method=method,
        path_flows=tuple(
            tuple(
                PathFlow(path, rate)
                for path, rate in sorted(paths.items(), key=lambda item: (-item[1], item[0]))
            )
            for paths in routing
        ),
        link_flows_bps=tuple(flow),
        admitted_bps=tuple(demand.rate_bps for demand in demands),
        fitting_share=bound if bound < math.inf else None,
    )
