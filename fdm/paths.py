"""The fast method: column generation, gradient projection and Newton steps, compiled.

The loops are in `fdm.kernels`; here is what they are given and what is made of it. Numba compiles
them once for each machine and keeps the result; `prepare` does that ahead of time, and `prepared`
tells without loading anything.
"""

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, NamedTuple

from fdm.certificate import Certificate
from fdm.delay import Delay, Kleinrock
from fdm.network import Demand, Link, Network
from fdm.routing import FITS, Routing

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_EDGES = (0.9, 0.97, 0.99, 0.997, 0.999, 0.9999, 1 - 1e-5, 1 - 1e-7, 1 - 1e-9)
"""Shares of capacity above which delay is continued quadratically, one after the other."""

_WARM_EDGE = 4
"""The first of them when there are paths to begin with."""

_SWEEPS, _STEPS, _CONJUGATE = 8, 10, 40
"""Sweeps of gradient projection before a Newton step, such steps before paths are added, and
conjugate gradient iterations within one."""

_TRACE = 1e-7
"""Share of a demand on a path that is left out if the gap allows."""


class Found(NamedTuple):
    """What the method found.

    Attributes
    ----------
    routing : Routing
        Path flows for all of every demand.
    fits : bool
        Whether they fit the capacities.
    bound : float
        Proof that no more than this multiple of all demands fits; infinite for roads.
    proof : tuple of float
        Lengths of the links that prove it.
    iterations : int
        Sweeps and Newton steps.
    relative_gap : float
        Of flows that fit, worked out from the link flows alone.
    """

    routing: Routing
    fits: bool
    bound: float
    proof: tuple[float, ...]
    iterations: int
    relative_gap: float


def prepared() -> bool:
    """Return whether the compiled loops can be loaded without compiling."""
    source = FilePath(__file__).with_name("kernels.py")
    written = source.stat().st_mtime
    return any(
        index.stat().st_mtime >= written
        for index in (source.parent / "__pycache__").glob("kernels.optimise-*.nbi")
    )


def available() -> bool:
    """Return whether Numba is installed."""
    return importlib.util.find_spec("numba") is not None


def usable() -> bool:
    """Return whether the method can be used at once: installed, and loaded or compiled before."""
    return "fdm.kernels" in sys.modules or (available() and prepared())


def prepare() -> None:
    """Compile the loops and keep the result, which takes the better part of a minute once."""
    network = Network("ab", [Link("a", "b", 1.0, 1.0)])
    found = path_flows(network, [Demand("a", "b", 0.5)], Kleinrock(1.0))
    certify_compiled(network, [Demand("a", "b", 0.5)], [0.5], Kleinrock(1.0))
    settled(network, Kleinrock(1.0), found.routing)


def path_flows(
    network: Network,
    demands: Sequence[Demand],
    delay: Delay,
    routing: Routing | None = None,
    gap: float = 1e-9,
    rounds: int = 300,
) -> Found:
    """Minimise over path flows, from an earlier routing or from none.

    Parameters
    ----------
    network, demands, delay
        The problem; every demand above 0 has a path.
    routing : Routing, optional
        Paths to begin with.
    gap : float
        Relative gap at which to stop.
    rounds : int
        How often paths are added at most.
    """
    import numpy as np

    from fdm import kernels

    family, scale, linear, beta = delay.terms(network)
    arrays = network.arrays
    index = network.index
    sending = sorted(
        (number for number, demand in enumerate(demands) if demand.rate_bps > 0.0),
        key=lambda number: index[demands[number].origin],
    )
    origin = np.array([index[demands[number].origin] for number in sending], dtype=np.int64)
    destination = np.array(
        [index[demands[number].destination] for number in sending], dtype=np.int64
    )
    rate = np.array([demands[number].rate_bps for number in sending], dtype=np.float64)
    own, first = [0], [0]
    links: list[int] = []
    flows: list[float] = []
    for number in sending:
        if routing is not None:
            for path, path_flow in routing[number].items():
                links.extend(path)
                first.append(len(links))
                flows.append(path_flow)
        own.append(len(flows))
    a = np.array(scale, dtype=np.float64)
    lin = np.array(linear, dtype=np.float64)
    new_own, new_first, pool, flow, _, iterations, _, bound, proof = kernels.optimise(
        family, a, lin, arrays.capacity, beta, arrays.tail, arrays.head,
        arrays.out, arrays.out_link, origin, destination, rate,
        np.array(own, dtype=np.int64), np.array(first, dtype=np.int64),
        np.array(links, dtype=np.int64), np.array(flows, dtype=np.float64),
        np.array(_EDGES), gap, rounds, _SWEEPS, _STEPS, _CONJUGATE, _WARM_EDGE,
    )  # fmt: skip
    ends_and_rates = (origin, destination, rate)
    roads = (family, a, lin, arrays.capacity, beta, arrays.head, arrays.out, arrays.out_link)

    def judged(flow: "NDArray[np.float64]") -> tuple[float, float]:
        """Return the relative gap and the utilisation."""
        on_links = kernels.load(len(a), new_first, pool, flow)
        _, now, best, fullest = kernels.judge(*roads, *ends_and_rates, on_links)
        return max(0.0, now - best) / now if now > 0.0 else 0.0, fullest

    relative_gap, fullest = judged(flow)
    owner = np.repeat(np.arange(len(rate)), np.diff(new_own))
    traces = flow < _TRACE * rate[owner]
    if bool(traces.any()) and (delay.bounded or fullest < FITS):
        kept = np.where(traces, 0.0, flow)
        kept *= (rate / np.add.reduceat(kept, new_own[:-1]))[owner]
        without = judged(kept)
        if without[0] <= max(gap, relative_gap):
            flow, (relative_gap, fullest) = kept, without
    fits = delay.bounded or fullest < FITS
    found: Routing = [{} for _ in demands]
    at, rates, ends = pool.tolist(), flow.tolist(), new_first.tolist()
    bounds = new_own.tolist()
    for position, number in enumerate(sending):
        found[number] = {
            tuple(at[ends[p] : ends[p + 1]]): rates[p]
            for p in range(bounds[position], bounds[position + 1])
            if rates[p] > 0.0
        }
    return Found(
        found,
        fits,
        bound,
        tuple(proof.tolist()),
        iterations,
        relative_gap,
    )


def certify_compiled(
    network: Network, demands: Sequence[Demand], flow: Sequence[float], delay: Delay
) -> Certificate:
    """Return what `fdm.certify` returns, sooner on larger networks."""
    import numpy as np

    from fdm import kernels

    family, scale, linear, beta = delay.terms(network)
    arrays, index = network.arrays, network.index
    sending = sorted(
        [(index[o], index[d], rate) for o, d, rate in demands if rate > 0.0],
        key=lambda one: one[0],
    )
    columns = list(zip(*sending, strict=True)) or [(), (), ()]
    objective, now, best, _ = kernels.judge(
        family, np.array(scale, dtype=np.float64), np.array(linear, dtype=np.float64),
        arrays.capacity, beta, arrays.head, arrays.out, arrays.out_link,
        np.array(columns[0], dtype=np.int64), np.array(columns[1], dtype=np.int64),
        np.array(columns[2], dtype=np.float64), np.array(flow, dtype=np.float64),
    )  # fmt: skip
    excess = max(0.0, now - best)
    total = delay.total(network, flow) if delay.equilibrium else objective
    return Certificate(total, objective, objective - excess, excess / now if now > 0.0 else 0.0)


def settled(network: Network, delay: Delay, routing: Routing, gap: float = 1e-9) -> Routing:
    """Return the best rates on the paths of a routing, with no other paths.

    They may not fit the capacities where no rates on these paths do.
    """
    import numpy as np

    from fdm import kernels

    family, scale, linear, beta = delay.terms(network)
    own, first = [0], [0]
    links: list[int] = []
    flows: list[float] = []
    for paths in routing:
        for path, rate in paths.items():
            links.extend(path)
            first.append(len(links))
            flows.append(rate)
        own.append(len(flows))
    flow = np.array(flows, dtype=np.float64)
    kernels.settle(
        family, np.array(scale, dtype=np.float64), np.array(linear, dtype=np.float64),
        network.arrays.capacity, beta, np.array(own, dtype=np.int64),
        np.array(first, dtype=np.int64), np.array(links, dtype=np.int64), flow,
        np.array(_EDGES), gap, 300, _SWEEPS, _CONJUGATE,
    )  # fmt: skip
    rates = iter(flow.tolist())
    best: Routing = []
    for paths in routing:
        rates_here = [next(rates) for _ in paths]
        best.append(
            {path: rate for path, rate in zip(paths, rates_here, strict=True) if rate > 0.0}
        )
    return best
