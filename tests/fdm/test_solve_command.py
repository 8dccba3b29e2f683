"""The command `tactical solve`, from the outside."""

import json
from pathlib import Path

import pytest

from tactical import cli

DATA = Path(__file__).parent / "data"
TAC2 = str(DATA / "tac2.json")


def test_the_answer_as_json_has_what_programs_need(capsys):
    assert cli.main(["solve", TAC2, "--json"]) == 0
    tree = json.loads(capsys.readouterr().out)
    assert tree["feasible"] is True
    assert tree["gamma_T"] == pytest.approx(113.12236109448199, rel=1e-9)
    assert tree["relative_gap"] <= 1e-9
    assert tree["path_flows"][0][1]["rate_bps"] == pytest.approx(388_267.54, abs=50)
    assert {
        "mean_packet_delay_s",
        "lower_bound",
        "iterations",
        "method",
        "solve_time_s",
        "link_flows_bps",
    } <= tree.keys()


def test_what_does_not_fit_says_who_is_cut_and_proves_it(capsys, tmp_path):
    case = json.loads(Path(TAC2).read_text())
    case["commodities"][0]["demand_bps"] = 9e7
    path = tmp_path / "much.json"
    path.write_text(json.dumps(case))
    assert cli.main(["solve", str(path), "--json"]) == 0
    tree = json.loads(capsys.readouterr().out)
    assert tree["feasible"] is False
    assert tree["admitted_bps"][1] == pytest.approx(3e6)
    assert tree["admitted_bps"][0] == pytest.approx(0.95 * 51e6 - 3e6, rel=1e-3)
    assert tree["certificate"]["fitting_share"] < 1.0
    assert cli.main(["solve", str(path)]) == 0
    assert "The demands do not fit: 1 of 2 are cut" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_the_picture_is_drawn(capsys, tmp_path, kind):
    picture = tmp_path / f"network.{kind}"
    assert cli.main(["solve", TAC2, "--picture", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"<?xml" if kind == "svg" else b"\x89PNG")
    out = capsys.readouterr().out
    assert "0.388268 by 0-3-4" in out
    assert "3 to 4" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.json"], "nothing.json: cannot be read: No such file"),
        ([TAC2, "--kappa", "nan"], "kappa must be a finite number above 0"),
        ([TAC2, "--gap", "-1"], "gap must be 0 or more"),
        ([TAC2, "--picture", "a.txt"], "must end in .svg, .png or .pdf"),
        ([TAC2, "--capacity-share", "2"], "capacity_share must be above 0 and below 1"),
    ],
)
def test_what_makes_no_sense_is_one_sentence_and_status_2(capsys, arguments, message):
    assert cli.main(["solve", *arguments]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""
