"""The host's side: the worker followed, its result judged, kept and handed on to runs."""

import json
import os
import socket
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import scenarios
from tactical import cli, experiment
from tactical.calibration import record, session
from tactical.calibration.stamps import Stream, exchange, in_namespace, receiver, sender
from tactical.calibration.verdicts import MEASURES
from tactical.emulation.plan import make_plan
from tactical.host.native import NativeMachine


class Worker(NativeMachine):
    """This machine, with a small worker in place of the one that needs root."""

    def __init__(self, program: str) -> None:
        self._program = program

    def command(self, argv, writable=()):
        return [sys.executable, "-c", self._program, argv[-1]]


MEASURES_NOTHING = """
import json, pathlib, sys
for stage in ("building the network", "rate"):
    print(f"@{stage}", flush=True)
document = {"kernel": "6.1", "measured_for_s": 1.0, "measurements": {}}
(pathlib.Path(sys.argv[1]) / "measurements.json").write_text(json.dumps(document))
"""


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return tmp_path


def test_what_the_worker_leaves_out_is_missed_and_nothing_stays(cache):
    document = session.measure(Worker(MEASURES_NOTHING), quick=True, show=lambda *_: None)
    assert not document["passed"]
    assert [row["quantity"] for row in document["rows"]] == [*MEASURES]
    assert (document["kernel"], document["backend"], document["quick"]) == ("6.1", "native", True)
    assert not list(cache.glob("tactical-calibration-*"))


def test_a_worker_without_a_result_is_told_with_its_last_words_and_its_logs(cache):
    program = "import sys; print('no such module: openvswitch'); sys.exit(1)"
    with pytest.raises(session.CalibrationError) as told:
        session.measure(Worker(program), quick=True, show=lambda *_: None)
    assert "ended with status 1: no such module: openvswitch" in str(told.value)
    (kept,) = cache.glob("tactical-calibration-*/logs/worker.log")
    assert str(kept.parent) in str(told.value)


def test_progress_is_what_the_worker_told_last(tmp_path):
    log = tmp_path / "worker.log"
    log.write_text("boot\n@building the network\n@loss\n@mul")
    what, share = session._stage(log)
    assert what == "measuring loss"
    assert 0.0 < share < 1.0


def test_the_command_line_prints_keeps_and_fails(cache, monkeypatch, capsys):
    machine = Worker(MEASURES_NOTHING)
    monkeypatch.setattr("tactical.commands.calibrate.choose", lambda backend, time: machine)
    assert cli.main(["calibrate", "--json"]) == 1
    said = capsys.readouterr()
    assert json.loads(said.out) == record.latest(machine)
    assert "missed: rate, delay, loss" in said.err
    assert cli.main(["calibrate"]) == 1
    assert str(record.record_path(machine)) in capsys.readouterr().out


@pytest.mark.parametrize("line", ["calibrate --backend cloud", "calibrate --time soon"])
def test_bad_input_is_one_sentence(line, capsys):
    assert cli.main(line.split()) == 2
    assert repr(line.split()[-1]) in capsys.readouterr().err


def test_calibrations_are_kept_apart_by_machine_and_the_latest_counts(cache, monkeypatch):
    machine = NativeMachine()
    assert record.latest(machine) is None
    record.save(machine, {"passed": False})
    record.save(machine, {"passed": True})
    assert record.latest(machine) == {"passed": True}
    monkeypatch.setattr("platform.release", lambda: "9.9")
    assert record.latest(machine) is None


@pytest.mark.parametrize("text", ["", "[1]", "{"])
def test_a_broken_record_is_none(cache, text):
    path = record.save(NativeMachine(), {})
    path.write_text(text)
    assert record.latest(NativeMachine()) is None


def test_a_run_holds_the_calibration_of_its_machine(cache, tmp_path):
    machine = NativeMachine()
    request = experiment.Request(
        scenarios.load("direct-move", []), "fdm", 0, machine.name, tmp_path
    )
    plan = make_plan(request.experiment.build(0), "fdm")
    for number, expected in enumerate((None, {"passed": True})):
        if expected is not None:
            record.save(machine, expected)
        run_dir = tmp_path / str(number)
        run_dir.mkdir()
        experiment._describe_run(run_dir, request, plan, machine)
        held = run_dir / "calibration.json"
        assert (json.loads(held.read_text()) if held.exists() else None) == expected


@pytest.fixture
def loopback():
    here = os.getpid()
    try:
        in_namespace(here, socket.socket).close()
    except OSError as error:
        pytest.skip(f"no network namespace can be entered: {error.strerror}")
    with (
        receiver(here, ("127.0.0.1", 0)) as sink,
        sender(here, "127.0.0.1", sink.getsockname()) as source,
    ):
        yield source, sink


def test_stamps_of_loopback_are_in_order_and_after_sending(loopback):
    times = np.arange(0.0, 0.2, 0.002)
    (stamps,) = exchange([Stream(*loopback, times, 200)], 0.05)
    assert not np.isnan(stamps.received_s).any()
    assert (np.diff(stamps.sent_s) > 0.0).all()
    assert (stamps.delays_s > 0.0).all()


def test_what_was_not_sent_has_no_stamps(loopback):
    over = threading.Event()
    over.set()
    (stamps,) = exchange([Stream(*loopback, np.arange(3.0), 200)], 0.0, over)
    assert np.isnan(stamps.sent_s).all()
    assert np.isnan(stamps.received_s).all()


def test_the_worker_ends_orderly_when_it_is_asked_to(cache):
    program = (
        "import signal, sys, time\n"
        "def end(*_):\n    open(sys.argv[1] + '/../ended', 'w').close(); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, end)\n"
        "print('@rate', flush=True)\n"
        "time.sleep(60)\n"
    )

    def show(what: str, share: float) -> None:
        if what == "measuring rate":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        session.measure(Worker(program), quick=True, show=show)
    assert (cache / "ended").exists()
    assert not list(cache.glob("tactical-calibration-*"))
