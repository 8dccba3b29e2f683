"""The same problem given to a general convex solver, for tests and for anyone who doubts.

It shares nothing with the methods of this package: no paths, no shortest paths, flows by link and
origin, the delay functions written out once more, and an interior point code of somebody else. It
is slow, and needs cvxpy, which is imported only here.
"""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import cvxpy
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from fdm.delay import Bpr, Delay, Deterministic, Kleinrock
from fdm.network import Demand, Network

cp: Any = cvxpy  # its own annotations leave out most of what it exports

_TOLERANCES = {"CLARABEL": {"tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9}}

_Array = NDArray[np.float64]


class Reference(NamedTuple):
    """What the general solver says.

    Attributes
    ----------
    status : str
        cvxpy's word: ``optimal``, ``infeasible``, …, or ``solver_error``.
    gamma_T : float
        γT at its solution; NaN unless it found one.
    link_flows_bps : tuple of float
        Its link flows in bit/s; empty unless it found any.
    objective : float
        What was minimised, at its solution: γT, or Beckmann's sum for a user equilibrium; NaN
        unless it found one.
    """

    status: str
    gamma_T: float
    link_flows_bps: tuple[float, ...]
    objective: float


def reference(
    network: Network,
    demands: Sequence[Demand],
    *,
    delay: Delay | None = None,
    packet_bits: float = 12000.0,
    kappa: float | Sequence[float] = 1.0,
    solver: str = "CLARABEL",
) -> Reference:
    """Minimise the mean packet delay, or find the user equilibrium, with cvxpy.

    Parameters
    ----------
    network, demands, delay, packet_bits, kappa
        As for `fdm.solve`.
    solver : str
        Name of a solver that cvxpy knows.

    Raises
    ------
    ValueError
        As `fdm.solve`.
    """
    network.check(demands)
    if delay is None:
        delay = Kleinrock(packet_bits, kappa if isinstance(kappa, float | int) else tuple(kappa))
    up = [number for number, link in enumerate(network.links) if link.capacity_bps > 0.0]
    sending = [demand for demand in demands if demand.rate_bps > 0.0]
    rates = [demand.rate_bps for demand in sending]
    unit = float(np.exp(np.log(rates).mean())) if rates else 1.0  # solvers want numbers near 1

    ends = [(network.links[number].tail, network.links[number].head) for number in up]
    rows = [network.index[node] for pair in ends for node in pair]
    columns = np.repeat(np.arange(len(up)), 2)
    signs = np.tile([1.0, -1.0], len(up))
    balance = sparse.csr_array((signs, (rows, columns)), shape=(len(network.nodes), len(up)))
    # Demands of one origin may mix: their link flows are those of the demands apart.
    origins = list(dict.fromkeys(demand.origin for demand in sending))
    supply = np.zeros((len(network.nodes), len(origins)))
    for demand in sending:
        column = origins.index(demand.origin)
        supply[network.index[demand.origin], column] += demand.rate_bps / unit
        supply[network.index[demand.destination], column] -= demand.rate_bps / unit

    flows: Any = cp.Variable((len(up), len(origins)), nonneg=True)
    total = cp.sum(flows, axis=1)
    cost = _cost(network, delay, np.array(up, dtype=np.int64), total, unit)
    problem: Any = cp.Problem(cp.Minimize(cost), [balance @ flows == supply])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it may be inaccurate is in the status
            problem.solve(solver=solver, **_TOLERANCES.get(solver, {}))
    except cp.SolverError:  # it gives up where demands all but fill a link
        return Reference("solver_error", float("nan"), (), float("nan"))
    if total.value is None:
        return Reference(str(problem.status), float("nan"), (), float("nan"))
    link_flows = np.zeros(len(network.links))
    link_flows[up] = np.maximum(total.value, 0.0) * unit
    return Reference(
        str(problem.status),
        delay.total(network, link_flows.tolist()),
        tuple(link_flows.tolist()),
        delay.objective(network, link_flows.tolist()),
    )


def _cost(network: Network, delay: Delay, up: NDArray[np.int64], total: Any, unit: float) -> Any:
    """What is minimised, by the rules of convex programming, up to a constant and a factor.

    `total` holds the flows of the links that are up, in units of `unit` bit/s; ρ below is
    `total` over the capacity. Each term is d/b·f or its integral ∫ d/b df, with d the latency.
    """
    links = [network.links[number] for number in up]
    full: _Array = np.array([link.capacity_bps for link in links]) / unit
    delay_s: _Array = np.array([link.delay_s for link in links])
    load = cp.multiply(1.0 / full, total)
    if isinstance(delay, Bpr):
        # ∫ t(1 + α(f/C)^β) df = tC(ρ + αρ^(β+1)/(β + 1)); as a system optimum without the quotient.
        share = delay.alpha / (delay.beta + 1.0) if delay.equilibrium else delay.alpha
        time: _Array = delay_s * full
        return time @ load + share * (time @ cp.power(load, delay.beta + 1.0))
    assert isinstance(delay, Kleinrock)
    kappa: _Array = np.array(delay.kappas(network))[up]
    propagation = (delay_s * unit / delay.packet_bits) @ total
    if delay.equilibrium:
        # ∫ κ/(C − f) df = −κ·ln(1 − ρ)
        random = -(kappa @ cp.log(1.0 - load))
    else:
        # κ·f/(C − f) = κ·(1/(1 − ρ) − 1)
        random = kappa @ (cp.inv_pos(1.0 - load) - 1.0)
    if isinstance(delay, Deterministic):
        # κ·(ρ + ρ²/(2(1 − ρ))) = κ/2·(1/(1 − ρ) − 1) + κ/2·ρ, and its integral likewise
        return 0.5 * random + 0.5 * (kappa @ load) + propagation
    return random + propagation
