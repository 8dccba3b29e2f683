"""Congestion control: how the windows of a connection's subflows grow and shrink.

Each algorithm is a small function of the windows w (packets) and round-trip times RTT (s) of all
subflows of a connection, beside its formula. `increase` is called for every acknowledgment outside
slow start, `decrease` for every loss; windows stay at one packet or more. Subflows without a
round-trip time yet are left out.

Sources. *The paper*: D. Wischik, C. Raiciu, A. Greenhalgh, M. Handley, "Design, implementation and
evaluation of congestion control for multipath TCP", NSDI 2011. LIA: RFC 6356. OLIA:
R. Khalili et al., "MPTCP is not Pareto-optimal", CoNEXT 2012, with l/RTT² as Linux has it. BALIA:
Q. Peng et al., "Multipath TCP: analysis, design, and implementation", IEEE/ACM ToN 24 (1), 2016.
wVegas: Y. Cao, M. Xu, X. Fu, "Delay-based congestion control for multipath TCP", ICNP 2012.
CUBIC: RFC 9438.
"""

import math
from typing import Any

UNCOUPLED, EWTCP, COUPLED, SEMICOUPLED, MPTCP, LIA, OLIA, BALIA, CUBIC, WVEGAS = range(10)

ALGORITHMS = {
    "uncoupled": UNCOUPLED,
    "ewtcp": EWTCP,
    "coupled": COUPLED,
    "semicoupled": SEMICOUPLED,
    "mptcp": MPTCP,
    "lia": LIA,
    "olia": OLIA,
    "balia": BALIA,
    "cubic": CUBIC,
    "wvegas": WVEGAS,
}
"""Algorithms by name. Over one path, all up to ``balia`` are NewReno."""

CUBIC_C, CUBIC_BETA = 0.4, 0.7
VEGAS_TOTAL, VEGAS_LEAST, VEGAS_GAMMA, VEGAS_RESOLUTION_S = 10.0, 2.0, 1.0, 1e-6


def increase(algorithm: int, r: int, first: int, last: int, windows: Any, now_s: float) -> float:
    """Return by how much the window of a subflow grows per packet acknowledged."""
    if algorithm == LIA:
        return lia(r, first, last, windows)
    if algorithm == MPTCP:
        return mptcp(r, first, last, windows)
    if algorithm == EWTCP:
        return ewtcp(r, first, last, windows)
    if algorithm == COUPLED:
        return coupled(first, last, windows)
    if algorithm == SEMICOUPLED:
        return semicoupled(first, last, windows)
    if algorithm == OLIA:
        return olia(r, first, last, windows)
    if algorithm == BALIA:
        return balia(r, first, last, windows)
    if algorithm == CUBIC:
        return cubic(r, windows, now_s)
    if algorithm == WVEGAS:
        return 0.0  # decides once a round, in `wvegas_round`
    return reno(r, windows)


def decrease(algorithm: int, r: int, first: int, last: int, windows: Any) -> float:
    """Return the window of a subflow after a loss, and note the loss where it is remembered."""
    windows[r].between = windows[r].since
    windows[r].since = 0.0
    w: float = windows[r].w
    smaller = (
        cubic_loss(r, windows)
        if algorithm == CUBIC
        else w - cut(algorithm, r, first, last, windows)
    )
    return max(smaller, 1.0)


def cut(algorithm: int, r: int, first: int, last: int, windows: Any) -> float:
    """Return what a loss takes off a window; the window may not go below one packet."""
    w: float = windows[r].w
    if algorithm == COUPLED:
        return 0.5 * total(first, last, windows)
    if algorithm == BALIA:
        return 0.5 * w * min(lead(r, first, last, windows), 1.5)
    return 0.5 * w


def total(first: int, last: int, windows: Any) -> float:
    """Return the sum of the windows."""
    w = 0.0
    for k in range(first, last):
        if windows[k].rtt_s > 0.0:
            w += windows[k].w
    return w


def rate(first: int, last: int, windows: Any) -> float:
    """Return Σ w/RTT, packets per second."""
    x = 0.0
    for k in range(first, last):
        if windows[k].rtt_s > 0.0:
            x += windows[k].w / windows[k].rtt_s
    return x


def reno(r: int, windows: Any) -> float:
    """1/w_r (RFC 5681); on every subflow for itself, the paper's uncoupled control."""
    return 1.0 / float(windows[r].w)


def ewtcp(r: int, first: int, last: int, windows: Any) -> float:
    """a/w_r with a = 1/n².

    A subflow in equilibrium has √a of TCP's window, so this a makes the n of them one TCP, as the
    paper's own figures have it; its text gives a as if the window were proportional to a².
    """
    n = last - first
    return 1.0 / (n * n * float(windows[r].w))


def coupled(first: int, last: int, windows: Any) -> float:
    """1/w_total; the loss takes w_total/2 off w_r."""
    return 1.0 / total(first, last, windows)


def semicoupled(first: int, last: int, windows: Any) -> float:
    """a/w_total with a = 1."""
    return 1.0 / total(first, last, windows)


def mptcp(r: int, first: int, last: int, windows: Any) -> float:
    """Equation (1) of the paper: min over S ∋ r of max_{S} (w/RTT²) / (Σ_{S} w/RTT)².

    With the subflows in order of √w/RTT, the least is among the sets of all subflows up to some
    u ≥ r (appendix of the paper), here found without sorting: such a set is all subflows that
    come before u.
    """
    key_r = windows[r].w / windows[r].rtt_s / windows[r].rtt_s
    least = math.inf
    for u in range(first, last):
        if windows[u].rtt_s <= 0.0:
            continue
        key_u = windows[u].w / windows[u].rtt_s / windows[u].rtt_s
        if key_u < key_r:
            continue
        x = 0.0
        for t in range(first, last):
            if windows[t].rtt_s > 0.0:
                rate_t = windows[t].w / windows[t].rtt_s
                if rate_t / windows[t].rtt_s <= key_u:
                    x += rate_t
        least = min(least, key_u / (x * x))
    return float(least)


def lia(r: int, first: int, last: int, windows: Any) -> float:
    """min(α/w_total, 1/w_r), α = w_total · max(w/RTT²) / (Σ w/RTT)² (RFC 6356)."""
    x = 0.0
    greatest = 0.0
    for k in range(first, last):
        if windows[k].rtt_s > 0.0:
            rate_k = windows[k].w / windows[k].rtt_s
            x += rate_k
            greatest = max(greatest, rate_k / windows[k].rtt_s)
    return float(min(greatest / (x * x), 1.0 / windows[r].w))


def olia(r: int, first: int, last: int, windows: Any) -> float:
    """(w_r/RTT_r²) / (Σ w/RTT)² + α_r/w_r.

    B: paths with the greatest l/RTT², where l is the greater of what was acknowledged between the
    last two losses and since the last one; M: paths with the greatest window. α_r is 1/(n·|B∖M|)
    on paths of B∖M, −1/(n·|M|) on those of M if there are paths in B∖M, and otherwise 0.
    """
    n = last - first
    best = 0.0
    widest = 0.0
    for k in range(first, last):
        if windows[k].rtt_s > 0.0:
            best = max(best, quality(k, windows))
            widest = max(widest, windows[k].w)
    in_m = 0
    only_b = 0
    for k in range(first, last):
        if windows[k].rtt_s > 0.0:
            if windows[k].w >= widest:
                in_m += 1
            elif quality(k, windows) >= best:
                only_b += 1
    alpha = 0.0
    if only_b > 0:
        if windows[r].w >= widest:
            alpha = -1.0 / (n * in_m)
        elif quality(r, windows) >= best:
            alpha = 1.0 / (n * only_b)
    x = rate(first, last, windows)
    w = windows[r].w
    return float(w / (windows[r].rtt_s * windows[r].rtt_s) / (x * x) + alpha / w)


def quality(k: int, windows: Any) -> float:
    """OLIA's l/RTT²."""
    l_k = max(windows[k].between, windows[k].since)
    return float(l_k / (windows[k].rtt_s * windows[k].rtt_s))


def lead(r: int, first: int, last: int, windows: Any) -> float:
    """BALIA's α_r = max x / x_r, x = w/RTT."""
    greatest = 0.0
    for k in range(first, last):
        if windows[k].rtt_s > 0.0:
            greatest = max(greatest, windows[k].w / windows[k].rtt_s)
    if windows[r].rtt_s <= 0.0:
        return 1.0
    return float(greatest * windows[r].rtt_s / windows[r].w)


def balia(r: int, first: int, last: int, windows: Any) -> float:
    """x_r / (RTT_r (Σx)²) · (1 + α_r)/2 · (4 + α_r)/5; the loss takes (w_r/2)·min(α_r, 1.5)."""
    alpha = lead(r, first, last, windows)
    x = rate(first, last, windows)
    rtt_s = windows[r].rtt_s
    own = windows[r].w / (rtt_s * rtt_s)
    return float(own / (x * x) * (1.0 + alpha) / 2.0 * (4.0 + alpha) / 5.0)


def cubic(r: int, windows: Any, now_s: float) -> float:
    """(W_cubic(t + RTT) − w)/w, or what keeps up with Reno (RFC 9438, 4.2 to 4.4)."""
    own = windows[r]
    w = own.w
    if own.epoch_s < 0.0:
        own.epoch_s = now_s
        own.reno = w
        own.peak = max(own.peak, w)
        own.plateau_s = ((own.peak - w) / CUBIC_C) ** (1.0 / 3.0)
    own.reno += 3.0 * (1.0 - CUBIC_BETA) / (1.0 + CUBIC_BETA) / w
    t = now_s - own.epoch_s - own.plateau_s
    t_next = t + own.rtt_s
    if own.reno > CUBIC_C * t * t * t + own.peak:
        return float(max(own.reno - w, 0.0))
    target = min(max(CUBIC_C * t_next * t_next * t_next + own.peak, w), 1.5 * w)
    return float((target - w) / w)


def cubic_loss(r: int, windows: Any) -> float:
    """0.7 w; w is the next plateau, and less than w if it had not come back to the last.

    The latter leaves room to new flows (fast convergence, RFC 9438, 4.7).
    """
    own = windows[r]
    w = own.w
    own.peak = w * (1.0 + CUBIC_BETA) / 2.0 if w < own.peak else w
    own.epoch_s = -1.0
    return float(w * CUBIC_BETA)


def wvegas_round(r: int, first: int, last: int, windows: Any, slow_start: bool) -> bool:
    """Adapt the window to the round that has ended; returns whether slow start ends with it.

    The backlog w·(RTT − RTT_min)/RTT is brought to α_r packets, which are shared out of ten by
    rate. If queueing has doubled since its least, the window is cut to drain the queue.
    """
    own = windows[r]
    if own.round_count == 0.0:
        return False
    rtt_s = own.round_rtt_s / own.round_count
    own.round_rtt_s = 0.0
    own.round_count = 0.0
    w = own.w
    backlog = w * (rtt_s - own.least_rtt_s) / rtt_s
    if slow_start:
        if backlog <= VEGAS_GAMMA:
            return False
        own.w = max(min(w, w * own.least_rtt_s / rtt_s + 1.0), 1.0)
        return True
    if backlog >= own.target:
        x = rate(first, last, windows)
        own.target = max(VEGAS_LEAST, w / own.rtt_s / x * VEGAS_TOTAL)
    if backlog > own.target:
        w -= 1.0
    elif backlog < own.target:
        w += 1.0
    queueing_s = rtt_s - own.least_rtt_s
    if queueing_s >= VEGAS_RESOLUTION_S:  # less counts as none, as in Linux
        own.queueing_s = min(own.queueing_s, queueing_s)
    if queueing_s >= 2.0 * own.queueing_s:
        w *= own.least_rtt_s / (2.0 * rtt_s)
        own.queueing_s = math.inf
    own.w = max(w, 2.0)
    return False
