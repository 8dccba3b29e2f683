"""The command line as a user or a script meets it."""

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import scenarios
from tactical import cli, experiment
from tactical.emulation.plan import make_plan
from tactical.experiment import Progress
from tactical.host import doctor
from tactical.host.native import NativeMachine
from tactical.host.packages import find_command
from tactical.progress import PlainLines, reporter
from tactical.signals import Stopped, stopped_by_signals

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
CONFIG_ERROR = "[satcom]\ndelay_s = 'long'\n"


@pytest.fixture
def directory(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wrong.toml").write_text(CONFIG_ERROR)
    (tmp_path / "broken.toml").write_text("[satcom\n")
    (tmp_path / "file").write_text("")
    (tmp_path / "notes.html").write_text("no page")
    (tmp_path / "empty").mkdir()
    return tmp_path


REFUSED = [
    ("live nowhere", "nowhere"),
    ("live direct-move --duration 0", "1 to 86400 seconds"),
    ("live direct-move --duration 40", "entry_time_s"),
    ("live direct-move --backend sim", "--backend"),
    ("", "COMMAND"),
    ("rum direct-move", "rum"),
    ("run", "SCENARIO"),
    ("run direct-mov", "direct-move"),
    ("run direct-move --protocol tcp", "'tcp'"),
    ("run direct-move --backend cloud", "'cloud'"),
    ("run direct-move --network ns3", "'ns3'"),
    ("run direct-move --seed -1", "whole number from 0"),
    ("run direct-move --seed one", "'one'"),
    ("run direct-move --set satcom.delya_s=0.3", "satcom.delay_s"),
    ("run direct-move --set satcom.delay_s=-1", "0 or more"),
    ("run direct-move --set satcom.delay_s", "satcom.delay_s"),
    ("run direct-move --set satcom.rate_bps=fast", "satcom.rate_bps"),
    ("run direct-move --config absent.toml", "absent.toml"),
    ("run direct-move --config wrong.toml", "satcom.delay_s"),
    ("run direct-move --config broken.toml", "broken.toml"),
    ("run direct-move --config empty", "empty"),
    ("check direct-move --set ships.count=0", "ships.count"),
    ("check direct-move --set ships.count=1.5", "whole number"),
    ("check direct-move --runs-dir runs", "--runs-dir"),
    ("doctor now", "now; see `tactical doctor --help`"),
    ("report", "RUN"),
    ("report absent", "absent is no run directory"),
    ("report empty", "empty is no run directory"),
    ("report file", "file is no run directory"),
    ("report notes.html", "notes.html is no run directory"),
]


@pytest.mark.parametrize(("line", "names"), REFUSED, ids=[line or "-" for line, _ in REFUSED])
def test_bad_input_is_one_sentence_and_status_2(directory, capsys, line, names):
    assert cli.main(line.split()) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert said.err.startswith("tactical: ")
    assert names in said.err


@pytest.mark.parametrize(("line", "names"), REFUSED, ids=[line or "-" for line, _ in REFUSED])
def test_bad_input_is_json_for_scripts(directory, capsys, line, names):
    assert cli.main([*line.split(), "--json"]) == 2
    document = json.loads(capsys.readouterr().out)
    assert list(document) == ["error"]
    # A mistake before the command is known is a mistake about `--json` as well.
    assert names in document["error"] or not line


def test_a_runs_directory_that_cannot_be_made_is_refused(directory, capsys):
    if doctor.examine().chosen is None:
        pytest.skip("no way to run an emulated network here, which is said first")
    assert cli.main(["run", "direct-move", "--runs-dir", "file/runs"]) == 2
    assert "--runs-dir file/runs cannot be made" in capsys.readouterr().err


def test_python_m_and_the_installed_command_are_the_same():
    installed = Path(sys.executable).with_name("tactical")
    for command in ([sys.executable, "-m", "tactical"], [str(installed)]):
        done = subprocess.run([*command, "run", "nowhere"], capture_output=True, text=True)
        assert done.returncode == 2
        known = ", ".join(sorted(scenarios.EXPERIMENTS))
        assert done.stderr == f"tactical: no experiment 'nowhere'; there is {known}\n"


@pytest.mark.parametrize("command", ["", *cli.COMMANDS])
def test_help_names_every_option_and_shows_examples(capsys, command):
    with pytest.raises(SystemExit) as ended:
        cli.main([*command.split(), "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert "usage: tactical" in text
    assert all(len(line) <= 100 for line in text.splitlines())
    assert re.search(f"^  tactical {command or 'run'}( |$)", text, re.MULTILINE)
    assert "--json" in text or not command


def test_check_shows_every_parameter_and_when_ships_come_into_range(capsys):
    assert cli.main(["check", "direct-move", "--set", "ships.count=3"]) == 0
    text = capsys.readouterr().out
    experiment = scenarios.load("direct-move", ["ships.count=3"])
    for row in scenarios.describe(experiment):
        assert row.key in text
        assert row.expected in text
    assert scenarios.fingerprint(experiment) in text
    assert "At 60 s ship3 enters the range of uav." in text


def test_check_keeps_to_the_width_of_the_terminal(capsys, monkeypatch):
    told = {}
    for width in ("", "100", "50"):
        monkeypatch.setenv("COLUMNS", width)
        assert cli.main(["check", "contended"]) == 0
        told[width] = capsys.readouterr().out
        assert not width or max(map(len, told[width].splitlines())) <= int(width)
    assert max(map(len, told[""].splitlines())) > 100, "whole lines, for grep"
    assert len({" ".join(text.split()) for text in told.values()}) == 1


def test_check_as_json_can_be_read_back(capsys):
    assert cli.main(["check", "direct-move", "--json", "--set", "uav.range_m=350"]) == 0
    document = json.loads(capsys.readouterr().out)
    overrides = {row["key"]: row["value"] for row in document["parameters"]}
    again = scenarios.load("direct-move", overrides)
    assert scenarios.fingerprint(again) == document["fingerprint"]
    assert overrides["uav.range_m"] == 350
    assert [change["entering"] for change in document["coverage"]] == [True, True, False, False]


def test_scenarios_are_listed_with_a_summary(capsys):
    assert cli.main(["scenarios", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [entry["name"] for entry in listed] == sorted(scenarios.EXPERIMENTS)
    assert all(entry["summary"] for entry in listed)


def test_doctor_says_the_same_to_people_and_scripts(capsys):
    status = cli.main(["doctor"])
    text = capsys.readouterr().out
    assert cli.main(["doctor", "--json"]) == status
    document = json.loads(capsys.readouterr().out)
    assert (status == 0) == (document["chosen"] is not None)
    for tool in document["tools"]:
        assert tool["name"] in text


def test_a_dry_run_prints_every_command_and_leaves_nothing(directory, capsys):
    if doctor.examine().chosen is None:
        pytest.skip("no way to run an emulated network here")
    assert cli.main(["run", "direct-move", "--protocol", "fdm", "--dry-run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for command in ("ovs-vsctl", "hostapd", "tc", "ip", "iperf3", "dumpcap"):
        assert any(command in line.split() for line in lines), command
    assert cli.main(["run", "direct-move", "--protocol", "fdm", "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["commands"] == lines
    assert not (directory / "runs").exists()


@pytest.fixture
def run_dirs(directory) -> list[Path]:
    """Directories of runs that never began, which is enough for an analysis."""
    parameters = scenarios.load("direct-move")
    made = []
    for protocol, seed in [("mptcp", 1), ("fdm", 1), ("fdm", 2)]:
        request = experiment.Request(parameters, protocol, seed, "native", Path("runs"))
        plan = make_plan(parameters.build(seed), protocol)
        prepared = experiment._new_directory(request, protocol)
        experiment._describe_run(prepared, request, plan, NativeMachine())
        name = f"20260101T12000{len(made)}Z-{protocol}-{seed}-{scenarios.fingerprint(parameters)}"
        made.append(prepared.rename(Path("runs/direct-move") / name))
    return made


def report_path(said: str) -> Path:
    return Path(said.rpartition("Report: ")[2].strip())


def test_a_comparison_is_named_after_what_it_compares_and_replaces_nothing(run_dirs, capsys):
    digits = run_dirs[0].name.rpartition("-")[2]
    expected = [
        (run_dirs[:2], f"20260101T120000Z-comparison-of-2-mptcp+fdm-1-{digits}.html"),
        (run_dirs[:2], f"20260101T120000Z-comparison-of-2-mptcp+fdm-1-{digits}-2.html"),
        (run_dirs, f"20260101T120000Z-comparison-of-3-mptcp+fdm-2-seeds-{digits}.html"),
    ]
    written: dict[Path, str] = {}
    for runs, name in expected:
        assert cli.main(["report", *map(str, runs)]) == 1, "they are not done"
        path = report_path(capsys.readouterr().out)
        assert path == (Path("runs/direct-move") / name).absolute()
        for earlier, text in written.items():
            assert earlier.read_text() == text
        written[path] = path.read_text()
        assert written[path].startswith("<!doctype html>")


def test_reports_that_a_pattern_also_finds_are_left_out(run_dirs, capsys):
    assert cli.main(["report", *map(str, run_dirs)]) == 1
    first = report_path(capsys.readouterr().out)
    found = sorted(map(str, Path("runs/direct-move").glob("20260101T*")))
    assert len(found) == 4
    assert cli.main(["report", *found, str(run_dirs[0]), "--json"]) == 1
    said = capsys.readouterr()
    assert len(json.loads(said.out)) == 3, "a run that is named twice is there once"
    assert f"{first.relative_to(Path.cwd())} is a report, not a run; left out\n" in said.err
    assert cli.main(["report", str(first)]) == 2
    assert "only reports" in capsys.readouterr().err


def test_a_chosen_output_is_written_there(run_dirs, capsys):
    for runs in (run_dirs[:1], run_dirs):
        assert cli.main(["report", *map(str, runs), "--output", "mine.html"]) == 1
        assert report_path(capsys.readouterr().out) == Path("mine.html")
    assert Path("mine.html").is_file()
    assert {path.name for path in Path("runs").glob("**/*.html")} == {"report.html"}


def test_a_run_that_is_stopped_says_at_once_what_it_waits_for(capfd):
    said = ""
    with pytest.raises(Stopped) as stopped, stopped_by_signals("stopping…"):
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            pytest.fail("the signal is not heeded")
        finally:
            # As in the orderly end that follows, which a second signal does not break off.
            os.kill(os.getpid(), signal.SIGTERM)
            limit_s = time.monotonic() + 10
            while said.count("\n") < 2 and time.monotonic() < limit_s:
                time.sleep(0.01)
                said += capfd.readouterr().err
    assert stopped.value.number == signal.SIGTERM
    assert said == 2 * "tactical: stopping…\n"
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


_WHILE_LOADED = """
class Finder:
    def find_spec(self, name, path, target=None):
        if name == "tactical.cli":
            ask()

sys.meta_path.insert(0, Finder())
"""
_WHEN_OVER = "atexit.register(ask)"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(
    ("moment", "ended"), [(_WHILE_LOADED, True), (_WHEN_OVER, False)], ids=["loading", "over"]
)
def test_a_signal_before_or_after_the_command_needs_no_traceback(number, moment, ended):
    code = f"""
import atexit, os, signal, sys
def ask():
    os.kill(os.getpid(), {int(number)})
{moment}
sys.argv = ["tactical", "--version"]
signal.signal({int(number)}, signal.SIG_DFL)
from tactical.__main__ import command
command()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.returncode == (128 + number if ended else 0)
    assert (done.stdout == "") == ended


def test_signals_that_are_ignored_stay_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stopped_by_signals():
            os.kill(os.getpid(), signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_the_readme_shows_code_and_filters_that_work(run_dirs, capsys):
    """Its commands are those of other tests; RUN stands for one of the runs."""
    assert cli.main(["report", *map(str, run_dirs)]) == 1
    blocks = [block.partition("```")[0] for block in README.split("```python\n")[1:]]
    shown = []
    for block in blocks:
        code = block.replace("RUN", run_dirs[0].name)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.stderr == ""
        shown.append(done.stdout.splitlines())
    (solved,) = shown.pop()
    assert solved.startswith("0.040555") and "rate_bps=967127.74" in solved
    ships = ("ship1", "ship2")
    protocols = [run_dir.name.split("-")[1] for run_dir in run_dirs]
    assert shown == [
        [f"0.25 {protocol} failed {ship} None None" for protocol in protocols for ship in ships],
        [f"{ship} None None" for ship in ships],
    ]
    Path("study.toml").write_text(README.split("```toml\n")[1].partition("```")[0])
    assert cli.main(["batch", "study.toml", "--dry-run"]) == 0
    if (tshark := find_command("tshark")) is None:
        pytest.skip("tshark is not installed, so the display filter is not tried")
    (display_filter,) = re.findall(r"^tshark .* -Y (.+)$", README, re.MULTILINE)
    header = bytes.fromhex("d4c3b2a1 02000400 00000000 00000000 00000400 01000000")
    Path("empty.pcap").write_bytes(header)
    command = [str(tshark), "-r", "empty.pcap", "-Y", display_filter]
    assert subprocess.run(command, capture_output=True).returncode == 0


def test_what_the_machine_refuses_is_no_fault_of_the_program(directory, capsys, monkeypatch):
    def read_only(*_: object) -> None:
        Path("file/within").mkdir()

    monkeypatch.setattr(scenarios, "describe", read_only)
    assert cli.main(["check", "direct-move", "--json"]) == 1
    said = capsys.readouterr()
    assert said.err == "tactical: file/within: Not a directory\n"
    assert json.loads(said.out) == {"error": "file/within: Not a directory"}


def test_output_to_a_closed_pipe_ends_quietly():
    command = f"{sys.executable} -m tactical check direct-move | head -c 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.stderr == ""


def step(state: str, time_s: float | None, message: str) -> Progress:
    return Progress(Path("runs/x"), "fdm", state, time_s, message)


STEPS = [
    step("defined", None, "defined"),
    step("running", 0.1, "running"),
    *[step("running", float(second), "") for second in range(1, 25)],
    step("running", 24.2, "ship1 associated with uav [1]"),
    step("done", 26.0, "done"),
]


def test_progress_without_a_terminal_is_a_line_for_what_happens(capsys):
    show = PlainLines()
    for each in STEPS:
        show(each)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == [
        "fdm              defined",
        "fdm       0.1 s  running",
        "fdm      11.0 s  running",
        "fdm      21.0 s  running",
        "fdm      24.2 s  ship1 associated with uav [1]",
        "fdm      26.0 s  done",
    ]


def test_progress_on_a_terminal_is_a_bar(monkeypatch):
    reading, writing = pty.openpty()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    with os.fdopen(writing, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        with reporter(["fdm"], 100.0) as show:
            for each in STEPS:
                show(each)
    shown = b""
    with contextlib.suppress(OSError):  # the end, as the terminal has it
        while piece := os.read(reading, 65536):
            shown += piece
    os.close(reading)
    shown = shown.decode()
    assert "ship1 associated with uav [1]" in shown
    assert "26.0 of 100 s" in shown
    assert "done" in shown
