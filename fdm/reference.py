"""The same problem given to a general convex solver, for tests and for anyone who doubts.

It shares nothing with the methods of this package: no paths, no shortest paths, flows by link and
demand, solved by an interior point code of somebody else. It is slow, and needs cvxpy, which is
imported only here.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import cvxpy
import numpy as np

from fdm.delay import Kleinrock
from fdm.network import Demand, Network

cp: Any = cvxpy  # its own annotations leave out most of what it exports

_TOLERANCES = {"CLARABEL": {"tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9}}


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
    """

    status: str
    gamma_T: float
    link_flows_bps: tuple[float, ...]


def reference(
    network: Network,
    demands: Sequence[Demand],
    *,
    packet_bits: float = 12000.0,
    kappa: float = 1.0,
    solver: str = "CLARABEL",
) -> Reference:
    """Minimise the mean packet delay with cvxpy.

    Parameters
    ----------
    network, demands, packet_bits, kappa
        As for `fdm.solve`.
    solver : str
        Name of a solver that cvxpy knows.

    Raises
    ------
    ValueError
        As `fdm.solve`.
    """
    network.check(demands)
    delay = Kleinrock(packet_bits, kappa)
    up = [number for number, link in enumerate(network.links) if link.capacity_bps > 0.0]
    capacity = np.array([network.links[number].capacity_bps for number in up])
    delay_s = np.array([network.links[number].delay_s for number in up])
    rates = [demand.rate_bps for demand in demands if demand.rate_bps > 0.0]
    unit = float(np.exp(np.log(rates).mean())) if rates else 1.0  # solvers want numbers near 1

    balance = np.zeros((len(network.nodes), len(up)))
    for column, number in enumerate(up):
        link = network.links[number]
        balance[network.index[link.tail], column] += 1.0
        balance[network.index[link.head], column] -= 1.0
    supply = np.zeros((len(network.nodes), len(demands)))
    for column, demand in enumerate(demands):
        supply[network.index[demand.origin], column] += demand.rate_bps / unit
        supply[network.index[demand.destination], column] -= demand.rate_bps / unit

    flows: Any = cp.Variable((len(up), len(demands)), nonneg=True)
    total = cp.sum(flows, axis=1)
    full = capacity / unit
    # f/(C − f) = C/(C − f) − 1, in the form that convex programming rules accept.
    queueing = kappa * (cp.sum(cp.multiply(full, cp.inv_pos(full - total))) - len(up))
    propagation = (delay_s * unit / packet_bits) @ total
    problem: Any = cp.Problem(cp.Minimize(queueing + propagation), [balance @ flows == supply])
    try:
        problem.solve(solver=solver, **_TOLERANCES.get(solver, {}))
    except cp.SolverError:  # it gives up where demands all but fill a link
        return Reference("solver_error", float("nan"), ())
    if total.value is None:
        return Reference(str(problem.status), float("nan"), ())
    link_flows = np.zeros(len(network.links))
    link_flows[up] = np.maximum(total.value, 0.0) * unit
    return Reference(
        str(problem.status),
        delay.total(network, link_flows.tolist()),
        tuple(link_flows.tolist()),
    )
