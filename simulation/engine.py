"""The event loop: one event for each packet and link."""

import math
from typing import Any

from simulation.draws import exponential
from simulation.heaps import set_timer, sift_down, take_timer
from simulation.queueing import enqueue
from simulation.scheduling import write
from simulation.transport import acknowledged, data_arrives, timeout

DATA, ACKNOWLEDGMENT, UNRESPONSIVE = range(3)
"""What arrives at the end of a path."""


def advance(
    until_s: float,
    events: int,
    clocks: Any,
    heap: Any,
    timers: Any,
    links: Any,
    ring: Any,
    steps: Any,
    subflows: Any,
    windows: Any,
    connections: Any,
    sources: Any,
    seen: Any,
) -> bool:
    """Simulate until a time is reached.

    Parameters
    ----------
    until_s : float
        Events up to this time happen.
    events : int
        Return after so many.

    Returns
    -------
    bool
        Whether there is more to do: events were used up, something is wrong (`fault`), or rings
        have to grow first (`crowded`).
    """
    clock = clocks[0]
    for _ in range(events):
        if clock.fault != 0 or clock.crowded != 0:
            return True
        link_s = heap[0].at_s if clock.busy > 0 else math.inf
        timer_s = timers[0].at_s if clock.timers > 0 else math.inf
        if min(link_s, timer_s) > until_s:
            clock.now_s = until_s
            return False
        clock.events += 1
        if timer_s < link_s:
            who = take_timer(clock, timers)
            if who < len(subflows):
                timeout(
                    timer_s, who, clock, heap, timers, links, ring, steps, subflows, windows,
                    connections,
                )  # fmt: skip
            elif who < len(subflows) + len(sources):
                emit(
                    timer_s, who, who - len(subflows), clock, heap, timers, links, ring, steps,
                    sources,
                )  # fmt: skip
            else:
                write(
                    timer_s, who, who - len(subflows) - len(sources), clock, heap, timers, links,
                    ring, steps, subflows, windows, connections,
                )  # fmt: skip
            continue
        who = heap[0].who
        link = links[who]
        packet = ring[link.ring + (link.head & link.mask)]
        number = packet.number
        sent_s = packet.sent_s
        step = packet.step + 1
        link.head += 1
        if link.head < link.tail:
            following_s = ring[link.ring + (link.head & link.mask)].depart_s + link.delay_s
            sift_down(heap, clock.busy, following_s, who)
        else:
            clock.busy -= 1
            if clock.busy > 0:
                sift_down(heap, clock.busy, heap[clock.busy].at_s, heap[clock.busy].who)
        clock.hops += 1
        if steps[step].link >= 0:
            enqueue(link_s, step, number, sent_s, clock, heap, links, ring, steps)
        elif steps[step].kind == DATA:
            data_arrives(
                link_s, steps[step].owner, number, sent_s, clock, heap, timers, links, ring,
                steps, subflows, windows, connections, seen,
            )  # fmt: skip
        elif steps[step].kind == ACKNOWLEDGMENT:
            acknowledged(
                link_s, steps[step].owner, number, sent_s, clock, heap, timers, links, ring,
                steps, subflows, windows, connections,
            )  # fmt: skip
        else:
            sources[steps[step].owner].received += 1
    return True


def emit(
    now_s: float,
    who: int,
    which: int,
    clock: Any,
    heap: Any,
    timers: Any,
    links: Any,
    ring: Any,
    steps: Any,
    sources: Any,
) -> None:
    """Let an unresponsive source send a packet, and set its timer for the next."""
    own = sources[which]
    if now_s >= own.until_s:  # the pause is over: a new burst
        own.until_s = now_s + exponential(clock, own.on_s)
    own.sent += 1
    enqueue(now_s, own.forward, own.sent, now_s, clock, heap, links, ring, steps)
    next_s = now_s + (exponential(clock, own.interval_s) if own.poisson != 0 else own.interval_s)
    if next_s >= own.until_s:
        next_s = own.until_s + exponential(clock, own.off_s)
        own.until_s = next_s
    set_timer(clock, timers, who, next_s)
