"""A run directory and nothing else gives the result."""

import json
import random
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis import RunDirectoryError, RunResult, analyse, collect, jain, table, write

USER_KEYS = {
    "goodput_bps",
    "data_bytes",
    "longest_interruption_s",
    "interruptions",
    "mean_packet_delay_s",
    "p95_packet_delay_s",
    "throughput_cov",
    "subflows",
}


def test_result_json_has_the_promised_keys(copy: Path) -> None:
    write(copy)
    found = json.loads((copy / "result.json").read_text())
    assert found["state"] == "done"
    assert (found["scenario"], found["protocol"], found["seed"]) == ("direct-move", "mptcp", 1)
    assert found["backend"] == "native"
    assert {"jain", "solves", "handovers"} <= found.keys()
    assert set(found["users"]) == {"ship1", "ship2"}
    for user in found["users"].values():
        assert user.keys() >= USER_KEYS
        assert {"start_s", "length_s", "cause"} >= {
            key for each in user["interruptions"] for key in each
        }


def test_completed_transfers_agree_with_iperf(sptcp: RunResult, mptcp: RunResult) -> None:
    users = [*sptcp.users.values(), *mptcp.users.values()]
    completed = [each for each in users if each.completed]
    assert len(completed) == 2
    for each in completed:
        assert each.iperf_bytes is not None
        assert each.data_bytes == each.iperf_bytes + 37
        assert each.bytes_agree


def test_a_transfer_that_was_cut_off(sptcp: RunResult) -> None:
    cut = sptcp.users["ship2"]
    assert not cut.completed
    assert cut.bytes_agree is None
    assert cut.closed == "reset"
    assert cut.iperf_bytes is not None
    assert cut.data_bytes < cut.iperf_bytes
    assert cut.lost_packets
    # It counts as sending until its planned end, so the goodput is not flattered.
    assert cut.goodput_bps is not None
    assert cut.goodput_bps < 0.9e6


def test_the_control_connection_is_not_the_data(sptcp: RunResult) -> None:
    """A run that ended before the data connection opened has no data, not 450 bytes of it."""
    from analysis.measure import Recorded, data_connection
    from captures import connections, read

    packets = read(Path(__file__).parent / "data/sptcp/captures/host-eth0.pcapng.gz").packets
    found = connections(packets)
    assert len([each for each in found if each.server.port == 5201]) == 2
    control = [each for each in found if each.backward.captured_bytes > 0]
    assert data_connection(Recorded(packets, tuple(control)), 5201) is None
    chosen = data_connection(Recorded(packets, found), 5201)
    assert chosen is not None
    assert chosen.forward.captured_bytes == sptcp.users["ship1"].data_bytes


def test_a_handover_interrupts_single_path_tcp(sptcp: RunResult) -> None:
    for user in sptcp.users.values():
        assert user.protocol == "tcp"
        assert [share.via for share in user.subflows] == ["satcom", "uav"]
        assert sum(share.data_bytes for share in user.subflows) == user.data_bytes
        assert all(share.data_bytes > 100_000 for share in user.subflows)
    first = sptcp.users["ship1"]
    (gap,) = first.interruptions
    # The address moved at 0.4 of six seconds and was away for 0.6 s.
    begin = next(band for band in sptcp.bands if band.user == "ship1" and band.kind == "handover")
    assert gap.cause == "handover"
    assert begin.start_s - 0.3 < gap.start_s < begin.end_s
    assert 0.6 <= gap.length_s == first.longest_interruption_s < 1.0
    assert sptcp.handovers == 4


def test_two_paths_share_the_data(mptcp: RunResult) -> None:
    for user in mptcp.users.values():
        assert user.protocol == "mptcp"
        assert [share.joined for share in user.subflows] == [False, True]
        assert [share.via for share in user.subflows] == ["satcom", "uav"]
        assert sum(share.data_bytes for share in user.subflows) == user.data_bytes
        assert user.reinjections > 0
        assert user.interruptions == []
        assert user.series is not None
        total = sum(sum(rates) for rates in user.series.arriving_bps.values()) / 8
        assert total == pytest.approx(user.data_bytes)
        assert sum(user.series.goodput_bps) / 8 == pytest.approx(user.data_bytes)
    assert mptcp.handovers == 0
    assert mptcp.associations == 2
    assert mptcp.jain == pytest.approx(1.0, abs=0.01)
    assert mptcp.capture_drops == 0
    assert mptcp.remarks == []


def test_delays_are_those_of_virtual_cables(sptcp: RunResult, mptcp: RunResult) -> None:
    for user in (*sptcp.users.values(), *mptcp.users.values()):
        assert user.mean_packet_delay_s is not None
        assert user.p95_packet_delay_s is not None
        assert 0 < user.mean_packet_delay_s < 2e-3
        assert user.p95_packet_delay_s < 10e-3
        assert user.matched_packets > 400


def test_a_failed_run_says_why(copy: Path) -> None:
    lines = (copy / "events.jsonl").read_text().splitlines()
    kept = [line for line in lines if '"done"' not in line]
    error = {"seq": 99, "t_s": 4.0, "t_mono_s": 0.0, "kind": "error", "node": "uav"}
    kept.append(json.dumps({**error, "data": {"message": "hostapd ended with status 1"}}))
    (copy / "events.jsonl").write_text("\n".join(kept) + '\n{"seq": 100, "t_')
    result = write(copy)
    assert (result.state, result.reason) == ("failed", "hostapd ended with status 1")
    assert result.users["ship2"].data_bytes == 639_013
    assert any("events.jsonl" in remark for remark in result.remarks)
    assert "hostapd ended with status 1" in table([result])


def test_a_run_that_failed_in_its_set_up(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text('[run]\nscenario = "direct-move"\nprotocol = "fdm"\n')
    nothing = {"seq": None, "t_s": None, "t_mono_s": None, "node": "run", "kind": "state"}
    said = [
        {**nothing, "data": {"state": "defined"}},
        {**nothing, "data": {"state": "failed", "reason": "OVS did not start"}},
    ]
    (tmp_path / "events.jsonl").write_text("\n".join(map(json.dumps, said)))
    result = write(tmp_path)
    assert (result.state, result.reason) == ("failed", "OVS did not start")
    assert result.users == {}


def test_events_of_the_set_up_get_their_run_time(copy: Path) -> None:
    lines = [json.loads(line) for line in (copy / "events.jsonl").read_text().splitlines()]
    moment = lines[-1]["t_mono_s"] - lines[-1]["t_s"]
    early = {"seq": 0, "t_s": None, "t_mono_s": moment - 2.5, "node": "controller"}
    data = {"port": "satcom-eth2", "queue_id": 1, "min_bps": 1, "max_bps": 2}
    lines.insert(0, {**early, "kind": "queue_set", "data": data})
    (copy / "events.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (queue,) = analyse(copy).queues
    assert queue.settings[0][0] == pytest.approx(-2.5, abs=0.01)


@pytest.mark.parametrize(
    "missing",
    [
        "plan.json",
        "events.jsonl",
        "run.toml",
        "traffic",
        "captures",
        "captures/host-eth0.pcapng.gz",
        "captures/ship1-eth0.pcapng.gz",
        "traffic/ship1-client.json",
    ],
)
def test_whatever_is_missing_the_rest_is_analysed(copy: Path, missing: str) -> None:
    target = copy / missing
    if target.is_dir():
        shutil.rmtree(target)
    else:
        target.unlink()
    result = write(copy)
    said = table([result])
    assert json.loads((copy / "result.json").read_text())["users"].keys() == result.users.keys()
    assert result.remarks or missing.startswith("traffic")
    if missing == "captures/host-eth0.pcapng.gz":
        assert result.users["ship2"].goodput_bps is None
        assert result.users["ship2"].data_bytes == 639_013
    if missing == "captures/ship1-eth0.pcapng.gz":
        assert result.users["ship1"].data_bytes == 639_013
        assert [share.via for share in result.users["ship1"].subflows] == ["satcom", "uav"]
    if missing.startswith("traffic"):
        assert "not completed" in said
        assert not result.users["ship1"].completed
    if missing == "events.jsonl":
        assert result.state == "failed"


@pytest.mark.parametrize("part", [0, 24, 1000, 30_000])
def test_captures_that_were_cut_off(copy: Path, part: int) -> None:
    for file in (copy / "captures").iterdir():
        file.write_bytes(file.read_bytes()[:part])
    result = write(copy)
    assert all(each.damaged for each in result.captures if each.packets < 100)
    assert any("cut off" in remark or "empty" in remark for remark in result.remarks)
    if part == 30_000:
        assert result.users["ship2"].data_bytes > 50_000
        # Several users share the damage, none is said to have completed.
        assert not any(user.bytes_agree for user in result.users.values())


JUNK = (None, [], {}, "x", -1, 1e308, True, [1], {"a": 1}, float("nan"))


def spoiled(value: object, chance: random.Random) -> object:
    """A JSON value with some of its parts replaced."""
    if chance.random() < 0.04:
        return chance.choice(JUNK)
    if isinstance(value, dict):
        return {key: spoiled(each, chance) for key, each in value.items()}
    if isinstance(value, list):
        return [spoiled(each, chance) for each in value]
    return value


@pytest.mark.parametrize("seed", range(15))
def test_values_of_the_wrong_kind_do_no_harm(copy: Path, seed: int) -> None:
    chance = random.Random(seed)
    queue_events(copy)
    for name in ("plan.json", "traffic/ship1-client.json"):
        file = copy / name
        file.write_text(json.dumps(spoiled(json.loads(file.read_text()), chance)))
    for name in ("events.jsonl", "samples.jsonl"):
        file = copy / name
        lines = [spoiled(json.loads(line), chance) for line in file.read_text().splitlines()]
        file.write_text("\n".join(map(json.dumps, lines)))
    result = write(copy)
    assert json.loads((copy / "result.json").read_text())["state"] in ("done", "failed")
    assert table([result])


def test_no_run_directory(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match="there is none"):
        analyse(tmp_path / "nowhere")
    with pytest.raises(RunDirectoryError, match="found neither"):
        analyse(tmp_path)


def queue_events(copy: Path) -> None:
    settings = [
        {"port": "uav-eth2", "queue_id": number, "user": f"ship{number}", "via": "uav"}
        | {"min_bps": 400_000, "max_bps": 475_000}
        for number in (1, 2)
    ]
    solve = {
        "trigger": "association",
        "relative_gap": 1e-10,
        "solve_time_s": 0.004,
        "path_flows": [{"user": "ship1", "via": "uav", "rate_bps": 400_000.0}],
    }
    common = {"seq": 0, "t_s": 2.1, "t_mono_s": 0.0, "node": "controller"}
    with (copy / "events.jsonl").open("a") as file:
        for data in settings:
            file.write(json.dumps({**common, "kind": "queue_set", "data": data}) + "\n")
        file.write(json.dumps({**common, "kind": "solve", "data": solve}) + "\n")
        state = {"kind": "state", "data": {"state": "done"}}
        file.write(json.dumps({**common, **state}) + "\n")
    counter = {"kind": "queue", "datapath": "uav", "port": "uav-eth2", "tx_errors": 0}
    with (copy / "samples.jsonl").open("w") as file:
        for second in range(6):
            for number in (1, 2):
                sent = 50_000 * number * max(second - 2, 0)
                row = {"t_s": float(second), "t_mono_s": 0.0, "queue_id": number, "tx_bytes": sent}
                file.write(json.dumps({**counter, **row}) + "\n")
            port = {"t_s": float(second), "queue_id": None, "tx_bytes": 10 * second}
            file.write(json.dumps({**counter, **port, "kind": "port"}) + "\n")


def check_queues(result: RunResult) -> None:
    assert result.solves == 1
    assert [queue.tx_bytes for queue in result.queues] == [150_000, 300_000]
    assert [queue.user for queue in result.queues] == ["ship1", "ship2"]
    assert [rate for _, rate in result.queues[1].rates] == [0, 0, 800_000, 800_000, 800_000]
    assert result.queues[0].settings == [[2.1, 400_000.0, 475_000.0]]


def test_queues_from_samples_and_events(copy: Path) -> None:
    queue_events(copy)
    check_queues(analyse(copy))


def test_samples_as_columns_give_the_same(copy: Path) -> None:
    queue_events(copy)
    before = analyse(copy)
    assert collect(copy) == copy / "samples.parquet"
    (copy / "samples.jsonl").unlink()
    after = analyse(copy)
    check_queues(after)
    assert after.queues == before.queues


def test_nothing_to_collect(copy: Path) -> None:
    assert collect(copy) is None


@given(st.lists(st.floats(1e-3, 1e9), min_size=1, max_size=8))
def test_jain_index_lies_between_one_over_n_and_one(rates: list[float]) -> None:
    found = jain(rates)
    assert found is not None
    assert 1 / len(rates) - 1e-9 <= found <= 1 + 1e-9


def test_jain_index_of_extremes() -> None:
    assert jain([5.0, 5.0, 5.0]) == pytest.approx(1)
    assert jain([5.0, 0.0, 0.0, 0.0]) == pytest.approx(0.25)
    assert jain([]) is None
    assert jain([0.0]) is None
