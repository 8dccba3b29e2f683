"""`tactical controller`: how it starts and ends, several of them, its API; on real switches."""

import dataclasses
import functools
import json
import re
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings

import scenarios
from tactical import cli
from tactical.controller.network import ControlledNetwork, Settings, save
from tactical.emulation.control import controlled_network
from tactical.emulation.plan import make_plan
from tests.controller.openvswitch import (
    LIMIT_S,
    OpenVSwitch,
    RunningController,
    free_port,
    served,
    wait_for,
)

UAV_PORT = "uav-eth2"
TOKEN = "0123456789abcdef"
get = functools.partial(httpx.get, timeout=LIMIT_S)
put = functools.partial(httpx.put, timeout=LIMIT_S)


def network_of(protocol: str, **settings: Any) -> ControlledNetwork:
    scenario = scenarios.load("direct-move").build(1)
    network = controlled_network(make_plan(scenario, protocol), scenario)
    return dataclasses.replace(network, settings=Settings(**settings))


@pytest.fixture
def serve(open_vswitch: OpenVSwitch, tmp_path: Path) -> Iterator[Callable[..., RunningController]]:
    """Starts `tactical controller`; all end with the test."""
    with ExitStack() as stack:

        def serve(network: ControlledNetwork, port: int, *options: str) -> RunningController:
            running = served(network, tmp_path, open_vswitch.ovsdb, port, *options)
            stack.callback(running.stop)
            return running

        yield serve


def test_it_ends_in_order_and_the_network_goes_on(
    open_vswitch: OpenVSwitch, serve: Callable[..., RunningController]
) -> None:
    network, port = network_of("mptcp"), free_port()
    open_vswitch.build(network, [port])
    running = serve(network, port, "--policy", "static", "--discover-links")
    running.wait_for("assignment")
    found = [running.wait_for("link_found", count) for count in (1, 2)]
    assert {tuple(map(tuple, record["data"]["ends"])) for record in found} == {
        (("satcom", "satcom-eth3"), ("shore", "shore-eth2")),
        (("shore", "shore-eth3"), ("uav", "uav-eth2")),
    }
    running.process.send_signal(signal.SIGINT)
    assert running.process.wait(LIMIT_S) == 0
    assert running.of_kind("state")[-1]["data"] == {"state": "stopped"}
    assert "Traceback" not in running.said()
    assert open_vswitch.entries("shore")
    assert len(open_vswitch.queues()) == 2, "static slices on SATCOM"


def test_standby_takes_over_when_the_master_dies(
    open_vswitch: OpenVSwitch, serve: Callable[..., RunningController]
) -> None:
    network = network_of("fdm")
    ports = [free_port(), free_port()]
    open_vswitch.build(network, ports)
    first = serve(network, ports[0], "--role", "elected")
    first.wait_for("assignment")
    second = serve(network, ports[1], "--role", "elected")
    wait_for(lambda: second.of_kind("sample"), "the standby to be connected")
    for running in (first, second):
        running.tell(user="ship1", access_point="uav", associated=True)
    first.wait_for("assignment", trigger="ship1 associated with uav")
    state = {bridge: open_vswitch.entries(bridge) for bridge in ("satcom", "uav", "shore")}
    queues = open_vswitch.queues()
    assert not second.of_kind("flow_mod")

    first.kill()
    took_over = second.wait_for("role", role="master")
    solve = second.wait_for("solve")
    assert took_over["t_mono_s"] <= solve["t_mono_s"]
    assert not second.of_kind("flow_mod"), "nothing is changed that is right"
    assert {bridge: open_vswitch.entries(bridge) for bridge in state} == state
    assert open_vswitch.queues() == queues

    second.tell(user="ship2", access_point="uav", associated=True)
    second.wait_for("assignment", trigger="ship2 associated with uav")
    assert not second.of_kind("error")


def test_forecast_empties_the_path_before_it_goes(
    open_vswitch: OpenVSwitch, serve: Callable[..., RunningController]
) -> None:
    network, port = network_of("fdm", lead_time_s=30.0), free_port()
    open_vswitch.build(network, [port])
    running = serve(network, port)
    running.wait_for("assignment")
    running.tell(user="ship1", access_point="uav", associated=True)
    running.wait_for("assignment", trigger="ship1 associated with uav")
    running.tell(user="ship1", access_point="uav", associated=False, in_s=20.0)
    running.wait_for("assignment", trigger="ship1 expected to leave uav")
    told = running.wait_for("subflow_priority")
    assert told["data"]["backup"] is True
    assert 0.0 < told["data"]["expected_in_s"] <= 20.0
    rates = {key[0]: row for key, row in open_vswitch.queues().items() if row["user"] == "ship1"}
    assert rates[UAV_PORT]["min-rate"] == "0"
    assert rates[UAV_PORT]["max-rate"] == "1000000", "what is under way need not wait"
    assert float(rates["satcom-eth3"]["min-rate"]) > 3e6, "the other path carries all of it"
    assert len(open_vswitch.entries("uav")) == 4, "what is under way still arrives"
    running.tell(user="ship1", access_point="uav", associated=False)
    running.wait_for("assignment", trigger="ship1 dissociated from uav")
    assert len(open_vswitch.entries("uav")) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "is in use"),
        (("--listen", "nowhere"), "expected ADDRESS:PORT"),
        (("--ovsdb", "nonsense"), "--ovsdb 'nonsense'; expected tcp:ADDRESS:PORT or unix:FILE"),
        (("--policy", "magic"), "expected one of ecmp, fdm, maxflow, shortest, static, wcmp"),
        (("--api", "0.0.0.0:8080"), "needs --token-file"),
        (("--token-file", "missing"), "--token-file missing: No such file"),
        (("--network", "missing.json"), "missing.json: No such file"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_served_is_refused_in_one_sentence(
    arguments: tuple[str, ...],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    save(network_of("fdm"), tmp_path / "network.json")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        argv = ["controller", "--network", str(tmp_path / "network.json"), "--listen", listen]
        assert cli.main([*argv, *arguments]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert message in said.replace("another program listens there", "is in use")


@pytest.fixture
def api(
    open_vswitch: OpenVSwitch, serve: Callable[..., RunningController], tmp_path: Path
) -> tuple[RunningController, str]:
    """A controller with an API that wants a token for changes; its address."""
    (tmp_path / "token").write_text(TOKEN + "\n")
    network, port, api_port = network_of("fdm", dwell_s=0.0), free_port(), free_port()
    open_vswitch.build(network, [port])
    address = f"127.0.0.1:{api_port}"
    token = str(tmp_path / "token")
    running = serve(network, port, "--api", address, "--token-file", token)
    running.wait_for("state", state="serving")
    running.wait_for("assignment")
    return running, f"http://{address}"


def test_api_tells_and_changes(
    open_vswitch: OpenVSwitch, api: tuple[RunningController, str]
) -> None:
    running, address = api
    right = {"Authorization": f"Bearer {TOKEN}"}
    changes = [
        ("demands/ship1", {"rate_bps": 1e6}),
        ("links/satcom:satcom-eth3", {"capacity_bps": 4e6}),
        ("policy", {"policy": "shortest"}),
    ]

    def allocated() -> list[dict[str, Any]]:
        subflows = get(f"{address}/allocation").json()["subflows"]
        return [{k: v for k, v in s.items() if k != "measured_bps"} for s in subflows]

    before = allocated()
    assert [s["user"] for s in before] == ["ship1", "ship2"]
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic eA=="}):
        for path, body in changes:
            refused = put(f"{address}/{path}", json=body, headers=headers)
            assert refused.status_code == 401
    assert allocated() == before
    assert get(f"{address}/network", headers={"Host": "evil.example"}).status_code == 400

    for path, body in changes[:2]:
        done = put(f"{address}/{path}", json=body, headers=right)
        assert done.status_code == 200, done.text
    rates = {s["user"]: s["rate_bps"] for s in get(f"{address}/allocation").json()["subflows"]}
    assert rates["ship1"] == pytest.approx(1e6)
    assert rates["ship1"] + rates["ship2"] < 4e6
    (link,) = [
        k for k in get(f"{address}/network").json()["links"] if k["name"].startswith("satcom")
    ]
    assert (link["capacity_bps"], link["described_bps"]) == (4e6, 50e6)
    assert get(f"{address}/demands").json()[0]["rate_bps"] == 1e6
    metrics = get(f"{address}/metrics").text
    solves = re.search(r"tactical_solve_seconds_count (\d+)", metrics)
    assert solves is not None
    # Both changes were solved for; the first solve may have been before the API was there.
    assert int(solves[1]) >= 2
    assert 'tactical_datapath_connected{datapath="uav"} 1.0' in metrics

    put(f"{address}/policy", json=changes[2][1], headers=right)
    assert get(f"{address}/network").json()["policy"] == "shortest"
    assert not open_vswitch.queues()
    stream = get(f"{address}/events", params={"last": 1000, "follow": False}).text
    told = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: ")]
    running.read()
    records = [r for r in running.records if r["kind"] != "sample"]
    first = records.index(told[0])  # switches may have come before the API was there
    assert told == records[first : first + len(told)]
    assert told[-1]["data"]["trigger"] == "policy shortest"
    with httpx.stream("GET", f"{address}/events", timeout=LIMIT_S) as lasting:
        running.tell(user="ship1", access_point="uav", associated=True)
        for line in lasting.iter_lines():
            if line == "event: assignment":
                break
    assert not running.of_kind("error")


ODD = [b"NaN", b"Infinity", b"1e400", b"-1", b"2e15", b"true", b'"\\ud800"', b"1" + b"0" * 400]


def test_numbers_that_are_none_are_refused_and_change_nothing(
    api: tuple[RunningController, str],
) -> None:
    running, address = api
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    before = get(f"{address}/demands").json()
    for value in ODD:
        body = b'{"rate_bps": ' + value + b"}"
        refused = put(f"{address}/demands/ship1", content=body, headers=headers)
        assert refused.status_code == 422, value
        (fault,) = refused.json()["detail"]
        assert fault["loc"] == ["body", "rate_bps"]
    for body in (b"[" * 100_000, b'{"\\ud800": 1}', b"\xff\xfe", b'{"rate_bps": 1' + b"0" * 5000):
        refused = put(f"{address}/demands/ship1", content=body, headers=headers)
        assert refused.status_code in (400, 422), body[:20]
    after = get(f"{address}/demands").json()
    assert [d["rate_bps"] for d in after] == [d["rate_bps"] for d in before]
    assert "Traceback" not in running.said()
    assert not running.of_kind("error")


def test_reports_that_are_none_are_told_in_a_sentence_and_do_no_harm(
    open_vswitch: OpenVSwitch, serve: Callable[..., RunningController]
) -> None:
    network, port = network_of("fdm"), free_port()
    open_vswitch.build(network, [port])
    running = serve(network, port)
    running.wait_for("assignment")
    lines = ["[" * 60_000, "x" * 1_000_000, "\0\1", '{"user": "nobody", "rate_bps": 1}']
    lines += [f'{{"user": "ship1", "rate_bps": {rate}}}' for rate in ("NaN", "-1", "1" + "0" * 400)]
    lines += ['{"user": "ship1", "access_point": "uav", "associated": false, "in_s": 1e300}']
    assert running.process.stdin is not None
    running.process.stdin.write("\n".join([*lines, ""]).encode())
    running.process.stdin.flush()
    running.tell(user="ship1", access_point="uav", associated=True)
    running.wait_for("assignment", trigger="ship1 associated with uav")
    # A signal that falls by next to nothing crosses its threshold in thousands of years.
    for number in range(4):
        running.tell(user="ship1", access_point="uav", signal_dbm=-60 - number * 1e-12)
    running.tell(user="ship2", access_point="uav", associated=True)
    running.wait_for("assignment", trigger="ship2 associated with uav")
    told = [record["data"] for record in running.of_kind("error")]
    assert len(told) == len(lines)
    for data in told:
        assert set(data) == {"message"}
        assert data["message"].startswith("report ")
        assert len(data["message"]) < 300
    assert "Traceback" not in running.said()


def test_schemathesis_finds_nothing(api: tuple[RunningController, str]) -> None:
    running, address = api
    schema = schemathesis.openapi.from_url(f"{address}/openapi.json")
    headers = {"Authorization": f"Bearer {TOKEN}"}
    tried = 0
    for result in schema.exclude(path="/events").get_all_operations():
        operation = result.ok()

        @settings(
            max_examples=15, deadline=None, suppress_health_check=list(HealthCheck), database=None
        )
        @given(operation.as_strategy())
        def test(case: Any) -> None:
            nonlocal tried
            tried += 1
            case.call_and_validate(headers=headers)

        test()
    assert tried > 30
    assert running.process.poll() is None
    assert not [r for r in running.of_kind("error") if "traceback" in r["data"]]
