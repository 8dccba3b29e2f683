"""Every subflow takes the path of least propagation delay; nothing is allocated."""

from __future__ import annotations

from ..allocation import Allocation, Situation, Subflow
from ..policy import Policy


class Shortest(Policy):
    """Least delay, no queues but the link's own."""

    def allocate(self, situation: Situation) -> Allocation:
        """One subflow for every attached address."""
        paths = situation.shortest_paths
        return Allocation(tuple(Subflow(a, paths[a]) for a in situation.one_for_each_address()))


POLICY = Shortest()
