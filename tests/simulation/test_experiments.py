"""The experiments, and the command that makes them.

Only those that take a second or two run here; docs/simulation.md has the values of all.
"""

import json

import pytest

from simulation import compilation
from simulation.equilibrium import balance
from simulation.experiments import EXPERIMENTS, Row
from simulation.experiments.data_centre import fat_tree, pairs, traffic
from simulation.experiments.experiment import measure
from tactical import cli
from tactical.commands.simulate import table

compiled_only = pytest.mark.skipif(
    not compilation.available(), reason="takes minutes without Numba, which is switched off"
)


def silent(what: str, done: float) -> None:
    assert what and 0.0 <= done <= 1.0


@pytest.mark.parametrize(
    ("algorithm", "packets_per_s"),
    [("uncoupled", 707 + 141), ("ewtcp", 424), ("coupled", 141), ("mptcp", 707), ("lia", 707)],
)
def test_balance_at_different_round_trips_is_the_papers(algorithm, packets_per_s):
    (rates,) = balance(algorithm, [[[0], [1]]], [[0.01, 0.1]], [0.04, 0.01], rounds=2000)
    assert sum(rates) == pytest.approx(packets_per_s, rel=0.05)


@pytest.mark.parametrize(
    ("algorithm", "mbps"), [("ewtcp", (11.0, 11.0, 8.0)), ("coupled", (10.0, 10.0, 10.0))]
)
def test_balance_on_four_links_is_the_papers(algorithm, mbps):
    capacities = [5.0, 12.0, 10.0, 3.0]
    kinds = [[[0], [1]], [[1], [2]], [[2], [3]]]
    rates = balance(algorithm, kinds, [[10.0, 10.0]] * 3, capacities=capacities)
    assert [sum(paths) for paths in rates] == pytest.approx(mbps, rel=0.05)
    if algorithm == "coupled":
        return  # how the totals are split is not determined, and takes long to settle
    load = [rates[0][0], rates[0][1] + rates[1][0], rates[1][1] + rates[2][0], rates[2][1]]
    assert load == pytest.approx(capacities, rel=0.01)


def test_balance_in_the_triangle_is_the_papers():
    kinds = [[[0], [1, 2]], [[1], [2, 0]], [[2], [0, 1]]]
    for algorithm, mbps in (("ewtcp", 8.5), ("coupled", 12.0)):
        rates = balance(algorithm, kinds, [[10.0, 10.0]] * 3, capacities=[12.0] * 3)
        assert [sum(paths) for paths in rates] == pytest.approx([mbps] * 3, rel=0.05)


def test_semicoupled_keeps_some_traffic_on_the_lossy_path():
    (rates,) = balance("semicoupled", [[[0], [1], [2]]], [[0.1] * 3], [0.01, 0.01, 0.05])
    shares = [100.0 * rate / sum(rates) for rate in rates]
    # 2 √a (1/p_r)/√(Σ 1/p): 1 : 1 : 0.2.
    assert shares == pytest.approx([45.5, 45.5, 9.1], abs=0.6)


def test_an_algorithm_with_a_memory_has_no_balance():
    with pytest.raises(ValueError, match="algorithm is 'olia'; expected one of uncoupled"):
        balance("olia", [[[0]]], [[0.1]], [0.01])


@pytest.mark.parametrize(
    ("algorithm", "ratio"), [("uncoupled", 2.0), ("ewtcp", 1.0), ("coupled", 1.0), ("mptcp", 1.0)]
)
def test_balance_on_a_shared_link_is_the_papers(algorithm, ratio):
    both, (one,) = balance(
        algorithm, [[[0], [0]], [[0]]], [[0.1, 0.1], [0.1]], capacities=[1000.0], rounds=5000
    )
    assert sum(both) / one == pytest.approx(ratio, rel=0.01)


@compiled_only
def test_eight_paths_fill_the_fat_tree_and_one_does_not():
    import random

    tree = fat_tree()
    found = {}
    for count in (1, 8):
        draw = random.Random(1)
        who = pairs("TP1", tree.hosts, draw)
        connections = traffic(
            who, lambda a, b, d, count=count: tree.choose(a, b, count, d), "lia", 1500, draw
        )
        measured = measure(
            tree.links,
            connections,
            warm_s=1.0,
            measured_s=0.5,
            seed=1,
            what="TP1",
            progress=silent,
        )
        found[count] = measured.rates().mean() * 12000 / 1e6
    assert 45.0 < found[1] < 55.0
    assert found[8] > 93.0


@compiled_only
def test_the_command_prints_one_json_document(capsys):
    assert cli.main(["simulate", "bursts", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["experiment"] == "bursts"
    assert document["rows"][0]["paper"] == 85.0
    assert document["rows"][0]["paper_recalled"] is True
    rates = {row["quantity"]: row["simulated"] for row in document["rows"]}
    # COUPLED does not come back to the link after a burst before the next.
    assert rates["coupled: link with bursts"] < 70.0 < rates["mptcp: link with bursts"]
    assert rates["ewtcp: quiet link"] > 98.0


def test_the_table_leaves_out_columns_without_values():
    rows = [Row("a", "Mbit/s", 49.97, 51.0, recalled=True), Row("bc", "ratio", 1.0)]
    assert [line.split() for line in table(rows).splitlines()] == [
        ["paper", "simulated"],
        ["a", "~51", "49.97", "Mbit/s"],
        ["bc", "1", "ratio"],
    ]


def test_the_list_names_every_experiment(capsys):
    assert cli.main(["simulate", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [*EXPERIMENTS, "maxflowsdn"]
    assert cli.main(["simulate", "--list", "--json"]) == 0
    listed = [each["experiment"] for each in json.loads(capsys.readouterr().out)]
    assert listed == [*EXPERIMENTS, "maxflowsdn"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "name an experiment to simulate"),
        (["nothing"], "there is no experiment nothing to simulate; there are shared-bottleneck"),
        (["torus", "--seed", "-1"], "--seed must be 0 or more, not -1"),
    ],
)
def test_what_cannot_be_simulated_is_refused(capsys, arguments, sentence):
    assert cli.main(["simulate", *arguments]) == 2
    assert sentence in capsys.readouterr().err
