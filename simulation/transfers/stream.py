"""Both ends of the stream of one subflow: what TCP sends again, when, and how much it may send.

As Linux does it: losses are found by the times at which segments were sent (RACK, RFC 8985), a
probe asks for news before the retransmission timer would (TLP, the same), the window shrinks
gradually (RFC 6937), also for a packet that a queue has marked (RFC 3168), and the timer is never
less than 200 ms above the round trip.
"""

import math
from collections import deque
from collections.abc import Callable
from typing import Any

from simulation.transfers.cubic import Window
from simulation.transfers.loop import Loop, Timer

LEAST_TIMEOUT_S, MOST_TIMEOUT_S = 0.2, 120.0
FIRST_TIMEOUT_S = 1.0
"""Before there is a round-trip time (RFC 6298, 2)."""

_DELAYED_S = 0.04
"""An acknowledgment waits so long for a second segment."""

_QUICK = 16
"""Segments at the start that are acknowledged at once."""

_DUPLICATES = 3


class Segment:
    """Data under way."""

    __slots__ = ("again", "data_sequence", "end", "fresh", "lost", "sacked", "sent_s", "sequence")

    def __init__(self, sequence: int, end: int, data_sequence: int) -> None:
        self.sequence, self.end, self.data_sequence = sequence, end, data_sequence
        self.sent_s = 0.0
        self.fresh = True
        self.sacked = self.lost = self.again = False


class StreamSender:
    """Sends mapped data in order, as far as the window allows, until all is acknowledged.

    Parameters
    ----------
    loop : Loop
    window : Window
    transmit : callable
        Sends a segment.
    relieved : callable
        Called when something was acknowledged.
    """

    def __init__(
        self,
        loop: Loop,
        window: Window,
        transmit: Callable[[Segment], object],
        relieved: Callable[[], object],
    ) -> None:
        self._loop, self.window = loop, window
        self._transmit, self._relieved = transmit, relieved
        self.acknowledged = self.next = 1
        self.pending: deque[tuple[int, int]] = deque()
        self.segments: deque[Segment] = deque()
        self.smoothed_rtt_s: float | None = None
        self.least_rtt_s = math.inf
        self.retransmitted_packets = 0
        self._variation_s = 0.0
        self._last_rtt_s = 0.0
        self._sacked = self._lost = self._again = 0
        self._state = "open"
        self._high = 0
        self._newest_s = -math.inf
        self._backoff = 0
        self._probed = False
        self._limited = False
        self._delivered = self._out = 0
        self._before = 1.0
        self._sent_s = -math.inf
        self._timer = Timer(loop, self._expired)
        self._reordering = Timer(loop, self._reordered)
        self._probing = False
        self._to_tell = False

    @property
    def in_flight(self) -> int:
        """Segments that are thought to be under way."""
        return len(self.segments) - self._sacked - self._lost + self._again

    @property
    def timeout_s(self) -> float:
        """The retransmission timer's length."""
        if self.smoothed_rtt_s is None:
            return FIRST_TIMEOUT_S
        base_s = self.smoothed_rtt_s + max(4.0 * self._variation_s, LEAST_TIMEOUT_S)
        return min(base_s * 2.0**self._backoff, MOST_TIMEOUT_S)

    @property
    def pacing_bps(self) -> float:
        """The rate that the window amounts to, with the headroom that Linux gives it."""
        if self.smoothed_rtt_s is None:
            return 0.0
        window = max(self.window.packets, len(self.segments))
        headroom = 2.0 if self.window.packets < self.window.threshold / 2.0 else 1.2
        return headroom * window / self.smoothed_rtt_s

    def offer(self, data_sequence: int, length: int) -> None:
        """Take data to send."""
        self.pending.append((data_sequence, length))
        self.pump()

    def measured(self, rtt_s: float) -> None:
        """Take in a round-trip time (RFC 6298, 2)."""
        self._last_rtt_s = rtt_s
        self.least_rtt_s = min(self.least_rtt_s, rtt_s)
        if self.smoothed_rtt_s is None:
            self.smoothed_rtt_s, self._variation_s = rtt_s, rtt_s / 2.0
            return
        self._variation_s += (abs(rtt_s - self.smoothed_rtt_s) - self._variation_s) / 4.0
        self.smoothed_rtt_s += (rtt_s - self.smoothed_rtt_s) / 8.0

    def stop(self) -> list[tuple[int, int]]:
        """Send nothing any more; returns the data that may not have arrived."""
        self._timer.cancel()
        self._reordering.cancel()
        # What is beyond a gap has arrived and is not passed on.
        left = [(each.data_sequence, each.end - each.sequence) for each in self.segments]
        left += self.pending
        self.segments.clear()
        self.pending.clear()
        self._sacked = self._lost = self._again = 0
        return left

    def told_to_reduce(self) -> bool:
        """Whether the next new segment is to say that the window has been reduced; once."""
        to_tell, self._to_tell = self._to_tell, False
        return to_tell

    def answered(
        self,
        acknowledgment: int,
        sacks: tuple[tuple[int, int], ...],
        echo_s: float,
        congested: bool = False,
    ) -> None:
        """Take in an acknowledgment."""
        now_s, segments = self._loop.now_s, self.segments
        delivered, advanced = 0, acknowledgment > self.acknowledged
        while segments and segments[0].end <= acknowledgment:
            segment = segments.popleft()
            if segment.sacked:
                self._sacked -= 1
                continue
            delivered += 1
            self._settle(segment)
        for start, end in sacks:
            for segment in segments:
                if segment.sequence >= end:
                    break
                if segment.sequence >= start and not segment.sacked:
                    delivered += 1
                    self._settle(segment)
                    segment.sacked, segment.lost, segment.again = True, False, False
                    self._sacked += 1
        if advanced:
            self.acknowledged = acknowledgment
            self._backoff = 0
        if delivered:
            rtt_s = now_s - echo_s
            self.measured(rtt_s)
            self.window.sampled(rtt_s, self.least_rtt_s, self.acknowledged, self.next)
            self._probed = False
        if self._sacked or self._state in ("recovery", "loss"):
            self._find_losses()
        # The first segment that says so has to arrive before the receiver stops telling of marks.
        if self._state == "reduced" and self.acknowledged > self._high:
            self.window.packets = self.window.threshold
            self._state = "open"
        if self._state in ("recovery", "loss") and self.acknowledged >= self._high:
            if self._state == "recovery":
                self.window.packets = self.window.threshold
            self._state = "open"
        if self._state in ("open", "reduced") and self._lost:
            self._shrink("recovery")
        elif self._state == "open" and congested:
            self._shrink("reduced")
        if self._state in ("recovery", "reduced"):
            self._reduce(delivered)
        elif delivered and self._limited:
            assert self.smoothed_rtt_s is not None
            self.window.acknowledged(delivered, now_s, self.smoothed_rtt_s)
        if not segments:
            self._timer.cancel()
        elif advanced or delivered:
            self._restart_timer()
        self.pump()
        if delivered:
            self._relieved()

    def pump(self) -> None:
        """Send what may be sent."""
        now_s = self._loop.now_s
        if not self.segments and self.pending and self._sent_s > -math.inf:
            self.window.idle(now_s, self._sent_s, self.timeout_s)
        sent = False
        window = max(1, int(self.window.packets))
        while self.in_flight < window:
            segment = self._next_segment()
            if segment is None:
                break
            self._send(segment)
            sent = True
        self._limited = self.in_flight >= window or (
            self.window.packets < self.window.threshold and 2 * len(self.segments) > window
        )
        if sent and not self._timer.running:
            self._restart_timer()

    def _next_segment(self) -> Segment | None:
        if self._lost > self._again:
            for segment in self.segments:
                if segment.lost and not segment.again:
                    segment.again = True
                    self._again += 1
                    self.retransmitted_packets += 1
                    return segment
        if not self.pending:
            return None
        data_sequence, length = self.pending.popleft()
        segment = Segment(self.next, self.next + length, data_sequence)
        self.next = segment.end
        self.segments.append(segment)
        return segment

    def _send(self, segment: Segment) -> None:
        segment.sent_s = self._sent_s = self._loop.now_s
        self._out += 1
        self._transmit(segment)
        segment.fresh = False

    def _settle(self, segment: Segment) -> None:
        """A segment has arrived."""
        self._newest_s = max(self._newest_s, segment.sent_s)
        self._lost -= segment.lost
        self._again -= segment.again

    def _find_losses(self) -> None:
        """What was sent before something that has arrived is lost, or soon (RFC 8985, 6.2)."""
        sure = self._state in ("recovery", "loss") or self._sacked >= _DUPLICATES
        patience_s = 0.0 if sure else self.least_rtt_s / 4.0
        now_s, soonest_s = self._loop.now_s, math.inf
        for segment in self.segments:
            if segment.sacked or (segment.lost and not segment.again):
                continue
            if segment.sent_s >= self._newest_s:
                continue
            due_s = segment.sent_s + self._last_rtt_s + patience_s
            if sure or due_s <= now_s:
                self._again -= segment.again
                segment.again = False
                self._lost += not segment.lost
                segment.lost = True
            else:
                soonest_s = min(soonest_s, due_s)
        if soonest_s < math.inf:
            self._reordering.start(soonest_s - now_s)

    def _reordered(self) -> None:
        self._find_losses()
        if self._state in ("open", "reduced") and self._lost:
            self._shrink("recovery")
            self._reduce(0)
        self.pump()

    def _shrink(self, state: str) -> None:
        """Begin to shrink the window, once for what was sent until now."""
        already = self._state == "reduced"
        self._state, self._high = state, self.next
        if already:
            return
        self._before = self.window.packets
        self.window.lost()
        self._delivered = self._out = 0
        self._to_tell = True

    def _reduce(self, delivered: int) -> None:
        """Let out as much less as the window is to shrink (RFC 6937, 3)."""
        self._delivered += delivered
        threshold, pipe = self.window.threshold, self.in_flight
        if pipe > threshold:
            more = math.ceil(self._delivered * threshold / self._before) - self._out
        else:
            most = max(self._delivered - self._out, delivered) + 1
            more = min(int(threshold) - pipe, most)
        if self._out == 0 and self._lost:
            more = max(more, 1)  # the first retransmission
        self.window.packets = float(pipe + max(more, 0))

    def _restart_timer(self) -> None:
        probing = (
            self._state == "open"
            and not self._probed
            and not self._sacked
            and self.smoothed_rtt_s is not None
        )
        self._probing = probing
        wait_s = self.timeout_s
        if probing:
            assert self.smoothed_rtt_s is not None
            probe_s = 2.0 * self.smoothed_rtt_s
            if len(self.segments) == 1:
                probe_s += LEAST_TIMEOUT_S  # its acknowledgment may be delayed
            wait_s = min(probe_s, wait_s)
        self._timer.start(wait_s)

    def _expired(self) -> None:
        if not self.segments:
            return
        if self._probing:
            self._probed = True
            last = self.segments[-1]
            if self.pending:
                segment = self._next_segment()
                if segment is not None:
                    self._send(segment)
            else:
                self.retransmitted_packets += 1
                self._send(last)
            self._restart_timer()
            return
        if self._state != "loss":
            self.window.lost()
        self._state, self._high = "loss", self.next
        self._backoff += 1
        self.window.packets = 1.0
        self._lost = self._again = 0
        for segment in self.segments:
            segment.again = False
            segment.lost = not segment.sacked
            self._lost += segment.lost
        self.pump()
        self._restart_timer()


class StreamReceiver:
    """Takes segments, passes their data on in order, and says when to acknowledge.

    Parameters
    ----------
    loop : Loop
    deliver : callable
        Takes the data sequence, the length and whether the data ends there.
    acknowledge : callable
        Sends an acknowledgment.
    """

    def __init__(
        self,
        loop: Loop,
        deliver: Callable[[int, int, bool], object],
        acknowledge: Callable[[], object],
    ) -> None:
        self._deliver, self._acknowledge = deliver, acknowledge
        self.next = 1
        self.echo_s = 0.0
        self.congested = False
        self._beyond: dict[int, Any] = {}
        self._blocks: list[tuple[int, int]] = []
        self._unacknowledged = 0
        self._taken = 0
        self._told = 1
        self._delayed = Timer(loop, self.tell)

    @property
    def sacks(self) -> tuple[tuple[int, int], ...]:
        """Up to three blocks beyond a gap, the latest first."""
        return tuple(self._blocks[:3])

    def note(self, marked: bool, reduced: bool) -> None:
        """Tell the sender of marks until it has reduced its window (RFC 3168, 6.1.3)."""
        self.congested = marked or (self.congested and not reduced)

    def take(
        self, sequence: int, length: int, data_sequence: int, data_end: bool, sent_s: float
    ) -> None:
        """Take a segment with data."""
        self._taken += 1
        if sequence <= self._told:
            self.echo_s = sent_s
        if sequence != self.next:
            if sequence > self.next:
                self._beyond[sequence] = (length, data_sequence, data_end)
                self._note(sequence, sequence + length)
            self.tell()
            return
        gap = bool(self._blocks)
        self.next += length
        self._deliver(data_sequence, length, data_end)
        while self._beyond and (following := self._beyond.pop(self.next, None)) is not None:
            length, data_sequence, data_end = following
            self.next += length
            self._deliver(data_sequence, length, data_end)
        if gap:
            self._blocks = [block for block in self._blocks if block[1] > self.next]
        self._unacknowledged += 1
        if gap or self._unacknowledged >= 2 or self._taken <= _QUICK:
            self.tell()
        elif not self._delayed.running:
            self._delayed.start(_DELAYED_S)

    def tell(self) -> None:
        """Acknowledge now."""
        self._unacknowledged = 0
        self._delayed.cancel()
        self._told = self.next
        self._acknowledge()

    def _note(self, start: int, end: int) -> None:
        joined = []
        for block in self._blocks:
            if block[1] < start or block[0] > end:
                joined.append(block)
            else:
                start, end = min(start, block[0]), max(end, block[1])
        self._blocks = [(start, end), *joined]
