"""The end of the traffic: everything that was sent arrives before iperf3 closes.

At the end of a test iperf3's client says so on its control connection, and the server then closes
the data connection at once, with whatever is still on the way.  Over paths of different delay
that message overtakes data, and no transfer would ever be complete.  So the host does not take in
messages of control connections from the middle of the traffic on, when they have none to send;
once all data are acknowledged they pass again, and TCP has repeated the message meanwhile.

Where the host sends, nothing is held: its iperf3 goes on sending until it hears of the end, and
what is still on the way then is lost to the transfer.
"""

from __future__ import annotations

import time
from pathlib import Path

from .commands import hold_commands, release_commands
from .counters import interface_counters
from .events import EventLog
from .network import Network
from .plan import Transfer

DRAIN_LIMIT_S = 20.0
"""Longest wait for data that are queued at the end.

iperf3's server gives up 40 s after the nominal end, and TCP repeats the held message in ever longer
steps (the one after 20 s comes about 22 s after the first).
"""
POLL_S = 1.0
IDLE_PACKETS_PER_S = 5.0
"""The host receives less than this of a transfer whose data are there; repeated control messages
remain."""
CONTROL_BYTES = 1000
"""Control connections have less than this waiting; data connections have a segment or more."""
STARTED_PACKETS = 100
"""A user's data connection exists for certain when the host has received this many packets."""
STARTED_SHARE = 0.5
"""Or this share of what a slow transfer should have sent by then."""
_SEGMENT_BYTES = 1400
_ESTABLISHED = "01"


class Ending:
    """Holds control messages back in time, and lets them go when all data have arrived."""

    def __init__(self, network: Network, events: EventLog) -> None:
        self._network = network
        self._events = events
        self._held = False

    def prepare(self) -> None:
        """Hold control messages back as soon as every transfer is past its first half.

        Call it now and then while traffic flows.  A transfer that has not begun to send by then
        (its host is very slow) is waited for.
        """
        transfers = [t for t in self._network.plan.transfers if not t.reverse]
        halfway_s = max((t.start_s + t.duration_s / 2 for t in transfers), default=0.0)
        if self._held or self._events.now_s < halfway_s:
            return
        if self._received() >= sum(map(started_packets, transfers)):
            self._hold()

    def drain(self) -> None:
        """Wait until all data are acknowledged, then let control messages pass."""
        if not self._held and self._network.plan.held_ports is not None:
            self._hold()
            self._events.write(
                "error",
                self._network.plan.host.node,
                message="the end of the traffic could not be prepared in time: "
                "transfers may be cut off",
            )
        idle_packets_per_s = IDLE_PACKETS_PER_S * max(2, len(self._network.plan.transfers))
        limit_s = self._events.now_s + DRAIN_LIMIT_S
        drained = 0
        before, before_s = self._received(), self._events.now_s
        while drained < 2 and self._events.now_s < limit_s:
            time.sleep(POLL_S)
            now, now_s = self._received(), self._events.now_s
            idle = now - before < idle_packets_per_s * (now_s - before_s)
            drained = drained + 1 if idle and not self._unacknowledged() else 0
            before, before_s = now, now_s
        if drained < 2:
            self._events.write(
                "error",
                self._network.plan.host.node,
                message=f"data were still arriving {DRAIN_LIMIT_S:g} s after the traffic; cut off",
            )
        self._network.run_all(release_commands(self._network.plan))

    def _hold(self) -> None:
        self._network.run_all(hold_commands(self._network.plan))
        self._held = True

    def _received(self) -> int:
        """Packets that have reached the host."""
        host = self._network.plan.host
        return interface_counters(self._read(host.node, "dev"))[host.name]["rx_packets"]

    def _unacknowledged(self) -> bool:
        """Whether anybody who sends has data that are not acknowledged."""
        plan = self._network.plan
        senders = (*plan.stations, plan.host.node) if plan.downwards else tuple(plan.stations)
        return any(
            waiting_bytes(self._read(node, family)) >= CONTROL_BYTES
            for node in senders
            for family in ("tcp", "tcp6")
        )

    def _read(self, node: str, table: str) -> str:
        """What the kernel tells of a node's network; a command in each of fifty takes a minute."""
        return Path(f"/proc/{self._network.pid(node)}/net/{table}").read_text()


def started_packets(transfer: Transfer) -> float:
    """Packets at the host in the middle of a transfer that tell that it has begun to send."""
    bits = transfer.rate_bps * transfer.connections * transfer.duration_s / 2
    return min(STARTED_PACKETS, STARTED_SHARE * bits / (8 * _SEGMENT_BYTES))


def waiting_bytes(sockets: str) -> int:
    """The most that an established connection has not been acknowledged.

    Parameters
    ----------
    sockets
        What /proc/net/tcp or tcp6 holds; state and queues are its columns 4 and 5 (proc(5)).
    """
    rows = (line.split() for line in sockets.splitlines()[1:])
    queues = (row[4].partition(":")[0] for row in rows if row[3] == _ESTABLISHED)
    return max((int(queue, 16) for queue in queues), default=0)
