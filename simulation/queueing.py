"""A packet joins the queue of a link.

A link serves first in, first out, so the time when a packet leaves is known when it joins:
one event brings it to the next link. All that is on a link, waiting or under way, is in its ring;
the heap knows the arrival of the first of them.
"""

from typing import Any

from simulation.draws import uniform
from simulation.heaps import sift_up

RING_FULL = 1


def enqueue(
    now_s: float,
    step: int,
    number: int,
    sent_s: float,
    clock: Any,
    heap: Any,
    links: Any,
    ring: Any,
    steps: Any,
) -> None:
    """Send a packet over the link of a step of its path, unless that loses or drops it.

    Parameters
    ----------
    step : int
        Place in `steps`.
    number : int
        What the packet carries: sequence number, or acknowledgment.
    sent_s : float
        When the sender sent it, or the packet that it acknowledges.
    """
    who = steps[step].link
    link = links[who]
    if link.loss > 0.0 and uniform(clock) < link.loss:
        link.lost += 1
        return
    tail = link.tail
    head = link.head
    if link.buffer >= 0:
        waiting = max(link.waiting, head)
        while waiting < tail and ring[link.ring + (waiting & link.mask)].depart_s <= now_s:
            waiting += 1
        link.waiting = waiting
        queued = tail - waiting
        if queued >= link.early:
            # The place that it would take among those where drops are early, from 1.
            place = queued - link.early + 1
            if queued >= link.buffer or uniform(clock) < link.early_drop * place:
                link.dropped += 1
                return
    on_link = tail - head
    if on_link > link.mask:
        clock.fault = RING_FULL
        clock.faulty = who
        return
    if 2 * on_link > link.mask:
        clock.crowded = 1
    depart_s = max(link.free_s, now_s) + steps[step].bits * link.s_per_bit
    link.free_s = depart_s
    entry = ring[link.ring + (tail & link.mask)]
    entry.depart_s = depart_s
    entry.sent_s = sent_s
    entry.number = number
    entry.step = step
    link.tail = tail + 1
    if on_link == 0:
        size = clock.busy
        clock.busy = size + 1
        sift_up(heap, size, depart_s + link.delay_s, who)
