"""Weighted-cost multipath: as ECMP, each path in proportion to its bottleneck capacity."""

from __future__ import annotations

import bisect
import itertools

from routing import weights

from ..allocation import Allocation, Situation, Subflow
from ..policy import Policy
from .ecmp import hashed


class WeightedCost(Policy):
    """Hash-threshold with weights (Zhou et al., WCMP, EuroSys 2014)."""

    def allocate(self, situation: Situation) -> Allocation:
        """One subflow for every attached address."""
        subflows = []
        for a in situation.one_for_each_address():
            paths = situation.fewest_hops[a]
            sums = list(itertools.accumulate(weights(situation.graph, paths)))
            mark = hashed(a, situation.network.server.address)
            chosen = min(bisect.bisect_right(sums, mark), len(paths) - 1)
            subflows.append(Subflow(a, situation.along(paths[chosen])))
        return Allocation(tuple(subflows))

    def keeps(self, situation: Situation, allocation: Allocation, since_s: float) -> bool:
        """Whether weights would still lead to the same paths."""
        return self.allocate(situation).subflows == allocation.subflows


POLICY = WeightedCost()
