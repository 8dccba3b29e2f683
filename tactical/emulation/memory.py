"""How much memory a virtual machine needs for runs. Pure.

The figures are upper bounds of what was measured with kernel 6.1 (docs/emulation.md, "Size").
"""

from __future__ import annotations

from collections.abc import Sequence

from .plan import Plan

_BASE_MIB = 1600
"""Kernel, Open vSwitch, controller and worker."""
_NODE_MIB = 8
"""A network namespace and its shell."""
_RECORDER_MIB = 12
"""dumpcap: 2 MiB of its packets in the kernel, the rest its own."""
_TRANSFER_MIB = 16
"""iperf3 on both sides, and what its sockets hold."""
_STEP_MIB = 512


def guest_memory_mib(plans: Sequence[Plan]) -> int:
    """Memory of a virtual machine that makes runs of these plans, one after the other.

    In virtual time captures have memory of their own (`tactical.host.memory_disk`).
    """
    return _STEP_MIB * -(-max(map(_network_mib, plans)) // _STEP_MIB)


def _network_mib(plan: Plan) -> int:
    nodes = len(plan.stations) + len(plan.switches) + len(plan.media) + 1
    return (
        _BASE_MIB
        + _NODE_MIB * nodes
        + _RECORDER_MIB * len(plan.capture_points)
        + _TRANSFER_MIB * (len(plan.transfers) + len(plan.applications))
    )
