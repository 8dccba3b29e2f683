import json
import threading
from pathlib import Path

from tactical.emulation.events import EventLog


def read(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_run_time_begins_with_the_traffic(tmp_path: Path) -> None:
    with EventLog(tmp_path) as log:
        log.write("state", "run", state="configured")
        log.start()
        log.write("state", "run", state="running")
    before, after = read(tmp_path / "events.jsonl")
    assert before["t_s"] is None
    assert 0 <= float(str(after["t_s"])) < 5
    assert [before["seq"], after["seq"]] == [0, 1]


def test_an_event_keeps_the_moment_at_which_it_happened(tmp_path: Path) -> None:
    with EventLog(tmp_path) as log:
        log.write("solve", "controller", 12.5, kind="a field of the same name is no clash")
    (event,) = read(tmp_path / "events.jsonl")
    assert event["t_mono_s"] == 12.5
    assert event["kind"] == "solve"
    assert read(tmp_path / "solves.jsonl") == [event]


def test_samples_are_kept_apart(tmp_path: Path) -> None:
    with EventLog(tmp_path) as log:
        log.write("sample", "uav", 1.0, kind="queue", tx_bytes=7)
    assert read(tmp_path / "events.jsonl") == []
    (sample,) = read(tmp_path / "samples.jsonl")
    assert (sample["datapath"], sample["kind"], sample["tx_bytes"]) == ("uav", "queue", 7)


def test_waiting_sees_the_past_the_future_and_the_limit(tmp_path: Path) -> None:
    with EventLog(tmp_path) as log:
        log.write("error", "a")
        assert log.wait_for(lambda e: e["kind"] == "error", 0.0) is not None
        later = threading.Timer(0.05, log.write, ("assignment", "b"))
        later.start()
        assert log.wait_for(lambda e: e["kind"] == "assignment", 10.0) is not None
        assert log.wait_for(lambda e: e["kind"] == "never", 0.01) is None


def test_numbers_are_whole_and_in_order_from_many_threads(tmp_path: Path) -> None:
    with EventLog(tmp_path) as log:
        threads = [
            threading.Thread(target=lambda: [log.write("x", "n") for _ in range(50)])
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [e["seq"] for e in read(tmp_path / "events.jsonl")] == list(range(400))


def test_what_comes_after_the_end_is_no_fault(tmp_path: Path) -> None:
    with EventLog(tmp_path) as log:
        pass
    log.write("error", "late")
    assert read(tmp_path / "events.jsonl") == []
