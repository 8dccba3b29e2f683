"""Files that are damaged, huge, odd or no files are told of, never waited for or failed on."""

import json
import os
import shutil
from pathlib import Path

import pandas
import pytest

from analysis import RunResult, analyse, collect, report, table, write
from analysis.replacing import write_text

DEEP = "[" * 100_000
NESTED = '{"a":' * 500 + "1" + "}" * 500
LONG = f'{{"t_s": 1{"0" * 5000}}}'
ODD = "\n".join(
    json.dumps(row)
    for row in [
        {"t_s": 1.0, "kind": "port", "datapath": "uav", "port": "uav-eth2", "tx_bytes": 2**70},
        {"t_s": "late", "kind": 3, "datapath": {"a": [1]}, "port": 7, "tx_bytes": 1.5},
        {"t_s": 2**70, "kind": "\ud800", "\udfff": 1, "port": None, "tx_bytes": [1], "x": 2**70},
        {"t_s": None, "kind": True, "datapath": "uav", "queue_id": "one", "x": 1},
    ]
)
FILES = ["plan.json", "events.jsonl", "samples.jsonl", "host.jsonl", "traffic/ship1-client.json"]


def everything(directory: Path) -> RunResult:
    collect(directory)
    result = write(directory)
    report([result], directory / "report.html")
    assert table([result])
    json.loads((directory / "result.json").read_text())
    assert not list(directory.glob(".*.part"))
    return result


@pytest.mark.parametrize("text", [DEEP, NESTED, LONG, ODD, "{", '"\\ud800"', "\0", "NaN"])
@pytest.mark.parametrize("name", FILES)
def test_any_file_may_hold_anything(copy, name, text):
    (copy / name).write_text(text)
    everything(copy)


@pytest.mark.parametrize(
    "text",
    [
        "run = 3\nscenario = 4\n",
        f"run = {DEEP}",
        f"a = 1{'0' * 5000}",
        "[run]\nseed = 1979-01-01\n",
        "[run]\nscenario = [1]\nprotocol = {a = 1}\nseed = 1e400\nfingerprint = inf\n",
    ],
)
def test_any_description_is_read_as_far_as_it_goes(copy, text):
    (copy / "run.toml").write_text(text)
    assert everything(copy).users


@pytest.mark.parametrize("name", [*FILES, "run.toml", "samples.parquet"])
def test_a_named_pipe_is_not_waited_for(copy, name):
    (copy / name).unlink(missing_ok=True)
    os.mkfifo(copy / name)
    assert name.rpartition("/")[2] in " ".join(analyse(copy).remarks)


def test_a_capture_that_is_a_named_pipe_is_not_waited_for(copy):
    capture = json.loads((copy / "plan.json").read_text())["host"]["captures"][0]
    (copy / capture).unlink(missing_ok=True)
    os.mkfifo(copy / capture)
    assert any("no regular file" in remark for remark in analyse(copy).remarks)


def test_columns_of_mixed_types_become_columns_of_one(copy):
    (copy / "samples.jsonl").write_text(ODD)
    columns = pandas.read_parquet(collect(copy))
    assert columns["t_s"].isna().tolist() == [False, True, True, True]
    assert columns["tx_bytes"].isna().all()
    assert columns["port"].dropna().tolist() == ["uav-eth2", "7"]


def test_a_directory_whose_name_is_no_text_is_analysed(copy):
    strange = copy.with_name(os.fsdecode(b"run-\xff"))
    shutil.move(copy, strange)
    (strange / "samples.jsonl").write_text(ODD)
    result = everything(strange)
    assert result.run == "run-\\xff"
    report([result, result], strange / "comparison.html")


def test_a_report_into_a_device_or_an_unread_pipe_fails_and_replaces_nothing(copy, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/full")
    for target in (tmp_path / "pipe", tmp_path / "link"):
        with pytest.raises(OSError, match=r"No space left|No such device"):
            report([copy], target)
        assert not target.is_file()


def test_an_interrupted_write_leaves_the_earlier_file(copy, monkeypatch):
    write(copy)
    before = (copy / "result.json").read_bytes()

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        write(copy)
    assert (copy / "result.json").read_bytes() == before
    assert not list(copy.glob(".*.part"))


@pytest.mark.parametrize("place", ["absent/page.html", "directory"])
def test_what_cannot_be_written_is_named_as_it_was_asked_for(tmp_path: Path, place: str) -> None:
    (tmp_path / "directory").mkdir()
    with pytest.raises(OSError, match=r"directory") as problem:
        write_text(tmp_path / place, "text")
    assert problem.value.filename == str(tmp_path / place)
    assert [path.name for path in tmp_path.iterdir()] == ["directory"]
