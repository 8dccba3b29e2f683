"""One-way delay: the same packet seen where it was sent and where it arrived, by one clock."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from captures.packets import Packets

I64 = NDArray[np.int64]

# What stays the same on the way through switches and routers and tells two packets of one
# connection apart, beside the four-tuple. The acknowledgment number separates empty packets.
_IDENTITY = (
    "ip_id",
    "sequence",
    "acknowledgment",
    "flags",
    "payload_bytes",
    "time_value",
)


@dataclass(frozen=True)
class Delays:
    """Packets found at both ends.

    Attributes
    ----------
    sent_row, received_row : int64 array
        Positions in the two captures, in order of sending.
    delay_s : float64 array
        Time between them, seconds.
    lost_row : int64 array
        Sent packets that did not arrive, or were not recorded there.
    ambiguous_row : int64 array
        Sent packets left out, because copies that look the same were lost or doubled on the way.
    """

    sent_row: I64
    received_row: I64
    delay_s: NDArray[np.float64]
    lost_row: I64
    ambiguous_row: I64


def one_way_delays(sent: Packets, received: Packets, *, data_only: bool = True) -> Delays:
    """Match the packets of two captures recorded with the same clock.

    A packet is recognised by its four-tuple, IP identification, TCP numbers and timestamp; copies
    that agree in all of these (possible in IPv6, which has no identification) are matched in order
    if both captures have equally many, and left out otherwise.

    Parameters
    ----------
    sent : Packets
        Recorded at the sender. Packets of the other direction do no harm.
    received : Packets
        Recorded at the receiver.
    data_only : bool
        Match only packets that carry data.

    Returns
    -------
    Delays
        Where a capture sits against queues and delays decides what is measured: a recorder sees an
        outgoing packet after the queueing discipline of its interface.
    """
    here, there = np.arange(len(sent)), np.arange(len(received))
    if data_only:
        here, there = here[sent.payload_bytes > 0], there[received.payload_bytes > 0]
    flow_here, flow_there = sent.flows.numbers(received.flows)
    flow_here, flow_there = flow_here[sent.flow[here]], flow_there[received.flow[there]]
    same = [(flow_here, flow_there)]
    same += [(getattr(sent, name)[here], getattr(received, name)[there]) for name in _IDENTITY]
    group = _groups([np.concatenate(sides) for sides in same])
    group_here, group_there = group[: len(here)], group[len(here) :]
    count = int(group.max()) + 1 if len(group) else 0
    copies_here = np.bincount(group_here, minlength=count)
    copies_there = np.bincount(group_there, minlength=count)
    matching = (copies_here == copies_there) & (copies_here > 0)

    def in_groups(rows: I64, groups: I64, packets: Packets) -> I64:
        wanted = matching[groups]
        rows, groups = rows[wanted], groups[wanted]
        return rows[np.lexsort((packets.time_ns[rows], groups))]

    sent_row = in_groups(here, group_here, sent)
    received_row = in_groups(there, group_there, received)
    order = np.argsort(sent.time_ns[sent_row], kind="stable")
    sent_row, received_row = sent_row[order], received_row[order]

    # Packets of connections that never reach the other capture are somebody else's.
    known = np.isin(flow_here, flow_there)
    arrived = copies_there[group_here] > 0
    return Delays(
        sent_row=sent_row,
        received_row=received_row,
        delay_s=(received.time_ns[received_row] - sent.time_ns[sent_row]) / 1e9,
        lost_row=here[known & ~arrived],
        ambiguous_row=here[arrived & ~matching[group_here]],
    )


def _groups(columns: list[I64]) -> I64:
    """Numbers from 0, equal for rows that agree in all columns."""
    order = np.lexsort(columns)
    differs = np.zeros(len(order), dtype=np.bool_)
    for column in columns:
        ordered = column[order]
        differs[1:] |= ordered[1:] != ordered[:-1]
    group = np.empty(len(order), dtype=np.int64)
    group[order] = np.cumsum(differs)
    return group
