"""From path flows to the rates of queues.

A demand on a path is one subflow and gets one queue on every link of that path. Each queue is
guaranteed the solved rate. What it may take beyond that follows one rule:

- On its **overflow path**, the one with the most free capacity at its bottleneck, a demand may
  take an equal share of the capacity that is left. Bursts, the catching up after a handover, and
  whatever the demand was estimated too low by go there.
- On its other paths it is held to the solved rate. A scarce path is scarce because it is good,
  and a greedy sender would fill it and with it everybody's delay.

Guarantees never add up to more than a stated share of the capacity. Rates are whole bits per
second, because Open vSwitch reads nothing else.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from fdm.network import Network
from fdm.shortest import Path
from fdm.solution import Solution


@dataclass(frozen=True)
class QueueRate:
    """Rates of one queue.

    Attributes
    ----------
    min_bps : int
        Guaranteed rate in bit/s.
    max_bps : int
        Rate in bit/s that it is held to, at least `min_bps` and at least 1.
    """

    min_bps: int
    max_bps: int


def queue_rates(
    network: Network, solution: Solution, *, capacity_share: float = 0.95
) -> Mapping[tuple[int, Path, int], QueueRate]:
    """Return the queue rates that carry out a solution.

    Parameters
    ----------
    network : Network
        The network that was solved.
    solution : Solution
        Its answer.
    capacity_share : float
        Share η of a link's capacity, above 0 and up to 1, that guaranteed rates may add up to and
        that is handed out as overflow.

    Returns
    -------
    mapping
        (demand, path, link) to rates, for every link of every path of every demand; demands and
        links by position, paths as in `Solution.path_flows`.

    Raises
    ------
    ValueError
        If `capacity_share` is out of bounds, or the solution has not as many links as the network.

    Notes
    -----
    On a link with flow f, capacity C and n demands that overflow over it:

    - guaranteed: the solved rate, cut in proportion where f exceeds ηC, rounded down;
    - most: the solved rate, plus (ηC − f)/n for a demand that overflows here.
    """
    if not 0.0 < capacity_share <= 1.0:
        raise ValueError(f"capacity_share must be above 0 and at most 1, not {capacity_share!r}")
    if len(solution.link_flows_bps) != len(network.links):
        raise ValueError(
            f"the solution has {len(solution.link_flows_bps)} links, "
            f"the network {len(network.links)}"
        )
    usable = [capacity_share * link.capacity_bps for link in network.links]
    free = [max(0.0, room - f) for room, f in zip(usable, solution.link_flows_bps, strict=True)]
    overflow = [
        max((flow.path for flow in flows), key=lambda path: min(free[link] for link in path))
        if flows
        else ()
        for flows in solution.path_flows
    ]
    crowd = [0] * len(network.links)
    for path in overflow:
        for link in path:
            crowd[link] += 1

    rates: dict[tuple[int, Path, int], QueueRate] = {}
    for demand, flows in enumerate(solution.path_flows):
        for path, rate_bps in flows:
            for link in path:
                cut = min(1.0, usable[link] / solution.link_flows_bps[link])
                extra = free[link] / crowd[link] if path == overflow[demand] else 0.0
                most = max(1, math.floor(rate_bps + extra))
                rates[demand, path, link] = QueueRate(min(math.floor(rate_bps * cut), most), most)
    return rates
