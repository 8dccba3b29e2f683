"""The records that a simulation runs on.

Each is a row of a NumPy array when compiled and an object with the same attributes when not. A row
holds what is used together, a link or a packet within one cache line; on a fat tree of 128 hosts
that is what most events touch.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np

I32, I64, F64 = np.int32, np.int64, np.float64

CLOCK = np.dtype(
    [
        ("now_s", F64),
        ("hops", I64),
        ("events", I64),
        ("seed1", I64),
        ("seed2", I64),
        ("busy", I64),  # links in the heap
        ("timers", I64),  # timers in theirs
        ("crowded", I64),  # some ring is half full and should grow
        ("fault", I64),  # what went wrong, 0 for nothing
        ("faulty", I64),  # the link or subflow that it went wrong with
    ]
)

HEAP = np.dtype([("at_s", F64), ("who", I64)])

TIMER = np.dtype([("at_s", F64), ("who", I64), ("place", I64)])  # place: of timer i, not of row i

LINK = np.dtype(
    [
        ("s_per_bit", F64),
        ("delay_s", F64),
        ("free_s", F64),  # when all that waits will have left
        ("head", I64),  # packets that have arrived at the far end
        ("waiting", I64),  # packets that had left the queue when last looked
        ("tail", I64),  # packets that were accepted
        ("ring", I64),  # where its ring begins
        ("mask", I64),  # size of the ring − 1
        ("buffer", I64),  # packets, with the one being sent; −1: no limit
        ("early", I64),  # from so many on, some are dropped
        ("early_drop", F64),  # so many of them, for each packet beyond
        ("loss", F64),
        ("lost", I64),
        ("dropped", I64),
    ]
)

PACKET = np.dtype([("depart_s", F64), ("sent_s", F64), ("number", I64), ("step", I64)])

STEP = np.dtype(
    [
        ("link", I32),  # −1 after the last link of a path
        ("owner", I32),  # subflow or source
        ("kind", I32),  # what arrives at the end
        ("bits", F64),
    ]
)

SUBFLOW = np.dtype(
    [
        ("connection", I64),
        ("forward", I64),  # first step of the data's path
        ("back", I64),  # first step of the acknowledgments' path; −1: they take no time
        # The sender.
        ("acked", I64),  # all below has arrived
        ("next", I64),  # to be sent next
        ("top", I64),  # all below was sent once
        ("recover", I64),  # a loss below belongs to the last recovery (RFC 6582)
        ("duplicates", I64),
        ("recovering", I64),
        ("inflation", I64),  # packets beyond the window during recovery
        ("patient", I64),  # no partial acknowledgment yet in this recovery
        ("limit", I64),  # receive window
        ("ssthresh", F64),
        ("rttvar_s", F64),
        ("rto_s", F64),
        ("rto_min_s", F64),
        ("expires_s", F64),  # retransmission timeout; infinite if nothing is outstanding
        ("started", I64),
        # The receiver.
        ("expected", I64),  # all below was received
        ("seen", I64),  # where its window of packets out of order begins
        # Counters.
        ("sent", I64),
        ("retransmitted", I64),
        ("recoveries", I64),
        ("timeouts", I64),
        ("limited", I64),  # times that the receive window held it back
    ]
)

# What congestion control knows of a subflow.
WINDOW = np.dtype(
    [
        ("w", F64),  # congestion window, packets
        ("rtt_s", F64),  # smoothed; 0 before the first
        ("least_rtt_s", F64),
        ("between", F64),  # packets acknowledged between the last two losses
        ("since", F64),  # and since the last
        ("peak", F64),  # CUBIC: window before the last loss
        ("epoch_s", F64),  # CUBIC: start of this period of growth; −1: not begun
        ("plateau_s", F64),  # CUBIC: K
        ("reno", F64),  # CUBIC: what Reno would have
        ("round_end", I64),  # wVegas: the round ends when this is acknowledged
        ("round_rtt_s", F64),  # wVegas: sum of the round's samples
        ("round_count", F64),
        ("target", F64),  # wVegas: α of this subflow
        ("queueing_s", F64),  # wVegas: least queueing delay
    ]
)

CONNECTION = np.dtype(
    [
        ("first", I64),  # subflow
        ("last", I64),  # one beyond
        ("algorithm", I64),
        ("scheduler", I64),
        ("turn", I64),  # where the scheduler begins to look
        ("unwritten", I64),  # packets that the application has still to write
        ("interval_s", F64),  # between two of them
        ("unsent", I64),  # packets that no subflow has taken
        ("undelivered", I64),
        ("done_s", F64),
    ]
)

SOURCE = np.dtype(
    [
        ("forward", I64),
        ("interval_s", F64),
        ("on_s", F64),  # mean; infinite: always on
        ("off_s", F64),
        ("until_s", F64),  # end of this burst
        ("poisson", I64),
        ("sent", I64),
        ("received", I64),
    ]
)


def zeros(dtype: np.dtype[Any], size: int) -> Any:
    """Return records of zeros."""
    return np.zeros(size, np.dtype(dtype.descr, align=True))


def as_objects(records: Any) -> list[SimpleNamespace]:
    """Return records as objects, for use without the compiler."""
    names = records.dtype.names
    return [SimpleNamespace(**dict(zip(names, row, strict=True))) for row in records.tolist()]


def as_records(objects: list[SimpleNamespace], dtype: np.dtype[Any]) -> Any:
    """Return objects as records."""
    records = zeros(dtype, len(objects))
    for name in dtype.names or ():
        records[name] = [getattr(each, name) for each in objects]
    return records
