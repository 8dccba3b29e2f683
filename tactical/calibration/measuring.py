"""What the worker does: build the network, measure it, write ``measurements.json``.

Between building and the last measurement only what an experiment starts while it runs is started
(``iw`` and ``ip`` for the handover), so that virtual time is not disturbed; see
`tactical.host.hermetic`.
"""

from __future__ import annotations

import json
import platform
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..controller.queues import QueueTable
from ..emulation import commands
from ..emulation.commands import Command
from ..emulation.mininet_network import MininetNetwork
from ..emulation.network import Network
from ..emulation.openvswitch import open_vswitch
from ..emulation.processes import COMMAND_TIMEOUT_S, EmulationError
from ..emulation.radios import simulated_radios
from ..emulation.telling import told_at_once
from ..host.process import PROGRESS_MARK, CommandError, run
from . import bench
from .estimates import (
    fifo_waits_s,
    jitter_s,
    longest_gap_s,
    poisson_times,
    rate_bps,
)
from .names import MEASUREMENTS
from .stamps import Stamps, Stream, exchange, in_namespace, receiver, sender

PROBE_BYTES = 200
PROBE_PERIOD_S = 0.020
FULL_FRAME_BYTES = 1514
QUEUE_FRAME_BYTES = 1500
"""The mean packet that controllers of the shipped scenarios assume."""
OVERLOAD = 1.25
"""Offered to a link whose rate is measured, as a multiple of the rate."""
SETTLE_S = 0.5
"""At most so long a burst may last before the rate is that of the link."""
HANDOVER_PERIOD_S = 0.005
HANDOVER_LIMIT_S = 20.0
_IPPROTO_MPTCP = getattr(socket, "IPPROTO_MPTCP", 262)
_TCP_PORT = 5201
_CHUNK = bytes(1400)
_SLOW_START_S = 2.0

Measurement = dict[str, Any]


@dataclass(frozen=True)
class Extent:
    """How much is measured: seconds for each measurement, by load under Poisson traffic."""

    rate_s: float
    delay_s: float
    loss_s: float
    queues_s: float
    poisson_s: dict[float, float]
    multipath_s: float
    handovers: int


FULL = Extent(3.0, 2.0, 8.0, 3.0, {0.5: 5.0, 0.7: 6.0, 0.9: 10.0}, 15.0, 5)
QUICK = Extent(1.5, 1.0, 2.5, 1.5, {0.8: 3.0}, 10.0, 1)


def calibrate(directory: Path, *, quick: bool, virtual_time: bool) -> int:
    """Measure, and write the result into `directory`; returns 0 if the network could be built."""
    extent = QUICK if quick else FULL
    tell = told_at_once() if virtual_time else print
    return _calibrate(directory, extent, lambda line: tell(f"{PROGRESS_MARK}{line}"))


def _calibrate(directory: Path, extent: Extent, tell: Callable[[str], None]) -> int:
    plan = bench.make_bench()
    with ExitStack() as stack:
        tell("building the network")
        switching = stack.enter_context(open_vswitch(directory / "logs"))
        stack.enter_context(simulated_radios(plan.radio_count))
        network = stack.enter_context(MininetNetwork(plan, directory))
        for name, entries in bench.flow_entries(plan).items():
            argv = ("ovs-ofctl", "--protocols=OpenFlow13", "add-flows", name, "-")
            run(argv, stdin="\n".join(entries) + "\n", timeout_s=COMMAND_TIMEOUT_S)
        table = QueueTable(switching.ovsdb, lambda _: None, lambda _: None)
        stack.callback(table.close)
        table.set(bench.queues(plan))
        station = Station(network)
        station.bring_up()
        document: dict[str, Any] = {"kernel": platform.release(), "measurements": {}}
        begin = time.monotonic()
        for name, measure in _measures(station, extent).items():
            tell(name)
            try:
                document["measurements"][name] = measure()
            except (CommandError, EmulationError, OSError, ValueError) as error:
                document["measurements"][name] = [{"problem": str(error)}]
        document["measured_for_s"] = round(time.monotonic() - begin, 3)
        (directory / MEASUREMENTS).write_text(json.dumps(document, indent=1) + "\n")
    return 0


def _measures(station: Station, extent: Extent) -> dict[str, Callable[[], list[Measurement]]]:
    return {
        "rate": lambda: station.rates(extent.rate_s),
        "delay": lambda: station.delays(extent.delay_s),
        "loss": lambda: station.loss(extent.loss_s),
        "queue rate": lambda: station.queue_rates(extent.queues_s),
        "queueing delay": lambda: station.queueing(extent.poisson_s),
        "multipath": lambda: station.multipath(extent.multipath_s),
        "handover": lambda: station.handovers(extent.handovers),
    }


class Station:
    """The one station of the network, and what is measured from it."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._plan = network.plan
        self._pids = {name: network.pid(name) for name in (bench.STATION, bench.HOST)}

    def bring_up(self) -> None:
        """Give every interface its address; associate; two interfaces open subflows."""
        steps: list[Command] = []
        for interface in self._plan.stations[bench.STATION]:
            if interface.wireless:
                steps += commands.associate(self._plan, interface, bench.RADIO)
            steps += commands.interface_up(self._plan, interface)
            if interface.relay in (bench.NEAR, bench.TWIN):
                steps.append(commands.endpoint_added(self._plan, interface, interface.relay))
        self._network.run_all(steps)

    def rates(self, duration_s: float) -> list[Measurement]:
        """Rate of a narrow link in either direction, both overloaded at once."""
        link = bench.LINKS[bench.NEAR]
        times = _paced(OVERLOAD * link.rate_bps, FULL_FRAME_BYTES, duration_s)
        with ExitStack() as stack:
            streams = [
                stack.enter_context(self._stream(bench.NEAR, times, FULL_FRAME_BYTES, down=down))
                for down in (False, True)
            ]
            stamps = exchange(streams, _drain_s(bench.NEAR))
        return [
            {
                "what": f"{bench.NEAR}, {direction}",
                "configured_bps": link.rate_bps,
                "measured_bps": _rate(each, FULL_FRAME_BYTES),
            }
            for direction, each in zip(("up", "down"), stamps, strict=True)
        ]

    def delays(self, duration_s: float) -> list[Measurement]:
        """Delay of idle links, and how much it differs from packet to packet."""
        times = np.arange(0.0, duration_s, PROBE_PERIOD_S)
        paths = (bench.NEAR, bench.FAR)
        with ExitStack() as stack:
            streams = [
                stack.enter_context(self._stream(path, times, PROBE_BYTES, port=7000 + number))
                for number, path in enumerate(paths, start=3)
            ]
            stamps = exchange(streams, _drain_s(bench.FAR))
        return [
            {
                "what": path,
                "configured_s": bench.LINKS[path].delay_s,
                "measured_s": _median(each),
                "jitter_s": jitter_s(each.delays_s),
                "packets": int(times.size),
            }
            for path, each in zip(paths, stamps, strict=True)
        ]

    def loss(self, duration_s: float) -> list[Measurement]:
        """Share of packets that a lossy link loses."""
        times = np.arange(0.0, duration_s, 0.001)
        with self._stream(bench.LOSSY, times, PROBE_BYTES) as stream:
            (stamps,) = exchange([stream], _drain_s(bench.LOSSY))
        sent = ~np.isnan(stamps.sent_s)
        return [
            {
                "what": bench.LOSSY,
                "configured": bench.LINKS[bench.LOSSY].loss,
                "sent": int(sent.sum()),
                "lost": int((sent & np.isnan(stamps.received_s)).sum()),
            }
        ]

    def queue_rates(self, duration_s: float) -> list[Measurement]:
        """Rates of two queues of one port, both overloaded at once."""
        with ExitStack() as stack:
            streams = [
                stack.enter_context(
                    self._stream(
                        bench.NEAR,
                        _paced(OVERLOAD * rate, FULL_FRAME_BYTES, duration_s),
                        FULL_FRAME_BYTES,
                        port=bench.QUEUE_PORTS[queue_id],
                    )
                )
                for queue_id, rate in bench.QUEUE_RATES_BPS.items()
            ]
            slowest = min(bench.QUEUE_RATES_BPS.values())
            stamps = exchange(streams, _drain_s(bench.NEAR, slowest))
        return [
            {
                "what": f"{bench.NEAR}, queue {queue_id}",
                "configured_bps": rate,
                "measured_bps": _rate(each, FULL_FRAME_BYTES),
            }
            for (queue_id, rate), each in zip(bench.QUEUE_RATES_BPS.items(), stamps, strict=True)
        ]

    def queueing(self, durations_s: dict[float, float]) -> list[Measurement]:
        """Mean wait of packets of one size that arrive as a Poisson process."""
        link = bench.LINKS[bench.NEAR]
        packet_bits = 8 * QUEUE_FRAME_BYTES
        service_s = packet_bits / link.rate_bps
        bucket_bytes = self._bucket_bytes()
        idle = np.arange(0.0, 0.5, PROBE_PERIOD_S)
        with self._stream(bench.NEAR, idle, QUEUE_FRAME_BYTES) as stream:
            (stamps,) = exchange([stream], _drain_s(bench.NEAR))
        propagation_s = _median(stamps)
        found = []
        for seed, (load, duration_s) in enumerate(durations_s.items()):
            times = poisson_times(load / service_s, duration_s, seed)
            with self._stream(bench.NEAR, times, QUEUE_FRAME_BYTES) as stream:
                (stamps,) = exchange([stream], _drain_s(bench.NEAR))
            arrived = ~np.isnan(stamps.delays_s)
            ideal = fifo_waits_s(stamps.sent_s[arrived], service_s, 0.0)
            bucket = fifo_waits_s(
                stamps.sent_s[arrived], service_s, 8 * bucket_bytes / link.rate_bps
            )
            sent_for_s = float(np.nanmax(stamps.sent_s) - np.nanmin(stamps.sent_s))
            found.append(
                {
                    "what": f"{bench.NEAR}, load {load:g}",
                    "packets": int(times.size),
                    "lost": int((~arrived).sum()),
                    "packet_bits": packet_bits,
                    "capacity_bps": link.rate_bps,
                    "flow_bps": (int(arrived.sum()) - 1) * packet_bits / sent_for_s,
                    "wait_s": float((stamps.delays_s[arrived] - propagation_s).mean()),
                    "bucket_bytes": bucket_bytes,
                    "bucket_wait_s": float(bucket.mean()),
                    "fifo_wait_s": float(ideal.mean()),
                }
            )
        return found

    def multipath(self, duration_s: float) -> list[Measurement]:
        """Goodput of one MPTCP connection over two disjoint links, slow start left out."""
        address = (self._plan.host.address, _TCP_PORT)

        def tcp() -> socket.socket:
            made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, _IPPROTO_MPTCP)
            made.settimeout(COMMAND_TIMEOUT_S)
            return made

        with ExitStack() as stack:
            listening = stack.enter_context(in_namespace(self._pids[bench.HOST], tcp))
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(1)
            sending = stack.enter_context(in_namespace(self._pids[bench.STATION], tcp))
            sending.connect(address)
            receiving, _ = listening.accept()
            stack.enter_context(receiving)
            begin = time.monotonic()

            def send() -> None:
                while time.monotonic() < begin + duration_s:
                    sending.sendall(_CHUNK)
                sending.shutdown(socket.SHUT_WR)

            with ThreadPoolExecutor(1) as pool:
                sent = pool.submit(send)
                counted = 0
                while data := receiving.recv(1 << 16):
                    now = time.monotonic() - begin
                    counted += len(data) if _SLOW_START_S <= now < duration_s else 0
                sent.result()
        return [
            {
                "what": f"{bench.NEAR} + {bench.TWIN}",
                "links_bps": [bench.LINKS[path].rate_bps for path in (bench.NEAR, bench.TWIN)],
                "goodput_bps": 8 * counted / (duration_s - _SLOW_START_S),
            }
        ]

    def handovers(self, count: int) -> list[Measurement]:
        """What a station on one radio loses while it leaves an access point and joins again."""
        interface = self._plan.station_interface(bench.STATION, bench.RADIO)
        times = np.arange(0.0, HANDOVER_LIMIT_S * count, HANDOVER_PERIOD_S)
        over = threading.Event()
        moments: list[tuple[float, float, float]] = []
        with (
            self._stream(bench.RADIO, times, PROBE_BYTES) as stream,
            ThreadPoolExecutor(1) as pool,
        ):
            watched = pool.submit(exchange, [stream], _drain_s(bench.RADIO), over)
            try:
                for _ in range(count):
                    time.sleep(SETTLE_S)
                    begin_s = time.time()
                    self._network.run(commands.dissociate(interface))
                    left_s = time.time()
                    self._network.run_all(commands.associate(self._plan, interface, bench.RADIO))
                    moments.append((begin_s, left_s, time.time()))
                time.sleep(SETTLE_S)
            finally:
                over.set()
            (stamps,) = watched.result()
        return [
            {
                "what": bench.RADIO,
                "association_s": [joined_s - left_s for _, left_s, joined_s in moments],
                "handover_s": [joined_s - begin_s for begin_s, _, joined_s in moments],
                "interruption_s": [
                    longest_gap_s(stamps.received_s, begin_s - SETTLE_S, joined_s + SETTLE_S)
                    for begin_s, _, joined_s in moments
                ],
                "period_s": HANDOVER_PERIOD_S,
            }
        ]

    @contextmanager
    def _stream(
        self,
        relay: str,
        times_s: np.ndarray[Any, np.dtype[np.float64]],
        frame_bytes: int,
        *,
        down: bool = False,
        port: int = 7000,
    ) -> Iterator[Stream]:
        """A stream from the station to the host by way of `relay`, or back."""
        near = self._plan.station_interface(bench.STATION, relay).address
        ends = [
            (self._pids[bench.STATION], near),
            (self._pids[bench.HOST], self._plan.host.address),
        ]
        (from_pid, from_address), (to_pid, to_address) = reversed(ends) if down else ends
        with (
            receiver(to_pid, (to_address, port)) as sink,
            sender(from_pid, from_address, (to_address, port)) as source,
        ):
            yield Stream(source, sink, times_s, frame_bytes)

    def _bucket_bytes(self) -> int:
        port = next(u.relay_port for u in self._plan.uplinks if u.relay == bench.NEAR)
        return bucket_bytes(self._network.run(Command(("tc", "class", "show", "dev", port))))


def bucket_bytes(classes: str) -> int:
    """Depth of the token bucket of queue 0, from what ``tc class show`` prints.

    The default queue of Open vSwitch's linux-htb borrows all that it sends from the root class,
    up to its ceiling: the smaller of both buckets counts.

    Raises
    ------
    ValueError
        If the classes are not there.
    """
    root = re.search(r"htb 1:fffe root .* burst (\S+)b cburst", classes)
    leaf = re.search(r"htb 1:1 parent .* cburst (\S+)b", classes)
    if root is None or leaf is None:
        raise ValueError(f"tc shows no classes of Open vSwitch: {classes.strip()!r}")
    return min(_bytes(root[1]), _bytes(leaf[1]))


def _bytes(size: str) -> int:
    """A size as tc(8) prints it, without its final b: 1563, 15K, 2M."""
    factor = {"K": 1 << 10, "M": 1 << 20}.get(size[-1])
    return int(size) if factor is None else int(size[:-1]) * factor


def _paced(
    offered_bps: float, frame_bytes: int, duration_s: float
) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.arange(0.0, duration_s, 8 * frame_bytes / offered_bps)


def _drain_s(path: str, slowest_bps: float | None = None) -> float:
    """How long the last packets may take: a full buffer, the link's delay, and some slack."""
    link = bench.LINKS[path]
    full = 8 * FULL_FRAME_BYTES * link.buffer_packets / (slowest_bps or link.rate_bps)
    return full + link.delay_s + 0.2


def _rate(stamps: Stamps, frame_bytes: int) -> float:
    begin, end = float(np.nanmin(stamps.sent_s)), float(np.nanmax(stamps.sent_s))
    return rate_bps(stamps.received_s, 8 * frame_bytes, begin + SETTLE_S, end)


def _median(stamps: Stamps) -> float:
    if np.isnan(stamps.delays_s).all():
        raise ValueError("no packet arrived")
    return float(np.nanmedian(stamps.delays_s))
