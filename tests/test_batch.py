"""Batches: what a file asks for, what is done already, and the table of all runs."""

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import scenarios
from tactical import batch, cli
from tactical.host import HostError, choose

STUDY = """
scenarios = ["direct-move"]
protocols = ["mptcp"]
seeds = "1-2"
[set]
duration_s = 5
entry_time_s = 2
[vary]
"uav.rate_bps" = [1e6, 2e6]
"""


@pytest.fixture
def study(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path / "study.toml"


@pytest.fixture
def one_done(study) -> Path:
    """The recorded run of tests/analysis, in the place of the batch's first run."""
    first = batch.load(study).sessions[0]
    name = f"20260101T000000Z-mptcp-1-{scenarios.fingerprint(first.experiment)}"
    recorded = Path(__file__).parent / "analysis" / "data" / "mptcp"
    return Path(shutil.copytree(recorded, study.parent / "runs" / "direct-move" / name))


def test_every_combination_is_a_session(study):
    found = batch.load(study)
    assert found.runs == 4
    assert [str(session) for session in found.sessions] == [
        "direct-move, seed 1, uav.rate_bps=1000000.0",
        "direct-move, seed 2, uav.rate_bps=1000000.0",
        "direct-move, seed 1, uav.rate_bps=2000000.0",
        "direct-move, seed 2, uav.rate_bps=2000000.0",
    ]
    assert {s.experiment.duration_s for s in found.sessions} == {5}
    assert [s.experiment.uav.rate_bps for s in found.sessions] == [1e6, 1e6, 2e6, 2e6]


def test_a_run_that_is_done_is_not_made_again(one_done, capsys):
    assert cli.main(["batch", "study.toml", "--dry-run", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["runs"]
    assert [each["directory"] for each in listed] == [
        f"runs/direct-move/{one_done.name}",
        None,
        None,
        None,
    ]


def test_a_run_that_failed_is(one_done):
    with (one_done / "events.jsonl").open("a") as events:
        print(json.dumps({"kind": "state", "data": {"state": "failed"}}), file=events)
    session = batch.load(Path("study.toml")).sessions[0]
    assert batch.finished(Path("runs"), session, "mptcp") is None


def test_the_table_answers_sql(one_done, capsys):
    query = 'SELECT "user", seed, protocol, "uav.rate_bps" AS rate FROM runs ORDER BY 1'
    assert cli.main(["batch", "study.toml", "--query", query, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [
        {"user": user, "seed": 1, "protocol": "mptcp", "rate": 1e6} for user in ("ship1", "ship2")
    ]
    assert Path("runs/study.parquet").is_file()


def test_whatever_a_query_gives_is_valid_json(one_done, capsys):
    query = """SELECT 'nan'::DOUBLE AS a, DATE '2026-01-01' AS b, 1.50::DECIMAL(9,2) AS c,
        'x'::BLOB AS d, [1.0, 'inf'::DOUBLE] AS e"""
    assert cli.main(["batch", "study.toml", "--query", query, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert (row["a"], row["b"], row["c"], row["e"]) == (None, "2026-01-01", "1.50", [1.0, None])


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("SELECT nothing FROM runs", "nothing"),
        ("COPY runs TO 'stolen.csv'", "disabled"),
    ],
)
def test_a_query_that_cannot_be_answered_is_refused(one_done, capsys, query, names):
    assert cli.main(["batch", "study.toml", "--query", query]) == 2
    assert names in capsys.readouterr().err
    assert not Path("stolen.csv").exists()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", "scenarios must be a list of names, not None"),
        ("scenarios = []", "scenarios must be a list of names, not []"),
        ("scenarios = ['nowhere']", "no experiment 'nowhere'"),
        ("scenarios = ['direct-move']\nseed = 1", "unknown key 'seed'; expected scenarios"),
        ("scenarios = ['direct-move']\nseeds = [-1]", "seeds must be a list of whole numbers"),
        ("scenarios = ['direct-move']\nseeds = '4-1'", "seeds must be a list of whole numbers"),
        ("scenarios = ['direct-move']\nseeds = '0-99999999'", "seeds must be a list"),
        ("scenarios = ['direct-move']\nprotocols = ['udp']", "protocols: 'udp'; expected sptcp"),
        ("scenarios = ['direct-move']\n[set]\nspeed = 1", "speed is no parameter of direct-move"),
        ("scenarios = ['direct-move']\n[vary]\nduration_s = 5", "must be a list of values, not 5"),
        ("scenarios = ['direct-move']\n[vary]\nduration_s = [5, 5]", "names a value twice"),
        ("scenarios = ", "not TOML"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(study, capsys, text, names):
    study.write_text(text)
    assert cli.main(["batch", "study.toml"]) == 2
    said = capsys.readouterr().err
    assert names in said
    assert said.count("\n") == 1
    assert "study.toml" in said or "nowhere" in names


def test_runs_in_real_time_are_not_made_side_by_side(study, capsys):
    if problem := _no_machine():
        pytest.skip(problem)
    assert cli.main(["batch", "study.toml", "--workers", "2", "--time", "real"]) == 2
    assert "disturb each other" in capsys.readouterr().err


def _no_machine() -> str:
    try:
        choose("auto", "real")
    except HostError as error:
        return str(error)
    return ""


@pytest.mark.slow
def test_a_cluster_of_two_workers_gets_every_session(study, capsys):
    pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    if problem := _no_machine():
        pytest.skip(problem)
    (study.parent / "runs" / "direct-move").mkdir(parents=True)
    # A day at 100 Gbit/s: each worker comes as far as its check of the disk, and says so.
    study.write_text(
        STUDY.replace("duration_s = 5", "duration_s = 86400") + '"traffic.rate_bps" = [1e11]\n'
    )
    assert cli.main(["batch", "study.toml", "--workers", "2", "--time", "virtual"]) == 2
    said = capsys.readouterr().err
    assert "4 of 4 sessions" in said
    assert said.count("nothing was run") == 4


def test_more_runs_than_anybody_wants_are_refused(study):
    values = ", ".join(map(str, range(1, 400)))
    study.write_text(
        "scenarios = ['direct-move']\nseeds = '0-999'\n[vary]\n"
        f"duration_s = [{values}]\n'traffic.rate_bps' = [{values}]\n"
    )
    with pytest.raises(batch.BatchError, match="at most 100000"):
        batch.load(study)


@given(st.text(max_size=60))
def test_no_text_is_a_crash(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("batch") / "any.toml"
    path.write_text(text, encoding="utf-8", newline="")
    with pytest.raises((batch.BatchError, scenarios.ScenarioError)):
        batch.load(path)
