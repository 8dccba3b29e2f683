"""The fast method: column generation, gradient projection and Newton steps, compiled.

The loops are in `fdm.kernels`; here is what they are given and what is made of it. Numba compiles
them once for each machine and keeps the result; `prepare` does that ahead of time, and `usable`
tells whether it was done without loading anything.
"""

import itertools
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fdm.certificate import Certificate
from fdm.compilation import available, prepared, remember
from fdm.delay import Delay, Kleinrock, Terms
from fdm.network import LARGEST, SMALLEST, Demand, Link, Network
from fdm.progress import SILENT, Reporter
from fdm.routing import FITS, Routing
from fdm.shortest import Path
from fdm.solution import Columns, PathFlow

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_EDGES = (0.9, 0.97, 0.99, 0.997, 0.999, 0.9999, 1 - 1e-5, 1 - 1e-7, 1 - 1e-9)
"""Shares of capacity above which delay is continued quadratically, one after the other."""

_WARM_EDGE = 4
"""The first of them when there are paths to begin with."""

_SWEEPS, _STEPS, _CONJUGATE = 8, 10, 40
"""Sweeps of gradient projection before a Newton step by conjugate gradients, such steps before
paths are added, and conjugate gradient iterations within one."""

_TRACE = 1e-7
"""Share of a demand on a path that is left out if the gap allows."""

_FAIR = 700
"""Links and paths together up to which the split of largest entropy is looked for."""

_POLISH = 4
"""Newton steps that bring another method's answer to the precision that the rule needs."""

_REFINE = ((100, 4), (250, 2))
"""Newton steps for that where the gap is reached already, by links and paths together: each brings
a direction in which the delay hardly changes a thousand times closer to its best."""

_UNINTERRUPTED = 200_000
"""Links times demands up to which a solve is over before anyone would want to know how it goes."""


class Compact(NamedTuple):
    """A problem as arrays.

    Attributes
    ----------
    terms : tuple
        Family, coefficients a and l of every link, capacities, and β; see `fdm.delay.Terms`.
    ends : tuple of array
        Tail and head of every link, and the links that leave every node; see `fdm.network.Arrays`.
    order : array of int
        The demands above 0 that have a path, by position, in order of their origin.
    commodities : tuple of array
        Their origins, destinations and rates.
    demands : int
        Number of all demands.
    cut_off : tuple of int
        Demands above 0 that have no path.
    """

    terms: tuple[Any, ...]
    ends: tuple[Any, ...]
    order: "NDArray[np.int64]"
    commodities: tuple[Any, ...]
    demands: int
    cut_off: tuple[int, ...]


class Found(NamedTuple):
    """What the method found.

    Attributes
    ----------
    columns : Columns
        Path flows for all of every demand that has a path.
    link_flows : array of float
        Flow of every link in bit/s.
    fits : bool
        Whether they fit the capacities.
    bound : float
        Proof that no more than this multiple of all demands fits; infinite for roads.
    proof : tuple of float
        Lengths of the links that prove it.
    iterations : int
        Sweeps and Newton steps.
    objective, excess, relative_gap : float
        D, Σ length·(f − v) and that by Σ length·f, worked out from the link flows alone.
    decided : bool
        Whether the split between demands follows the rule of `fdm.entropy`.
    """

    columns: Columns
    link_flows: "NDArray[np.float64]"
    fits: bool
    bound: float
    proof: tuple[float, ...]
    iterations: int
    objective: float
    excess: float
    relative_gap: float
    decided: bool


def _loops() -> Any:
    """Return the compiled loops; their arguments come as tuples, which types cannot follow."""
    from fdm import kernels

    return kernels


def usable() -> bool:
    """Return whether the method can be used at once: installed, and loaded or compiled before."""
    return "fdm.kernels" in sys.modules or (available() and prepared())


def prepare() -> None:
    """Compile the loops and keep the result, which takes the better part of a minute once."""
    from fdm.admission import max_min

    network = Network("ab", [Link("a", "b", 1.0, 1.0)])
    delay, demands = Kleinrock(1.0), [Demand("a", "b", 0.5)]
    problem = compact(network, demands, delay.terms(network))
    found = path_flows(problem)
    path_flows(problem, found.columns)
    certify_compiled(network, demands, [0.5], delay)
    settled(network, delay, routing_of(found.columns))
    max_min(network, demands, 0.5)
    remember()


def compact(network: Network, demands: Sequence[Demand], terms: Terms) -> Compact:
    """Return a problem as arrays.

    Raises
    ------
    ValueError
        If a demand makes no sense.
    """
    import numpy as np

    kernels = _loops()
    index, arrays = network.index, network.arrays
    try:
        origin = np.array([index[demand[0]] for demand in demands], dtype=np.int64)
        destination = np.array([index[demand[1]] for demand in demands], dtype=np.int64)
        rate = np.array([demand[2] for demand in demands], dtype=np.float64)
        right = (rate == 0.0) | ((rate >= SMALLEST) & (rate <= LARGEST))
        good = bool((right & (origin != destination)).all())
    except (KeyError, TypeError, ValueError, OverflowError):
        good = False
    if not good:
        network.check(demands)
    order = np.argsort(origin, kind="stable")
    origin, destination, rate = origin[order], destination[order], rate[order]
    sending = rate > 0.0
    there = kernels.reached(origin, destination, arrays.out, arrays.out_link, arrays.head)
    cut_off = sending & ~there
    cut = tuple(order[cut_off].tolist()) if cut_off.any() else ()
    if not (sending & there).all():
        kept = sending & there
        order, origin, destination, rate = (
            order[kept], origin[kept], destination[kept], rate[kept],
        )  # fmt: skip
    return Compact(
        (
            terms.family,
            np.array(terms.scale, dtype=np.float64),
            np.array(terms.linear, dtype=np.float64),
            arrays.capacity,
            terms.beta,
        ),
        (arrays.tail, arrays.head, arrays.out, arrays.out_link),
        order,
        (origin, destination, rate),
        len(demands),
        cut,
    )


def path_flows(
    problem: Compact,
    start: Columns | None = None,
    gap: float = 1e-9,
    rounds: int = 300,
    report: Reporter = SILENT,
) -> Found:
    """Minimise over path flows, from earlier ones or from none.

    Parameters
    ----------
    problem : Compact
        The problem.
    start : Columns, optional
        Paths to begin with, of the same demands in the same order.
    gap : float
        Relative gap at which to stop.
    rounds : int
        How often paths are added at most.
    report : Reporter, optional
        Told how far it has come.
    """
    import numpy as np

    kernels = _loops()
    tail, head, out, out_link = problem.ends
    capacity = problem.terms[3]
    bounded = problem.terms[0] == 2
    columns: tuple[Any, ...]
    if start is not None and len(start.own) == problem.demands + 1:
        columns = kernels.carried(problem.order, *problem.commodities, tail, head, capacity, *start)
    else:
        columns = (
            np.zeros(len(problem.order) + 1, dtype=np.int64), np.zeros(1, dtype=np.int64),
            np.zeros(0, dtype=np.int64), np.zeros(0),
        )  # fmt: skip
    memory, proof = np.zeros(9), np.zeros(len(capacity))
    edges = np.array(_EDGES)
    interrupted = report and len(capacity) * len(problem.order) > _UNINTERRUPTED
    at_once = 1 if interrupted else rounds
    while not memory[0] and memory[1] < rounds:
        columns = kernels.optimise(
            *problem.terms, *problem.ends, *problem.commodities, *columns,
            edges, gap, at_once, _SWEEPS, _STEPS, _CONJUGATE, _WARM_EDGE, memory, proof,
        )  # fmt: skip
        report(int(memory[2]), float(memory[6]))
    finished = kernels.finish(
        *problem.terms, head, out, out_link, *problem.commodities, *columns, gap, _TRACE, FITS
    )
    decided = False
    if bounded or finished[5] < FITS:
        size = len(capacity) + len(columns[3])
        before = next((steps for most, steps in _REFINE if size <= most), 0)
        columns, finished, decided = _even(
            problem, (*columns[:3], finished[0]), finished, gap, before
        )
    own, first, pool, _ = columns
    flow, link_flows, objective, now, best, fullest = finished
    excess, fits = max(0.0, now - best), bounded or fullest < FITS
    return Found(
        Columns(*kernels.arranged(problem.order, problem.demands, own, first, pool, flow)),
        link_flows,
        fits,
        float(memory[4]),
        () if fits else tuple(proof.tolist()),
        int(memory[2]),
        objective,
        excess,
        excess / now if now > 0.0 else 0.0,
        decided,
    )


def _even(
    problem: Compact,
    columns: tuple[Any, ...],
    finished: tuple[Any, ...],
    gap: float,
    before: int = 0,
) -> tuple[tuple[Any, ...], tuple[Any, ...], bool]:
    """Return paths, the verdict on them, and whether the rule of `fdm.entropy` was followed."""
    if len(problem.terms[1]) + len(columns[3]) > _FAIR:
        return columns, finished, False
    from fdm import entropy

    even: Any = entropy.even
    kernels = _loops()
    outcome, *evened = even(
        *problem.terms, *problem.ends, *problem.commodities, *columns, _EDGES[-1], _FAIR, before
    )
    if outcome < 0 or (outcome == 0 and not before):
        return columns, finished, outcome == 0
    after = kernels.finish(
        *problem.terms, *problem.ends[1:], *problem.commodities, *evened, gap, _TRACE, FITS
    )
    now, best = after[3:5]
    was = max(0.0, finished[3] - finished[4])
    if now - best <= max(gap * now, was) and (problem.terms[0] == 2 or after[5] < FITS):
        return (*evened[:3], after[0]), after, True
    return columns, finished, False


def evened(
    network: Network, demands: Sequence[Demand], terms: Terms, routing: Routing, gap: float
) -> Routing | None:
    """Return an answer of another method with the split of `fdm.entropy`, None where not found."""
    if len(network.links) + sum(map(len, routing)) > _FAIR:
        return None
    problem = compact(network, demands, terms)
    columns = columns_of([tuple(routing[number].items()) for number in problem.order.tolist()])
    finished = _loops().finish(
        *problem.terms, *problem.ends[1:], *problem.commodities, *columns, gap, 0.0, FITS
    )
    if not len(problem.order) or not (terms.family == 2 or finished[5] < FITS):
        return None
    new, after, decided = _even(problem, columns, finished, gap, _POLISH)
    if not decided:
        return None
    return routing_of(
        Columns(*_loops().arranged(problem.order, problem.demands, *new[:3], after[0]))
    )


def by_demand(columns: Columns) -> tuple[tuple[PathFlow, ...], ...]:
    """Return path flows as `fdm.Solution` has them."""
    own, first, pool, flow = [part.tolist() for part in columns]
    paths = [tuple(pool[a:b]) for a, b in itertools.pairwise(first)]
    flows = list(map(PathFlow, paths, flow))
    return tuple([tuple(flows[a:b]) for a, b in itertools.pairwise(own)])


def routing_of(columns: Columns) -> Routing:
    """Return path flows as a routing."""
    return [dict(flows) for flows in by_demand(columns)]


def columns_of(routing: "Sequence[Sequence[tuple[Path, float]]]") -> Columns:
    """Return path flows as arrays."""
    import numpy as np

    own, first = [0], [0]
    links: list[int] = []
    flows: list[float] = []
    for paths in routing:
        for path, rate in paths:
            links.extend(path)
            first.append(len(links))
            flows.append(rate)
        own.append(len(flows))
    return Columns(
        np.array(own, dtype=np.int64),
        np.array(first, dtype=np.int64),
        np.array(links, dtype=np.int64),
        np.array(flows, dtype=np.float64),
    )


def certify_compiled(
    network: Network, demands: Sequence[Demand], flow: Sequence[float], delay: Delay
) -> Certificate:
    """Return what `fdm.certify` returns, sooner on larger networks."""
    import numpy as np

    kernels = _loops()
    problem = compact(network, demands, delay.terms(network))
    objective, now, best, _ = kernels.judge(
        *problem.terms, *problem.ends[1:], *problem.commodities, np.array(flow, dtype=np.float64)
    )
    excess = max(0.0, now - best)
    total = delay.total(network, flow) if delay.equilibrium else objective
    return Certificate(total, objective, objective - excess, excess / now if now > 0.0 else 0.0)


def settled(network: Network, delay: Delay, routing: Routing, gap: float = 1e-9) -> Routing:
    """Return the best rates on the paths of a routing, with no other paths.

    They may not fit the capacities where no rates on these paths do.
    """
    import numpy as np

    kernels = _loops()
    family, scale, linear, beta = delay.terms(network)
    columns = columns_of([tuple(paths.items()) for paths in routing])
    kernels.settle(
        family, np.array(scale, dtype=np.float64), np.array(linear, dtype=np.float64),
        network.arrays.capacity, beta, *columns,
        np.array(_EDGES), gap, 300, _SWEEPS, _CONJUGATE,
    )  # fmt: skip
    rates = iter(columns.flow.tolist())
    best: Routing = []
    for paths in routing:
        rates_here = [next(rates) for _ in paths]
        best.append(
            {path: rate for path, rate in zip(paths, rates_here, strict=True) if rate > 0.0}
        )
    return best
