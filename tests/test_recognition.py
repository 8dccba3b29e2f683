"""What is told of a file that a command cannot use."""

import json
import shutil
from pathlib import Path

import pytest

from tactical.cli import main
from tactical.recognition import looks_like

DATA = Path(__file__).parent
RUN = DATA / "analysis/data/fdm"
INSTANCE = DATA / "fdm/data/tac10-90.json"
CAPTURE = DATA / "analysis/data/mptcp/captures/host-eth0.pcapng.gz"


def answer(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(arguments) == 0
    return capsys.readouterr().out


@pytest.fixture
def files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Path]:
    """One of each kind, most of them as the program itself writes them."""
    (tmp_path / "study.toml").write_text('scenarios = ["direct-move"]\n')
    (tmp_path / "some.toml").write_text("duration_s = 80\n")
    (tmp_path / "check.json").write_text(answer(["check", "direct-move", "--json"], capsys))
    (tmp_path / "solution.json").write_text(answer(["solve", str(INSTANCE), "--json"], capsys))
    (tmp_path / "page.html").write_text("<!doctype html>\n<title>x</title>")
    (tmp_path / "network.json").write_text(
        json.dumps({"datapaths": [], "attachments": [], "server": {}})
    )
    run = shutil.copytree(RUN, tmp_path / "run", ignore=shutil.ignore_patterns("captures"))
    return {
        "the directory of a run": run,
        "the run.toml of a run": run / "run.toml",
        "the plan.json of a run": run / "plan.json",
        "records of a run, one a line": run / "events.jsonl",
        "a compressed file": CAPTURE,
        "a network with demands in JSON": tmp_path / "solution.json",
        "the network.json of a run": tmp_path / "network.json",
        "the description of a batch": tmp_path / "study.toml",
        "parameters in TOML": tmp_path / "some.toml",
        "an answer of `tactical check`": tmp_path / "check.json",
        "a page for a browser": tmp_path / "page.html",
    }


def test_every_kind_is_recognised(files: dict[str, Path]) -> None:
    found = {name: looks_like(path) for name, path in files.items()}
    assert {name: kind and kind.name for name, kind in found.items()} == {
        name: name for name in files
    }


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[1, 2]", b"{}", b"\xff", b"[" * 100_000, b"a = ["]
)
def test_what_is_of_no_kind_is_not_guessed(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    assert looks_like(path) is None
    assert looks_like(tmp_path) is None
    assert looks_like(tmp_path / "absent") is None


@pytest.mark.parametrize(
    ("command", "right"),
    [
        (["solve", "FILE"], "a network with demands in JSON"),
        (["controller", "--network", "FILE"], "the network.json of a run"),
        (["check", "direct-move", "--config", "FILE"], "parameters in TOML"),
        (["batch", "FILE", "--dry-run"], "the description of a batch"),
        (["report", "FILE"], "the directory of a run"),
        (["compare", "FILE"], "the directory of a run"),
        (["analyse", "FILE", "--no-report"], "a capture"),
        (["inspect", "FILE", "--at", "1"], "a capture"),
    ],
)
def test_a_file_of_another_kind_is_called_what_it_is(
    command: list[str], right: str, files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    taken_too = {"run.toml", "page.html", "run"}  # by some of them
    for kind, path in files.items():
        if kind == right or path == CAPTURE or path.name in taken_too:
            continue
        assert main([str(path) if word == "FILE" else word for word in command]) == 2
        told = capsys.readouterr().err
        assert len(told.splitlines()) == 1
        assert f"it looks like {kind}" in told
        assert f"not like {right}" in told
