"""The controller on switches with the kernel's datapath, in a guest in virtual time.

    python -m benchmarks.kernel_switches

Ten stations change between four access points 200 times in 100 s; after every change entries and
queues are compared with those that a fresh controller would deploy.  Then, in turn and each time
away for two seconds, the database server, a switch's connection with its entries, and ovs-vswitchd
are lost, and a station changes meanwhile.  Printed are times as the guest's clock tells them, and
how many entries, queues, rows and classes of HTB there are before and after.
"""

from __future__ import annotations

import re
import shlex
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from benchmarks.controller import HANDOVERS, HANDOVERS_S, report
from tactical.controller.events import AssociationChanged, DatapathConnected, QueuesRead
from tactical.controller.logic import Controller
from tactical.controller.network import ControlledNetwork
from tactical.host import doctor, hermetic
from tests.controller.campaign import campaign, moves
from tests.controller.openvswitch import (
    OpenVSwitch,
    RunningController,
    free_port,
    wait_for,
    worker_controller,
)

AWAY_S = 2.0
LIMIT_S = 900.0
TOLERANCE = 0.06
"""What `Settings.queue_tolerance` leaves as it is, and a little for rounding."""
FILES = (
    "benchmarks/controller.py",
    "benchmarks/kernel_switches.py",
    "tests/controller/campaign.py",
    "tests/controller/openvswitch.py",
)

State = tuple[dict[str, Counter[int]], dict[tuple[str, str, str], tuple[float, float]]]
"""Cookies of the entries of every switch, and the rates of every subflow's queue."""


def wanted(network: ControlledNetwork, associated: set[tuple[str, str]]) -> State:
    """What a controller deploys that begins now."""
    fresh = Controller(network)
    events = [AssociationChanged(user, place, True) for user, place in sorted(associated)]
    for event in (*events, QueuesRead({}), *(DatapathConnected(d.dpid) for d in network.datapaths)):
        fresh.confirm(fresh.handle(event, 0.0))
    cookies: dict[str, Counter[int]] = {d.name: Counter() for d in network.datapaths}
    for entry in fresh.deployed.flows:
        cookies[network.datapath_name(entry.dpid) or ""][entry.cookie] += 1
    queues = fresh.deployed.queues.items()
    return cookies, {(q.port, q.user, q.via): (r.min_bps, r.max_bps) for q, r in queues}


def held(switches: OpenVSwitch, network: ControlledNetwork) -> State:
    """What the switches and the database have."""
    cookies = {
        d.name: Counter(
            int(re.findall(r"cookie=(0x[0-9a-f]+)", line)[0], 16)
            for line in switches.entries(d.name)
        )
        for d in network.datapaths
    }
    return cookies, {
        (port, row["user"], row["via"]): (float(row["min-rate"]), float(row["max-rate"]))
        for (port, _), row in switches.queues().items()
    }


def same(one: State, other: State) -> bool:
    """Whether both have the same entries, and the same queues to the tolerance."""
    if one[0] != other[0] or one[1].keys() != other[1].keys():
        return False
    return all(
        abs(a - b) <= TOLERANCE * max(a, b) + 2
        for key, rates in one[1].items()
        for a, b in zip(rates, other[1][key], strict=True)
    )


def counts(switches: OpenVSwitch, network: ControlledNetwork) -> str:
    """How much of everything there is."""
    entries = sum(len(switches.entries(d.name)) for d in network.datapaths)
    qos, queues = switches.row_counts()
    ends = [port for t in network.trunks for port in (t.a_port, t.b_port)]
    classes = sum(switches.classes(port) for port in ends)
    return f"{entries} entries, {qos} QoS rows, {queues} Queue rows, {classes} HTB classes"


def tell(running: RunningController, event: AssociationChanged) -> None:
    """Report a change of association."""
    running.tell(user=event.user, access_point=event.datapath, associated=event.associated)


def handovers(
    switches: OpenVSwitch, network: ControlledNetwork, running: RunningController
) -> None:
    """Make the changes, the last of which leave nobody associated."""
    before, first = counts(switches, network), len(running.of_kind("assignment"))
    associated: set[tuple[str, str]] = set()
    equal, late_s, started_s = 0, 0.0, time.monotonic()
    changes = [
        event for event in moves(network, HANDOVERS) if isinstance(event, AssociationChanged)
    ]
    for number, event in enumerate(changes):
        left_s = started_s + number * HANDOVERS_S / HANDOVERS - time.monotonic()
        late_s = max(late_s, -left_s)
        time.sleep(max(0.0, left_s))
        place = {(event.user, event.datapath)}
        associated = associated | place if event.associated else associated - place
        done = len(running.of_kind("assignment"))
        tell(running, event)
        running.wait_for("assignment", done + 1)
        equal += same(held(switches, network), wanted(network, associated))
    print(f"{equal} of {len(changes)} states as a fresh controller has them; {late_s:.2f} s late")
    report(running.of_kind("assignment")[first:], "a change of association")
    print(f"before: {before}\nafter:  {counts(switches, network)}")


def faults(
    switches: OpenVSwitch, network: ControlledNetwork, running: RunningController, port: int
) -> None:
    """Lose one part after the other; a station changes while it is away."""
    target = f"tcp:127.0.0.1:{port}"

    def lose_a_switch() -> None:
        switches.vsctl("del-controller", "satcom")
        switches.ofctl("del-flows", "satcom")
        time.sleep(AWAY_S)
        switches.vsctl("set-controller", "satcom", target)

    losses: dict[str, Callable[[], None]] = {
        "ovsdb-server killed": lambda: switches.restart_database(AWAY_S),
        "satcom disconnected, its entries deleted": lose_a_switch,
        "ovs-vswitchd killed": lambda: switches.restart_switch(AWAY_S),
    }
    before = counts(switches, network)
    for name, lose in losses.items():
        for associated in (True, False):
            tell(running, AssociationChanged("ship1", "uav", associated))
            lose()
            back_s = time.monotonic()
            target_state = wanted(network, {("ship1", "uav")} if associated else set())
            wait_for(lambda: same(held(switches, network), target_state), name, 60.0)  # noqa: B023
            print(f"{name}: as it should be {time.monotonic() - back_s:.2f} s after its return")
    print(f"before: {before}\nafter:  {counts(switches, network)}")
    for message in sorted({record["data"]["message"] for record in running.of_kind("error")}):
        print(f"told: {message}")


def inside() -> int:
    """Measure on this machine, which has no other switches; the exit status."""
    with tempfile.TemporaryDirectory(dir="/run") as folder:
        directory, network, port = Path(folder), campaign(), free_port()
        switches = OpenVSwitch(directory, kernel=True)
        try:
            switches.build(network, [port])
            running = worker_controller(network, directory, switches.ovsdb, port)
            try:
                running.wait_for("assignment", limit_s=120.0)
                handovers(switches, network, running)
                faults(switches, network, running, port)
            finally:
                running.stop()
        finally:
            switches.stop()
    return 0


def main() -> int:
    """Boot a guest that runs this file, and show what it printed; the exit status."""
    kernel = doctor.newest_suitable_kernel()
    if kernel is None:
        print("no kernel is installed that a guest can boot", file=sys.stderr)
        return 2
    root = Path(__file__).parent.parent
    with tempfile.TemporaryDirectory() as folder:
        directory, log = Path(folder, "guest"), Path(folder, "log")
        for name in FILES:
            place = directory / name
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, place)
        words = [sys.executable, "-W", "ignore", "-m", "benchmarks.kernel_switches", "inside"]
        command = f"modprobe openvswitch; cd {hermetic.DIRECTORY} && exec {shlex.join(words)}"
        child = hermetic.HermeticMachine(kernel.release).start(
            ["sh", "-c", command], [directory], log
        )
        try:
            status = child.wait(LIMIT_S)
        finally:
            child.stop(1.0)
        print(log.read_text(errors="replace"))
    return 1 if status is None else status


if __name__ == "__main__":
    sys.exit(inside() if sys.argv[1:] == ["inside"] else main())
