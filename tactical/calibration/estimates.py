"""What follows from the moments at which packets were sent and received. Pure.

Arrays have one element for each packet in the order of sending; nan where it was not received.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.float64]


def poisson_times(rate_pps: float, duration_s: float, seed: int) -> Times:
    """Moments of a Poisson process of `rate_pps` packets a second, from 0 to `duration_s`."""
    expected = rate_pps * duration_s
    gaps = np.random.default_rng(seed).exponential(
        1.0 / rate_pps, int(expected + 10.0 * np.sqrt(expected) + 10.0)
    )
    times: Times = np.cumsum(gaps)
    return times[times < duration_s]


def rate_bps(received_s: Times, frame_bits: int, from_s: float, to_s: float) -> float:
    """Rate in bit/s at which frames of equal size arrived within an interval.

    Raises
    ------
    ValueError
        If fewer than two arrived.
    """
    within = np.sort(received_s[(received_s >= from_s) & (received_s <= to_s)])
    if within.size < 2:
        raise ValueError(f"{within.size} packets arrived; a rate needs two")
    return float((within.size - 1) * frame_bits / (within[-1] - within[0]))


def jitter_s(delays_s: Times) -> float:
    """Mean absolute difference of the delays of packets that follow each other.

    It is what the estimator of RFC 3550, section 6.4.1, smooths.
    """
    known = delays_s[~np.isnan(delays_s)]
    return float(np.abs(np.diff(known)).mean())


def fifo_waits_s(sent_s: Times, service_s: float, burst_s: float) -> Times:
    """How long each packet has to wait for a token bucket that serves them in order.

    Parameters
    ----------
    sent_s
        Arrivals, ascending.
    service_s
        Time that a packet takes at the rate of the bucket.
    burst_s
        Depth of the bucket as time at its rate. A packet passes as soon as the bucket is not in
        debt, and may leave it in debt, as in Linux's HTB (tc-htb(8)); with 0 it waits until those
        before it are transmitted.

    Notes
    -----
    Lindley's recursion (D. V. Lindley, The theory of queues with a single server, 1952) gives the
    work that is left at each arrival; the bucket forgives `burst_s` of it.
    """
    work = 0.0
    waits = np.empty_like(sent_s)
    before = sent_s[0] if sent_s.size else 0.0
    for number, moment in enumerate(sent_s):
        work = max(0.0, work - (moment - before))
        waits[number] = max(0.0, work - burst_s)
        work += service_s
        before = moment
    return waits


def longest_gap_s(received_s: Times, from_s: float, to_s: float) -> float:
    """Longest time between two arrivals within an interval.

    Raises
    ------
    ValueError
        If fewer than two packets arrived within it.
    """
    within = np.sort(received_s[(received_s >= from_s) & (received_s <= to_s)])
    if within.size < 2:
        raise ValueError(f"{within.size} packets arrived; a gap needs two")
    return float(np.diff(within).max())
