"""Every privileged command of a run, without running any."""

from __future__ import annotations

import dataclasses
import itertools
import shlex
from collections.abc import Sequence
from pathlib import Path

from scenarios import Scenario

from .emulation import commands
from .emulation.applications import program_command
from .emulation.memory import guest_memory_mib
from .emulation.openvswitch import daemon_commands
from .emulation.plan import Plan, make_plan
from .emulation.recording import recorder_command
from .experiment import Request, worker
from .host.choice import choose

Line = commands.Command | str


def dry_run(requests: Sequence[Request]) -> list[str]:
    """Every privileged command that :func:`~tactical.experiment.execute` would cause, one a line.

    ``[node]`` before a command means: in the network namespace of that node.  What libraries do
    by themselves (Mininet's namespaces and links, the controller's queues) is shown as the
    command that does the same.

    Raises
    ------
    HostError
        If the backend is impossible here.
    PlanError
        If a scenario cannot be laid out.
    """
    plans = []
    for request in requests:
        scenario = request.experiment.build(request.seed)
        plans.append((scenario, make_plan(scenario, request.protocol)))
    machine = choose(requests[0].backend, requests[0].time)
    of_this_size = guest_memory_mib([plan for _, plan in plans])
    machine = machine.with_memory(of_this_size)
    parent = requests[0].runs_dir.resolve() / requests[0].experiment.name
    run_dirs = [parent / f"RUN-{r.protocol}-{r.seed}" for r in requests]
    lines = [
        f"# {machine.description}",
        shlex.join(machine.command(worker(run_dirs, machine), [parent])),
    ]
    if machine.virtual_time:
        lines += [f"# in a guest of its own for each run: {shlex.join(worker(run_dirs, machine))}"]
    lines += ["", "# Open vSwitch, unless it runs already; radios"]
    lines += [shlex.join(argv) for argv in daemon_commands(Path("/run/tactical-ovs"))]
    if radios := max(plan.radio_count for _, plan in plans):
        lines.append(f"modprobe mac80211_hwsim radios={radios}")
    for name in sorted({name for _, plan in plans for name in plan.congestion_controls}):
        lines.append(f"modprobe tcp_{name}   # unless the kernel has it already")
        lines.append(f"sysctl -w net.ipv4.tcp_allowed_congestion_control='… {name}'")
    for request, run_dir, (scenario, plan) in zip(requests, run_dirs, plans, strict=True):
        lines += ["", f"# {scenario.name}, {request.protocol}, seed {request.seed}"]
        lines += [str(line) for line in _network(plan, run_dir, request.network)]
        lines += [str(line) for line in _experiment(scenario, plan, run_dir)]
    return lines


def _network(plan: Plan, run_dir: Path, library: str) -> list[Line]:
    ports = [port for switch in plan.switches for port in switch.ports]
    nodes = (*plan.stations, plan.host.node, *(m.name for m in plan.media))
    lines: list[Line] = [f"# nodes, links, switches and radios, with {library}"]
    lines += [f"mnexec -cdn env PS1=… bash   # network namespace of {node}" for node in nodes]
    macs = plan.macs
    for wire in plan.wires:
        (node1, name1), (node2, name2) = wire.a, wire.b
        lines.append(
            f"ip link add name {name1} address {macs[name1]} type veth "
            f"peer name {name2} address {macs[name2]}   # {node1} to {node2}"
        )
    for radio in plan.radios:
        lines.append(f"ip link set RADIO name {radio.interface} address {radio.bssid}")
        lines.append(f"hostapd {run_dir}/logs/hostapd-{radio.access_point}.conf")
    for interface in plan.host_interfaces:
        if interface.wireless:
            lines.append(f"iw phy RADIO set netns PID-OF-{interface.node}")
            rename = ("ip", "link", "set", "RADIO", "name", interface.name, "address")
            lines.append(commands.Command((*rename, interface.mac), interface.node))
    lines.append("# settings, shaping, addresses")
    lines += commands.port_commands(ports)
    lines += commands.node_commands(plan)
    lines += commands.offload_commands(plan)
    lines += commands.departure_commands(plan)
    for medium in plan.media:
        lines += commands.medium_commands(medium)
    lines += [commands.switch_command(switch) for switch in plan.switches]
    if (shaping := commands.shaping_command(ports)) is not None:
        lines.append(shaping)
    lines += commands.host_commands(plan)
    for station in plan.stations:
        lines += commands.start_access(plan, station)
    return lines


def _experiment(scenario: Scenario, plan: Plan, run_dir: Path) -> list[Line]:
    lines: list[Line] = ["# controller: flow entries by OpenFlow"]
    if plan.protocol == "fdm":
        lines[0] = f"{lines[0]}; at every solve, for every subflow and trunk, by OVSDB:"
        lines.append(
            "ovs-vsctl -- --id=@q create Queue other-config:min-rate=RATE "
            "other-config:max-rate=RATE -- set QoS PORT queues:ID=@q"
        )
    lines.append("# recorders and traffic")
    lines += [recorder_command(plan, point, run_dir) for point in plan.capture_points]
    for transfer in plan.transfers:
        lines.append(commands.transfer_command(plan, transfer, server=True))
        lines.append(commands.transfer_command(plan, transfer, server=False))
    lines += [program_command(plan, node, run_dir) for node in plan.applications_at]
    lines.append("# movement")
    for change in scenario.handovers():
        lines.append(f"# {change.time_s:.3f} s")
        lines += commands.leave_access(plan, change.station, change.before, change.after)
        lines += commands.join_access(plan, change.station, change.before, change.after)
    for access in scenario.accesses:
        link = access.backhaul
        states = [dataclasses.replace(link, profile=()).at(0.0), *link.profile]
        for before, after in itertools.pairwise(states):
            if after.time_s >= scenario.duration_s:
                break
            lines.append(f"# {after.time_s:.3f} s")
            lines += commands.link_commands(plan, access.name, before, after)
    lines.append("# end of the traffic")
    lines += commands.hold_commands(plan)
    lines += commands.release_commands(plan)
    return lines
