"""What a solve returns."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from fdm.shortest import Path


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


@dataclass(frozen=True)
class Solution:
    """Path flows of least mean packet delay, with a certificate.

    Attributes
    ----------
    feasible : bool
        Whether flows for all demands were found. If not, everything else describes the part that
        was admitted; `fitting_share` says whether it is proved that no flows exist.
    gamma_T : float
        Mean number of packets in the network, Σ κ·f/(C − f) + p·f/b.
    mean_packet_delay_s : float
        T = `gamma_T` divided by packets per second; 0 when nothing is sent.
    lower_bound : float
        No flow for the admitted demands has a smaller `gamma_T`.
    relative_gap : float
        Σ length·(f − v)/Σ length·f: 0 at the optimum.
    iterations : int
        Steps of the method, both phases together.
    method : str
        ``flow deviation`` or ``interior point``.
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
        }
