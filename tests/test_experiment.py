"""The host's side of a run: what it prepares, follows and closes. The runs are in
test_end_to_end.py."""

import json
import shutil
import tomllib
from datetime import datetime
from pathlib import Path
from unittest.mock import Mock

import pytest

import scenarios
from tactical import experiment
from tactical.dry_run import dry_run
from tactical.experiment import Request
from tactical.host import HostError, choose, hermetic, memory_disk


def event(**fields: object) -> str:
    base = {"seq": None, "t_s": None, "t_mono_s": None, "kind": "state", "node": "run", "data": {}}
    return json.dumps({**base, **fields}) + "\n"


def follower(run_dir: Path) -> "experiment._Follower":
    return experiment._Follower(run_dir, "fdm")


def test_half_a_line_waits_for_its_other_half(tmp_path: Path) -> None:
    log = tmp_path / "events.jsonl"
    whole = event(data={"state": "configured"})
    log.write_text(whole[:20])
    reader = follower(tmp_path)
    assert reader.read() == []
    log.write_text(whole)
    assert [step.message for step in reader.read()] == ["configured"]
    assert reader.read() == []


def test_set_up_gets_negative_run_time_once_it_is_known(tmp_path: Path) -> None:
    log = tmp_path / "events.jsonl"
    log.write_text(
        event(data={"state": "defined"})
        + event(seq=0, t_mono_s=40.0, data={"state": "configured"})
        + event(seq=1, t_s=0.5, t_mono_s=60.5, data={"state": "running"})
        + '{"seq": 2, "t_s": 1.0, "t_mo'  # the writer was killed here
    )
    experiment._fill_in_run_time(tmp_path)
    filled = [json.loads(line) for line in log.read_text().splitlines()]
    assert [e["seq"] for e in filled] == [0, 1, 2]
    assert [e["t_s"] for e in filled] == [-20.0, -20.0, 0.5]


def test_run_whose_worker_died_is_failed_with_the_reason(tmp_path: Path) -> None:
    log = tmp_path / "events.jsonl"
    log.write_text(event(data={"state": "running"}, t_s=0.0, t_mono_s=10.0, seq=0))
    reader = follower(tmp_path)
    reader.read()
    steps: list[experiment.Progress] = []
    experiment._close(reader, "the machine went away", steps.append)
    assert [s.message for s in steps] == ["failed: the machine went away"]
    last = json.loads(log.read_text().splitlines()[-1])
    assert last["data"] == {"state": "failed", "reason": "the machine went away"}


def test_run_that_ended_keeps_its_last_word(tmp_path: Path) -> None:
    log = tmp_path / "events.jsonl"
    log.write_text(event(data={"state": "done"}, t_s=9.0, t_mono_s=10.0, seq=0))
    reader = follower(tmp_path)
    reader.read()
    experiment._close(reader, "unused", lambda step: None)
    assert len(log.read_text().splitlines()) == 1


@pytest.fixture
def abandoned(tmp_path: Path) -> Path:
    """A run in virtual time whose `tactical` was killed: events told, all else in its image."""
    if shutil.which("mke2fs") is None:
        pytest.skip("mke2fs (package e2fsprogs) is not installed")
    inside = tmp_path / "content" / hermetic.DIRECTORY.name
    (inside / "logs").mkdir(parents=True)
    (inside / "logs" / "controller.log").write_text("what it said")
    (inside / "events.jsonl").write_text("the guest's own")
    run_dir = tmp_path / "RUN"
    run_dir.mkdir()
    told = event(seq=0, t_s=0.0, t_mono_s=10.0, data={"state": "running"})
    (run_dir / "events.jsonl").write_text(event(data={"state": "defined"}) + told + "torn")
    memory_disk.make(
        run_dir / hermetic.IMAGE_NAME, memory_disk.ALIGNMENT_BYTES, tmp_path / "content"
    )
    return run_dir


def test_a_run_whose_tactical_was_killed_is_brought_back_and_closed(abandoned: Path) -> None:
    assert experiment.recover(abandoned)
    assert (abandoned / "logs" / "controller.log").read_text() == "what it said"
    told = [json.loads(line) for line in (abandoned / "events.jsonl").read_text().splitlines()]
    assert [each["data"]["state"] for each in told] == ["defined", "running", "failed"]
    assert not experiment.recover(abandoned), "once"
    assert sorted(path.name for path in abandoned.iterdir()) == ["events.jsonl", "logs"]


def test_what_cannot_be_brought_back_stays_where_it_is(abandoned: Path) -> None:
    image = abandoned / hermetic.IMAGE_NAME
    image.write_bytes(b"no file system")
    with pytest.raises(HostError, match="cannot be brought back"):
        experiment.recover(abandoned)
    assert image.exists()


@pytest.fixture
def requests(tmp_path: Path) -> list[Request]:
    try:
        choose("auto")
    except HostError as error:
        pytest.skip(str(error))
    chosen = scenarios.load("direct-move", [])
    return [Request(chosen, p, 3, "auto", tmp_path / "runs") for p in scenarios.PROTOCOLS]


def test_dry_run_shows_every_part_and_makes_nothing(requests: list[Request]) -> None:
    text = "\n".join(dry_run(requests))
    for part in (
        "tactical.emulation",
        "modprobe mac80211_hwsim radios=3",
        "[satcom-air] tc qdisc add dev satcom-air0 root netem",
        "ovs-vsctl -- set Port",
        "[ship2] ip mptcp endpoint add 10.0.2.2 dev ship2-wlan0",
        "[host] dumpcap -i host-eth0",
        "[ship1] mptcpize run iperf3",
        "[ship1] iperf3",
        "# 60.000 s",
        "iw dev ship1-wlan0 connect -w uav 2412",
        "[ship1] ip link set ship1-eth0 down",
        "ovs-vswitchd unix:",
        "[host] tc qdisc delete dev host-eth0 ingress",
    ):
        assert part in text
    assert not requests[0].runs_dir.exists()


def test_prepared_directory_repeats_the_experiment(requests: list[Request]) -> None:
    request = requests[-1]
    plan = experiment.make_plan(request.experiment.build(3), request.protocol)
    first = experiment._new_directory(request, "fdm")
    assert experiment._new_directory(request, "fdm") != first, "two runs within a second"
    experiment._describe_run(first, request, plan, choose("auto"))
    header = tomllib.loads((first / "run.toml").read_text())["run"]
    assert (header["scenario"], header["protocol"], header["seed"]) == ("direct-move", "fdm", 3)
    again = scenarios.load("direct-move", config=first / "run.toml")
    assert scenarios.fingerprint(again) == header["fingerprint"]
    users = json.loads((first / "plan.json").read_text())["users"]
    assert sorted(users) == ["ship1", "ship2"]


def test_nothing_that_a_guest_reads_tells_when_a_run_was_made(
    requests: list[Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A guest of another content is another run, if only by a digit."""
    request = requests[-1]
    plan = experiment.make_plan(request.experiment.build(3), request.protocol)
    made = []
    for year in (2026, 2031):
        monkeypatch.setattr(experiment, "datetime", Mock(now=lambda _, y=year: datetime(y, 1, 2)))
        directory = experiment._new_directory(request, "fdm")
        experiment._describe_run(directory, request, plan, choose("auto"))
        files = {path.name: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
        told = json.loads(files.pop("events.jsonl"))
        assert told["data"]["created"].startswith(str(year))
        made.append(files)
    assert made[0] == made[1]
