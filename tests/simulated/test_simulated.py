"""Runs with --backend sim: the files of a run, and what others read in them."""

import json
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

import analysis
import captures
import scenarios
from tactical import cli, experiment
from tactical.emulation.plan import make_plan
from tactical.experiment import Request
from tactical.host.simulated import SimulatedMachine
from tactical.simulated.session import simulate

SHORT = ["duration_s=12", "entry_time_s=4"]


def simulated(
    directory: Path, name: str, protocol: str, parameters: list[str], seed: int = 0
) -> Path:
    request = Request(scenarios.load(name, parameters), protocol, seed, "sim", directory)
    plan = make_plan(request.experiment.build(seed), protocol)
    run_dir = experiment._new_directory(request, protocol)
    experiment._describe_run(run_dir, request, plan, SimulatedMachine())
    simulate(run_dir)
    return run_dir


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    directory = tmp_path_factory.mktemp("runs")
    # Whole packets, so that whoever reads them can check all checksums.
    whole = [*SHORT, "captures.snap_length_bytes=2000"]
    return {p: simulated(directory, "direct-move", p, whole) for p in scenarios.PROTOCOLS}


@pytest.mark.parametrize("protocol", scenarios.PROTOCOLS)
def test_the_analysis_reads_it_as_a_real_run(runs, protocol):
    result = analysis.analyse(runs[protocol])
    assert result.state == "done"
    assert not result.remarks
    assert result.capture_drops == 0
    assert result.handovers == 2
    for user in result.users.values():
        assert user.completed
        assert user.bytes_agree
        assert {share.via for share in user.subflows} == {"satcom", "uav"}
    if protocol != "sptcp":
        assert result.goodput_bps == pytest.approx(6e6, rel=0.05)
        assert all(user.longest_interruption_s < 0.7 for user in result.users.values())
    assert result.solves == (3 if protocol == "fdm" else 0)


def test_under_flow_deviation_each_subflow_has_its_queue_and_its_rate(runs):
    result = analysis.analyse(runs["fdm"])
    uav = [queue for queue in result.queues if queue.port == "uav-eth2"]
    assert len(uav) == 2
    events = [json.loads(line) for line in (runs["fdm"] / "events.jsonl").read_text().splitlines()]
    solves = [event["data"] for event in events if event["kind"] == "solve"]
    rates = {(f["user"], f["via"]): f["rate_bps"] for f in solves[-1]["path_flows"]}
    assert rates["ship1", "uav"] == pytest.approx(rates["ship2", "uav"])
    assert {"queue_discipline", "assignment", "association", "handover"} <= {
        event["kind"] for event in events
    }
    assert [event["seq"] for event in events[1:]] == list(range(len(events) - 1))


@pytest.mark.parametrize("protocol", ["sptcp", "mptcp"])
def test_another_reader_finds_nothing_wrong_with_the_packets(runs, protocol):
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    options = ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]
    bad = "tcp.checksum.status == 0 || ip.checksum.status == 0 || _ws.malformed"
    for name in ("host-eth0", "ship1-eth0", "ship1-wlan0"):
        capture = runs[protocol] / "captures" / f"{name}.pcapng"
        argv = ["tshark", "-r", str(capture), *options, "-Y", bad]
        said = subprocess.run(argv, capture_output=True, text=True, check=True)
        assert said.stdout == ""
        counted = subprocess.run(
            ["tshark", "-r", str(capture), "-T", "fields", "-e", "frame.len"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        packets = captures.read(capture).packets
        assert packets.wire_bytes.tolist() == [int(size) for size in counted.stdout.split()]
        assert len(packets) > 100


def test_joins_are_authentic_and_belong_to_their_connection(runs):
    found = analysis.analyse_captures([runs["mptcp"] / "captures" / "host-eth0.pcapng"])
    connections = [each for each in found.connections if each.protocol == "mptcp"]
    assert len(connections) == 2
    assert all(len(each.subflows) == 2 for each in connections)


def test_the_same_seed_is_the_same_run(tmp_path):
    made = [simulated(tmp_path / n, "random-walk", "fdm", ["duration_s=8"], 7) for n in "ab"]
    for name in ("captures/host-eth0.pcapng", "captures/ship1-wlan0.pcapng", "solves.jsonl"):
        assert (made[0] / name).read_bytes() == (made[1] / name).read_bytes()


def test_where_stations_are_at_the_start_they_went_before_it(tmp_path):
    run_dir = simulated(tmp_path, "random-walk", "fdm", ["duration_s=4"], 1)
    result = analysis.analyse(run_dir)
    events = [json.loads(line) for line in (run_dir / "events.jsonl").read_text().splitlines()]
    went = [event["node"] for event in events if event["kind"] == "handover" and event["t_s"] < 0]
    assert sorted(went) == ["ship1", "ship1", "ship2", "ship2"]
    assert result.handovers == 1
    changes = scenarios.load("random-walk", ["duration_s=4"]).build(1).handovers()
    assert [change.time_s > 0 for change in changes] == [False, False, True]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--set", "traffic.kind=files"], "no traffic of kind files"),
        (["--set", "traffic.direction=down"], "none from it"),
        (["--set", "traffic.connections=2"], "one transfer of each station"),
        (["--set", "traffic.congestion_control=bbr"], "not bbr"),
        (["--set", "controller.killed_at_s=5"], "killed"),
        (["--kill", "hostapd@3"], "--kill"),
        (["--time", "real"], "a clock of its own"),
        (["--network", "mininet-wifi"], "mininet-wifi"),
    ],
)
def test_what_cannot_be_simulated_is_refused_in_a_sentence(arguments, said, tmp_path, capsys):
    argv = ["run", "direct-move", "--backend", "sim", "--runs-dir", str(tmp_path), *arguments]
    assert cli.main(argv) == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.strip().splitlines()) == 1
    assert not list(tmp_path.rglob("run.toml"))


def test_the_command_makes_all_protocols_side_by_side(tmp_path, capsys):
    argv = ["run", "direct-move", "--backend", "sim", "--json", "--runs-dir", str(tmp_path)]
    assert cli.main([*argv, "--set", "duration_s=6", "--set", "entry_time_s=3"]) == 0
    documents = json.loads(capsys.readouterr().out)
    assert [each["protocol"] for each in documents] == list(scenarios.PROTOCOLS)
    assert {each["state"] for each in documents} == {"done"}
    header = tomllib.loads(next(tmp_path.rglob("run.toml")).read_text())["run"]
    assert (header["backend"], header["time"]) == ("sim", "simulated")
