"""The network of a plan in the simulator: ports, media, who is where, and what is recorded.

Links between stations and relays are as fast as in the emulation, where they are never the
bottleneck: they take no time.
"""

from __future__ import annotations

import random
from contextlib import ExitStack
from pathlib import Path
from typing import cast

from captures.writing import CaptureWriter
from simulation.transfers import CoDel, Loop, Medium, Packet, Port, Subflow

from ..emulation.plan import HostInterface, Plan
from .frames import Frames, ethernet
from .log import EPOCH_S

Place = tuple[str, str]
"""(user, relay)."""

HELD_S = 1.0
"""The first segment of a subflow that has no entries yet waits so long."""


class SimulatedNetwork:
    """Takes packets from one end to the other, and records them on the way; a context manager.

    Parameters
    ----------
    plan : Plan
    run_dir : Path
        Where the captures go.
    loop : Loop
    draws : random.Random
        Of losses, ports and keys.

    Attributes
    ----------
    ports : mapping of str to Port
        By name.
    captures : mapping of str to CaptureWriter
        By interface.
    """

    def __init__(self, plan: Plan, run_dir: Path, loop: Loop, draws: random.Random) -> None:
        self._plan, self._loop = plan, loop
        self._writers = ExitStack()
        self.captures = {
            point.interface: self._writers.enter_context(
                CaptureWriter(run_dir / point.file, point.interface, plan.snap_length_bytes)
            )
            for point in plan.capture_points
        }
        self.frames = Frames(plan.host.address, draws)
        self.ports: dict[str, Port] = {}
        self._media: dict[str, tuple[Medium, Medium]] = {}
        self._up: dict[str, Port] = {}
        self._down: dict[str, Port] = {}
        self._radios = {radio.access_point: radio.interface for radio in plan.radios}
        for uplink in plan.uplinks:
            medium = plan.medium(uplink.relay)
            there = Medium(loop, medium.delay_s, medium.loss, draws, self._at_host)
            back = Medium(loop, medium.delay_s, medium.loss, draws, self._at_station)
            self._media[uplink.relay] = there, back
            for name, switch, air, table in (
                (uplink.relay_port, uplink.relay, there, self._up),
                (uplink.shore_port, plan.host.relay, back, self._down),
            ):
                limit = plan.switch(switch).port(name).buffer_packets or 1000
                port = Port(loop, float(uplink.rate_bps), limit, air.send)
                self.ports[name] = table[uplink.relay] = port
        self._interface: dict[Subflow, HostInterface] = {}
        self._reached: dict[HostInterface, str] = {}
        self._entries: set[Place] = set()
        self._held: list[tuple[float, Packet, str]] = []

    def __enter__(self) -> SimulatedNetwork:
        return self

    def __exit__(self, *_: object) -> None:
        self._writers.close()

    def attach(self, interface: HostInterface, relay: str | None) -> None:
        """An interface reaches a relay from now on, or none."""
        if relay is None:
            self._reached.pop(interface, None)
        else:
            self._reached[interface] = relay

    def reached(self, interface: HostInterface) -> str | None:
        """The relay that an interface reaches now."""
        return self._reached.get(interface)

    def use(self, subflow: Subflow, interface: HostInterface) -> None:
        """A subflow is sent from an interface from now on."""
        if subflow not in self._interface:
            self.frames.begin(subflow, interface.address)
        self._interface[subflow] = interface

    def hold_entries(self, places: set[Place]) -> None:
        """Switches have entries for these from now on."""
        self._entries = places
        held, self._held = self._held, []
        for since_s, packet, relay in held:
            if (packet.subflow.transfer.name, relay) in places:
                self._into_uplink(packet, relay)
            elif self._loop.now_s < since_s + HELD_S:
                self._held.append((since_s, packet, relay))

    def change_link(self, relay: str, rate_bps: float, delay_s: float, loss: float) -> None:
        """A link is different from now on; what is under way keeps its delay."""
        for medium in self._media[relay]:
            medium.delay_s, medium.loss = delay_s, loss
        for port in (self._up[relay], self._down[relay]):
            port.set_rate(rate_bps)

    def set_discipline(self, port: str, key: Place, codel: CoDel) -> None:
        """A queue holds its packets to a wait from now on."""
        self.ports[port].set_discipline(key, codel)

    def send(self, packet: Packet) -> None:
        """Take a packet from one of its ends."""
        packet.tag = self.frames.datagram(packet)
        if not packet.forward:
            self._record(self._plan.host.name, packet)
            self._from_host(packet)
            return
        interface = self._interface[packet.subflow]
        relay = self._reached.get(interface)
        if relay is None:
            return
        self._record(interface.name, packet)
        if interface.wireless:
            self._record(self._radios[relay], packet)
        if (interface.node, relay) in self._entries:
            self._into_uplink(packet, relay)
        elif "S" in packet.flags:
            self._held.append((self._loop.now_s, packet, relay))

    def _into_uplink(self, packet: Packet, relay: str) -> None:
        self._up[relay].send(packet, (packet.subflow.transfer.name, relay))

    def _at_host(self, packet: Packet) -> None:
        self._record(self._plan.host.name, packet)
        packet.subflow.arrive(packet)

    def _from_host(self, packet: Packet) -> None:
        """By the relay that has the entries for the address; the radio's where both have."""
        interface = self._interface[packet.subflow]
        user = interface.node
        address = interface.address
        relays = [
            i.relay for i in self._plan.stations[user] if i.address == address and not i.wireless
        ]
        if any(i.address == address and i.wireless for i in self._plan.stations[user]):
            relays = [*self._radios, *relays]
        for relay in relays:
            if (user, relay) in self._entries:
                self._down[relay].send(packet, (user, relay))
                packet.tag = (packet.tag, relay)
                return

    def _at_station(self, packet: Packet) -> None:
        datagram, relay = cast("tuple[bytes, str]", packet.tag)
        interface = self._interface[packet.subflow]
        packet.tag = datagram
        if relay in self._radios:
            self._record(self._radios[relay], packet)
        if self._reached.get(interface) != relay:
            return
        self._record(interface.name, packet)
        packet.subflow.arrive(packet)

    def _record(self, point: str, packet: Packet) -> None:
        mac = self._interface[packet.subflow].mac
        host = self._plan.host.mac
        heading = ethernet(mac, host) if packet.forward else ethernet(host, mac)
        kept = self._plan.snap_length_bytes
        frame = heading + cast("bytes", packet.tag)
        frame += bytes(min(packet.length, max(0, kept - len(frame))))
        time_ns = int((EPOCH_S + self._loop.now_s) * 1e6) * 1000
        self.captures[point].write(time_ns, frame, packet.size_bytes)
