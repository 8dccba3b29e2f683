"""What an application writes, and the packet scheduler that gives it to a subflow.

A connection that sends as fast as it can needs no scheduler: a subflow takes data whenever its
window has room. One whose application writes at a rate has to choose.
"""

import math
from typing import Any

from simulation.heaps import set_timer
from simulation.transport import send

LOWEST_RTT, ROUND_ROBIN = range(2)

SCHEDULERS = {"lowest-rtt": LOWEST_RTT, "round-robin": ROUND_ROBIN}
"""Packet schedulers by name: of the subflows whose windows have room, the one with the lowest
smoothed round-trip time (one that has none yet comes first), or the next in turn."""


def write(
    now_s: float,
    who: int,
    c: int,
    clock: Any,
    heap: Any,
    timers: Any,
    links: Any,
    ring: Any,
    steps: Any,
    subflows: Any,
    windows: Any,
    connections: Any,
) -> None:
    """Let the application of a connection write a packet, and set its timer for the next."""
    own = connections[c]
    own.unsent += 1
    own.unwritten -= 1
    if own.unwritten > 0:
        set_timer(clock, timers, who, now_s + own.interval_s)
    s = chosen(own, subflows, windows)
    if s >= 0:
        own.turn = s + 1 - own.first
        send(now_s, s, clock, heap, timers, links, ring, steps, subflows, windows, connections)


def chosen(connection: Any, subflows: Any, windows: Any) -> int:
    """Return the subflow that is to send next, or −1 if no window has room."""
    best = -1
    least_s = math.inf
    n = connection.last - connection.first
    for i in range(n):
        s = connection.first + (connection.turn + i) % n
        if not has_room(subflows[s], windows[s]):
            continue
        if connection.scheduler == ROUND_ROBIN:
            return int(s)
        if windows[s].rtt_s < least_s:
            best = s
            least_s = windows[s].rtt_s
    return best


def has_room(subflow: Any, window: Any) -> bool:
    """Whether a subflow has started, repeats nothing, and may send a packet that is new."""
    allowed = min(int(window.w) + subflow.inflation, subflow.limit)
    return bool(
        subflow.started != 0
        and subflow.next == subflow.top
        and subflow.next < subflow.acked + allowed
    )
