"""Links: a port that sends at a rate, in queues, and the medium behind it that takes time.

The port is Linux's hierarchical token bucket as Open vSwitch sets it up (tc-htb(8)): a packet may
leave as soon as its queue owes nothing, and makes it owe its own length. A queue within its
guarantee owes to itself only; beyond that, up to its ceiling, also to the port. As in an emulated
network, sending itself takes no time: what follows is sent later.
"""

import math
import random
from collections import deque
from collections.abc import Callable, Hashable
from typing import NamedTuple

from simulation.transfers.loop import Loop
from simulation.transfers.packet import Packet

BURST_BITS = 1514 * 8
"""What a queue may send at once after a while of silence: a packet."""

LEAST_RATE_BPS = 12_000.0
"""A queue without guarantee has one of a packet a second all the same, as Open vSwitch gives it."""


class CoDel(NamedTuple):
    """Controlled delay (RFC 8289): packets are dropped while all wait longer than a target.

    Those that may be marked are marked and sent, one in place of each that would be dropped.

    Attributes
    ----------
    target_s, interval_s : float
        The wait that is allowed, and for how long a longer one is.
    limit_packets : int
        Packets that a full queue holds.
    """

    target_s: float
    interval_s: float
    limit_packets: int


class Counted(NamedTuple):
    """Packets and bytes that have left, and packets that were dropped."""

    packets: int
    bytes: int
    dropped: int


class _Queue:
    """Packets that wait, with what the queue owes: moments at which it may send again."""

    def __init__(self, guaranteed_bps: float, most_bps: float, limit_packets: int) -> None:
        self.guaranteed_bps, self.most_bps = guaranteed_bps, most_bps
        self.limit_packets = limit_packets
        self.codel: CoDel | None = None
        self.waiting: deque[tuple[float, Packet]] = deque()
        self.guaranteed_s = self.most_s = -math.inf
        self._above_s: float | None = None
        self._next_drop_s = 0.0
        self._dropping = False
        self._drops = self._drops_before = 0
        self.counted = Counted(0, 0, 0)

    def lose(self, packets: int) -> None:
        """Count packets that were dropped."""
        counted = self.counted
        self.counted = counted._replace(dropped=counted.dropped + packets)

    def charge(self, octets: int, now_s: float) -> None:
        """Owe for a packet, and count it."""
        packets, before, dropped = self.counted
        self.counted = Counted(packets + 1, before + octets, dropped)
        bits = 8.0 * octets
        rate = self.guaranteed_bps
        self.guaranteed_s = max(self.guaranteed_s, now_s - BURST_BITS / rate) + bits / rate
        rate = self.most_bps
        self.most_s = max(self.most_s, now_s - BURST_BITS / rate) + bits / rate

    def take(self, now_s: float) -> tuple[Packet | None, int]:
        """Return the packet to send and how many were dropped on the way (RFC 8289, 5).

        Where one is marked in place of being dropped none is dropped after it, as in tc-codel(8).
        """
        if self.codel is None:
            return self.waiting.popleft()[1], 0
        packet, good = self._take_one(now_s)
        dropped = 0
        codel = self.codel
        if self._dropping:
            if good:
                self._dropping = False
            while self._dropping and now_s >= self._next_drop_s and packet is not None:
                self._drops += 1
                if packet.capable:
                    packet.marked = True
                    self._next_drop_s += codel.interval_s / math.sqrt(self._drops)
                    break
                dropped += 1
                packet, good = self._take_one(now_s)
                if good:
                    self._dropping = False
                else:
                    self._next_drop_s += codel.interval_s / math.sqrt(self._drops)
        elif not good and packet is not None:
            if packet.capable:
                packet.marked = True
            else:
                dropped += 1
                packet, _ = self._take_one(now_s)
            self._dropping = True
            recent = now_s - self._next_drop_s < 16.0 * codel.interval_s
            since = self._drops - self._drops_before
            self._drops = since if since > 1 and recent else 1
            self._drops_before = self._drops
            self._next_drop_s = now_s + codel.interval_s / math.sqrt(self._drops)
        return packet, dropped

    def _take_one(self, now_s: float) -> tuple[Packet | None, bool]:
        """Return the next packet, and whether the wait has been short lately."""
        assert self.codel is not None
        if not self.waiting:
            self._above_s = None
            return None, True
        since_s, packet = self.waiting.popleft()
        if now_s - since_s < self.codel.target_s or not self.waiting:
            self._above_s = None
            return packet, True
        if self._above_s is None:
            self._above_s = now_s + self.codel.interval_s
            return packet, True
        return packet, now_s < self._above_s


class Port:
    """A port that sends at a rate, with a queue for each that has been set, and one for the rest.

    Parameters
    ----------
    loop : Loop
    rate_bps : float
        Its rate in bit/s.
    buffer_packets : int
        Packets that a full queue holds.
    deliver : callable
        Takes what is sent.

    Attributes
    ----------
    rate_bps : float
    """

    def __init__(
        self,
        loop: Loop,
        rate_bps: float,
        buffer_packets: int,
        deliver: Callable[[Packet], object],
    ) -> None:
        self._loop, self._deliver = loop, deliver
        self.buffer_packets = buffer_packets
        self._rest = _Queue(LEAST_RATE_BPS, rate_bps, buffer_packets)
        self._queues: dict[Hashable, _Queue] = {}
        self._turn = 0
        self._wake_s = math.inf
        self._owes_until_s = -math.inf
        self.rate_bps = rate_bps
        self._gone = Counted(0, 0, 0)

    def set_rate(self, rate_bps: float) -> None:
        """Send at another rate from now on; queues keep theirs."""
        self.rate_bps = self._rest.most_bps = rate_bps
        self._serve()

    def set_queue(self, key: Hashable, guaranteed_bps: float, most_bps: float) -> None:
        """Make a queue, or change its rates."""
        guaranteed_bps = max(guaranteed_bps, LEAST_RATE_BPS)
        queue = self._queues.get(key)
        if queue is None:
            self._queues[key] = _Queue(guaranteed_bps, most_bps, self.buffer_packets)
        else:
            queue.guaranteed_bps, queue.most_bps = guaranteed_bps, most_bps
            self._serve()

    def set_discipline(self, key: Hashable, codel: CoDel) -> None:
        """Let a queue that there is hold its packets to a wait."""
        if (queue := self._queues.get(key)) is not None:
            queue.codel, queue.limit_packets = codel, codel.limit_packets

    def drop_queue(self, key: Hashable) -> None:
        """Remove a queue; what waits in it is lost."""
        if (queue := self._queues.pop(key, None)) is not None:
            packets, octets, dropped = queue.counted
            self._gone = _sum(self._gone, Counted(packets, octets, dropped + len(queue.waiting)))

    @property
    def counted(self) -> Counted:
        """What has passed, in all queues that there are or were."""
        queues = [self._rest, *self._queues.values()]
        return _sum(self._gone, *(queue.counted for queue in queues))

    @property
    def counted_by_queue(self) -> dict[Hashable, Counted]:
        """What has passed each queue that was set."""
        return {key: queue.counted for key, queue in self._queues.items()}

    @property
    def waiting(self) -> dict[Hashable, int]:
        """Packets that wait in each queue; under None those of none."""
        return {None: len(self._rest.waiting)} | {
            key: len(queue.waiting) for key, queue in self._queues.items()
        }

    def send(self, packet: Packet, key: Hashable = None) -> None:
        """Queue a packet, or drop it where the queue is full."""
        queue = self._queues.get(key, self._rest)
        if len(queue.waiting) >= queue.limit_packets:
            queue.lose(1)
            return
        queue.waiting.append((self._loop.now_s, packet))
        self._serve()

    def _serve(self) -> None:
        now_s = self._loop.now_s
        queues = [self._rest, *self._queues.values()]
        while True:
            chosen = None
            ready_s = math.inf
            for step in range(len(queues)):
                queue = queues[(self._turn + step) % len(queues)]
                if not queue.waiting:
                    continue
                # Within its guarantee first; beyond that the port has to be free, too.
                may_s = min(queue.guaranteed_s, max(queue.most_s, self._owes_until_s))
                if may_s <= now_s:
                    chosen = queue
                    if queue.guaranteed_s <= now_s:
                        self._turn = (self._turn + step + 1) % len(queues)
                        break
                ready_s = min(ready_s, may_s)
            if chosen is None:
                break
            packet, dropped = chosen.take(now_s)
            if dropped:
                chosen.lose(dropped)
            if packet is None:
                continue
            bits = 8.0 * packet.size_bytes
            chosen.charge(packet.size_bytes, now_s)
            self._owes_until_s = (
                max(self._owes_until_s, now_s - BURST_BITS / self.rate_bps) + bits / self.rate_bps
            )
            self._deliver(packet)
        if ready_s < math.inf and not now_s < self._wake_s <= ready_s:
            self._wake_s = ready_s
            self._loop.at(ready_s, self._wake, ready_s)

    def _wake(self, due_s: float) -> None:
        if due_s == self._wake_s:
            self._wake_s = math.inf
            self._serve()


def _sum(*counted: Counted) -> Counted:
    return Counted(*(sum(column) for column in zip(*counted, strict=True)))


class Medium:
    """What passes packets on after a propagation delay, or loses them.

    Parameters
    ----------
    loop : Loop
    delay_s : float
        Propagation delay.
    loss : float
        Share of packets lost at random.
    draws : random.Random
        Who is lost.
    deliver : callable
        Takes what arrives.
    """

    def __init__(
        self,
        loop: Loop,
        delay_s: float,
        loss: float,
        draws: random.Random,
        deliver: Callable[[Packet], object],
    ) -> None:
        self._loop, self._draws, self._deliver = loop, draws, deliver
        self.delay_s, self.loss = delay_s, loss

    def send(self, packet: Packet) -> None:
        """Send a packet on its way."""
        if self.loss > 0.0 and self._draws.random() < self.loss:
            return
        self._loop.after(self.delay_s, self._deliver, packet)
