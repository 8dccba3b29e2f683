"""How the controller scales: 1,000 subflows on 50 datapaths of a private Open vSwitch.

    python -m benchmarks.controller

The switches are Open vSwitch's userspace datapath with dummy ports: real OpenFlow and OVSDB, no
traffic.  Printed are the wall time from start to the verified deployment, of single changes as the
controller recorded them, its processor time and its largest resident memory, the time from the
death of a master to the standby's first solve, and 200 random changes of association in 100 s.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from tactical.controller.events import AssociationChanged
from tactical.controller.network import (
    Attachment,
    ControlledNetwork,
    Datapath,
    Demand,
    Port,
    Server,
    Settings,
    Trunk,
)
from tests.controller.campaign import campaign, moves
from tests.controller.openvswitch import OpenVSwitch, RunningController, free_port, served, wait_for

ACCESS_POINTS, USERS = 49, 500
CHANGES = 20
HANDOVERS, HANDOVERS_S = 200, 100.0


def network(access_points: int = ACCESS_POINTS, users: int = USERS) -> ControlledNetwork:
    """Users with two attachments each, at access points around one shore switch."""
    names = [f"ap{n}" for n in range(1, access_points + 1)]
    attachments = []
    for user in range(users):
        for leg in (0, 1):
            # The second leg is another access point for users of the same first one.
            at = names[(user + leg * (1 + user // access_points)) % access_points]
            attachments.append(
                Attachment(
                    f"u{user}",
                    f"u{user}-eth{leg}",
                    f"10.{leg}.{user // 250}.{user % 250 + 1}",
                    f"02:00:00:{leg:02x}:{user // 250:02x}:{user % 250:02x}",
                    at,
                    f"{at}-wlan1",
                    100e6,
                    True,
                )
            )
    ports = [Port(name, f"{name}-wlan1", 1) for name in names]
    ports += [Port(name, f"{name}-eth2", 2) for name in names]
    ports.append(Port("shore", "shore-eth1", 1))
    ports += [Port("shore", f"shore-eth{n + 1}", n + 1) for n in range(1, access_points + 1)]
    return ControlledNetwork(
        policy="fdm",
        datapaths=tuple(Datapath(n, i) for i, n in enumerate((*names, "shore"), start=1)),
        ports=tuple(ports),
        attachments=tuple(attachments),
        trunks=tuple(
            Trunk(name, f"{name}-eth2", "shore", f"shore-eth{n + 1}", (1 + n % 3) * 50e6, 0.01 * n)
            for n, name in enumerate(names, start=1)
        ),
        server=Server("host", "10.9.0.1", "02:00:00:09:00:01", "shore", "shore-eth1", 10e9),
        demands=tuple(Demand(f"u{user}", 3e6) for user in range(users)),
        mean_packet_bits=12000.0,
        delay_coefficient=1.0,
        capacity_share=0.95,
        settings=Settings(),
    )


def usage(running: RunningController) -> tuple[float, float]:
    """Processor time in seconds and largest resident memory in MB of a process."""
    fields = Path(f"/proc/{running.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    status = Path(f"/proc/{running.process.pid}/status").read_text()
    peak_kb = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    return (int(fields[11]) + int(fields[12])) / 100, int(peak_kb) / 1e3


def wired(described: ControlledNetwork, *, but: int = 0) -> ControlledNetwork:
    """The same with all attachments there from the start, except the last ones."""
    there = len(described.attachments) - but
    attachments = tuple(
        replace(a, wireless=number >= there) for number, a in enumerate(described.attachments)
    )
    return replace(described, attachments=attachments, settings=Settings(dwell_s=0.0))


def scale(directory: Path) -> None:
    """Deploy everything, then change single things."""
    described, port = wired(network(), but=CHANGES), free_port()
    switches = OpenVSwitch(directory)
    try:
        switches.build(described, [port])
        started_s = time.monotonic()
        running = served(described, directory, switches.ovsdb, port)
        try:
            figures = running.wait_for("assignment", limit_s=120)["data"]
            print(
                f"everything at once: {figures['deploy_time_s']:.2f} s "
                f"(of it verified in {figures['verify_time_s']:.2f} s), "
                f"solve {figures['solve_time_s']:.2f} s; "
                f"{time.monotonic() - started_s:.1f} s from the start of the process"
            )
            before = len(running.of_kind("assignment"))
            for number in range(CHANGES):
                running.tell(user=f"u{number}", rate_bps=1e6)
                running.wait_for("assignment", trigger=f"demand of u{number}", limit_s=60)
            report(running.of_kind("assignment")[before:], "a demand")
            before = len(running.of_kind("assignment"))
            for a in described.attachments[-CHANGES:]:
                running.tell(user=a.user, access_point=a.datapath, associated=True)
                trigger = f"{a.user} associated with {a.datapath}"
                running.wait_for("assignment", trigger=trigger, limit_s=60)
            report(running.of_kind("assignment")[before:], "an association")
            processor_s, peak_mb = usage(running)
            print(f"processor time {processor_s:.1f} s, largest resident memory {peak_mb:.0f} MB")
            entries = sum(len(switches.entries(d.name)) for d in described.datapaths)
            print(f"{entries} flow entries, {len(switches.queues())} queues")
            for error in running.of_kind("error"):
                print(f"error: {error['data']['message']}")
        finally:
            running.stop()
    finally:
        switches.stop()


def handovers(directory: Path) -> None:
    """Ten stations change between four access points; afterwards all of them leave."""
    described, port = campaign(), free_port()
    switches = OpenVSwitch(directory)
    try:
        switches.build(described, [port])
        running = served(described, directory, switches.ovsdb, port)
        try:
            running.wait_for("assignment")
            bridges = [d.name for d in described.datapaths]

            def counts() -> tuple[int, int, tuple[int, int]]:
                entries = sum(len(switches.entries(bridge)) for bridge in bridges)
                return entries, len(switches.queues()), switches.row_counts()

            before, first = counts(), len(running.of_kind("assignment"))
            changes = [e for e in moves(described, HANDOVERS) if isinstance(e, AssociationChanged)]
            started_s = time.monotonic()
            for number, event in enumerate(changes):
                due_s = started_s + number * HANDOVERS_S / HANDOVERS
                time.sleep(max(0.0, due_s - time.monotonic()))
                running.tell(
                    user=event.user, access_point=event.datapath, associated=event.associated
                )
            last = changes[-1]
            trigger = f"{last.user} dissociated from {last.datapath}"
            running.wait_for("assignment", changes.count(last), limit_s=120, trigger=trigger)
            report(running.of_kind("assignment")[first:], "a change of association")
            print(f"entries, queues, (QoS, Queue rows): {before} before, {counts()} after")
            print(f"{len(running.of_kind('error'))} errors")
        finally:
            running.stop()
    finally:
        switches.stop()


def report(assignments: list[dict[str, Any]], what: str) -> None:
    """Print medians and the worst of what the controller recorded."""
    for name in ("waited_s", "solve_time_s", "deploy_time_s", "verify_time_s"):
        values = sorted(1e3 * record["data"][name] for record in assignments)
        print(
            f"  {what}, {name}: median {statistics.median(values):.1f} ms, "
            f"p95 {values[int(0.95 * (len(values) - 1))]:.1f} ms"
        )


def takeover(directory: Path) -> None:
    """Kill a master, and see how long the standby takes."""
    described, ports = wired(network(3, 4)), [free_port(), free_port()]
    with ExitStack() as stack:
        switches = OpenVSwitch(directory)
        stack.callback(switches.stop)
        switches.build(described, ports)

        def start(port: int) -> RunningController:
            one = served(described, directory, switches.ovsdb, port, "--role", "elected")
            stack.callback(one.stop)
            return one

        master, times = start(ports[0]), []
        master.wait_for("assignment")
        for number in range(1, 6):
            standby = start(ports[number % 2])
            wait_for(lambda one=standby: one.of_kind("sample"), "the standby to be connected")
            killed_s = time.monotonic()
            master.kill()
            times.append(standby.wait_for("solve")["t_mono_s"] - killed_s)
            master = standby
    print(
        f"takeover: median {1e3 * statistics.median(times):.0f} ms, "
        f"worst {1e3 * max(times):.0f} ms of {len(times)}"
    )


def main() -> int:
    """Run all; the exit status."""
    for part in (takeover, handovers, scale):
        with tempfile.TemporaryDirectory() as directory:
            part(Path(directory))
    return 0


if __name__ == "__main__":
    sys.exit(main())
