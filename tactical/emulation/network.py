"""A planned network: what every network adapter offers, and what all of them build alike.

An adapter makes nodes, switches, links and radios with a library of its own; see
:mod:`tactical.emulation.adapters`. Nothing outside an adapter knows which library that is::

    with adapter(plan, run_dir) as network:      # built; and leaves nothing behind
        network.run(Command(argv, "ship1"))      # also run_all, start: commands inside nodes
        network.place({"ship1": position_m})     # where nodes are
        network.leave("ship1", "satcom", "uav")  # both halves of a handover
        network.join("ship1", "satcom", "uav")

Settings, addresses, delays and shaping are the same commands (:mod:`.commands`) under every
adapter. Commands run with ``mnexec``, never through a node's shell, so that threads may issue them.
"""

from __future__ import annotations

import itertools
import re
import shlex
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol, Self

import numpy as np
from mininet.node import Node, OVSSwitch
from numpy.typing import NDArray

from ..host.process import CommandError, Completed, run
from . import commands, radios
from .commands import Command
from .plan import Plan, Switch
from .processes import COMMAND_TIMEOUT_S, EmulationError, Process

STEPS_OF_A_SHELL = 100
"""Linux takes 128 KiB of one argument (``MAX_ARG_STRLEN``), and a step has 100 to 400 bytes."""


class Lasting(Protocol):
    """Something that has to run for as long as the network does."""

    @property
    def status(self) -> int | None:
        """Exit status, or None while it runs."""
        ...

    def failure(self, problem: str) -> CommandError:
        """An error about it, with the end of its log."""
        ...


class Network(ABC):
    """The running network of one plan; leaves nothing behind when it is closed.

    Parameters
    ----------
    plan
        What to build.
    run_dir
        Where logs go.
    """

    hostapd_control = radios.CONTROL
    """Where every hostapd has its control socket, by interface."""

    def __init__(self, plan: Plan, run_dir: Path) -> None:
        self.plan = plan
        self._run_dir = run_dir
        self._nodes: dict[str, Node] = {}
        self._switches: dict[str, OVSSwitch] = {}
        self._stack = ExitStack()
        self._switch_answers = True
        self.processes: list[Lasting] = []
        """What has to run for as long as the network does."""

    def __enter__(self) -> Self:
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
        for node, steps in _batches(many):
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

    # -- movement ------------------------------------------------------------------------

    def leave(self, station: str, before: str, after: str) -> None:
        """Leave the relay `before`, in order to join `after`; may be called from any thread.

        Raises
        ------
        CommandError
            If a step fails.
        """
        self.run_all(commands.leave_access(self.plan, station, before, after))

    def join(self, station: str, before: str, after: str) -> None:
        """Join the relay `after`, once `before` has been left; may be called from any thread.

        Raises
        ------
        CommandError
            If a step fails, the association among them.
        """
        self.run_all(commands.join_access(self.plan, station, before, after))

    @abstractmethod
    def place(self, positions_m: Mapping[str, NDArray[np.float64]]) -> None:
        """Take note of where nodes are: east, north and up. Call it from one thread only."""

    # -- building ------------------------------------------------------------------------

    def _build(self) -> None:
        plan = self.plan
        OVSSwitch.setup()
        self._stack.callback(self._remove_rows)
        self._lay_out()
        everything = [port for switch in plan.switches for port in switch.ports]
        self.run_all(commands.port_commands(everything))
        self.run_all(commands.node_commands(plan))
        self.run_all(commands.offload_commands(plan))
        self.run_all(commands.departure_commands(plan))
        for medium in plan.media:
            self.run_all(commands.medium_commands(medium))
        for planned in plan.switches:
            self._stack.callback(self._stop_switch, self._switches[planned.name])
            self._start_switch(planned)
        # Only now: a switch that takes up a port removes what shaped it.
        if (shaping := commands.shaping_command(everything)) is not None:
            self.run(shaping)
        self.run_all(commands.host_commands(plan))

    @abstractmethod
    def _lay_out(self) -> None:
        """Make `_nodes`, `_switches` (not started), links and radios, with names as planned."""

    def _start_switch(self, planned: Switch) -> None:
        self.run(commands.switch_command(planned))

    def _free_radios(self) -> list[radios.Device]:
        """As many simulated radios as the plan has.

        Raises
        ------
        EmulationError
            If there are not enough.
        """
        devices, needed = radios.free_devices(), self.plan.radio_count
        if len(devices) < needed:
            raise EmulationError(f"{needed} radios are needed, but only {len(devices)} are free")
        return devices[:needed]

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


def _batches(many: Iterable[Command]) -> Iterator[tuple[str | None, list[Command]]]:
    """Commands of one node that follow each other, as many as fit one argument of a program."""
    for node, group in itertools.groupby(many, key=lambda command: command.node):
        steps = list(group)
        for first in range(0, len(steps), STEPS_OF_A_SHELL):
            yield node, steps[first : first + STEPS_OF_A_SHELL]


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
