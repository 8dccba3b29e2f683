"""`tactical analyse`, as a user or a script meets it."""

import json
import os
from pathlib import Path

import pandas as pd
import pytest

from tactical import cli
from tactical.commands import analyse

DATA = Path(__file__).parent / "captures" / "data"
CLIENT, SERVER = (str(DATA / f"csum_{side}.pcap.gz") for side in ("client", "server"))


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("no capture")
    (tmp_path / "empty.pcap").write_bytes(b"")
    os.mkfifo(tmp_path / "pipe")
    run = tmp_path / "run"
    run.mkdir()
    (run / "run.toml").write_text("")
    return tmp_path


REFUSED = [
    ("analyse", "FILE"),
    ("analyse absent.pcap", "absent.pcap cannot be read"),
    ("analyse notes.txt", "notes.txt is no capture file"),
    ("analyse empty.pcap", "empty.pcap is no capture file"),
    ("analyse run", "`tactical report`"),
    ("analyse .", ". is a directory"),
    ("analyse /dev/zero", "/dev/zero cannot be read: it is no regular file"),
    ("analyse pipe", "pipe cannot be read: it is no regular file"),
    (f"analyse {CLIENT} --gap 0", "--gap 0"),
    (f"analyse {CLIENT} --gap nan", "--gap nan"),
    (f"analyse {CLIENT} --export packets.xls", "packets.xls"),
    (f"analyse {CLIENT} --export absent/packets.csv", "absent/packets.csv"),
    (f"analyse {CLIENT} --report absent/report.html", "absent"),
    (f"analyse {CLIENT} --report x.html --no-report", "contradict"),
    (f"analyse {CLIENT} --figures notes.txt", "notes.txt"),
]


@pytest.mark.parametrize(("line", "names"), REFUSED, ids=[names for _, names in REFUSED])
def test_bad_input_is_one_sentence_and_status_2(
    directory: Path, capsys: pytest.CaptureFixture[str], line: str, names: str
) -> None:
    assert cli.main(line.split()) == 2
    said = capsys.readouterr()
    assert said.err.count("\n") == 1
    assert said.err.startswith("tactical: ")
    assert names in said.err
    assert cli.main([*line.split(), "--json"]) == 2
    assert names in json.loads(capsys.readouterr().out)["error"]


def test_a_pair_as_table_and_report(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("report.html", "report-2.html"):
        assert cli.main(["analyse", CLIENT, SERVER]) == 0
        said = capsys.readouterr().out
        assert "523 685" in said
        assert "the second place’s clock" in said
        assert said.splitlines()[-1] == f"report: {name}"
        assert "523 685" in (directory / name).read_text()


def test_a_script_gets_json_and_the_files_it_asks_for(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = f"analyse {CLIENT} --json --export packets.parquet --gap 0.2"
    assert cli.main(line.split()) == 0
    document = json.loads(capsys.readouterr().out)
    assert {"frames", "tcp_frames", "tcp_streams", "damage", "quality"} <= set(document)
    (_, data) = document["connections"]
    way = data["client_to_server"]
    assert way["captured_bytes"] == 523_685
    assert way["completion_time_s"] > 0
    assert [each["join"] for each in data["subflows"]] == [False, True]
    assert all(each["length_s"] > 0.2 for each in way["interruptions"])
    assert len(pd.read_parquet(directory / "packets.parquet")) == document["tcp_frames"]
    assert sorted(each.name for each in directory.glob("*.html")) == []


def test_a_damaged_file_gives_what_is_before_the_damage(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = (DATA / "csum_client.pcap.gz").read_bytes()
    (directory / "cut.pcap.gz").write_bytes(whole[: len(whole) // 2])
    assert cli.main(["analyse", "cut.pcap.gz"]) == 0
    assert "cut" in capsys.readouterr().out
    assert "Damaged" in (directory / "report.html").read_text()


def test_of_a_very_large_capture_a_document_tells_data_alone(
    directory: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = SERVER
    assert cli.main(["analyse", file, "--json"]) == 0
    whole = json.loads(capsys.readouterr().out)
    monkeypatch.setattr(analyse, "_MOST_TIMED_PACKETS", 100)
    assert cli.main(["analyse", file, "--json"]) == 0
    said = capsys.readouterr()
    assert "--full measures these, too" in said.err
    large = json.loads(said.out)
    assert set(large) <= set(whole)
    for key in ("payload_bytes", "captured_bytes", "longest_stall_s"):
        large_flow, flow = (
            document["connections"][0]["client_to_server"] for document in (large, whole)
        )
        assert large_flow[key] == flow[key]
    assert cli.main(["analyse", file, "--json", "--full"]) == 0
    assert json.loads(capsys.readouterr().out) == whole
