"""What applications got, from records of their programs that are made up here."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis import RunResult, analyse, report, table, write
from analysis.run.compare import figures_of


def application(kind: str, **changes: Any) -> dict[str, Any]:
    described = {
        "name": f"ship1-{kind}",
        "user": "ship1",
        "kind": kind,
        "direction": "up",
        "transport": "tcp",
        "port": 5201,
        "connections": 1,
        "start_s": 0.0,
        "duration_s": 10.0,
        "offered_bps": 8000.0,
    }
    return {**described, **changes}


def record(**changes: Any) -> dict[str, Any]:
    nothing = {"begun_s": [], "done_s": [], "received_bytes": 0, "duplicates": 0, "errors": {}}
    return {"transport": "tcp", "sends": False, **nothing, **changes}


def run_directory(
    path: Path,
    described: list[dict[str, Any]],
    schedules: dict[str, Any],
    documents: dict[str, dict[str, Any]],
    protocol: str = "fdm",
) -> Path:
    (path / "traffic").mkdir(parents=True)
    (path / "run.toml").write_text(f'[run]\nscenario = "made-up"\nprotocol = "{protocol}"\n')
    state = {"seq": 0, "t_s": 10.0, "t_mono_s": 20.0, "kind": "state", "node": "run"}
    (path / "events.jsonl").write_text(json.dumps({**state, "data": {"state": "done"}}) + "\n")
    users = {"ship1": {"interfaces": {}}}
    host = {"name": "host", "address": "10.0.0.1", "captures": []}
    plan = {"host": host, "users": users, "applications": described, "duration_s": 10.0}
    (path / "plan.json").write_text(json.dumps(plan))
    for name, document in {"schedules": schedules, **documents}.items():
        (path / "traffic" / f"{name}.json").write_text(json.dumps(document))
    return path


def one(
    path: Path, kind: str, schedule: Any, client: Any, server: Any, **changes: Any
) -> RunResult:
    name = f"ship1-{kind}"
    documents = {f"{name}-client": client, f"{name}-server": server}
    described = [application(kind, **changes)]
    return analyse(run_directory(path / "run", described, {name: schedule}, documents))


FILES = {"at_s": [1.0, 2.0, 3.0], "size_bytes": [1000, 1000, 1000]}


@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_file_takes_from_its_moment_to_its_last_byte(tmp_path, direction):
    opened = record(begun_s=[1.1, 2.0, 3.0], errors={"connect: Network is unreachable": 4})
    served = record()
    receiver = served if direction == "up" else opened
    receiver |= {"done_s": [1.5, None, 4.5], "received_bytes": 2300}
    result = one(tmp_path, "files", FILES, opened, served, direction=direction)
    (found,) = result.applications
    assert (found.items, found.completed, found.received_bytes) == (3, 2, 2300)
    assert found.mean_time_s == pytest.approx(1.0)
    assert found.p95_time_s == pytest.approx(1.45)
    assert found.longest_time_s == pytest.approx(1.5)
    assert found.goodput_bps == pytest.approx(8 * 2300 / 10)
    assert found.latest_begin_s == pytest.approx(0.1)
    user = result.users["ship1"]
    assert (user.goodput_bps, user.completed) == (found.goodput_bps, False)
    assert user.incomplete == "did not arrive: 1 of 3 ship1-files"
    assert "ship1-files: connect: Network is unreachable, 4 times" in result.remarks


def test_a_response_takes_from_the_request_and_who_asks_gets_it(tmp_path):
    schedule = {"at_s": [0.5, 0.5, 0.5], "size_bytes": [100, 100, 100]}
    asks = record(begun_s=[0.5, 1.8, None], done_s=[1.3, 2.4, None], received_bytes=200)
    answers = record(begun_s=[0.9, 2.1, None])
    result = one(tmp_path, "requests", schedule, answers, asks)
    (found,) = result.applications
    assert (found.items, found.completed) == (2, 2)
    assert found.mean_time_s == pytest.approx(0.7)
    assert result.users["ship1"].completed


def test_a_message_waits_also_in_its_sender(tmp_path):
    schedule = {"at_s": [1.0, 2.0], "size_bytes": [100, 100]}
    result = one(
        tmp_path,
        "messages",
        schedule,
        record(begun_s=[1.0, 2.7]),
        record(done_s=[1.4, 3.0], received_bytes=200),
    )
    assert result.applications[0].mean_time_s == pytest.approx(0.7)


def test_datagrams_are_lost_and_vary(tmp_path):
    schedule = {"at_s": [0.0, 1.0, 2.0, 3.0, 4.0], "size_bytes": [200] * 5}
    sent = record(begun_s=[0.0, 1.0, 2.0, None, 4.0], errors={"send: Network is unreachable": 1})
    # The second overtakes nobody but is slower; the third is lost on the way.
    got = record(done_s=[0.1, 1.3, None, None, 4.2], received_bytes=600, duplicates=1)
    result = one(tmp_path, "constant", schedule, sent, got, transport="udp")
    (found,) = result.applications
    assert (found.items, found.completed, found.lost_packets, found.duplicates) == (5, 3, 1, 1)
    assert found.loss == pytest.approx(0.25)
    assert found.mean_time_s == pytest.approx(0.2)
    assert found.jitter_s == pytest.approx((0.2 + 0.1) / 2)
    user = result.users["ship1"]
    assert user.completed, "nobody waits for datagrams"
    assert (user.datagram_loss, user.datagram_delay_s) == (found.loss, found.mean_time_s)
    assert user.message_delay_s is None


def test_the_mean_of_a_user_counts_every_item_alike(tmp_path):
    described = [application("files"), application("files", name="ship1-files.2")]
    schedules = {each["name"]: FILES for each in described}
    opened = record(begun_s=FILES["at_s"])
    documents = {
        "ship1-files-client": opened,
        "ship1-files-server": record(done_s=[2.0, None, None]),
        "ship1-files.2-client": opened,
        "ship1-files.2-server": record(done_s=[1.25, 2.25, 3.25]),
    }
    result = analyse(run_directory(tmp_path / "run", described, schedules, documents))
    assert result.users["ship1"].completion_time_s == pytest.approx((1.0 + 3 * 0.25) / 4)
    figures = figures_of(result.to_json())
    assert figures["completion_time_s"] == result.users["ship1"].completion_time_s
    assert figures["response_time_s"] is None


@given(
    st.lists(st.floats(0.001, 0.5), min_size=2, max_size=30),
    st.floats(0, 10),
)
def test_jitter_does_not_depend_on_the_delay_itself(transits, more_s):
    from analysis.run.applications import _jitter, _times

    begun_s = _times([float(number) for number in range(len(transits))])
    here = _jitter(begun_s + _times(transits), begun_s)
    there = _jitter(begun_s + _times(transits) + more_s, begun_s)
    assert here is not None
    assert there == pytest.approx(here, abs=1e-9)
    assert here <= max(transits) - min(transits) + 1e-9


def test_a_bulk_transfer_is_what_iperf3_says_of_its_receiver(tmp_path):
    client = {
        "end": {
            "sum_sent": {"bytes": 4_000_000, "retransmits": 7},
            "sum_received": {"bytes": 3_750_000, "bits_per_second": 3e6},
        }
    }
    described = [application("bulk", direction="down", offered_bps=3.2e6)]
    result = analyse(run_directory(tmp_path / "run", described, {}, {"ship1-bulk-client": client}))
    (found,) = result.applications
    assert (found.goodput_bps, found.received_bytes, found.retransmissions) == (3e6, 3_750_000, 7)
    assert result.users["ship1"].goodput_bps == 3e6


def test_a_program_that_left_no_record_is_told_of(tmp_path):
    described = [application("files")]
    result = analyse(run_directory(tmp_path / "run", described, {"ship1-files": FILES}, {}))
    assert result.applications[0].completed == 0
    assert "ship1-files: no record of the server's program" in result.remarks


def test_table_page_and_document_tell_the_same(tmp_path, check_page):
    described = [
        application("files"),
        application("constant", transport="udp", direction="down"),
        application("bulk", direction="down"),
    ]
    schedules = {
        "ship1-files": FILES,
        "ship1-constant": {"at_s": [0.0, 1.0], "size_bytes": [9, 9]},
    }
    documents = {
        "ship1-files-client": record(begun_s=[1.0, 2.0, 3.0]),
        "ship1-files-server": record(done_s=[1.25, 2.5, 3.75], received_bytes=3000),
        "ship1-constant-client": record(done_s=[0.02, None], received_bytes=9),
        "ship1-constant-server": record(begun_s=[0.0, 1.0]),
        "ship1-bulk-client": {"end": {"sum_received": {"bytes": 10, "bits_per_second": 8.0}}},
    }
    run = run_directory(tmp_path / "run", described, schedules, documents)
    result = write(run)
    text = table([result])
    lines = {" ".join(line.split()[:-1]): line.split()[-1] for line in text.splitlines() if line}
    assert lines["completion time, mean s"] == "0.50"
    assert lines["datagram delay, mean ms"] == "20.0"
    assert lines["lost %"] == "50.00"
    words = " ".join(check_page(report([result], tmp_path / "report.html")).words)
    for shown in ("Applications", "completion time", "3 of 3", "ship1-bulk"):
        assert shown in words
    document = json.loads((run / "result.json").read_text())
    assert [each["mean_time_s"] for each in document["applications"]] == [
        pytest.approx(0.5),
        pytest.approx(0.02),
        None,
    ]


def test_packets_of_both_directions_have_their_delay(copy):
    """A real run whose bulk transfers are taken for those of an application."""
    plan = json.loads((copy / "plan.json").read_text())
    before = analyse(copy)
    for described in plan["users"].values():
        del described["port"]
    (copy / "plan.json").write_text(json.dumps(plan))
    after = analyse(copy)
    for name, user in after.users.items():
        assert user.matched_packets >= before.users[name].matched_packets
        assert user.mean_packet_delay_s == pytest.approx(
            before.users[name].mean_packet_delay_s, rel=0.1
        )
        assert user.goodput_bps is None
