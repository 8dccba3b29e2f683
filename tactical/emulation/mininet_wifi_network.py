"""The network built with Mininet-WiFi: its stations, access points, links and associations.

Mininet-WiFi (R. Fontes et al., "Mininet-WiFi: Emulating software-defined wireless networks",
CNSM 2015) is on no package index; this module needs it to be importable, see
:mod:`tactical.emulation.adapters`. Seen with release 2.6; its faults that are met here:

* it makes radios with a tool of its own (``hwsim_mgmt``) and takes those that are there for real
  ones: it is given ours;
* it associates with ``iwconfig``, names no frequency, so that the radio scans all of them, and
  neither waits nor looks whether that has worked: it is given the commands of the other adapter;
* an access point may fail to start, and it goes on: hostapd is waited for and watched;
* a node's ``cmd()`` talks to one shell, and two threads that call it at once break it: after the
  network is built commands run with ``mnexec`` (``pexec`` in Mininet-WiFi) only, and positions are
  set by one thread;
* Open vSwitch removes what shaped the ports of an access point when it takes them up, and
  Mininet-WiFi does not put it back: shaping is set after that, as in every adapter;
* its ``stop`` ends programs by name and removes the kernel module, whoever uses them: nodes and
  daemons are taken down one by one, each by its own process id.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import mn_wifi.net
import numpy as np
from mininet.link import Link
from mn_wifi.module import Mac80211Hwsim
from mn_wifi.net import Mininet_wifi
from numpy.typing import NDArray

from ..host.process import CommandError
from . import commands, radios
from .network import Network
from .plan import OPENFLOW_PORT, HostInterface, Plan, Radio, Switch
from .processes import STOP_GRACE_S

READY_TIMEOUT_S = 30.0
_POLL_S = 0.02


class MininetWifiNetwork(Network):
    """The network of one plan, built with Mininet-WiFi.

    Who associates with whom, and when, is the scenario's schedule; Mininet-WiFi carries it out and
    knows positions, but does not associate by them on its own, and does not shape radios by
    distance. So a scenario is the same experiment under every adapter.
    """

    hostapd_control = Path("/var/run/hostapd")

    def __init__(self, plan: Plan, run_dir: Path) -> None:
        super().__init__(plan, run_dir)
        self._logs = run_dir / "logs"
        self._access_points: dict[str, Any] = {}
        self._with_radio: dict[str, Any] = {}

    def place(self, positions_m: Mapping[str, NDArray[np.float64]]) -> None:
        """See `Network.place`."""
        for name, position_m in positions_m.items():
            if (node := self._with_radio.get(name)) is not None:
                node.setPosition(_coordinates(position_m))

    def leave(self, station: str, before: str, after: str) -> None:
        """See `Network.leave`."""
        interface = self.plan.station_interface(station, before)
        if interface.wireless:
            self._radio(station).disconnect_pexec(self._access_points[before].wintfs[0])
        self.run_all(commands.stop_using(self.plan, station, before, after))

    def join(self, station: str, before: str, after: str) -> None:
        """See `Network.join`."""
        interface = self.plan.station_interface(station, after)
        if interface.wireless:
            self._associate(interface, after)
        self.run_all(commands.start_using(self.plan, station, before, after))

    def _associate(self, interface: HostInterface, access_point: str) -> None:
        self._radio(interface.node).associate_infra(self._access_points[access_point].wintfs[0])

    def _connect(self, interface: HostInterface, theirs: Any) -> None:
        """What takes the place of ``iwconfig`` in `associate_infra`.

        Raises
        ------
        CommandError
            If there is no association.
        """
        self.run_all(commands.associate(self.plan, interface, theirs.node.name))
        self._radio(interface.node).setConnected(theirs)

    def _radio(self, station: str) -> Any:
        return self._nodes[station].wintfs[0]

    # -- building ------------------------------------------------------------------------

    def _lay_out(self) -> None:
        plan = self.plan
        _keep_log(self._logs / "mininet-wifi.log")
        # It would raise limits of the whole machine, and of every namespace made after that.
        Mininet_wifi.inited = True
        network = Mininet_wifi(controller=None, allAutoAssociation=False)
        # hostapd's configuration goes to the directory that a node's shell was started in.
        with contextlib.chdir(self._logs):
            for station, interfaces in plan.stations.items():
                self._add_station(network, station, interfaces)
            for name in (plan.host.node, *(medium.name for medium in plan.media)):
                self._nodes[name] = network.addHost(name, ip=None)
                self._stack.callback(self._nodes[name].terminate)
            self._add_switches(network)
            self._configure(network)
        macs = plan.macs
        numbers = {port.name: port.number for s in plan.switches for port in s.ports}
        for (node1, name1), (node2, name2) in ((wire.a, wire.b) for wire in plan.wires):
            network.addLink(
                node1,
                node2,
                cls=Link,
                port1=numbers.get(name1),
                port2=numbers.get(name2),
                intfName1=name1,
                intfName2=name2,
                addr1=macs[name1],
                addr2=macs[name2],
            )
            self._stack.callback(network.links[-1].delete)
        network.build()

    def _add_station(
        self, network: Any, station: str, interfaces: tuple[HostInterface, ...]
    ) -> None:
        wireless = [interface for interface in interfaces if interface.wireless]
        if wireless:
            node = network.addStation(station, mac=wireless[0].mac, ip=None, ip6=None)
            self._with_radio[station] = node
        else:
            node = network.addHost(station, ip=None)
        self._nodes[station] = node
        self._stack.callback(node.terminate)

    def _add_switches(self, network: Any) -> None:
        of_access_points = {radio.access_point: radio for radio in self.plan.radios}
        for planned in self.plan.switches:
            settings: dict[str, Any] = {
                "dpid": f"{planned.dpid:016x}",
                "protocols": "OpenFlow13",
                "inNamespace": False,
            }
            if (radio := of_access_points.get(planned.name)) is None:
                switch = network.addSwitch(planned.name, **settings)
            else:
                switch = self._access_points[planned.name] = network.addAccessPoint(
                    planned.name,
                    ssid=radio.ssid,
                    channel=radio.channel,
                    mode="g",
                    mac=radio.bssid,
                    client_isolation=True,
                    hostapd_flags=f"-P {self._pid_file(radio)} -f {self._log_file(radio)}",
                    ip=None,
                    **settings,
                )
                self._with_radio[planned.name] = switch
            self._switches[planned.name] = switch

    def _configure(self, network: Any) -> None:
        """Distribute the radios, and start hostapd."""
        plan = self.plan
        if not plan.radios:
            return
        wireless = [interface for interface in plan.host_interfaces if interface.wireless]
        devices = self._free_radios()
        # Mininet-WiFi takes them in this order; see `_GivenRadios`.
        owners = [(i.name, self._nodes[i.node]) for i in wireless]
        owners += [(radio.interface, None) for radio in plan.radios]
        for device, (name, node) in zip(devices, owners, strict=True):
            self._stack.callback(self._return_radio, device, name, node)
        for radio in plan.radios:
            self._stack.callback(_stop_if_running, self._pid_file(radio))
        mn_wifi.net.Mac80211Hwsim = _GivenRadios
        network.configureNodes()
        for radio in plan.radios:
            self.processes.append(_started(radio, self._pid_file(radio), self._log_file(radio)))
        for interface in wireless:
            self._radio(interface.node).iwconfig_connect = partial(self._connect, interface)

    def _start_switch(self, planned: Switch) -> None:
        if planned.name in self._access_points:
            self._switches[planned.name].start([_Controller()])
        else:
            super()._start_switch(planned)

    def _pid_file(self, radio: Radio) -> Path:
        return self._logs / f"hostapd-{radio.access_point}.pid"

    def _log_file(self, radio: Radio) -> Path:
        return self._logs / f"hostapd-{radio.access_point}.log"


class _GivenRadios(Mac80211Hwsim):
    """Mininet-WiFi's distribution of radios, of those that there are."""

    def start(self, nodes: list[Any], *_: Any, **__: Any) -> None:
        devices = radios.free_devices()
        phys = [device.phy for device in devices]
        interfaces = [device.interface for device in devices]
        for node in nodes:
            self.assign_iface(node, phys, interfaces)


class _Controller:
    """What Mininet asks of a controller that a switch is to have."""

    name = "controller"
    protocol = "tcp"
    port = OPENFLOW_PORT

    def IP(self) -> str:
        return "127.0.0.1"


class Daemon:
    """A hostapd that Mininet-WiFi has started, known by its process id.

    Parameters
    ----------
    argv
        What it is, for messages.
    pid
        Its process id.
    log
        Where it writes.
    """

    def __init__(self, argv: tuple[str, ...], pid: int, log: Path) -> None:
        self.argv = argv
        self.pid = pid
        self._log = log

    @property
    def status(self) -> int | None:
        """None while it runs; afterwards -1, as the status of no child is known to nobody."""
        return None if _runs(self.pid) else -1

    def failure(self, problem: str) -> CommandError:
        """An error about it, with the end of its log."""
        said = self._log.read_text(errors="replace") if self._log.exists() else ""
        return CommandError(self.argv, self.status, "", said, problem)


def _started(radio: Radio, pid_file: Path, log: Path) -> Daemon:
    """hostapd of an access point, once it has enabled it."""
    argv = ("hostapd", "-B", radio.access_point)
    deadline = time.monotonic() + READY_TIMEOUT_S
    while True:
        said = log.read_text(errors="replace") if log.exists() else ""
        if "AP-ENABLED" in said and pid_file.exists() and (text := pid_file.read_text().strip()):
            return Daemon(argv, int(text), log)
        if time.monotonic() > deadline:
            problem = f"was not ready after {READY_TIMEOUT_S:g} s"
            raise CommandError(argv, None, "", said, problem)
        time.sleep(_POLL_S)


def _stop_if_running(pid_file: Path) -> None:
    try:
        pid = int(pid_file.read_text())
    except (OSError, ValueError):
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        deadline = time.monotonic() + STOP_GRACE_S
        while _runs(pid) and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        if not _runs(pid):
            return


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"  # its parent may be a guest's first process, which does not collect it


def _coordinates(position_m: NDArray[np.float64]) -> str:
    return ",".join(f"{float(each):.3f}" for each in position_m)


def _keep_log(file: Path) -> None:
    """Mininet-WiFi sets up logging of the whole process, to a file in /tmp, unless that is done."""
    root = logging.getLogger()
    for handler in [each for each in root.handlers if isinstance(each, logging.FileHandler)]:
        root.removeHandler(handler)
        handler.close()
    root.addHandler(logging.FileHandler(file))
