"""Fixed slices: the described shortest paths, and an equal share for everybody who may come.

What a planner would configure once.  A subflow keeps its path and its rate whoever else is
there, and whether or not a trunk on it is down.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from fdm.queues import QueueRate

from ..allocation import Allocation, Situation, Subflow
from ..policy import Policy


class Static(Policy):
    """Guaranteed and at most: the trunk's share, divided by the attachments that may cross it."""

    uses_queues = True

    def allocate(self, situation: Situation) -> Allocation:
        """One subflow for every attached address."""
        network = situation.network
        planned = replace(
            situation,
            attached=network.attachments,
            usable=frozenset(network.trunks),
            capacities={},
            delays={},
        )
        crossing: Counter[tuple[str, str]] = Counter()
        for path in planned.shortest_paths.values():
            crossing.update((hop.datapath, hop.port) for hop in path if hop.trunk is not None)
        subflows = []
        present = replace(planned, attached=situation.attached)
        for a in present.one_for_each_address():
            path = planned.shortest_paths[a]
            queues = {}
            for hop in path:
                if hop.trunk is not None:
                    share_bps = network.capacity_share * hop.trunk.rate_bps
                    rate = max(1, int(share_bps / crossing[hop.datapath, hop.port]))
                    queues[hop.datapath, hop.port] = QueueRate(rate, rate)
            subflows.append(Subflow(a, path, None, queues))
        return Allocation(tuple(subflows))


POLICY = Static()
