"""The network built with Mininet, and radios straight from the kernel.

Mininet's nodes, veth links and OVS switches are used one by one rather than through its
``Mininet`` object, which would change system-wide limits and needs a topology it owns.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from mininet.link import Intf, Link
from mininet.node import Node, OVSSwitch
from numpy.typing import NDArray

from . import radios
from .commands import Command
from .network import Network


class MininetNetwork(Network):
    """The network of one plan, built with Mininet."""

    def place(self, positions_m: Mapping[str, NDArray[np.float64]]) -> None:
        """See `Network.place`; simulated radios know no places."""

    def _lay_out(self) -> None:
        plan = self.plan
        for name in (*plan.stations, plan.host.node, *(m.name for m in plan.media)):
            node = Node(name)
            self._stack.callback(node.terminate)
            self._nodes[name] = node
        for planned in plan.switches:
            self._switches[planned.name] = OVSSwitch(
                planned.name, inNamespace=False, dpid=f"{planned.dpid:016x}"
            )
        self._connect()
        if plan.radios:
            self._bring_up_radios()

    def _connect(self) -> None:
        nodes = {**self._nodes, **self._switches}
        macs = self.plan.macs
        numbers = {port.name: port.number for s in self.plan.switches for port in s.ports}
        for (node1, name1), (node2, name2) in ((wire.a, wire.b) for wire in self.plan.wires):
            link = Link(
                nodes[node1],
                nodes[node2],
                port1=numbers.get(name1),
                port2=numbers.get(name2),
                intfName1=name1,
                intfName2=name2,
                addr1=macs[name1],
                addr2=macs[name2],
            )
            self._stack.callback(link.delete)

    def _bring_up_radios(self) -> None:
        devices = self._free_radios()
        for radio in self.plan.radios:
            device = devices.pop(0)
            self._rename(device.interface, radio.interface, radio.bssid)
            self._stack.callback(self._return_radio, device, radio.interface, None)
            access_point = radios.start_access_point(radio, self._run_dir)
            self._stack.callback(access_point.stop)
            self.processes.append(access_point)
            number = self.plan.switch(radio.access_point).port(radio.interface).number
            Intf(radio.interface, node=self._switches[radio.access_point], port=number)
        for interface in self.plan.host_interfaces:
            if interface.wireless:
                device = devices.pop(0)
                node = self._nodes[interface.node]
                self.run(Command(("iw", "phy", device.phy, "set", "netns", str(node.pid))))
                self._stack.callback(self._return_radio, device, interface.name, node)
                self._rename(device.interface, interface.name, interface.mac, interface.node)

    def _rename(self, old: str, new: str, mac: str, node: str | None = None) -> None:
        self.run(Command(("ip", "link", "set", old, "down"), node))
        self.run(Command(("ip", "link", "set", old, "name", new, "address", mac), node))
        if node is not None:
            self.run(Command(("ip", "link", "set", new, "up"), node))
