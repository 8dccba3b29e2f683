"""The controller as a process, against a real Open vSwitch without a kernel datapath."""

import dataclasses
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import scenarios
from routing.maxflowsdn import FAT_TREE
from tactical.controller.events import AssociationChanged
from tactical.controller.network import ControlledNetwork, Settings, save
from tactical.controller.subflows import token_of
from tactical.emulation.control import ControllerProcess, controlled_network
from tactical.emulation.events import EventLog
from tactical.emulation.plan import make_plan
from tactical.emulation.processes import Process
from tests.controller.campaign import campaign, moves
from tests.controller.data_centres import described
from tests.controller.openvswitch import (
    OpenVSwitch,
    RunningController,
    free_port,
    wait_for,
    worker_controller,
)
from tests.controller.test_reading import segment as handshake

BRIDGES = ("satcom", "uav", "shore")
UAV_PORT = "uav-eth2"
HANDOVERS = 60
XID = bytes.fromhex("0001af810100")
"""IEEE 802.2 LLC exchange identification, as mac80211 sends it for a new station."""


def network_of(protocol: str, *overrides: str, **settings: Any) -> ControlledNetwork:
    scenario = scenarios.load("direct-move", overrides).build(1)
    network = controlled_network(make_plan(scenario, protocol), scenario)
    return dataclasses.replace(network, settings=Settings(**settings))


@pytest.fixture
def start(open_vswitch: OpenVSwitch, tmp_path: Path) -> Iterator[Callable[..., RunningController]]:
    """Starts controllers as the worker does; all end with the test."""
    with ExitStack() as stack:

        def start(network: ControlledNetwork, port: int) -> RunningController:
            running = worker_controller(network, tmp_path, open_vswitch.ovsdb, port)
            stack.callback(running.stop)
            return running

        yield start


def mac(network: ControlledNetwork, user: str) -> str:
    return next(a.mac for a in network.attachments if a.user == user and a.wireless)


def exchange_identification(source: str) -> bytes:
    sender = bytes.fromhex(source.replace(":", ""))
    return (b"\xff" * 6 + sender + len(XID).to_bytes(2, "big") + XID).ljust(60, b"\0")


def test_entries_and_queues_are_what_was_decided(
    open_vswitch: OpenVSwitch, start: Callable[..., RunningController]
) -> None:
    network, port = network_of("fdm"), free_port()
    open_vswitch.build(network, [port])
    before = open_vswitch.row_counts()
    running = start(network, port)
    running.wait_for("assignment")
    assert {key[0] for key in open_vswitch.queues()} == {"satcom-eth3"}

    running.tell(user="ship1", access_point="uav", associated=True)
    running.wait_for("assignment", trigger="ship1 associated with uav")
    open_vswitch.receive("uav-wlan1", exchange_identification(mac(network, "ship2")))
    heard = running.wait_for("assignment", trigger="ship2 heard at uav")
    assert heard["data"]["deploy_time_s"] >= heard["data"]["verify_time_s"] > 0
    rates = {
        (port, row["user"]): (int(row["min-rate"]), int(row["max-rate"]))
        for (port, _), row in open_vswitch.queues().items()
    }
    assert rates[UAV_PORT, "ship1"] == pytest.approx((388_268, 388_268), abs=1)
    assert rates[UAV_PORT, "ship2"] == pytest.approx((388_268, 388_268), abs=1)
    for user in ("ship1", "ship2"):
        (row,) = [
            r
            for r in running.of_kind("queue_set")
            if (r["data"]["user"], r["data"]["port"]) == (user, UAV_PORT)
        ][-1:]
        assert f"set_queue:{row['data']['queue_id']},output:2" in "".join(
            open_vswitch.entries("uav")
        )

    for user in ("ship1", "ship2"):
        running.tell(user=user, access_point="uav", associated=False)
        running.wait_for("assignment", trigger=f"{user} dissociated from uav")
    assert len(open_vswitch.entries("uav")) == 2, "only those that hear of stations"
    assert open_vswitch.row_counts() == (before[0], before[1] + 2), "the queues on SATCOM"
    assert not running.of_kind("error")


def test_what_the_server_sends_has_queues_at_the_other_ends_and_a_restart_finds_them(
    open_vswitch: OpenVSwitch, start: Callable[..., RunningController]
) -> None:
    network, port = network_of("fdm", "traffic.direction=both"), free_port()
    open_vswitch.build(network, [port])
    first = start(network, port)
    first.wait_for("assignment")
    first.tell(user="ship1", access_point="uav", associated=True)
    first.wait_for("assignment", trigger="ship1 associated with uav")
    rates = {
        (port, row["user"], row["via"]): (row["min-rate"], row["max-rate"])
        for (port, _), row in open_vswitch.queues().items()
    }
    ends = {"satcom": ("satcom-eth3", "shore-eth2"), "uav": ("uav-eth2", "shore-eth3")}
    assert {(port, via) for port, _, via in rates} == {
        (port, via) for via, ports in ends.items() for port in ports
    }
    for via, (up, down) in ends.items():
        assert rates[up, "ship1", via] == rates[down, "ship1", via]
    assert len([e for e in open_vswitch.entries("shore") if "set_queue" in e]) == 3
    held = {bridge: open_vswitch.entries(bridge) for bridge in BRIDGES}
    queues = open_vswitch.queues()
    first.stop()
    second = start(network, port)
    second.wait_for("solve")
    # Any change would come before the counters of the second after the solve.
    count = len(second.of_kind("sample"))
    wait_for(lambda: len(second.of_kind("sample")) > count + 10, "counters")
    assert open_vswitch.queues() == queues
    assert {bridge: open_vswitch.entries(bridge) for bridge in BRIDGES} == held
    for running in (first, second):
        assert not running.of_kind("error")


def test_killed_and_started_again_it_goes_on_without_touching_anything(
    open_vswitch: OpenVSwitch, start: Callable[..., RunningController]
) -> None:
    network, port = network_of("fdm"), free_port()
    open_vswitch.build(network, [port])
    first = start(network, port)
    first.wait_for("assignment")
    first.tell(user="ship1", access_point="uav", associated=True)
    first.wait_for("assignment", 2)
    first.kill()
    held = {bridge: open_vswitch.entries(bridge) for bridge in BRIDGES}
    queues = open_vswitch.queues()
    ages = {bridge: open_vswitch.ages_s(bridge) for bridge in BRIDGES}

    second = start(network, port)
    solve = second.wait_for("solve")
    assert {flow["via"] for flow in solve["data"]["path_flows"]} == {"satcom", "uav"}
    # Any change would come before the counters of the second after the solve.
    count = len(second.of_kind("sample"))
    wait_for(lambda: len(second.of_kind("sample")) > count + 10, "counters")
    assert not second.of_kind("flow_mod")
    assert not second.of_kind("queue_set")
    assert not second.of_kind("error")
    assert {bridge: open_vswitch.entries(bridge) for bridge in BRIDGES} == held
    assert open_vswitch.queues() == queues
    for bridge in BRIDGES:
        for entry, age_s in open_vswitch.ages_s(bridge).items():
            assert age_s > ages[bridge][entry], "no entry was added again"

    second.tell(user="ship1", access_point="uav", associated=False)
    second.wait_for("assignment", trigger="ship1 dissociated from uav")
    assert len(open_vswitch.entries("uav")) == 2


def test_worker_kills_and_restarts_it_and_tells_what_it_missed(
    open_vswitch: OpenVSwitch, tmp_path: Path
) -> None:
    network, port = network_of("fdm"), free_port()
    open_vswitch.build(network, [port])
    save(network, tmp_path / "network.json")
    argv = [sys.executable, "-m", "tactical.controller", "--port", str(port)]
    argv += ["--network", str(tmp_path / "network.json"), "--ovsdb", open_vswitch.ovsdb]

    with EventLog(tmp_path) as events:
        running = ControllerProcess(
            lambda: Process(argv, tmp_path / "controller.log", piped=True), events
        )
        try:
            running.wait_until_deployed()
            running.report("ship1", "uav", True)
            assert events.wait_for(
                lambda e: (
                    e["data"].get("trigger") == "ship1 associated with uav"
                    and e["kind"] == "assignment"
                ),
                30.0,
            )
            queues = open_vswitch.queues()
            running.kill()
            running.report("ship1", "uav", False)
            running.report("ship2", "uav", True)
            assert open_vswitch.queues() == queues
            restarted_s = time.monotonic()
            running.restart()
            assert events.wait_for(
                lambda e: e["kind"] == "assignment" and e["t_mono_s"] > restarted_s, 30.0
            )
        finally:
            running.close()
    owners = {row["user"] for (at, _), row in open_vswitch.queues().items() if at == UAV_PORT}
    assert owners == {"ship2"}
    assert '"kind": "error"' not in (tmp_path / "events.jsonl").read_text()


def test_datapaths_may_have_databases_of_their_own(
    open_vswitch: OpenVSwitch, start: Callable[..., RunningController], tmp_path: Path
) -> None:
    """The UAV's switch is another machine's; its queues are set there and nowhere else."""
    (tmp_path / "uav").mkdir()
    aboard = OpenVSwitch(tmp_path / "uav")
    try:
        network, port = network_of("fdm"), free_port()
        for where, names in ((open_vswitch, {"satcom", "shore"}), (aboard, {"uav"})):
            part = dataclasses.replace(
                network,
                datapaths=tuple(d for d in network.datapaths if d.name in names),
                ports=tuple(p for p in network.ports if p.datapath in names),
            )
            where.build(part, [port])
        datapaths = tuple(
            dataclasses.replace(d, ovsdb=aboard.ovsdb) if d.name == "uav" else d
            for d in network.datapaths
        )
        running = start(dataclasses.replace(network, datapaths=datapaths), port)
        running.wait_for("assignment")
        running.tell(user="ship1", access_point="uav", associated=True)
        running.wait_for("assignment", trigger="ship1 associated with uav")
        assert {key[0] for key in open_vswitch.queues()} == {"satcom-eth3"}
        assert {key[0] for key in aboard.queues()} == {UAV_PORT}
        aboard.restart_database()
        running.tell(user="ship1", access_point="uav", associated=False)
        running.wait_for("assignment", trigger="ship1 dissociated from uav")
        assert not aboard.queues()
        assert {key[0] for key in open_vswitch.queues()} == {"satcom-eth3"}
        assert not running.of_kind("error")
    finally:
        aboard.stop()


def test_after_many_handovers_nothing_is_left_behind(
    open_vswitch: OpenVSwitch, start: Callable[..., RunningController]
) -> None:
    network, port = campaign(), free_port()
    open_vswitch.build(network, [port])
    running = start(network, port)
    running.wait_for("assignment")
    bridges = [d.name for d in network.datapaths]
    before = ([open_vswitch.entries(b) for b in bridges], open_vswitch.row_counts())
    queues = open_vswitch.queues()
    handovers = moves(network, HANDOVERS)
    for event in handovers:
        assert isinstance(event, AssociationChanged)
        running.tell(user=event.user, access_point=event.datapath, associated=event.associated)
    last = handovers[-1]
    assert isinstance(last, AssociationChanged)
    trigger = f"{last.user} dissociated from {last.datapath}"
    running.wait_for("assignment", handovers.count(last), limit_s=120.0, trigger=trigger)
    after = ([open_vswitch.entries(b) for b in bridges], open_vswitch.row_counts())
    assert after == before
    for key, row in open_vswitch.queues().items():
        for bound in ("min-rate", "max-rate"):
            assert float(row[bound]) == pytest.approx(float(queues[key][bound]), rel=0.06)
    assert not running.of_kind("error")


def test_what_others_break_is_mended(
    open_vswitch: OpenVSwitch, start: Callable[..., RunningController]
) -> None:
    network, port = network_of("fdm"), free_port()
    open_vswitch.build(network, [port])
    running = start(network, port)
    running.wait_for("assignment")
    entries, queues = open_vswitch.entries("satcom"), open_vswitch.queues()

    # Queues, by the hand of another.
    uuid = next(
        row["_uuid"] for row in open_vswitch._table("Queue", "") if "user" in row["external_ids"]
    )
    open_vswitch.vsctl("set", "queue", uuid, "other-config:max-rate=1000")
    running.wait_for("assignment", trigger="queues read")
    assert open_vswitch.queues() == queues

    # The database server, and with it every connection to it.
    open_vswitch.restart_database()
    running.tell(user="ship1", access_point="uav", associated=True)
    running.wait_for("assignment", trigger="ship1 associated with uav")
    assert any(key[0] == UAV_PORT for key in open_vswitch.queues())
    running.tell(user="ship1", access_point="uav", associated=False)
    running.wait_for("assignment", trigger="ship1 dissociated from uav")

    # A switch that lost its entries and its controllers.
    open_vswitch.vsctl("del-controller", "satcom")
    wait_for(
        lambda: [r for r in running.of_kind("error") if r["node"] == "satcom"], "loss of satcom"
    )
    open_vswitch.ofctl("del-flows", "satcom")
    count = len(running.of_kind("assignment"))
    open_vswitch.vsctl("set-controller", "satcom", f"tcp:127.0.0.1:{port}")
    running.wait_for("assignment", count + 1)
    assert open_vswitch.entries("satcom") == entries
    assert open_vswitch.queues() == queues
    faults = {record["data"]["message"] for record in running.of_kind("error")}
    assert faults == {"control connection lost"}


def test_refused_change_leaves_the_old_state_and_is_tried_again(
    open_vswitch: OpenVSwitch, start: Callable[..., RunningController]
) -> None:
    network, port = network_of("fdm"), free_port()
    open_vswitch.build(network, [port])
    running = start(network, port)
    running.wait_for("assignment")
    state = (open_vswitch.entries("uav"), open_vswitch.queues())
    # The UAV's link loses its shaping: a queue has no place there.
    (qos,) = open_vswitch.vsctl("get", "port", UAV_PORT, "qos").split()
    open_vswitch.vsctl("clear", "port", UAV_PORT, "qos")
    running.tell(user="ship1", access_point="uav", associated=True)
    error = running.wait_for("error")
    message = f"port {UAV_PORT} has no QoS row; its link is not shaped; "
    assert error["data"]["message"] == message + "the state before it is in force"
    assert (open_vswitch.entries("uav"), open_vswitch.queues()) == state

    open_vswitch.vsctl("set", "port", UAV_PORT, f"qos={qos}")
    running.wait_for("assignment", trigger="deployment failed")
    assert any(key[0] == UAV_PORT for key in open_vswitch.queues())


def test_first_segment_waits_for_the_entries_of_its_subflow(
    open_vswitch: OpenVSwitch, start: Callable[..., RunningController]
) -> None:
    network, port = network_of("fdm"), free_port()
    open_vswitch.build(network, [port])
    running = start(network, port)
    running.wait_for("assignment")
    ship = next(a for a in network.attachments if a.wireless)
    syn = handshake(ship.address, "10.0.0.1", (5001, 5201), 0x02, b"")
    data = handshake(ship.address, "10.0.0.1", (5001, 5201), 0x10, b"")
    for frame in (syn, data):
        open_vswitch.receive("uav-wlan1", frame)
    wait_for(
        lambda: re.search(
            "n_packets=1, .*CONTROLLER:65535", open_vswitch.ofctl("dump-flows", "uav")
        ),
        "the switch to pass it on",
    )
    assert "tx pkts=0" in open_vswitch.ofctl("dump-ports", "shore", "shore-eth1")
    running.tell(user=ship.user, access_point="uav", associated=True, source="hostapd")
    done = running.wait_for("assignment", trigger=f"{ship.user} associated with uav")
    cause = {"user": ship.user, "access_point": "uav", "associated": True, "source": "hostapd"}
    assert done["data"]["cause"] == cause
    wait_for(
        lambda: "tx pkts=1" in open_vswitch.ofctl("dump-ports", "shore", "shore-eth1"),
        "the segment to arrive",
    )
    assert not running.of_kind("error")


def test_damaged_packets_are_no_fault(
    open_vswitch: OpenVSwitch, start: Callable[..., RunningController]
) -> None:
    """Whatever a station sends that reaches the controller, the controller stays."""
    network, port = network_of("fdm"), free_port()
    open_vswitch.build(network, [port])
    running = start(network, port)
    running.wait_for("assignment")
    ship = next(a for a in network.attachments if a.wireless)
    syn = handshake(ship.address, "10.0.0.1", (5001, 5201), 0x02, b"\x1e\x04\x01\x01")
    identification = exchange_identification(ship.mac)
    frames = [
        identification[:14],
        identification[:12] + b"\x00\x00",
        identification[:12] + b"\x05\xff" + bytes(1500),
        syn[:-4] + b"\x1e\xff\x01\x01",
        syn[:-4] + b"\x1e\x00\x01\x01",
        syn[:-4],
        syn[:34],
    ]
    for frame in frames:
        open_vswitch.receive("uav-wlan1", frame)
    running.tell(user="ship2", access_point="uav", associated=True)
    running.wait_for("assignment", trigger="ship2 associated with uav")
    assert not [e for e in running.of_kind("error") if "traceback" in e["data"]]
    assert running.process.poll() is None


def test_handshakes_reach_the_controller_and_the_other_end(
    open_vswitch: OpenVSwitch, start: Callable[..., RunningController]
) -> None:
    network, port = network_of("mptcp", discover_subflows=True), free_port()
    open_vswitch.build(network, [port])
    running = start(network, port)
    running.wait_for("assignment")
    ship = next(a for a in network.attachments if not a.wireless)
    key = bytes(range(8))
    frames = [
        (ship.port, handshake(ship.address, "10.0.0.1", (5001, 5201), 0x02, b"\x1e\x04\x01\x01")),
        (
            "shore-eth1",
            handshake("10.0.0.1", ship.address, (5201, 5001), 0x12, b"\x1e\x0c\x01\x01" + key),
        ),
    ]
    for at, frame in frames:
        open_vswitch.receive(at, frame)
    record = running.wait_for("subflow_established")
    assert record["node"] == "ship1"
    assert record["data"] == {
        "source": f"{ship.address}:5001",
        "destination": "10.0.0.1:5201",
        "token": token_of(key),
        "via": "satcom",
    }
    forwarded = open_vswitch.ofctl("dump-ports", "shore", "shore-eth1")
    assert "tx pkts=1" in forwarded


def test_connections_of_a_transfer_have_entries_of_their_own(
    open_vswitch: OpenVSwitch, start: Callable[..., RunningController]
) -> None:
    network, port = described(FAT_TREE.topology, ("h1",), "h2"), free_port()
    open_vswitch.build(network, [port])
    running = start(network, port)
    running.wait_for("assignment", limit_s=60)
    running.tell(user="h1", rate_bps=1e9)
    running.wait_for("assignment", trigger="demand of h1")
    assert running.of_kind("error") == []

    def connections(bridge: str) -> list[str]:
        return [entry for entry in open_vswitch.entries(bridge) if "priority=120" in entry]

    (a,) = network.attachments
    outputs = {
        int(tcp_port): network.port_name(network.dpid("s9"), int(output))
        for entry in connections("s9")
        for tcp_port, output in re.findall(r"tp_dst=(\d+).* actions=output:(\d+)", entry)
    }
    ways = {t.a_port: t.b_datapath for t in network.trunks if t.a_datapath == "s9"}
    ways |= {t.b_port: t.a_datapath for t in network.trunks if t.b_datapath == "s9"}
    assert {port: ways[str(out)] for port, out in outputs.items()} == {5001: "s1", 5002: "s2"}
    assert all(a.address in entry for entry in connections("s9"))
    assert sum(len(connections(d.name)) for d in network.datapaths) == 20
    running.tell(user="h1", rate_bps=0.0)
    wait_for(lambda: not connections("s9"), "the transfer to end")
