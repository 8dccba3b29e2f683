"""TCP: what sender and receiver of a subflow do.

Congestion control of RFC 5681 and recovery of NewReno (RFC 6582): the timer restarts with the first
partial acknowledgment only, recovery ends with a window of what is under way and one packet more,
and duplicates for packets below `recover` start no other. Limited transmit (RFC 3042), and the
retransmission timer of RFC 6298 with the timestamps of RFC 7323. Windows and sequence numbers count
packets. Every data packet is acknowledged at once.
"""

import math
from typing import Any

from simulation.congestion import WVEGAS, decrease, increase, wvegas_round
from simulation.heaps import set_timer
from simulation.queueing import enqueue

RTO_FIRST_S, RTO_MOST_S = 1.0, 60.0
"""RFC 6298, 2.1 and 2.5."""

WINDOW_EXCEEDED = 2


def data_arrives(
    now_s: float,
    s: int,
    number: int,
    sent_s: float,
    clock: Any,
    heap: Any,
    timers: Any,
    links: Any,
    ring: Any,
    steps: Any,
    subflows: Any,
    windows: Any,
    connections: Any,
    seen: Any,
) -> None:
    """Receive a data packet and acknowledge it."""
    own = subflows[s]
    expected = own.expected
    if number == expected:
        mask = own.limit - 1
        expected += 1
        while seen[own.seen + (expected & mask)] != 0:
            seen[own.seen + (expected & mask)] = 0
            expected += 1
        connection = connections[own.connection]
        connection.undelivered -= expected - own.expected
        if connection.undelivered <= 0 and connection.done_s > now_s:
            connection.done_s = now_s
        own.expected = expected
    elif number > expected:
        if number - expected >= own.limit:
            clock.fault = WINDOW_EXCEEDED
            clock.faulty = s
            return
        seen[own.seen + (number & (own.limit - 1))] = 1
    if own.back >= 0:
        enqueue(now_s, own.back, expected, sent_s, clock, heap, links, ring, steps)
    else:
        acknowledged(
            now_s, s, expected, sent_s, clock, heap, timers, links, ring, steps, subflows,
            windows, connections,
        )  # fmt: skip


def acknowledged(
    now_s: float,
    s: int,
    number: int,
    sent_s: float,
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
    """React to an acknowledgment: all packets below `number` have arrived."""
    own = subflows[s]
    if number > own.acked:
        fresh = number - own.acked
        outstanding = own.next - own.acked
        own.acked = number
        own.next = max(own.next, number)
        measure(now_s - sent_s, own, windows[s])
        windows[s].since += fresh
        if own.recovering == 0:
            own.duplicates = 0
            if outstanding >= int(windows[s].w):  # what is not used does not grow (RFC 7661)
                grow(now_s, s, fresh, subflows, windows, connections)
            restart_timer(now_s, s, own, clock, timers)
        elif number >= own.recover:
            windows[s].w = min(own.ssthresh, max(own.next - number, 1) + 1.0)
            own.recovering = 0
            own.inflation = 0
            own.duplicates = 0
            restart_timer(now_s, s, own, clock, timers)
        else:
            own.inflation = max(own.inflation - fresh + 1, 0)
            retransmit(now_s, s, own, clock, heap, links, ring, steps)
            if own.patient != 0:
                own.patient = 0
                restart_timer(now_s, s, own, clock, timers)
    elif own.next > own.acked:
        if own.recovering != 0:
            own.inflation += 1
        else:
            own.duplicates += 1
            if own.duplicates < 3:
                own.inflation = own.duplicates  # limited transmit, for this one time
            elif own.duplicates == 3 and number >= own.recover:
                connection = connections[own.connection]
                lose(s, connection, windows)
                own.ssthresh = windows[s].w
                own.recover = own.top
                own.recovering = 1
                own.patient = 1
                own.inflation = 3
                own.recoveries += 1
                retransmit(now_s, s, own, clock, heap, links, ring, steps)
    send(now_s, s, clock, heap, timers, links, ring, steps, subflows, windows, connections)
    if own.recovering == 0:
        own.inflation = 0


def send(
    now_s: float,
    s: int,
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
    """Send what the window allows."""
    own = subflows[s]
    connection = connections[own.connection]
    allowed = int(windows[s].w) + own.inflation
    if allowed > own.limit:
        allowed = own.limit
        own.limited += 1
    end = own.acked + allowed
    while own.next < end:
        if own.next == own.top:
            if connection.unsent <= 0:
                break
            connection.unsent -= 1
            own.top += 1
        else:
            own.retransmitted += 1
        own.sent += 1
        enqueue(now_s, own.forward, own.next, now_s, clock, heap, links, ring, steps)
        own.next += 1
        if own.expires_s == math.inf:
            own.expires_s = now_s + own.rto_s
            set_timer(clock, timers, s, own.expires_s)


def timeout(
    now_s: float,
    s: int,
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
    """Serve the timer of a subflow: its start, a time that was put off, or a timeout."""
    own = subflows[s]
    if own.started == 0:
        own.started = 1
    elif own.expires_s > now_s:
        if own.expires_s < math.inf:
            set_timer(clock, timers, s, own.expires_s)
        return
    else:
        lose(s, connections[own.connection], windows)
        own.ssthresh = max(windows[s].w, 2.0)
        windows[s].w = 1.0
        own.recover = own.top
        own.next = own.acked
        own.recovering = 0
        own.inflation = 0
        own.duplicates = 0
        own.rto_s = min(2.0 * own.rto_s, RTO_MOST_S)
        own.expires_s = math.inf
        own.timeouts += 1
    send(now_s, s, clock, heap, timers, links, ring, steps, subflows, windows, connections)


def grow(now_s: float, s: int, fresh: int, subflows: Any, windows: Any, connections: Any) -> None:
    """Let the window grow for packets that were acknowledged."""
    own = subflows[s]
    connection = connections[own.connection]
    window = windows[s]
    algorithm = connection.algorithm
    slow_start = window.w < own.ssthresh
    if algorithm == WVEGAS and own.acked > window.round_end:
        if wvegas_round(s, connection.first, connection.last, windows, slow_start):
            own.ssthresh = min(own.ssthresh, max(window.w - 1.0, 2.0))
            slow_start = False
        window.round_end = own.top
    if slow_start:
        window.w += 1.0
    else:
        # A jump over packets that had arrived before counts as one window at most.
        more = min(float(fresh), window.w)
        window.w = max(
            window.w
            + more * increase(algorithm, s, connection.first, connection.last, windows, now_s),
            1.0,
        )


def lose(s: int, connection: Any, windows: Any) -> None:
    """Shrink the window for a loss."""
    windows[s].w = decrease(connection.algorithm, s, connection.first, connection.last, windows)


def measure(rtt_s: float, own: Any, window: Any) -> None:
    """Take a round-trip time into account (RFC 6298, 2.2 and 2.3)."""
    if window.rtt_s == 0.0:
        window.rtt_s = rtt_s
        own.rttvar_s = 0.5 * rtt_s
        window.least_rtt_s = rtt_s
    else:
        own.rttvar_s = 0.75 * own.rttvar_s + 0.25 * abs(window.rtt_s - rtt_s)
        window.rtt_s = 0.875 * window.rtt_s + 0.125 * rtt_s
        window.least_rtt_s = min(window.least_rtt_s, rtt_s)
    window.round_rtt_s += rtt_s
    window.round_count += 1.0
    own.rto_s = min(max(window.rtt_s + 4.0 * own.rttvar_s, own.rto_min_s), RTO_MOST_S)


def restart_timer(now_s: float, s: int, own: Any, clock: Any, timers: Any) -> None:
    """Start the retransmission timer again, or stop it if all has arrived."""
    if own.next > own.acked:
        own.expires_s = now_s + own.rto_s
        set_timer(clock, timers, s, own.expires_s)
    else:
        own.expires_s = math.inf


def retransmit(
    now_s: float, s: int, own: Any, clock: Any, heap: Any, links: Any, ring: Any, steps: Any
) -> None:
    """Send the first packet that has not arrived again."""
    own.sent += 1
    own.retransmitted += 1
    enqueue(now_s, own.forward, own.acked, now_s, clock, heap, links, ring, steps)
