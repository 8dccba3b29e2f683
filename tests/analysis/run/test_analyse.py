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
    assert cut.incomplete is not None
    assert f"ship2: the transfer did not complete ({cut.incomplete})" in sptcp.remarks
    assert "in the captures" not in cut.incomplete


def test_goodput_does_not_depend_on_what_comes_after_the_time_of_sending(copy: Path) -> None:
    plan = json.loads((copy / "plan.json").read_text())
    whole = analyse(copy)
    # The same transfers, of which the later part is no longer asked for.
    for duration_s in (5.0, 3.0, 2.0):
        for user in plan["users"].values():
            user["duration_s"] = duration_s
        (copy / "plan.json").write_text(json.dumps(plan))
        result = analyse(copy)
        for name in ("ship1", "ship2"):
            goodput = result.users[name].goodput_bps
            assert goodput is not None
            # iperf3 hands blocks of 128 KiB to the socket, one a second.
            assert abs(goodput - 1e6) * duration_s <= 8 * 131_072
            assert result.users[name].data_bytes == whole.users[name].data_bytes
    # To its end, a transfer with the same data in a shorter plan was just as fast.
    for name, before in whole.users.items():
        if before.completed:
            assert result.users[name].goodput_to_end_bps == before.goodput_to_end_bps


def test_goodput_of_a_run_that_was_stopped_is_that_of_its_time(copy: Path) -> None:
    whole = analyse(copy).users["ship1"]
    plan = json.loads((copy / "plan.json").read_text())
    for user in plan["users"].values():
        user["duration_s"] = 100.0
    (copy / "plan.json").write_text(json.dumps(plan))
    event = {"seq": 99, "t_s": 3.0, "t_mono_s": 0.0, "kind": "state", "node": "run"}
    with (copy / "events.jsonl").open("a") as file:
        file.write(json.dumps({**event, "data": {"state": "collecting"}}) + "\n")
        data = {"state": "failed", "reason": "interrupted"}
        file.write(json.dumps({**event, "data": data}) + "\n")
    stopped = analyse(copy)
    assert (stopped.state, stopped.reason) == ("failed", "interrupted")
    assert stopped.users["ship1"].goodput_bps == pytest.approx(whole.goodput_bps, rel=0.1)


def test_the_control_connection_is_not_the_data(sptcp: RunResult) -> None:
    """A run that ended before the data connection opened has no data, not 450 bytes of it."""
    from analysis.run.measure import Recorded, data_connection
    from captures import connections, read

    packets = read(Path(__file__).parents[1] / "data/sptcp/captures/host-eth0.pcapng.gz").packets
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
    assert (first.longest_interruption_cause, first.longest_interruption_after_start_s) == (
        "handover",
        gap.length_s,
    )
    assert first.longest_interruption_after_start_cause == "handover"
    assert sptcp.handover_s == pytest.approx([0.635, 0.830, 0.642, 0.686], abs=1e-3)
    moves = {band.label for band in sptcp.bands if band.kind == "handover"}
    assert moves == {"satcom → uav", "uav → satcom"}


def test_with_two_paths_a_handover_joins_and_leaves(copy: Path) -> None:
    common = {"seq": 0, "t_mono_s": 0.0, "kind": "handover", "node": "ship1"}
    with (copy / "events.jsonl").open("a") as file:
        for at, phase, old, new in (
            (2.0, "begin", "satcom", "uav"),
            (2.5, "end", "satcom", "uav"),
            (4.0, "begin", "uav", "satcom"),
        ):
            data = {"phase": phase, "from": old, "to": new}
            file.write(json.dumps({**common, "t_s": at, "data": data}) + "\n")
    result = analyse(copy)
    assert [band.label for band in result.bands if band.kind == "handover"] == [
        "joins uav",
        "leaves uav, not finished",
    ]
    assert result.handover_s == [0.5]
    (longest,) = [line for line in table([result]).splitlines() if "longest handover" in line]
    assert longest.split()[-1] == "0.50"


def add_events(copy: Path, *events: dict[str, object]) -> None:
    common = {"seq": 0, "t_s": 3.0, "t_mono_s": 0.0}
    with (copy / "events.jsonl").open("a") as file:
        for event in events:
            file.write(json.dumps({**common, **event}) + "\n")


def test_errors_are_told_though_the_run_is_done(copy: Path) -> None:
    said = [{"kind": "error", "node": "uav", "data": {"message": "deaf"}}] * 3
    said += [{"kind": "error", "node": "host", "data": {"message": f"{i}"}} for i in range(7)]
    add_events(copy, *said, {"kind": "state", "node": "run", "data": {"state": "done"}})
    result = write(copy)
    assert result.state == "done"
    assert result.remarks[0] == "error of uav at 3.0 s, 3 times: deaf"
    assert [each for each in result.remarks if "error" in each][-1] == (
        "and 3 more errors: see events.jsonl"
    )
    assert "error of uav at 3.0 s, 3 times: deaf" in table([result])
    assert "more remarks in result.json" in table([result])
    assert "deaf" in (copy / "result.json").read_text()


@pytest.mark.parametrize(
    ("last", "reason"),
    [
        ({"state": "failed", "reason": "interrupted"}, "interrupted"),
        ({"state": "interrupted"}, "interrupted"),
        ({"state": "collecting"}, "iperf3 died"),
    ],
)
def test_why_a_run_ended(copy: Path, last: dict[str, str], reason: str) -> None:
    error = {"kind": "error", "node": "host", "data": {"message": "iperf3 died"}}
    add_events(copy, error, {"kind": "state", "node": "run", "data": last})
    result = analyse(copy)
    assert (result.state, result.reason) == ("failed", reason)


@pytest.mark.parametrize("content", [None, "\0\0\0"], ids=["missing", "damaged"])
def test_without_events_the_end_of_the_run_is_not_known(copy: Path, content: str | None) -> None:
    (copy / "events.jsonl").unlink()
    if content is not None:
        (copy / "events.jsonl").write_text(content)
    reason = analyse(copy).reason
    assert reason is not None
    assert "not known how the run ended" in reason
    (copy / "events.jsonl").write_text("")
    assert analyse(copy).reason == "the run never started"


def test_a_stalled_machine_explains_an_interruption_first(copy: Path) -> None:
    shutil.rmtree(copy)
    shutil.copytree(Path(__file__).parents[1] / "data/sptcp", copy)
    zero = 1981.730651
    (gap,) = analyse(copy).users["ship1"].interruptions

    def host(rows: list[dict[str, float]]) -> str:
        (copy / "host.jsonl").write_text("\n".join(map(json.dumps, rows)))
        (found,) = analyse(copy).users["ship1"].interruptions
        return found.cause

    def row(at: float, late: float = 0.0) -> dict[str, float]:
        return {"t_mono_s": zero + at, "cpu_busy": 0.5, "timer_late_s": late}

    assert host([row(float(second)) for second in range(1, 7)]) == "handover"
    inside = gap.start_s + 0.3
    assert host([row(1.0), row(2.0), row(inside, 0.15), row(4.0)]) == "host stalled"
    assert host([row(0.5, 0.3), row(1.5)]) == "handover"
    # Nobody noted lateness, but there was no sample for seconds.
    assert host([row(-1.0), row(0.0), row(1.0), row(2.0), row(5.0)]) == "host stalled"


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
    ended = "its data had arrived, but its connection was not closed in order (fastclose)"
    assert mptcp.remarks == [
        f"{name}: the transfer did not complete ({user.incomplete})"
        for name, user in mptcp.users.items()
        if not user.completed
    ] + [
        "samples.jsonl is missing: no rates of the switch queues",
        "host.jsonl is missing",
        "environment.json is missing",
    ]
    assert [user.incomplete for user in mptcp.users.values()].count(ended) == 1


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
    assert any(missing.removesuffix("-client.json") in remark for remark in result.remarks)
    if missing == "captures/host-eth0.pcapng.gz":
        assert result.users["ship2"].goodput_bps is None
        assert result.users["ship2"].data_bytes == 639_013
    if missing == "captures/ship1-eth0.pcapng.gz":
        assert result.users["ship1"].data_bytes == 639_013
        assert [share.via for share in result.users["ship1"].subflows] == ["satcom", "uav"]
        assert [share.lost_packets is None for share in result.users["ship1"].subflows] == [
            True,
            False,
        ]
    if missing.startswith("captures"):
        hit = [result.users["ship1"]] if "ship1" in missing else list(result.users.values())
        assert [user.lost_packets for user in hit] == [None] * len(hit)
        if "host" not in missing:
            assert [user.retransmissions for user in hit] == [None] * len(hit)
    if missing.startswith("traffic"):
        assert "not completed" in said
        assert not result.users["ship1"].completed
    if missing == "events.jsonl":
        assert result.state == "failed"


def test_a_lost_capture_of_a_moving_address_shifts_no_data(sptcp: RunResult, copy: Path) -> None:
    shutil.rmtree(copy)
    shutil.copytree(Path(__file__).parents[1] / "data/sptcp", copy)
    (copy / "captures/ship1-wlan0.pcapng.gz").unlink()
    before, after = sptcp.users["ship1"], analyse(copy).users["ship1"]
    assert [(share.via, share.data_bytes) for share in after.subflows] == [
        (share.via, share.data_bytes) for share in before.subflows
    ]
    assert after.goodput_bps == before.goodput_bps
    assert [share.lost_packets is None for share in after.subflows] == [False, True]
    assert after.lost_packets is None


def test_a_cut_capture_of_the_host_makes_no_interruption(copy: Path) -> None:
    whole = analyse(copy).users["ship2"]
    file = copy / "captures/host-eth0.pcapng.gz"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    result = analyse(copy)
    user = result.users["ship2"]
    assert (user.interruptions, user.lost_packets, user.goodput_to_end_bps) == ([], None, None)
    assert user.bytes_agree is None
    assert user.goodput_bps == pytest.approx(whole.goodput_bps, rel=0.15)
    assert user.longest_interruption_s is not None
    assert user.longest_interruption_s < 0.5
    assert any(
        "the host's capture is cut off, figures are of the time" in r for r in result.remarks
    )
    # A user's own cut capture leaves what the host saw.
    shutil.rmtree(copy)
    shutil.copytree(Path(__file__).parents[1] / "data/mptcp", copy)
    file = copy / "captures/ship2-eth0.pcapng.gz"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    user = analyse(copy).users["ship2"]
    assert user.goodput_bps == pytest.approx(whole.goodput_bps, rel=1e-3)
    assert (user.interruptions, user.lost_packets, user.retransmissions) == ([], None, None)


def test_what_the_host_did_not_record_is_not_lost(copy: Path) -> None:
    text = (copy / "events.jsonl").read_text()
    mark = '"interface": "host-eth0", "received": 1812, "dropped": 0'
    assert mark in text
    (copy / "events.jsonl").write_text(text.replace(mark, mark[:-1] + "7"))
    result = analyse(copy)
    assert result.capture_drops == 7
    assert [user.lost_packets for user in result.users.values()] == [None, None]


def test_samples_in_a_burst_give_no_impossible_rates(copy: Path) -> None:
    counter = {"kind": "queue", "datapath": "uav", "port": "uav-eth2", "queue_id": 1}

    def rates(rows: list[dict[str, float]]) -> list[list[float]]:
        lines = [json.dumps({**counter, "tx_errors": 0, **each}) for each in rows]
        (copy / "samples.jsonl").write_text("\n".join(lines))
        (queue,) = analyse(copy).queues
        assert queue.tx_bytes == max(each["tx_bytes"] for each in rows)
        return queue.rates

    # One sample a second of a steady 1 Mbit/s; the reader stood still from 1 s to 4.1 s.
    read = (0.0, 1.0, 4.1, 4.11, 4.12, 5.0)
    rows = [{"t_s": at, "tx_bytes": 125_000 * index} for index, at in enumerate(read)]
    found = rates(rows)
    assert [at for at, _ in found] == [1.0, 4.1, 5.0]
    assert max(rate for _, rate in found) < 3.5e6
    # With the queue's age the true times are known.
    found = rates([{**row, "duration_s": 10.0 + index} for index, row in enumerate(rows)])
    assert found == [[pytest.approx(at), pytest.approx(1e6)] for at in range(1, 6)]
    # A second queue of that number begins at no age.
    again = [{"t_s": 0.0, "tx_bytes": 9, "duration_s": 8.0}]
    again += [{"t_s": 1.0 + at, "tx_bytes": 125_000 * at, "duration_s": at} for at in (0.2, 1.2)]
    lines = [json.dumps({**counter, **each}) for each in again]
    (copy / "samples.jsonl").write_text("\n".join(lines))
    (queue,) = analyse(copy).queues
    assert queue.rates[-1] == [pytest.approx(2.2), pytest.approx(1e6)]


def test_parameters_are_part_of_the_result(copy: Path) -> None:
    with (copy / "run.toml").open("a") as file:
        file.write('\n[scenario.satcom]\ndelay_s = 0.1\nname = "x"\nwhen = 2020-01-01\n')
    write(copy)
    assert json.loads((copy / "result.json").read_text())["parameters"] == {
        "duration_s": 5.0,
        "satcom.delay_s": 0.1,
        "satcom.name": "x",
        "satcom.when": "2020-01-01",
    }


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
