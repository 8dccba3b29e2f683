"""The entry point: checks the problem, runs a method, certifies the answer."""

import math
import sys
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from fdm.admission import largest_fitting, max_min
from fdm.certificate import Certificate, certify, largest_share
from fdm.compilation import available, prepared
from fdm.delay import QUEUE, Delay, Kleinrock, Terms
from fdm.fairness import shared
from fdm.flow_deviation import Start, phase_1, phase_2
from fdm.network import Demand, Network, Node, counted
from fdm.progress import Progress, Reporter
from fdm.routing import FITS, Routing, all_or_nothing, link_flows, restored, scaled, utilisation
from fdm.shortest import few_paths, shortest_paths
from fdm.solution import Solution, as_path_flows, mean_delays

_IMAGINARY_S = (100.0, 1e5, 1e8)
"""Lengths of the imaginary path, in seconds, for demands that may not fit."""

_NOTHING_LEFT = 1e-9
"""Share of a demand on its imaginary path that counts as none."""

_MARGIN = 0.1
"""Part of the gap asked for that the interior point aims at: near saturation the gap is relative
to a sum of length·flow that is many times γT."""

_TRACES = (1e-5, 1e-7)
"""Shares of a demand that are taken for traces of the interior point, the largest first."""

METHODS = ("auto", "flow deviation", "interior point", "path flows")

ADMISSIONS = ("max-min", "proportional")

_TRIAL_ITERATIONS = 30
"""Deviations that ``auto`` makes before it calls for the interior point."""

_ADMITTED_LOAD = 0.95
"""Part of the proved limit to which phase 1 must come before its share is taken."""

_TINY = 200
"""Links times demands up to which flow deviation is tried first, without any import."""

_COMPILE = 200_000
"""Links times demands above which it is quicker to compile than to do without."""


def solve(
    network: Network,
    demands: Sequence[Demand],
    *,
    delay: Delay | None = None,
    packet_bits: float = 12000.0,
    kappa: float | Sequence[float] = 1.0,
    start: Solution | None = None,
    gap: float = 1e-9,
    iterations: int = 1000,
    method: str = "auto",
    admission: str = "max-min",
    capacity_share: float = 0.95,
    progress: Callable[[Progress], None] | None = None,
) -> Solution:
    """Split demands over paths so that the mean packet delay is least.

    Parameters
    ----------
    network : Network
        Links with capacity and propagation delay.
    demands : sequence of Demand
        Any number, zero rates included.
    delay : Delay, optional
        The delay function, by default `fdm.Kleinrock` of the two parameters that follow, which are
        not looked at otherwise.
    packet_bits : float
        Mean packet in bits.
    kappa : float or sequence of float
        Coefficient of the queueing delay, for all links or one for each.
    start : Solution, optional
        An earlier answer for the same demands in the same order on a network with the same links.
        Its paths are used as far as they still exist.
    gap : float
        Relative gap at which to stop.
    iterations : int
        Limit on the steps of each phase. When it is reached the answer is the best so far, and
        its `relative_gap` says how good that is.
    method : str
        ``flow deviation`` is the classic method, exact and quick on small networks and slow to
        converge on loaded ones; ``interior point`` needs NumPy, converges on both, and does not
        know roads or equilibria; ``path flows`` needs Numba and is the fastest; ``auto`` chooses:
        the first on tiny networks, the last where it is compiled already or worth compiling, see
        `fdm.prepare`, otherwise the second.
    admission : str
        Who is cut when the demands do not fit: ``max-min`` fair rates, or all by the same factor
        (``proportional``).
    capacity_share : float
        Share of every capacity that demands are then cut to, above 0 and below 1.
    progress : callable, optional
        Called with a `fdm.Progress` about every half second while the solve goes on.

    Returns
    -------
    Solution
        With its certificate. A demand without a path is admitted at 0 and the others are solved.
        That, and demands that do not fit together, make `feasible` false. Demands that cannot be
        told apart get the same, see `fdm.fairness`.

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
    clock = time.perf_counter()
    _check(method, METHODS, "method")
    _check(admission, ADMISSIONS, "admission")
    if not gap >= 0.0:
        raise ValueError(f"gap must be 0 or more, not {gap!r}")
    if not 0.0 < capacity_share < 1.0:
        raise ValueError(f"capacity_share must be above 0 and below 1, not {capacity_share!r}")
    if delay is None:
        delay = Kleinrock(packet_bits, kappa if isinstance(kappa, float | int) else tuple(kappa))
    terms = delay.terms(network)
    if method == METHODS[2] and terms.family != QUEUE:
        raise ValueError("the interior point knows neither roads nor user equilibria")
    report = Reporter(progress)
    if method == METHODS[3] or (
        method == METHODS[0] and _compiled(len(network.links) * len(demands), terms.family)
    ):
        return _by_path_flows(
            _Problem(network, demands, delay, gap, iterations, admission, capacity_share, report),
            terms, start, clock,
        )  # fmt: skip
    network.check(demands)
    connected, cut_off = _connected(network, demands)
    if not any(demand.rate_bps > 0.0 for demand in connected):
        found = _Found([{} for _ in demands], connected, True, 0, METHODS[1])
    else:
        carried = _carried_over(network, connected, start) if start is not None else None
        if carried is not None:
            carried = shared(network, connected, carried)
        problem = _Problem(
            network, connected, delay, gap, iterations, admission, capacity_share, report
        )
        found = _by_deviation(problem, carried, method)
    return _answer(network, demands, delay, gap, found, cut_off, clock)


def _check(value: str, allowed: tuple[str, ...], name: str) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, not {value!r}")


def _in_use(work: int) -> bool:
    """Return whether the compiled loops are loaded, or worth loading and compiled already."""
    return "fdm.kernels" in sys.modules or (work > _TINY and available() and prepared())


def _compiled(work: int, family: int) -> bool:
    return _in_use(work) or (work > _TINY and available() and (work > _COMPILE or family != QUEUE))


def _connected(network: Network, demands: Sequence[Demand]) -> tuple[list[Demand], bool]:
    """Return the demands with those set to 0 that have no path, and whether there are any."""
    connected: list[Demand] = []
    cut_off = False
    reached: dict[Node, set[Node]] = {}
    for demand in demands:
        few = few_paths(network, demand.origin, demand.destination)
        if few is None and demand.origin not in reached:
            reached[demand.origin] = network.reachable(demand.origin)
        there = bool(few) if few is not None else demand.destination in reached[demand.origin]
        connected.append(demand if there else demand._replace(rate_bps=0.0))
        cut_off = cut_off or (not there and demand.rate_bps > 0.0)
    return connected, cut_off


class _Problem(NamedTuple):
    network: Network
    demands: Sequence[Demand]
    delay: Delay
    gap: float
    iterations: int
    admission: str
    capacity_share: float
    report: Reporter

    def admitted(self, share: float) -> list[Demand]:
        """Return what to let in, given a share of all demands that fits the capacities."""
        if self.admission == "max-min":
            rates: Sequence[float] = max_min(self.network, self.demands, self.capacity_share)
        else:
            rates = [demand.rate_bps * share for demand in self.demands]
        return [
            demand._replace(rate_bps=counted(rate))
            for demand, rate in zip(self.demands, rates, strict=True)
        ]


class _Found(NamedTuple):
    routing: Routing
    admitted: Sequence[Demand]
    fits: bool
    iterations: int
    method: str
    bound: float = math.inf
    proof: tuple[float, ...] = ()
    certificate: Certificate | None = None


def _by_path_flows(
    problem: _Problem, terms: Terms, start: Solution | None, clock: float
) -> Solution:
    """Solve with the compiled loops; cut what does not fit, and call for help where they stall."""
    from fdm import paths

    network, demands, delay, gap, iterations, *_ = problem
    report = problem.report
    compact = paths.compact(network, demands, terms)
    columns = None
    if start is not None:
        columns = start.columns if start.columns is not None else paths.columns_of(start.path_flows)
    found = paths.path_flows(compact, columns, 0.5 * gap, iterations, report)
    admitted: Sequence[Demand] = demands
    if compact.cut_off:
        connected = list(demands)
        for number in compact.cut_off:
            connected[number] = connected[number]._replace(rate_bps=0.0)
        admitted = connected
    fits, bound, steps = True, found.bound, found.iterations
    proof: tuple[float, ...] = ()
    if not found.fits and found.bound < FITS:
        fits, proof = False, found.proof
        inner = problem._replace(demands=admitted)
        if problem.admission == "proportional":
            _, bound, proof = largest_fitting(network, admitted, bound, proof)
        admitted = inner.admitted(bound * problem.capacity_share)
        found = paths.path_flows(
            paths.compact(network, admitted, terms), found.columns, 0.5 * gap, iterations, report
        )
        steps += found.iterations
    stalled = not found.fits or found.relative_gap > gap
    if stalled and not (found.fits and (delay.bounded or delay.equilibrium)):
        rescued = _by_deviation(
            problem._replace(demands=admitted),
            paths.routing_of(found.columns) if found.fits else None,
            METHODS[1] if delay.equilibrium else METHODS[2],
        )
        if fits:
            bound, proof = rescued.bound, rescued.proof
        rescued = rescued._replace(
            fits=fits and rescued.fits, bound=bound, proof=proof, iterations=steps
        )
        return _answer(network, demands, delay, gap, rescued, bool(compact.cut_off), clock)
    if not found.decided and _alike(admitted):
        routing = paths.routing_of(found.columns)
        if shared(network, admitted, routing) is not routing:
            alike = _Found(routing, admitted, fits, steps, METHODS[3], bound, proof)
            return _answer(network, demands, delay, gap, alike, bool(compact.cut_off), clock)
    flow = found.link_flows.tolist()
    rates = tuple([demand.rate_bps for demand in admitted])
    packets_per_s = sum(rates) / delay.packet_bits
    gamma_T = delay.total(network, flow) if delay.equilibrium else found.objective
    path_flows = paths.by_demand(found.columns)
    return Solution(
        feasible=fits and not compact.cut_off,
        gamma_T=gamma_T,
        mean_packet_delay_s=gamma_T / packets_per_s if packets_per_s > 0.0 else 0.0,
        lower_bound=found.objective - found.excess,
        relative_gap=found.relative_gap,
        iterations=steps,
        method=METHODS[3],
        path_flows=path_flows,
        link_flows_bps=tuple(flow),
        admitted_bps=rates,
        fitting_share=bound if bound < math.inf else None,
        objective=found.objective,
        offered_bps=rates if admitted is demands else tuple([one.rate_bps for one in demands]),
        demand_delay_s=mean_delays(path_flows, delay.latencies(network, flow)),
        proof=proof,
        solve_time_s=time.perf_counter() - clock,
        columns=found.columns,
    )


def _alike(demands: Sequence[Demand]) -> bool:
    """Return whether any demands can have equal ends or rates, see `fdm.fairness`."""
    return len({demand[2] for demand in demands}) < len(demands) or len(
        {demand[:2] for demand in demands}
    ) < len(demands)


def _by_deviation(problem: _Problem, routing: Routing | None, method: str) -> _Found:
    """Deviate, and go on with the interior point where that is allowed and needed."""
    network, demands, delay, gap, iterations, *_ = problem
    rates = [demand.rate_bps for demand in demands]
    interior = method != METHODS[1] and delay.terms(network).family == QUEUE
    squeezed = False
    if delay.bounded:
        if routing is None:
            lengths = delay.lengths(network, [0.0] * len(network.links))
            routing = all_or_nothing(shortest_paths(network, demands, lengths), rates)
        begun = Start(routing, 1.0, math.inf, 0)
    else:
        begun, squeezed = _begin(
            network, demands, delay, routing, gap, iterations, method if interior else METHODS[1]
        )
    routing = begun.routing
    if begun.share < 1.0:
        load = utilisation(network, link_flows(network, routing))
        share = begun.share * problem.capacity_share / load
        admitted = problem.admitted(share)
        if not any(demand.rate_bps > 0.0 for demand in admitted):
            nothing: Routing = [{} for _ in admitted]
            return _Found(
                nothing, admitted, False, begun.iterations, METHODS[1], begun.bound, begun.proof
            )
        if problem.admission == "max-min":
            begun_again = _begin(
                network, admitted, delay, None, gap, iterations, method if interior else METHODS[1]
            )[0]
            if begun_again.share < 1.0:  # the classic phase 1 may be too slow to fill the network
                admitted = [
                    demand._replace(rate_bps=counted(demand.rate_bps * begun_again.share))
                    for demand in admitted
                ]
            routing = begun_again.routing
        else:
            routing = scaled(routing, share / begun.share)
        demands = admitted

    used, steps, reached = METHODS[1], begun.iterations, False
    certificate = None
    if method != METHODS[2] and not squeezed:
        limit = min(iterations, _TRIAL_ITERATIONS) if interior else iterations
        finish = phase_2(network, demands, delay, routing, gap, limit)
        routing, steps = finish.routing, steps + finish.iterations
        certificate = finish.certificate
        reached = certificate.relative_gap <= gap
    if interior and not reached:
        from fdm.interior_point import interior_point  # NumPy only where it is needed

        refined = interior_point(network, demands, delay, routing, _MARGIN * gap)
        used, steps = METHODS[2], steps + refined.iterations
        routing = _pruned(network, demands, delay, refined.routing, _MARGIN * gap)
        certificate = None
    return _Found(
        routing, demands, begun.share == 1.0, steps, used, begun.bound, begun.proof, certificate
    )


def _begin(
    network: Network,
    demands: Sequence[Demand],
    delay: Delay,
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
    share, bound, steps, proof = begun.share, begun.bound, begun.iterations, begun.proof
    if bound * FITS >= 1.0:
        squeezed = _squeezed(network, demands, delay, begun.routing, gap)
        steps += squeezed.iterations
        if squeezed.bound < bound:
            bound, proof = squeezed.bound, squeezed.proof
        if squeezed.routing is not None:
            return Start(squeezed.routing, 1.0, bound, steps, proof), True
    if share < bound * _ADMITTED_LOAD:
        whole = scaled(begun.routing, 1.0 / share)
        begun = phase_1(network, demands, delay, whole, iterations)
        steps += begun.iterations
        if begun.bound < bound:
            bound, proof = begun.bound, begun.proof
    return Start(begun.routing, begun.share, bound, steps, proof), False


class _Squeezed(NamedTuple):
    routing: Routing | None
    bound: float
    proof: tuple[float, ...]
    iterations: int


def _squeezed(
    network: Network,
    demands: Sequence[Demand],
    delay: Delay,
    routing: Routing,
    gap: float,
) -> _Squeezed:
    """Fit demands of which only a share has a routing so far, or prove that they do not fit.

    What has no place takes an imaginary path, which is made longer until it is empty or its
    length proves that it cannot be.
    """
    from fdm.interior_point import interior_point

    bound, steps = math.inf, 0
    proof: tuple[float, ...] = ()
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
            whole = restored(routing, demands)
            if utilisation(network, link_flows(network, whole)) < FITS:
                return _Squeezed(whole, bound, proof, steps)
        lengths = delay.lengths(network, link_flows(network, routing))
        shortest = shortest_paths(network, demands, lengths)
        proved = largest_share(network, demands, lengths, shortest)
        if proved < bound:
            bound, proof = proved, tuple(lengths)
        if bound * FITS < 1.0:
            break
    return _Squeezed(None, bound, proof, steps)


def _pruned(
    network: Network,
    demands: Sequence[Demand],
    delay: Delay,
    routing: Routing,
    gap: float,
) -> Routing:
    """Drop paths that carry next to nothing, as long as the gap is kept.

    An interior point leaves a trace of flow on every path it has looked at.
    """
    before = certify(network, demands, link_flows(network, routing), delay).relative_gap
    for trace in _TRACES:
        kept = restored(
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
            path: rate_bps
            for path, rate_bps in flows
            if rate_bps > 0.0 and _leads(network, path, demand)
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
    few = few_paths(network, demand.origin, demand.destination)
    if few is not None:
        return path in few
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
    delay: Delay,
    gap: float,
    found: _Found,
    cut_off: bool,
    clock: float,
) -> Solution:
    flow = link_flows(network, found.routing)
    certificate = found.certificate or _certified(network, found.admitted, flow, delay)
    even = None
    if certificate.relative_gap <= gap and _in_use(len(network.links) * len(demands)):
        from fdm.paths import evened

        even = evened(network, found.admitted, delay.terms(network), found.routing, gap)
    if even is None:
        even = shared(network, found.admitted, found.routing)
    routing = found.routing
    if even != routing:
        after_flow = link_flows(network, even)
        after = _certified(network, found.admitted, after_flow, delay)
        if after.relative_gap <= max(gap, certificate.relative_gap):
            routing, flow, certificate = even, after_flow, after
    packets_per_s = sum(demand.rate_bps for demand in found.admitted) / delay.packet_bits
    path_flows = as_path_flows(routing)
    return Solution(
        feasible=found.fits and not cut_off,
        gamma_T=certificate.gamma_T,
        mean_packet_delay_s=certificate.gamma_T / packets_per_s if packets_per_s > 0.0 else 0.0,
        lower_bound=certificate.lower_bound,
        relative_gap=certificate.relative_gap,
        iterations=found.iterations,
        method=found.method,
        path_flows=path_flows,
        link_flows_bps=tuple(flow),
        admitted_bps=tuple([demand.rate_bps for demand in found.admitted]),
        fitting_share=found.bound if found.bound < math.inf else None,
        objective=certificate.objective,
        offered_bps=tuple([demand.rate_bps for demand in demands]),
        demand_delay_s=mean_delays(path_flows, delay.latencies(network, flow)),
        proof=() if found.fits else found.proof,
        solve_time_s=time.perf_counter() - clock,
    )


def _certified(
    network: Network, demands: Sequence[Demand], flow: Sequence[float], delay: Delay
) -> Certificate:
    if not _in_use(len(network.links) * len(demands)):
        return certify(network, demands, flow, delay)
    from fdm.paths import certify_compiled

    return certify_compiled(network, demands, flow, delay)
