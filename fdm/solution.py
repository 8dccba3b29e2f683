"""What a solve returns."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from fdm.shortest import Path

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class PathFlow(NamedTuple):
    """Part of a demand on one path.

    Attributes
    ----------
    path : tuple of int
        Links by their position in the network, from origin to destination.
    rate_bps : float
        Rate in bit/s, above 0.
    """

    path: Path
    rate_bps: float


class Columns(NamedTuple):
    """Path flows as arrays: column p is a path.

    Attributes
    ----------
    own : array of int
        Demand k owns the columns ``own[k]`` to ``own[k + 1]``.
    first, pool : array of int
        Column p has the links ``pool[first[p]:first[p + 1]]``.
    flow : array of float
        Its rate in bit/s.
    """

    own: "NDArray[np.int64]"
    first: "NDArray[np.int64]"
    pool: "NDArray[np.int64]"
    flow: "NDArray[np.float64]"


@dataclass(frozen=True)
class Solution:
    """Path flows of least mean packet delay, with a certificate.

    Attributes
    ----------
    feasible : bool
        Whether flows for all demands were found. If not, everything else describes the part that
        was admitted; `fitting_share` says whether it is proved that no flows exist.
    gamma_T : float
        Mean number of packets in the network: Σ κ·f/(C − f) + p·f/b for M/M/1 queues.
    mean_packet_delay_s : float
        T = `gamma_T` divided by packets per second; 0 when nothing is sent.
    lower_bound : float
        No flow for the admitted demands has a smaller `objective`.
    relative_gap : float
        Σ length·(f − v)/Σ length·f: 0 at the optimum.
    iterations : int
        Steps of the method, both phases together.
    method : str
        ``flow deviation``, ``interior point`` or ``path flows``.
    path_flows : tuple of tuple of PathFlow
        For each demand, its paths in order of falling rate.
    link_flows_bps : tuple of float
        Flow of every link in bit/s.
    admitted_bps : tuple of float
        For each demand the rate that `path_flows` adds up to.
    fitting_share : float or None
        Proof that no more than this multiple of all demands that have a path fits, a by-product of
        finding a start. It is 1 or less when they do not fit (a full link has infinite delay), to
        about 1e-6 for demands that just fill the network. None when no start had to be found.
    objective : float
        What was minimised: `gamma_T`, or Σ ∫ latency for a user equilibrium.
    offered_bps : tuple of float
        Rates of the demands as they were given.
    demand_delay_s : tuple of float
        Mean packet delay of each demand in seconds; 0 where nothing is sent.
    proof : tuple of float
        Link lengths behind `fitting_share`; empty where the demands fit.
    solve_time_s : float
        Wall time of the solve.
    columns : Columns or None
        The same as `path_flows` for the compiled loops, which start from it sooner.
    """

    feasible: bool
    gamma_T: float
    mean_packet_delay_s: float
    lower_bound: float
    relative_gap: float
    iterations: int
    method: str
    path_flows: tuple[tuple[PathFlow, ...], ...]
    link_flows_bps: tuple[float, ...]
    admitted_bps: tuple[float, ...]
    fitting_share: float | None = None
    objective: float = 0.0
    offered_bps: tuple[float, ...] = ()
    demand_delay_s: tuple[float, ...] = ()
    proof: tuple[float, ...] = ()
    solve_time_s: float = field(default=0.0, compare=False)
    columns: Columns | None = field(default=None, compare=False, repr=False)

    @property
    def cut_bps(self) -> tuple[float, ...]:
        """For each demand what was not admitted, in bit/s."""
        return tuple(
            offered - admitted
            for offered, admitted in zip(self.offered_bps, self.admitted_bps, strict=True)
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the same as dictionaries and lists, ready for JSON."""
        return {
            "feasible": self.feasible,
            "gamma_T": self.gamma_T,
            "mean_packet_delay_s": self.mean_packet_delay_s,
            "lower_bound": self.lower_bound,
            "relative_gap": self.relative_gap,
            "iterations": self.iterations,
            "method": self.method,
            "path_flows": [
                [{"path": list(flow.path), "rate_bps": flow.rate_bps} for flow in flows]
                for flows in self.path_flows
            ],
            "link_flows_bps": list(self.link_flows_bps),
            "admitted_bps": list(self.admitted_bps),
            "fitting_share": self.fitting_share,
            "objective": self.objective,
            "demand_delay_s": list(self.demand_delay_s),
            "cut_bps": list(self.cut_bps),
            "certificate": {
                "fitting_share": self.fitting_share,
                "lengths": [length if length < math.inf else None for length in self.proof],
            }
            if not self.feasible
            else None,
            "solve_time_s": self.solve_time_s,
        }


def as_path_flows(routing: Sequence[Mapping[Path, float]]) -> tuple[tuple[PathFlow, ...], ...]:
    """Return a routing as `Solution.path_flows`: of each demand, the largest rate first."""
    return tuple(
        [
            tuple(
                [
                    PathFlow(path, rate)
                    for path, rate in sorted(paths.items(), key=lambda item: (-item[1], item[0]))
                ]
            )
            for paths in routing
        ]
    )


def mean_delays(
    path_flows: Sequence[Sequence[PathFlow]], latencies: Sequence[float]
) -> tuple[float, ...]:
    """Return the mean delay of every demand, given its path flows and the delay of every link.

    It is 0 where nothing is sent.
    """
    delays = []
    for flows in path_flows:
        carried = weighted = 0.0
        for path, rate in flows:
            carried += rate
            weighted += rate * sum([latencies[link] for link in path])
        delays.append(weighted / carried if carried > 0.0 else 0.0)
    return tuple(delays)
