"""A planned network, built with Mininet on the machine's own kernel.

Mininet's nodes, veth links and OVS switches are used one by one rather than through its
``Mininet`` object, which would change system-wide limits and needs a topology it owns.
Commands run with ``mnexec``, never through a node's shell, so that threads may issue them.
"""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from mininet.link import Intf, Link
from mininet.node import Node, OVSSwitch

from ..host.process import CommandError, Completed, run
from . import commands, radios
from .commands import Command
from .plan import OPENFLOW_PORT, Plan, Wire
from .processes import COMMAND_TIMEOUT_S, EmulationError, Process


class _ControllerAddress(NamedTuple):
    """What Mininet's OVSSwitch asks of a controller."""

    name: str
    protocol: str
    ip: str
    port: int

    def IP(self) -> str:
        return self.ip


class Network:
    """The running network of one plan; leaves nothing behind when it is closed.

    Parameters
    ----------
    plan
        What to build.
    run_dir
        Where logs go.
    """

    def __init__(self, plan: Plan, run_dir: Path) -> None:
        self.plan = plan
        self._run_dir = run_dir
        self._nodes: dict[str, Node] = {}
        self._stack = ExitStack()
        self._switch_answers = True
        self.processes: list[Process] = []
        """What has to run for as long as the network does."""

    def __enter__(self) -> Network:
        try:
            self._remove_leftovers()
            self._build()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    # -- commands inside nodes -----------------------------------------------------------

    def argv(self, command: Command) -> tuple[str, ...]:
        """The command as run from the machine's own namespaces."""
        if command.node is None or command.node not in self._nodes:
            return command.argv
        return ("mnexec", "-a", str(self._nodes[command.node].pid), *command.argv)

    def pid(self, node: str) -> int:
        """Process id of a node's shell, which stands for its namespaces in /proc."""
        return int(self._nodes[node].pid)

    def run(self, command: Command, timeout_s: float = COMMAND_TIMEOUT_S) -> str:
        """Run a command in its node and return its output.

        Raises
        ------
        CommandError
            If it fails.
        """
        return run(self.argv(command), timeout_s=timeout_s).stdout

    def run_all(self, many: Iterable[Command]) -> None:
        """Run commands one after the other, those of one node in one shell.

        Starting a process costs tens of milliseconds in an emulated processor; a shell starts
        the commands of a node at a fraction of that.

        Raises
        ------
        CommandError
            For the first command that fails; those after it are not run.
        """
        for node, group in itertools.groupby(many, key=lambda command: command.node):
            steps = list(group)
            script = "".join(
                f"{shlex.join(step.argv)} || {{ echo step {number} status $? >&2; exit 1; }}\n"
                for number, step in enumerate(steps)
            )
            shell = self.argv(Command(("sh", "-c", script), node))
            done = run(shell, timeout_s=COMMAND_TIMEOUT_S, check=False)
            if done.status:
                raise _failed_step(steps, shell, done)

    def start(self, command: Command, log: Path, stdout: Path | None = None) -> Process:
        """Start a command in its node."""
        return Process(self.argv(command), log, stdout)

    # -- building ------------------------------------------------------------------------

    def _build(self) -> None:
        plan = self.plan
        OVSSwitch.setup()
        self._stack.callback(self._remove_rows)
        for name in (*plan.stations, plan.host.node, *(m.name for m in plan.media)):
            node = Node(name)
            self._stack.callback(node.terminate)
            self._nodes[name] = node
        switches = {}
        for planned in plan.switches:
            switch = OVSSwitch(
                planned.name,
                inNamespace=False,
                dpid=f"{planned.dpid:016x}",
                protocols="OpenFlow13",
            )
            switches[planned.name] = switch
        for wire in plan.wires:
            self._connect(switches, wire)
        self._bring_up_radios(switches)
        everything = [port for switch in plan.switches for port in switch.ports]
        self.run_all(commands.port_commands(everything))
        self.run_all(commands.node_commands(plan))
        self.run_all(commands.offload_commands(plan))
        for medium in plan.media:
            self.run_all(commands.medium_commands(medium))
        controller = _ControllerAddress("controller", "tcp", "127.0.0.1", OPENFLOW_PORT)
        for switch in switches.values():
            self._stack.callback(self._stop_switch, switch)
            switch.start([controller])
        if (shaping := commands.shaping_command(everything)) is not None:
            self.run(shaping)
        self.run_all(commands.host_commands(plan))

    def _connect(self, switches: dict[str, OVSSwitch], wire: Wire) -> None:
        macs = self.plan.macs
        numbers = {port.name: port.number for s in self.plan.switches for port in s.ports}
        (node1, name1), (node2, name2) = wire.a, wire.b
        link = Link(
            self._nodes.get(node1) or switches[node1],
            self._nodes.get(node2) or switches[node2],
            port1=numbers.get(name1),
            port2=numbers.get(name2),
            intfName1=name1,
            intfName2=name2,
            addr1=macs[name1],
            addr2=macs[name2],
        )
        self._stack.callback(link.delete)

    def _bring_up_radios(self, switches: dict[str, OVSSwitch]) -> None:
        if not self.plan.radios:
            return
        wireless = [i for i in self.plan.host_interfaces if i.wireless]
        devices = radios.free_devices()
        needed = len(wireless) + len(self.plan.radios)
        if len(devices) < needed:
            raise EmulationError(f"{needed} radios are needed, but only {len(devices)} are free")
        for radio in self.plan.radios:
            device = devices.pop(0)
            self._rename(device.interface, radio.interface, radio.bssid)
            self._stack.callback(self._return_radio, device, radio.interface, None)
            access_point = radios.start_access_point(radio, self._run_dir)
            self._stack.callback(access_point.stop)
            self.processes.append(access_point)
            number = self.plan.switch(radio.access_point).port(radio.interface).number
            Intf(radio.interface, node=switches[radio.access_point], port=number)
        for interface in wireless:
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

    def _stop_switch(self, switch: OVSSwitch) -> None:
        """Mininet's own ``stop`` waits without limit for an ovs-vswitchd that may be dead."""
        self._forget("--if-exists", "del-br", switch.name)
        switch.terminate()

    def _forget(self, *change: str) -> None:
        """Remove something from the Open vSwitch database.

        ovs-vsctl waits for ovs-vswitchd to follow, so that interfaces are free afterwards; once
        that has failed, the database alone is changed.
        """
        if self._switch_answers:
            try:
                self.run(Command(("ovs-vsctl", "--timeout=10", *change)))
                return
            except CommandError as error:
                self._switch_answers = False
                self._log_cleanup(error)
        self._quietly(Command(("ovs-vsctl", "--no-wait", "--timeout=5", *change)))

    def _return_radio(self, device: radios.Device, name: str, node: Node | None) -> None:
        where = None if node is None else node.name
        self._quietly(Command(("ip", "link", "set", name, "down"), where))
        self._quietly(Command(("ip", "link", "set", name, "name", device.interface), where))
        if node is not None:
            # The machine's own namespace is that of this process.
            argv = ("iw", "phy", device.phy, "set", "netns", "1")
            self._quietly(Command(argv, where))

    def _remove_leftovers(self) -> None:
        """Remove bridges and interfaces of our names that a crashed run left here."""
        for planned in self.plan.switches:
            self.run(Command(("ovs-vsctl", "--if-exists", "del-br", planned.name)))
        self._remove_rows()
        for planned in self.plan.switches:
            for port in planned.ports:
                if Path(f"/sys/class/net/{port.name}").exists():
                    self._quietly(Command(("ip", "link", "delete", port.name)))

    def _remove_rows(self) -> None:
        """Delete our QoS and Queue rows, those of the controller included."""
        for table in ("QoS", "Queue"):
            try:
                uuids = self.run(commands.owned_rows(table)).split()
                if uuids:
                    self._forget("--if-exists", "destroy", table, *uuids)
            except CommandError as error:
                self._log_cleanup(error)

    def _quietly(self, command: Command) -> None:
        """Run a command whose failure must not stop the clearing away of the rest."""
        try:
            self.run(command)
        except CommandError as error:
            self._log_cleanup(error)

    def _log_cleanup(self, error: CommandError) -> None:
        with (self._run_dir / "logs" / "cleanup.log").open("a") as log:
            log.write(f"{error}\n")


def _failed_step(steps: list[Command], shell: tuple[str, ...], done: Completed) -> CommandError:
    """The error about the one of `steps` at which a shell gave up."""
    said = done.stderr.splitlines()
    found = re.fullmatch(r"step (\d+) status (\d+)", said[-1]) if said else None
    if found is None:  # the shell itself, or entering the node, failed
        problem = f"ended with status {done.status}"
        return CommandError(shell, done.status, done.stdout, done.stderr, problem)
    number, status = int(found[1]), int(found[2])
    problem = f"ended with status {status}"
    return CommandError(steps[number].argv, status, "", "\n".join(said[:-1]), problem)
