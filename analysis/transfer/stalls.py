"""Why the data of a connection stopped becoming complete, as far as its packets tell."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.transfer.arrival import gaps
from analysis.transfer.direction import Direction
from captures import Packets
from captures.packets import RST, SYN

I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

RECEIVER_WINDOW = "receiver window"
SENDER_IDLE = "sender idle"
LOSS_RECOVERY = "loss recovery"
SLOW_PATH = "slow path"
PATH_SILENT = "path silent"
NOTHING_ARRIVED = "nothing arrived"


@dataclass(frozen=True)
class Stall:
    """A time in which no data became complete from the start.

    Attributes
    ----------
    start_ns, end_ns : int
        The last progress before, and the next.
    cause : str
        See `Stalls.cause`.
    """

    start_ns: int
    end_ns: int
    cause: str


@dataclass(frozen=True)
class Stalls:
    """Finds and explains the stalls of one direction.

    Attributes
    ----------
    arrived : Direction
        As the place nearest to the receiver saw it.
    sent : Direction or None
        As a place near the sender saw it (the same, where there is one near the sender only).
    answering : Packets
        Of the place where `answers_of` was seen, for the receiver's windows.
    answers_of : Direction
    """

    arrived: Direction
    sent: Direction | None
    answering: Packets
    answers_of: Direction

    def lengths(self) -> tuple[I64, I64]:
        """Start and length of every time between two moments of progress, nanoseconds."""
        flow = self.arrived.flow
        progress = flow.time_ns[np.diff(flow.in_order, prepend=0) > 0]
        if not len(progress):
            return progress, progress
        return gaps(progress, int(progress[0]), int(progress[-1]))

    def longer_than(self, limit_s: float) -> list[Stall]:
        """The stalls over a limit, in order of time, explained."""
        start_ns, length_ns = self.lengths()
        chosen = np.flatnonzero(length_ns > limit_s * 1e9)
        return [
            Stall(start, start + length, self.cause(start, start + length))
            for start, length in zip(
                start_ns[chosen].tolist(), length_ns[chosen].tolist(), strict=True
            )
        ]

    def cause(self, start_ns: int, end_ns: int) -> str:
        """What explains a stall; the first that applies.

        Parameters
        ----------
        start_ns, end_ns : int

        Returns
        -------
        str
            - "receiver window": the receiver advertised a window of no bytes in it;
            - "sender idle": all that was sent was complete when it began, and nothing new was
              sent for more than half of it (only a capture near the sender tells);
            - "loss recovery": the data it waited for had to be sent again;
            - "slow path": later data arrived in it, the missing data was sent once and came later;
            - "path silent": data was on its way, and none arrived;
            - "nothing arrived": no data arrived, and no capture near the sender tells why.
        """
        flow = self.arrived.flow
        if self._window_closed(start_ns, end_ns):
            return RECEIVER_WINDOW
        edge = int(flow.in_order[np.searchsorted(flow.time_ns, start_ns, side="right") - 1])
        if self.sent is not None and self._idle(start_ns, end_ns, edge):
            return SENDER_IDLE
        if self._sent_again(end_ns, edge):
            return LOSS_RECOVERY
        inside = (flow.time_ns > start_ns) & (flow.time_ns < end_ns)
        if inside.any():
            return SLOW_PATH
        return PATH_SILENT if self.sent is not None else NOTHING_ARRIVED

    def _idle(self, start_ns: int, end_ns: int, edge: int) -> bool:
        assert self.sent is not None
        flow = self.sent.flow
        before = flow.time_ns <= start_ns
        highest = int((flow.position + flow.length)[before].max(initial=0))
        later = flow.time_ns[~before]
        next_ns = int(later.min()) if len(later) else end_ns
        return highest <= edge and next_ns - start_ns > (end_ns - start_ns) / 2

    def _sent_again(self, end_ns: int, edge: int) -> bool:
        """Whether the byte at the edge went out more than once before it arrived."""
        flow = (self.sent or self.arrived).flow
        covers = (flow.position <= edge) & (flow.position + flow.length > edge)
        if self.sent is not None:
            covers &= flow.time_ns <= end_ns
        # At the receiver the first copy may never have arrived.
        return int(covers.sum()) > 1 or bool(flow.retransmitted[covers].any())

    def _window_closed(self, start_ns: int, end_ns: int) -> bool:
        packets = self.answering
        for each in self.answers_of.subflows:
            rows = each.opposite_rows
            times = packets.time_ns[rows]
            inside = rows[(times >= start_ns) & (times <= end_ns)]
            open_ended = packets.flags[inside] & (SYN | RST) == 0
            if (packets.window[inside][open_ended] == 0).any():
                return True
        return False
