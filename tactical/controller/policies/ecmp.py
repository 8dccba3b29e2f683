"""Equal-cost multipath: subflows are spread evenly over the paths of fewest hops."""

from __future__ import annotations

import zlib

from ..allocation import Allocation, Situation, Subflow
from ..network import Attachment
from ..policy import Policy


def hashed(attachment: Attachment, server: str) -> float:
    """A number from 0 to 1 that depends on the addresses of a subflow only."""
    return zlib.crc32(f"{attachment.address} {server}".encode()) / 2**32


class EqualCost(Policy):
    """Hash-threshold over paths of equal cost (RFC 2992); the cost of a path is its hops."""

    def allocate(self, situation: Situation) -> Allocation:
        """One subflow for every attached address."""
        subflows = []
        for a in situation.one_for_each_address():
            paths = situation.fewest_hops[a]
            share = hashed(a, situation.network.server.address)
            subflows.append(Subflow(a, situation.along(paths[int(share * len(paths))])))
        return Allocation(tuple(subflows))


POLICY = EqualCost()
