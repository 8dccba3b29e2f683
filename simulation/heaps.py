"""Two priority queues in arrays: next arrivals of links, and timers.

Both are 4-ary heaps (D. B. Johnson, "Priority queues with update and finding minimum spanning
trees", Information Processing Letters 4 (3), 1975), half as deep as binary ones. A link or timer
is in its heap at most once, so neither can overflow. Timers may be moved forward, hence each knows
its place.
"""

from typing import Any


def sift_up(heap: Any, at: int, at_s: float, who: int) -> None:
    """Put an entry at a free place or above it."""
    while at > 0:
        parent = (at - 1) >> 2
        if heap[parent].at_s <= at_s:
            break
        heap[at].at_s = heap[parent].at_s
        heap[at].who = heap[parent].who
        at = parent
    heap[at].at_s = at_s
    heap[at].who = who


def sift_down(heap: Any, size: int, at_s: float, who: int) -> None:
    """Put an entry at the top, which is free, or below it."""
    at = 0
    while True:
        child = 4 * at + 1
        if child >= size:
            break
        least = child
        least_s = heap[child].at_s
        for other in range(child + 1, min(child + 4, size)):
            if heap[other].at_s < least_s:
                least = other
                least_s = heap[other].at_s
        if at_s <= least_s:
            break
        heap[at].at_s = least_s
        heap[at].who = heap[least].who
        at = least
    heap[at].at_s = at_s
    heap[at].who = who


def set_timer(clock: Any, timers: Any, who: int, at_s: float) -> None:
    """Start a timer, or move a running one forward; one that rings too early is for its owner."""
    at = timers[who].place
    if at < 0:
        at = clock.timers
        clock.timers += 1
    elif timers[at].at_s <= at_s:
        return
    while at > 0:
        parent = (at - 1) >> 2
        if timers[parent].at_s <= at_s:
            break
        timers[at].at_s = timers[parent].at_s
        timers[at].who = timers[parent].who
        timers[timers[at].who].place = at
        at = parent
    timers[at].at_s = at_s
    timers[at].who = who
    timers[who].place = at


def take_timer(clock: Any, timers: Any) -> int:
    """Remove the timer that rings first; returns its number."""
    first: int = timers[0].who
    timers[first].place = -1
    clock.timers -= 1
    size = clock.timers
    if size == 0:
        return first
    at_s = timers[size].at_s
    who = timers[size].who
    at = 0
    while True:
        child = 4 * at + 1
        if child >= size:
            break
        least = child
        least_s = timers[child].at_s
        for other in range(child + 1, min(child + 4, size)):
            if timers[other].at_s < least_s:
                least = other
                least_s = timers[other].at_s
        if at_s <= least_s:
            break
        timers[at].at_s = least_s
        timers[at].who = timers[least].who
        timers[timers[at].who].place = at
        at = least
    timers[at].at_s = at_s
    timers[at].who = who
    timers[who].place = at
    return first
