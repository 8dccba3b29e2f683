"""Runs that are damaged, analyses that fail, and faults of the program itself."""

import json
import os
import signal
from pathlib import Path

import pytest

import analysis
from tactical import cli, runs
from tactical.host import doctor, hermetic


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("TACTICAL_TRACEBACK", raising=False)
    return tmp_path


@pytest.fixture
def run_dirs() -> list[Path]:
    made = [Path(name) for name in ("first", "second", "third")]
    for path in made:
        path.mkdir()
        (path / "run.toml").write_text("[run]\nprotocol = 'fdm'\n")
    return made


def report(*arguments: object) -> int:
    return cli.main(["report", *map(str, arguments)])


def test_an_analysis_that_fails_leaves_the_others(run_dirs, monkeypatch, capsys):
    real = analysis.write

    def write(path: Path) -> analysis.RunResult:
        if path.name == "second":
            raise ZeroDivisionError("by nothing")
        return real(path)

    monkeypatch.setattr(analysis, "write", write)
    assert report(*run_dirs, "--json") == 1
    said = capsys.readouterr()
    documents = json.loads(said.out)
    assert [entry["directory"] for entry in documents] == ["first", "second", "third"]
    assert "ZeroDivisionError (by nothing)" in documents[1]["reason"]
    assert "Traceback" not in said.err
    assert "ZeroDivisionError" in Path("cache/tactical/traceback.log").read_text()
    for path in (run_dirs[0], run_dirs[2]):
        assert (path / "result.json").is_file()
        assert (path / "report.html").is_file()


def test_a_signal_during_an_analysis_leaves_the_earlier_ones(run_dirs, monkeypatch, capsys):
    real = analysis.write

    def write(path: Path) -> analysis.RunResult:
        if path.name == "second":
            os.kill(os.getpid(), signal.SIGTERM)
        return real(path)

    monkeypatch.setattr(analysis, "write", write)
    assert report(*run_dirs) == 128 + signal.SIGTERM
    assert (run_dirs[0] / "result.json").is_file()
    assert (run_dirs[0] / "report.html").is_file()
    said = capsys.readouterr().err
    for name in ("second", "third"):
        assert f"`tactical report {name}` does it" in said


def test_a_fault_of_the_program_is_one_sentence(run_dirs, monkeypatch, capsys):
    def fail(*_: object) -> str:
        raise AttributeError("no such thing")

    monkeypatch.setattr(analysis, "table", fail)
    assert report(run_dirs[0]) == 1
    said = capsys.readouterr()
    assert said.err.splitlines()[-1].startswith("tactical: something went wrong that should not")
    assert "AttributeError (no such thing)" in said.err
    assert "Traceback" not in said.err
    assert "Traceback" in Path("cache/tactical/traceback.log").read_text()
    monkeypatch.setenv("TACTICAL_TRACEBACK", "1")
    assert report(run_dirs[0]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_a_comparison_that_fails_leaves_the_results(run_dirs, monkeypatch, capsys):
    real = analysis.report

    def write(results: list[analysis.RunResult], path: Path) -> Path:
        if len(results) > 1:
            raise TypeError("no comparison")
        return real(results, path)

    monkeypatch.setattr(analysis, "report", write)
    assert report(*run_dirs) == 1
    said = capsys.readouterr()
    assert "cannot be made: TypeError (no comparison)" in said.err
    assert "Report:" not in said.out
    assert "failed" in said.out
    assert not list(Path().glob("*.html"))


def test_a_run_that_is_still_in_its_guests_memory_is_not_taken_for_analysed(run_dirs, capsys):
    image = run_dirs[1] / hermetic.IMAGE_NAME
    image.write_bytes(b"no file system")
    assert report(*run_dirs) == 1
    said = capsys.readouterr().err
    assert f"still in {image}" in said
    assert "`tactical report second` brings it back" in said
    assert image.exists()
    assert not (run_dirs[1] / "result.json").exists()
    assert (run_dirs[2] / "result.json").is_file()


def test_a_disk_without_room_for_the_analysis_is_no_fault_of_the_program(
    run_dirs, monkeypatch, capsys
):
    def write(path: Path) -> analysis.RunResult:
        with Path("/dev/full").open("w") as full:
            full.write("a result")
        raise AssertionError("was written")

    monkeypatch.setattr(analysis, "write", write)
    assert report(run_dirs[0]) == 1
    said = capsys.readouterr().err
    assert "not analysed: No space left on device" in said
    assert "traceback" not in said


def test_an_output_that_is_full_or_has_no_reader_is_refused(run_dirs, capsys):
    os.mkfifo("pipe")
    for output in ("/dev/full", "pipe", "."):
        assert report(run_dirs[0], "--output", output) == 2
        assert f"{output} cannot be written" in capsys.readouterr().err
    os.mkfifo("other.html")
    assert report("other.html") == 2


def test_a_configuration_that_is_no_file_is_called_so(capsys):
    for path, problem in [(".", "is a directory"), ("/dev/null", "is no regular file")]:
        assert cli.main(["check", "direct-move", "--config", path]) == 2
        assert problem in capsys.readouterr().err


@pytest.mark.parametrize(
    "line", ["report {0}", "report first --output {0}/x", "check direct-move --config {0}"]
)
def test_a_path_that_no_file_can_have_is_refused(run_dirs, capsys, line):
    assert cli.main(line.format("x" * 300).split()) == 2
    assert "File name too long" in capsys.readouterr().err


PROBLEMS = doctor.virtual_problems()
needs_virtual_machine = pytest.mark.skipif(
    bool(PROBLEMS), reason=f"no virtual machine here: {', '.join(PROBLEMS)}"
)


@needs_virtual_machine
def test_a_runs_directory_that_a_guest_cannot_have_is_refused_before_it_is_made(capsys):
    arguments = ["run", "direct-move", "--backend", "vm", "--time", "real", "--runs-dir", "a,b"]
    assert cli.main(arguments) == 2
    assert "because of ','" in capsys.readouterr().err
    assert not Path("a,b").exists()


def test_a_runs_directory_that_cannot_be_written_is_refused():
    # Not even root makes a directory there.
    with pytest.raises(cli.Refused, match=r"cannot be (written|made)"):
        runs.check_writable(Path("/proc"), Path("/proc"))


def test_the_probe_of_a_runs_directory_leaves_it_empty(directory):
    runs.check_writable(Path("runs"), Path("runs/direct-move"))
    assert list(Path("runs/direct-move").iterdir()) == []
