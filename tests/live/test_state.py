"""What the page is told of runs of a real network, and of records that are none."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tactical.live.records import Record
from tactical.live.setup import Link, Node, Setup, User
from tactical.live.sources import Replay
from tactical.live.state import State

from .conftest import RUNS

SETUP = Setup(
    scenario="test",
    protocol="fdm",
    seed=0,
    backend="vm",
    machine="",
    time="real",
    duration_s=60.0,
    nodes=(
        Node("ship1", "station"),
        Node("satcom", "satellite"),
        Node("uav", "access point", 1000.0),
        Node("host", "host"),
    ),
    links=(
        Link("satcom", "satcom-eth3", "shore-eth2", 4e6, 0.25),
        Link("uav", "uav-eth2", "shore-eth3", 1e6, 0.01),
    ),
    users=(User("ship1", 3e6, {"ship1-eth0": "satcom", "ship1-wlan0": "uav"}),),
    policy="fdm",
    ports={("satcom", "satcom-eth1"): "ship1"},
)


def queue_sample(t_s: float, tx_bytes: int, queue_id: int = 1) -> Record:
    row = {"kind": "queue", "port": "satcom-eth3", "queue_id": queue_id, "tx_bytes": tx_bytes}
    return Record(t_s, "sample", "satcom", row)


def queue_set(t_s: float) -> Record:
    data = {"datapath": "satcom", "port": "satcom-eth3", "queue_id": 1, "user": "ship1"}
    return Record(t_s, "queue_set", "controller", {**data, "via": "satcom", "min_bps": 3000000})


def solve(t_s: float, trigger: str, **rates_bps: float) -> Record:
    flows = [{"user": "ship1", "via": via, "rate_bps": r} for via, r in rates_bps.items()]
    return Record(t_s, "solve", "controller", {"trigger": trigger, "path_flows": flows})


def assignment(t_s: float, trigger: str) -> Record:
    return Record(t_s, "assignment", "controller", {"trigger": trigger, "deploy_time_s": 0.1})


def told(*records: Record) -> State:
    state = State(SETUP)
    for record in records:
        state.apply(record)
    return state


def test_two_readings_of_a_queue_are_the_rate_of_its_subflow() -> None:
    state = told(queue_set(0.0), queue_sample(1.0, 1000), queue_sample(2.0, 126000))
    assert state.store.get("subflows", "ship1 satcom")["measured_bps"] == 1_000_000
    assert state.store.since(0)["series"]["measured ship1 satcom"] == [[2.0, 1_000_000]]


@pytest.mark.parametrize("second", [queue_sample(1.0, 2000), queue_sample(2.0, 500)])
def test_a_counter_that_stands_still_in_time_or_begins_anew_is_no_rate(second: Record) -> None:
    state = told(queue_set(0.0), queue_sample(1.0, 1000), second)
    assert "measured_bps" not in state.store.get("subflows", "ship1 satcom")


def test_what_is_solved_counts_when_it_is_deployed() -> None:
    solved = solve(1.0, "ship1 heard at uav", satcom=2e6, uav=9e5)
    state = told(solved)
    assert "allocated_bps" not in state.store.get("subflows", "ship1 uav")
    state.apply(assignment(1.2, "ship1 heard at uav"))
    assert state.store.get("subflows", "ship1 uav")["allocated_bps"] == 9e5
    assert state.store.since(0)["series"]["allocated ship1 uav"][-1] == [1.2, 9e5]


def test_without_an_allocating_policy_nothing_is_allocated_and_queues_are_gone() -> None:
    state = told(queue_set(0.0), solve(1.0, "x", satcom=2e6), assignment(1.1, "x"))
    state.apply(assignment(5.0, "policy shortest"))
    subflow = state.store.get("subflows", "ship1 satcom")
    assert (subflow["allocated_bps"], subflow["min_bps"]) == (None, None)
    assert state.store.get("run", "policy") == "shortest"


def test_a_link_is_down_and_up_with_its_port() -> None:
    state = told(Record(3.0, "link_down", "satcom", {"port": "satcom-eth3"}))
    assert state.store.get("links", "satcom")["up"] is False
    state.apply(Record(4.0, "link_up", "satcom", {"port": "satcom-eth3"}))
    assert state.store.get("links", "satcom")["up"] is True


@pytest.mark.parametrize(("loss", "up"), [(0.0, True), (0.01, True), (1.0, False)])
def test_a_link_that_changes_has_another_capacity_or_is_down(loss: float, up: bool) -> None:
    state = told(Record(3.0, "link_change", "satcom", {"rate_bps": 2e6, "loss": loss}))
    link = state.store.get("links", "satcom")
    assert (link["capacity_bps"], link["up"]) == (2e6, up)


def anything() -> st.SearchStrategy[object]:
    flat = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5))
    return st.one_of(flat, st.lists(flat, max_size=2), st.dictionaries(st.text(max_size=5), flat))


KEYS = (
    "port", "queue_id", "tx_bytes", "kind", "user", "via", "datapath", "trigger", "path_flows",
    "state", "access_point", "east_m", "north_m", "rate_bps", "loss",
    "expected_in_s",
)  # fmt: skip
KINDS = (
    "position", "sample", "arrival", "association", "solve", "queue_set", "assignment",
    "subflow_priority", "link_up", "link_down", "link_change", "state", "error",
    "controller", "handover", "killed",
)  # fmt: skip


@given(
    st.sampled_from(KINDS),
    st.one_of(st.none(), st.floats(-10, 100)),
    st.dictionaries(st.sampled_from(KEYS), st.one_of(anything(), st.sampled_from(KINDS))),
)
def test_no_record_stops_the_page(kind: str, t_s: float | None, data: dict[str, object]) -> None:
    state = told(Record(t_s, kind, "ship1", data))
    assert state.store.since(0)["version"] > 0


def test_a_recorded_handover_is_on_the_page_while_it_lasts() -> None:
    replay = Replay(RUNS / "fdm")
    seen = []
    for t_s in (0.0, 8.0, 15.0):
        replay.command({"do": "seek", "t_s": t_s}, now_s=0.0)
        replay.advance(0.0)
        subflow = replay.state.store.get("subflows", "ship1 uav")
        seen.append((replay.state.store.get("associated", "ship1"), subflow["attached"]))
    assert seen == [(None, False), ("uav", True), (None, False)]
    assert replay.state.store.get("run", "damaged", 0) == 0


def test_searching_back_shows_what_playing_up_to_there_shows() -> None:
    played, searched = Replay(RUNS / "fdm"), Replay(RUNS / "fdm")
    for t_s in (1.0, 4.0, 7.5):
        played.command({"do": "seek", "t_s": t_s}, 0.0)
        played.advance(0.0)
    for t_s in (15.0, 7.5):
        searched.command({"do": "seek", "t_s": t_s}, 0.0)
        searched.advance(0.0)
    now = [each.state.store.since(0) for each in (played, searched)]
    assert now[0]["sections"] == now[1]["sections"]
    assert now[0]["series"] == now[1]["series"]
    assert searched.epoch > played.epoch, "who has seen later things has to forget them"


def test_what_the_analysis_found_in_captures_comes_before_counters(tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    for name in ("run.toml", "plan.json", "events.jsonl", "samples.parquet"):
        (run_dir / name).write_bytes((RUNS / "fdm" / name).read_bytes())
    series = {"start_s": 0.0, "step_s": 1.0, "goodput_bps": [5e5] * 9}
    series["frames_bps"] = {"satcom": [123456.0] * 9}
    users = {"ship1": {"series": series}}
    (run_dir / "result.json").write_text(json.dumps({"users": users}))
    replay = Replay(run_dir)
    replay.command({"do": "seek", "t_s": 8.5}, 0.0)
    replay.advance(0.0)
    assert replay.state.store.get("subflows", "ship1 satcom")["measured_bps"] == 123456
    assert replay.state.store.get("goodput", "ship1") == 500000


def command(t_s: float, subject: str, /, **data: object) -> Record:
    return Record(t_s, "command", subject, data)


def test_what_people_command_is_shown_and_told() -> None:
    state = told(
        command(1.0, "run", do="play", playing=False),
        command(2.0, "run", do="speed", speed=5.0),
        command(3.0, "ship1", do="demand", user="ship1", rate_bps=1.5e6),
        command(4.0, "run", do="policy", policy="shortest"),
        command(5.0, "ship1", do="place", node="ship1", east_m=1.0, north_m=2.0),
        command(6.0, "satcom", do="link", relay="satcom", up=False),
    )
    assert state.store.section("movement") == {"playing": False, "speed": 5.0}
    assert state.store.get("demands", "ship1") == 1.5e6
    assert state.store.get("run", "policy") == "shortest"
    told_of = [story["text"] for story in state.store.section("stories").values()]
    assert told_of == [
        "nodes stop",
        "nodes move 5 times as fast",
        "1.50 Mbit/s are planned for ship1",
        "nobody allocates any more",
        "ship1 is moved by hand",
        "the link of satcom is cut by hand",
    ]


def test_what_arrives_at_the_host_is_the_sum_of_all_links() -> None:
    def arrived(t_s: float, port: str, rx_bytes: int) -> Record:
        return Record(t_s, "sample", "shore", {"kind": "port", "port": port, "rx_bytes": rx_bytes})

    state = told(
        *(arrived(1.0, port, 0) for port in ("shore-eth2", "shore-eth3")),
        arrived(2.0, "shore-eth2", 250_000),
        arrived(2.0, "shore-eth3", 125_000),
    )
    assert state.store.get("goodput", "host") == 3e6
