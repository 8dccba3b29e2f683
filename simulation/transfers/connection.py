"""A transfer: one stream of data over one connection, whose subflows share it.

The packet scheduler is that of Linux 6.1 (net/mptcp/protocol.c, `mptcp_subflow_get_send`): data go
to the subflow whose queue its pacing rate empties soonest, up to 64 kB in a row, backups only where
there is nothing else. What a subflow holds that goes is sent over another, and so is the first data
that nobody has acknowledged for long.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator

from simulation.transfers.loop import Loop, Timer
from simulation.transfers.packet import Packet
from simulation.transfers.stream import LEAST_TIMEOUT_S
from simulation.transfers.subflow import Subflow

BURST_BYTES = 1 << 16
RECEIVE_BYTES = 6 << 20
"""What may be under way and waiting at the receiver (the third of net.ipv4.tcp_rmem)."""

_ROOM, _LEAST_WINDOW = 2.0 * 4352 / 2700, 10.0
"""Packets that a subflow takes, sent or not, for each of its window, which counts as ten at least.

Linux's send buffer has room for twice the window (``tcp_sndbuf_expand``), with 4352 bytes of memory
for each packet of 1460 bytes; a packet of multipath TCP takes about 2700.
"""


class Sender:
    """The end that has the data: an application that writes at a rate into a buffer.

    Attributes
    ----------
    written, next, acknowledged : int
        Bytes that the application has written, those given to subflows, and those acknowledged.
    """

    def __init__(self, loop: Loop, transfer: Transfer) -> None:
        self._loop, self._transfer = loop, transfer
        self.written = self.next = self.acknowledged = 0
        self._again: deque[tuple[int, int]] = deque()
        self._last: Subflow | None = None
        self._burst = 0
        self._pushing = False
        self._ending = False
        self._stuck = Timer(loop, self._retransmit)

    def write(self, total: int) -> int:
        """Write up to so many bytes since the beginning, as far as there is room; returns them."""
        total = min(total, self.acknowledged + self._transfer.buffer_bytes)
        if total > self.written:
            self.written = total
            self.push()
        return self.written

    def opened(self, subflow: Subflow) -> None:
        """A subflow can be used."""
        self._transfer.opened(subflow)
        self.push()

    def answered(self, acknowledged: int) -> None:
        """The other end has everything up to here."""
        if not self._transfer.multipath:
            return
        if acknowledged > self.acknowledged:
            self.acknowledged = acknowledged
            self._restart()
            self._transfer.advanced()

    def push(self) -> None:
        """Give data to subflows, as far as they take them."""
        if self._pushing:
            return
        self._pushing = True
        try:
            if not self._transfer.multipath:
                for subflow in self._transfer.subflows:
                    acknowledged = subflow.sender.acknowledged - 1
                    if acknowledged > self.acknowledged:
                        self.acknowledged = acknowledged
                        self._transfer.advanced()
            for data_sequence, length in self._chunks():
                subflow_or_none = self._choose()
                if subflow_or_none is None:
                    break
                self._take(data_sequence, length)
                self._burst -= length
                subflow_or_none.sender.offer(data_sequence, length)
        finally:
            self._pushing = False
        if self.next > self.acknowledged and not self._stuck.running:
            self._restart()

    def reinject(self, parts: list[tuple[int, int]]) -> None:
        """Send over another subflow what one that has gone may not have delivered."""
        waiting = {sequence for sequence, _ in self._again}
        self._again.extend(
            part
            for part in sorted(parts)
            if part[0] + part[1] > self.acknowledged and part[0] not in waiting
        )
        self.push()

    def _chunks(self) -> Iterator[tuple[int, int]]:
        """What is to be sent next; `_take` notes that it was."""
        most = self._transfer.segment_bytes
        while True:
            while self._again and sum(self._again[0]) <= self.acknowledged:
                self._again.popleft()
            if self._again:
                yield self._again[0]
                continue
            limit = min(self.written, self.acknowledged + RECEIVE_BYTES)
            length = min(most, limit - self.next)
            # Small writes wait for each other while data are under way (RFC 9293, 3.7.4).
            if length <= 0 or (length < most and self.next > self.acknowledged and not self._whole):
                return
            yield self.next, length

    @property
    def _whole(self) -> bool:
        return self._transfer.finished_writing

    def _take(self, data_sequence: int, length: int) -> None:
        if self._again and self._again[0] == (data_sequence, length):
            self._again.popleft()
        else:
            self.next += length

    def _choose(self) -> Subflow | None:
        last = self._last
        usable = self._transfer.usable
        regular = [s for s in usable if not s.backup] or usable
        if last is not None and self._burst > 0 and last in regular and _has_room(last):
            return last
        best, least = None, math.inf
        for subflow in regular:
            if subflow.average_pacing <= 0.0:
                subflow.average_pacing = subflow.sender.pacing_bps
            if subflow.average_pacing <= 0.0:
                continue
            linger = _queued(subflow) / subflow.average_pacing
            if linger < least:
                best, least = subflow, linger
        if best is None or not _has_room(best):
            return None
        self._last, self._burst = best, BURST_BYTES
        queued = _queued(best) * self._transfer.segment_bytes
        best.average_pacing = (
            best.average_pacing * queued + best.sender.pacing_bps * BURST_BYTES
        ) / (queued + BURST_BYTES)
        return best

    def _restart(self) -> None:
        if self.next <= self.acknowledged:
            self._stuck.cancel()
            return
        waits = [s.sender.timeout_s for s in self._transfer.usable]
        self._stuck.start(max([LEAST_TIMEOUT_S, *waits]))

    def _retransmit(self) -> None:
        """Send the first data that are missing over a subflow that has nothing to send."""
        idle = [s for s in self._transfer.usable if not s.sender.pending]
        if self._transfer.multipath and len(self._transfer.usable) > 1 and idle:
            best = min(idle, key=lambda s: _queued(s) / max(s.average_pacing, 1e-9))
            length = min(self._transfer.segment_bytes, self.next - self.acknowledged)
            if length > 0:
                best.sender.offer(self.acknowledged, length)
        self._restart()


def _queued(subflow: Subflow) -> int:
    return len(subflow.sender.segments) + len(subflow.sender.pending)


def _has_room(subflow: Subflow) -> bool:
    """Whether the send buffer, which grows with the window, takes more."""
    return _queued(subflow) < _ROOM * max(_LEAST_WINDOW, subflow.sender.window.packets)


class Receiver:
    """The end that gets the data, in order.

    Attributes
    ----------
    next : int
        The next byte that is expected.
    complete : bool
        Whether all has arrived, and the end of the data with it.
    """

    def __init__(self) -> None:
        self.next = 0
        self._beyond: dict[int, int] = {}
        self._end: int | None = None

    @property
    def complete(self) -> bool:
        """Whether everything has arrived."""
        return self._end is not None and self.next >= self._end

    def take(self, sequence: int, length: int, ends: bool) -> None:
        """Take data from a subflow."""
        if ends:
            self._end = sequence + length
        end = sequence + length
        if end <= self.next:
            return
        if sequence > self.next:
            self._beyond[sequence] = max(self._beyond.get(sequence, 0), end)
            return
        self.next = end
        while self._beyond:
            first = min(self._beyond)
            if first > self.next:
                break
            self.next = max(self.next, self._beyond.pop(first))


class Transfer:
    """An application that sends at a rate for a while.

    Parameters
    ----------
    loop : Loop
    name : str
        Whose it is.
    send : callable
        Gives a packet to the network.
    multipath : bool
        Multipath TCP, or else TCP.
    cubic : bool
        CUBIC, or else NewReno.
    rate_bps, start_s, duration_s : float
        What is written, from when on (at the earliest: from when the connection is open), and for
        how long.
    block_bytes : int
        What is written at a time.
    segment_bytes : int
        Data in a full segment.
    buffer_bytes : int
        Most bytes that are written and not acknowledged.
    first_bytes : int
        What is written before all else, say a cookie.

    Attributes
    ----------
    subflows : list of Subflow
        In order of their making; those that have gone, too.
    """

    def __init__(
        self,
        loop: Loop,
        name: str,
        send: Callable[[Packet], object],
        *,
        multipath: bool,
        cubic: bool = True,
        rate_bps: float,
        start_s: float = 0.0,
        duration_s: float,
        block_bytes: int = 1400,
        segment_bytes: int = 1420,
        buffer_bytes: int = 1 << 20,
        first_bytes: int = 0,
    ) -> None:
        self._loop, self.name, self._send = loop, name, send
        self.multipath, self._cubic = multipath, cubic
        self.rate_bps, self.start_s, self.duration_s = rate_bps, start_s, duration_s
        self.block_bytes, self.segment_bytes = block_bytes, segment_bytes
        self.buffer_bytes = buffer_bytes
        self.first_bytes = first_bytes
        self.subflows: list[Subflow] = []
        self.finished_writing = False
        self.ended = False
        self.receiver = Receiver()
        self.sender = Sender(loop, self)
        self._writing = False

    @property
    def usable(self) -> list[Subflow]:
        """Subflows that can carry data."""
        return [subflow for subflow in self.subflows if subflow.state == "open"]

    def prepare(self, name: object, number: int, *, backup: bool = False) -> Subflow:
        """Make a subflow; `open` begins its handshake."""
        subflow = Subflow(self._loop, self, name, number, self._cubic, self._send)
        subflow.backup = backup
        self.subflows.append(subflow)
        return subflow

    def add(self, name: object, number: int, *, backup: bool = False) -> Subflow:
        """Open a subflow."""
        subflow = self.prepare(name, number, backup=backup)
        subflow.open()
        return subflow

    def remove(self, subflow: Subflow) -> None:
        """Give a subflow up: its address is gone."""
        parts = subflow.abandon()
        for other in self.usable[:1]:
            other.announce_removal(subflow.number)
        self.sender.reinject(parts)

    def opened(self, subflow: Subflow) -> None:
        """A subflow can be used; with the first one the application begins to write."""
        if not self._writing:
            self._writing = True
            self.start_s = max(self.start_s, self._loop.now_s)
            self._loop.at(self.start_s, self._write)

    def advanced(self) -> None:
        """More has been acknowledged."""
        if self.finished_writing and not self.ended:
            if self.sender.acknowledged >= self.sender.written:
                self._end()
        elif self._writing:
            self._fill()

    def _write(self) -> None:
        """Write what is due, and again after a block's time."""
        self._fill()
        if not self.finished_writing:
            self._loop.after(8.0 * self.block_bytes / self.rate_bps, self._write)

    def _fill(self) -> None:
        if self.finished_writing:
            return
        now_s = self._loop.now_s
        passed_s = min(max(0.0, now_s - self.start_s), self.duration_s)
        blocks = math.floor(self.rate_bps * passed_s / (8.0 * self.block_bytes)) + 1
        self.sender.write(self.first_bytes + blocks * self.block_bytes)
        if passed_s >= self.duration_s:
            self.finished_writing = True
            self.sender.push()

    def _end(self) -> None:
        self.ended = True
        for subflow in self.usable:
            if self.multipath:
                subflow.end_data(self.sender.written)
            subflow.close()
