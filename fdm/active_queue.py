"""How long a queue may be: CoDel's parameters for the queue of a subflow.

Flow deviation chooses rates for which queues are *expected* to be short. A sender that fills
whatever it is given makes them long all the same: TCP keeps a queue that is held to its rate as
full as its buffer lets it, and then the path that was chosen for its short delay has none. So each
queue gets an active queue management that holds it to the waiting time which the solution assumed:
CoDel (K. Nichols, V. Jacobson, "Controlling queue delay", ACM Queue 10(5), 2012; RFC 8289), which
marks packets (RFC 3168), or drops them from the front, once they have waited longer than a target
for a whole interval.
"""

from typing import NamedTuple

LEAST_INTERVAL_S = 0.1
"""RFC 8289, section 4.2: suits round trips from tens to hundreds of milliseconds."""

LEAST_TARGET = 0.05
"""Share of the interval, from RFC 8289, section 4.3; below it a path loses throughput."""

KEEPS_BUSY = (1.0 - 0.7) / 0.7
"""Share of the round trip that has to wait when a sender is told, for the path to stay busy.

CUBIC, alone on a path, goes on with 0.7 of its window (RFC 9438, 4.6). What then is under way fills
the path if what waited was (1 − 0.7) / 0.7 of what the path itself holds.
"""


class CoDel(NamedTuple):
    """Parameters of a CoDel queue, see tc-codel(8).

    Attributes
    ----------
    target_s : float
        Waiting time that may stand.
    interval_s : float
        How long packets may wait longer before some are dropped: about the longest round trip.
    limit_packets : int
        Packets that the queue holds at most.
    """

    target_s: float
    interval_s: float
    limit_packets: int


def codel(
    capacity_bps: float,
    flow_bps: float,
    rate_bps: float,
    round_trip_s: float,
    *,
    packet_bits: float = 12000.0,
    kappa: float = 1.0,
    buffer_packets: int = 1000,
) -> CoDel:
    """Return CoDel's parameters for the queue of a subflow on a link.

    Parameters
    ----------
    capacity_bps, flow_bps : float
        The link's capacity, and the solved flow of all subflows on it, in bit/s.
    rate_bps : float
        Rate that the queue is held to, in bit/s.
    round_trip_s : float
        Propagation there and back along the subflow's path, in seconds.
    packet_bits, kappa : float
        Mean packet in bits and coefficient of the queueing delay, as in `fdm.Kleinrock`.
    buffer_packets : int
        Packets that the link's buffer holds.

    Returns
    -------
    CoDel
        The target is the mean wait κ·b/(C − f) of the solution, at least one packet at the queue's
        own rate (CoDel never drops the last packet), at least 3/7 of the round trip (`KEEPS_BUSY`)
        and 5 % of the interval, at most the interval. The interval is the round trip with the wait
        of the solution, at least 100 ms.

    Raises
    ------
    ValueError
        If the capacity, the rate, the packet or the buffer is not above 0.
    """
    for name, value in (
        ("capacity_bps", capacity_bps),
        ("rate_bps", rate_bps),
        ("packet_bits", packet_bits),
        ("buffer_packets", buffer_packets),
    ):
        if not value > 0:
            raise ValueError(f"{name} must be above 0, not {value!r}")
    left_bps = capacity_bps - flow_bps
    packet_s = packet_bits / rate_bps
    # A full link would wait for ever by the model; the interval bounds that.
    wait_s = kappa * packet_bits / left_bps if left_bps > 0.0 else round_trip_s
    wait_s = max(packet_s, wait_s)
    interval_s = max(LEAST_INTERVAL_S, round_trip_s + min(wait_s, round_trip_s), packet_s)
    target_s = max(wait_s, KEEPS_BUSY * round_trip_s, LEAST_TARGET * interval_s)
    return CoDel(min(interval_s, target_s), interval_s, buffer_packets)
