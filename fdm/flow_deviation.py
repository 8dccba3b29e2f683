"""The flow deviation method, as Fratta, Gerla and Kleinrock published it.

L. Fratta, M. Gerla, L. Kleinrock, "The flow deviation method: an approach to store-and-forward
communication network design", Networks 3(2), 97-133, 1973.

One deviation goes from a flow f to a better one:

1. give every link the length dD/df at f,
2. send every demand over its shortest path: the flow v,
3. take the point between f and v at which D is least.

The minimum is reached when no demand gains by deviating, that is, when Σ length·(f − v) = 0.
Phase 2 repeats this from a flow that fits the capacities. Phase 1 finds such a flow: it deviates
with the demands reduced to a share that fits, and raises the share in the room that each
deviation makes.

The method is kept in this plain form as the reference for faster ones. Flows are kept by path,
so that the answer says who uses what, not only how full the links are.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

from fdm.certificate import Certificate, certificate_of, largest_share, weighed
from fdm.delay import POWER, QUEUE, Delay
from fdm.network import Demand, Network
from fdm.routing import FITS, Routing, add, all_or_nothing, blend, link_flows, scaled, utilisation
from fdm.shortest import shortest_paths

_KEPT_SLACK = 0.6
"""Phase 1 raises the demands until this part of the bottleneck's free capacity is left."""

_WHOLE_REST = 0.9
"""What is left of the demands is let in at once if it takes no more of that capacity than this."""

_CLOSE = 0.95
"""Demands proved not to fit are raised until this part of the proved limit."""

_LARGEST_LOAD = 0.95
"""Utilisation at which phase 1 begins when the first routing does not fit."""


class Start(NamedTuple):
    """What phase 1 found.

    Attributes
    ----------
    routing : Routing
        Flows for `share` of every demand that fit the capacities.
    share : float
        1 if the demands fit, otherwise the share that does.
    bound : float
        Proof that no more than this multiple of all demands fits, by whatever routing; infinite if
        no deviation was made.
    iterations : int
        Deviations made.
    proof : tuple of float
        Lengths of the links that prove the bound; empty if it is infinite.
    """

    routing: Routing
    share: float
    bound: float
    iterations: int
    proof: tuple[float, ...] = ()


class Finish(NamedTuple):
    """What phase 2 found: a routing, how good it is, and the deviations made."""

    routing: Routing
    certificate: Certificate
    iterations: int


def phase_1(
    network: Network,
    demands: Sequence[Demand],
    delay: Delay,
    routing: Routing | None = None,
    iterations: int = 1000,
) -> Start:
    """Find flows that fit the capacities.

    Parameters
    ----------
    network, demands, delay
        The problem. Every demand above 0 must have a path.
    routing : Routing, optional
        Flows of all demands to begin with, whether they fit or not; by default the demands are
        let in from nothing.
    iterations : int
        Deviations after which to give up.
    """
    rates = [demand.rate_bps for demand in demands]
    if routing is None:
        routing, share = [{} for _ in demands], 0.0
    else:
        load = utilisation(network, link_flows(network, routing))
        share = 1.0 if load < FITS else _LARGEST_LOAD / load
        if share < 1.0:
            routing = scaled(routing, share)
    bound = math.inf
    proof: tuple[float, ...] = ()
    iteration = 0
    while share < 1.0 and iteration < iterations:
        if bound * FITS < 1.0 and share > _CLOSE * bound:
            break
        iteration += 1
        flow = link_flows(network, routing)
        lengths = delay.lengths(network, flow)
        shortest = shortest_paths(network, demands, lengths)
        proved = largest_share(network, demands, lengths, shortest)
        if proved < bound:
            bound, proof = proved, tuple(lengths)
        whole = all_or_nothing(shortest, rates)
        whole_flow = link_flows(network, whole)
        step = line_search(network, flow, [share * v for v in whole_flow], delay)
        routing = blend(routing, scaled(whole, share), step)
        flow = link_flows(network, routing)
        room = min(
            [
                max(0.0, FITS * link.capacity_bps - f) / v
                for link, f, v in zip(network.links, flow, whole_flow, strict=True)
                if v > 0.0
            ],
            default=0.0,
        )
        rest = 1.0 - share
        if rest <= _WHOLE_REST * room:
            return Start(add(routing, scaled(whole, rest)), 1.0, bound, iteration, proof)
        share += (1.0 - _KEPT_SLACK) * room
        routing = add(routing, scaled(whole, (1.0 - _KEPT_SLACK) * room))
    return Start(routing, share, bound, iteration, proof)


def phase_2(
    network: Network,
    demands: Sequence[Demand],
    delay: Delay,
    routing: Routing,
    gap: float = 1e-9,
    iterations: int = 1000,
) -> Finish:
    """Deviate from flows that fit until the relative gap or the number of iterations is reached.

    The relative gap is Σ length·(f − v)/Σ length·f. Since D is convex, D(f) is at most
    Σ length·(f − v) above its minimum.
    """
    rates = [demand.rate_bps for demand in demands]
    for iteration in range(iterations + 1):
        flow = link_flows(network, routing)
        lengths = delay.lengths(network, flow)
        shortest = shortest_paths(network, demands, lengths)
        weights = weighed(demands, flow, lengths, shortest)
        if weights.relative_gap <= gap or iteration == iterations:
            break
        target = all_or_nothing(shortest, rates)
        step = line_search(network, flow, link_flows(network, target), delay)
        if step <= 0.0:
            break
        routing = blend(routing, target, step)
    return Finish(routing, certificate_of(network, flow, delay, weights), iteration)


def line_search(
    network: Network, flow: Sequence[float], target: Sequence[float], delay: Delay
) -> float:
    """Return the step from 0 to 1 towards a target flow at which D is least, to rounding.

    D along the way is convex, and without bound where a queue's link fills, so its slope has one
    root, found by Newton's method kept between bounds that close in on it.
    """
    family, scale, linear, beta = delay.terms(network)
    slope_of_linear = 0.0
    moves = []  # (change of flow, coefficient, free capacity, flow, capacity) where flow changes
    full = 1.0
    fits = True
    for number, (f, v) in enumerate(zip(flow, target, strict=True)):
        change = v - f
        if change == 0.0:
            continue
        capacity = network.links[number].capacity_bps
        spare = capacity - f
        coefficient = scale[number] * (capacity if family == QUEUE else 1.0)
        moves.append((change, coefficient, spare, f, capacity))
        slope_of_linear += change * linear[number]
        if change >= spare and family != POWER:
            fits = False
            full = min(full, spare / change)

    def slopes(step: float) -> tuple[float, float]:
        first, second = slope_of_linear, 0.0
        for change, coefficient, spare, f, capacity in moves:
            if family == POWER:
                used = max(0.0, f + step * change) / capacity
                first += change * coefficient * used**beta
                second += change * change * coefficient * beta / capacity * used ** (beta - 1.0)
                continue
            left = spare - step * change
            if left <= 0.0:
                return math.inf, math.inf
            term = change * coefficient / (left * left if family == QUEUE else left)
            first += term
            second += (2.0 if family == QUEUE else 1.0) * term * change / left
        return first, second

    if fits and slopes(1.0)[0] <= 0.0:
        return 1.0
    low, high = 0.0, full
    step = 0.0
    for _ in range(100):
        first, second = slopes(step)
        if first < 0.0:
            low = step
        elif first > 0.0 and step > 0.0:
            high = step
        else:
            break
        newton = step - first / second if second > 0.0 else high
        following = newton if low < newton < high else 0.5 * (low + high)
        moved = abs(following - step)
        step = following
        # The next step of Newton's method would be the square of this one.
        if moved <= (1e-9 if step == newton else 1e-15) * step or step in (low, high):
            break
    return step
