"""The command `tactical solve`, from the outside."""

import json
import os
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fdm
import scenarios
from tactical import cli
from tactical.moment import moment
from tactical.picture import draw
from tactical.waiting import waiting

DATA = Path(__file__).parent / "data"
TAC2 = str(DATA / "tac2.json")
SVG = "{http://www.w3.org/2000/svg}"


def solved(capsys, *arguments: str) -> dict:
    assert cli.main(["solve", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_answer_as_json_has_what_programs_need(capsys):
    tree = solved(capsys, TAC2)
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
    drone = [queue for queue in tree["deployment"]["queues"] if queue["link"] == 5]
    assert [queue["demand"] for queue in drone] == [0, 1]
    assert {(queue["min_bps"], queue["max_bps"]) for queue in drone} == {(388_267, 388_267)}


def test_the_answer_as_json_can_be_solved_again(capsys, tmp_path):
    first = solved(capsys, "direct-move", "--at", "70")
    again = tmp_path / "again.json"
    again.write_text(json.dumps(first))
    second = solved(capsys, str(again))
    assert second["name"] == "direct-move at 70 s"
    assert second["path_flows"] == first["path_flows"]


def test_what_does_not_fit_says_who_is_cut_and_proves_it(capsys, tmp_path):
    case = json.loads(Path(TAC2).read_text())
    case["commodities"][0]["demand_bps"] = 9e7
    path = tmp_path / "much.json"
    path.write_text(json.dumps(case))
    tree = solved(capsys, str(path))
    assert tree["feasible"] is False
    assert tree["admitted_bps"][1] == pytest.approx(3e6)
    assert tree["admitted_bps"][0] == pytest.approx(0.95 * 51e6 - 3e6, rel=1e-3)
    assert tree["certificate"]["fitting_share"] < 1.0
    assert cli.main(["solve", str(path)]) == 0
    assert "The demands do not fit: 1 of 2 are cut" in capsys.readouterr().out


def test_the_table_says_who_gets_what_and_in_which_queue(capsys):
    assert cli.main(["solve", TAC2]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "0.388268 by 0-3-4" in next(line for line in lines if line.startswith("0 to 4 "))
    assert next(line for line in lines if line.startswith("3 to 4 ")).split()[3:] == [
        "0.776535",
        "1",
        "77.65",
    ]
    assert ["0", "to", "4", "388267", "388267", "3", "to", "4", "0-3-4"] in map(str.split, lines)


def test_queues_are_for_few_paths_and_the_table_says_what_that_costs(capsys):
    tac10 = str(DATA / "tac10-90.json")
    # The method is named, as another one may be chosen once the compiled one is loaded.
    asked = (tac10, "--paths", "3", "--method", "interior point")
    few = solved(capsys, *asked)["deployment"]
    used = {(queue["demand"], tuple(queue["path"])) for queue in few["queues"]}
    assert max(sum(d == demand for d, _ in used) for demand in range(12)) == 3
    assert cli.main(["solve", *asked]) == 0
    said = f"at most 3 paths of a demand: mean packet delay {few['mean_packet_delay_s'] * 1e3:.6g}"
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("mode", "satellite_bps"), [("strict", 2_611_732), ("overflow", 23_750_000)]
)
def test_what_queues_may_take_is_a_choice(capsys, mode, satellite_bps):
    deployment = solved(capsys, TAC2, "--queues", mode)["deployment"]
    assert deployment["mode"] == mode
    most = [queue["max_bps"] for queue in deployment["queues"] if queue["link"] == 4]
    assert most == pytest.approx([satellite_bps] * 2, abs=2)


# A scenario at a moment.


@pytest.mark.parametrize(("at_s", "uav_bps"), [("10", 0.0), ("70", 388_268.0)])
def test_a_scenario_is_solved_as_its_controller_would(capsys, at_s, uav_bps):
    tree = solved(capsys, "direct-move", "--at", at_s)
    assert [c["demand_bps"] for c in tree["commodities"]] == pytest.approx([3.21e6, 3.21e6])
    ends = [(link["tail"], link["head"]) for link in tree["links"]]
    assert "host" in tree["nodes"]
    for flows in tree["path_flows"]:
        by_uav = sum(
            f["rate_bps"] for f in flows if ("uav", "shore") in [ends[e] for e in f["path"]]
        )
        assert by_uav == pytest.approx(uav_bps, abs=2.0)
    trunks = {("satcom", "shore"), ("uav", "shore")}
    queued = {ends[queue["link"]] for queue in tree["deployment"]["queues"]}
    assert queued == (trunks if uav_bps else {("satcom", "shore")})


def test_parameters_of_the_scenario_reach_the_problem(capsys):
    tree = solved(
        capsys,
        "direct-move",
        "--at",
        "70",
        "--set",
        "ships.count=3",
        "--set",
        "controller.kappa=10",
    )
    assert len(tree["commodities"]) == 3
    uav = next(
        flow
        for link, flow in zip(tree["links"], tree["link_flows_bps"], strict=True)
        if (link["tail"], link["head"]) == ("uav", "shore")
    )
    assert uav == pytest.approx(0.29e6, rel=0.05)  # C(1 − √(κb/(CΔp)))


def test_the_controller_may_guarantee_all_of_a_link(capsys):
    tree = solved(capsys, "contended", "--at", "5", "--set", "controller.capacity_share=1")
    assert tree["feasible"] is False  # the satellite alone, before the UAV is there
    assert sum(tree["admitted_bps"]) == pytest.approx(0.95 * 4e6, rel=1e-3)


# Pictures.


def test_every_name_of_a_file_gives_its_format(capsys, tmp_path):
    for suffix, start in (("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")):
        picture = tmp_path / f"network.{suffix}"
        assert cli.main(["solve", "direct-move", "--at", "70", "--picture", str(picture)]) == 0
        assert picture.read_bytes().startswith(start)
        assert f"Picture: {picture}" in capsys.readouterr().out


def drawn(path: Path, instance: fdm.Instance, places=None) -> str:
    solution = fdm.solve(instance.network, instance.demands)
    draw(instance, solution, path, places)
    return path.read_text()


def test_a_picture_is_the_same_each_time(tmp_path):
    instance = fdm.load(DATA / "tac10-90.json")
    assert drawn(tmp_path / "a.svg", instance) == drawn(tmp_path / "b.svg", instance)


@pytest.mark.parametrize(
    "instance",
    [
        fdm.Instance("no demand", fdm.Network("a", []), (), 1.0),
        fdm.Instance("no node", fdm.Network("", []), (), 1.0),
        fdm.Instance(
            "parallel, opposite, down, loop, $x_1$",
            fdm.Network(
                ["a", "b", "$c_d$"],
                [
                    *[fdm.Link("a", "b", 1e6)] * 4,
                    *[fdm.Link("b", "a", 1e6)] * 2,
                    fdm.Link("a", "a", 1e6),
                    fdm.Link("a", "$c_d$", 0.0),
                ],
            ),
            (fdm.Demand("a", "b", 3e6),),
            12000.0,
        ),
    ],
    ids=lambda instance: instance.name,
)
def test_odd_networks_are_drawn(tmp_path, instance):
    root = ElementTree.fromstring(drawn(tmp_path / "odd.svg", instance))
    assert root.findall(f".//{SVG}path")


def test_nodes_stand_where_the_scenario_has_them(tmp_path):
    now = moment(scenarios.load("direct-move").build(0), 70.0)
    ship1, ship2, uav = (now.places[name] for name in ("ship1", "ship2", "uav"))
    assert ship1[0] == ship2[0] < uav[0]  # sailing east, towards it
    assert ship1[1] < uav[1] < ship2[1]  # on tracks south and north of it


# What makes no sense, and what waits.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.json"], "nothing.json: cannot be read: No such file"),
        (["/dev/zero"], "/dev/zero: cannot be read: it is no regular file"),
        ([TAC2, "--kappa", "nan"], "kappa must be a finite number above 0"),
        ([TAC2, "--gap", "-1"], "gap must be 0 or more"),
        ([TAC2, "--paths", "0"], "--paths must be 1 or more, not 0"),
        ([TAC2, "--picture", "a.txt"], "must end in .svg, .png, .pdf"),
        ([TAC2, "--picture", "nowhere/a.svg"], "there is no directory nowhere"),
        ([TAC2, "--capacity-share", "2"], "capacity_share must be above 0 and below 1"),
        ([TAC2, "--set", "satcom.delay_s=1"], "--set changes an experiment, and"),
        (["direct-move"], "direct-move is an experiment, not a file: give the moment with --at"),
        (["direct-moev", "--at", "7"], "no experiment 'direct-moev'"),
        (["direct-move", "--at", "101"], "--at 101: must be from 0 to the 100 s"),
        (["direct-move", "--at", "nan"], "--at nan: must be from 0 to the 100 s"),
        (["direct-move", "--at", "7", "--kappa", "2"], "change it with --set controller.kappa"),
        (["direct-move", "--at", "7", "--delay", "md1"], "--delay is the controller's choice"),
        (["direct-move", "--at", "7", "--queues", "strict"], "--queues is the controller's choice"),
    ],
)
def test_what_makes_no_sense_is_one_sentence_and_status_2(capsys, arguments, message):
    assert cli.main(["solve", *arguments]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


numbers = st.just(0.0) | st.floats(-3.0, 15.0).map(lambda exponent: 10.0**exponent)


@st.composite
def extreme(draw):
    node = st.integers(0, 3)
    link = st.fixed_dictionaries(
        {"tail": node, "head": node, "capacity_bps": numbers, "delay_s": st.floats(0.0, 1e9)}
    )
    commodity = st.fixed_dictionaries(
        {"origin": st.integers(0, 1), "destination": st.integers(2, 3), "demand_bps": numbers}
    )
    return {
        "nodes": 4,
        "links": draw(st.lists(link, max_size=6)),
        "commodities": draw(st.lists(commodity, max_size=3)),
        "packet_bits": draw(numbers.filter(bool)),
    }


@given(extreme())
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_numbers_of_any_size_give_an_answer_without_nan(capsys, tmp_path, case):
    path = tmp_path / "extreme.json"
    path.write_text(json.dumps(case))
    status = cli.main(["solve", str(path), "--json"])
    captured = capsys.readouterr()
    tree = json.loads(captured.out)
    assert status == 0, captured.err
    assert tree["feasible"] in (True, False)


def test_whoever_waits_is_told_on_a_line_when_it_is_no_terminal(capsys):
    err = ""
    with waiting("solving it", patience_s=0.0):
        while "\n" not in err:
            err += capsys.readouterr().err
    assert err.startswith("solving it…")


def test_nobody_is_told_of_what_is_quick(capsys):
    with waiting("solving it"):
        pass
    assert capsys.readouterr().err == ""


def test_on_a_terminal_the_line_is_rewritten(monkeypatch):
    ours, theirs = os.openpty()
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr("sys.stderr", terminal)
        monkeypatch.setenv("TERM", "xterm")
        seen = ""
        with waiting("solving it", patience_s=0.0) as progress:
            progress(fdm.Progress(120, 3e-4))
            while "120 iterations" not in seen:
                seen += os.read(ours, 4096).decode()
    os.close(ours)
    assert "relative gap 3.0e-04" in seen
    assert "\r" in seen or "\x1b[" in seen
