import json
import math
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fdm
from fdm import Demand, Link, Network, solve

DATA = Path(__file__).parent / "data"
SHARED = Path(__file__).parents[2].parent / "shared" / "instances"
COPIED = sorted(path.name for path in DATA.glob("*.json"))
TAC2 = fdm.load(DATA / "tac2.json")


def carried(solution: fdm.Solution, demand: int) -> float:
    return sum(flow.rate_bps for flow in solution.path_flows[demand])


def check_against_file(path: Path) -> None:
    instance = fdm.load(path)
    solution = solve(instance.network, instance.demands, packet_bits=instance.packet_bits)
    assert solution.feasible
    assert solution.relative_gap <= 1e-9
    assert solution.gamma_T == pytest.approx(instance.optimum_gamma_T, rel=1e-8)
    assert solution.lower_bound <= instance.optimum_gamma_T * (1 + 1e-9)


@pytest.mark.parametrize("name", COPIED)
def test_instances_are_solved_to_their_certified_optimum(name):
    check_against_file(DATA / name)


@pytest.mark.parametrize("name", ["geant-90", "germany50-90", "tac50-50", "tac50-90"])
def test_larger_instances_are_solved_to_their_certified_optimum(name):
    path = SHARED / f"{name}.json"
    if not path.exists():
        pytest.skip(f"no {name}.json: it is kept with the other shared instances, not here")
    check_against_file(path)


@pytest.mark.parametrize("method", fdm.METHODS)
def test_two_users_share_the_drone_evenly_with_every_method(method):
    solution = solve(TAC2.network, TAC2.demands, method=method)
    assert solution.relative_gap <= 1e-9
    assert solution.gamma_T == pytest.approx(113.12236109448199, rel=1e-9)
    assert solution.mean_packet_delay_s == pytest.approx(0.22624472218896396, rel=1e-9)
    drone = [flows[1].rate_bps for flows in solution.path_flows]
    assert drone[0] == pytest.approx(drone[1], rel=1e-9)
    assert drone[0] == pytest.approx(388_267.54, abs=50.0)


def test_the_two_user_case_needs_no_numpy():
    # A controller inside an emulated machine pays seconds for that import.
    code = (
        "import fdm, sys; i = fdm.load(sys.argv[1]); s = fdm.solve(i.network, i.demands); "
        "fdm.queue_rates(i.network, s); print(s.method, 'numpy' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(DATA / "tac2.json")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["flow", "deviation", "False"]


@pytest.mark.parametrize("kappa", [0.1, 0.6, 1.0, 5.0, 10.0])
def test_the_load_of_the_drone_follows_the_closed_form(kappa):
    # Equal marginal delay of two parallel paths where the wide one hardly queues:
    # C(1 − √(κb/(C·Δp))), with Δp corrected by what little the satellite queues.
    solution = solve(TAC2.network, TAC2.demands, kappa=kappa)
    satellite = solution.link_flows_bps[4]
    access = solution.link_flows_bps
    b = 12000.0

    def queueing(capacity: float, flow: float) -> float:
        return kappa * b * capacity / (capacity - flow) ** 2

    difference_s = (
        0.25
        - 0.01
        + queueing(50e6, satellite)
        + queueing(1e8, access[0])
        - queueing(1e8, access[1])
    )
    expected = 1e6 * (1 - math.sqrt(kappa * b / (1e6 * difference_s)))
    assert solution.link_flows_bps[5] == pytest.approx(expected, rel=1e-6)


def test_a_warm_start_gives_the_same_answer():
    cold = solve(TAC2.network, TAC2.demands)
    again = solve(TAC2.network, TAC2.demands, start=cold)
    assert again.iterations == 0
    assert again.gamma_T == pytest.approx(cold.gamma_T, rel=1e-12)
    weaker = Network(
        TAC2.network.nodes,
        [link._replace(capacity_bps=link.capacity_bps * 0.8) for link in TAC2.network.links],
    )
    warm, fresh = solve(weaker, TAC2.demands, start=cold), solve(weaker, TAC2.demands)
    assert warm.gamma_T == pytest.approx(fresh.gamma_T, rel=1e-9)
    assert warm.relative_gap <= 1e-9


def test_a_warm_start_survives_a_lost_link():
    cold = solve(TAC2.network, TAC2.demands)
    links = list(TAC2.network.links)
    links[5] = links[5]._replace(capacity_bps=0.0)
    solution = solve(Network(TAC2.network.nodes, links), TAC2.demands, start=cold)
    assert solution.feasible
    assert solution.link_flows_bps[5] == 0.0
    assert [len(flows) for flows in solution.path_flows] == [1, 1]


def test_a_warm_start_for_other_demands_is_not_used():
    cold = solve(TAC2.network, TAC2.demands)
    one = solve(TAC2.network, TAC2.demands[:1], start=cold)
    assert carried(one, 0) == pytest.approx(3e6)
    gone = solve(Network(TAC2.network.nodes, []), TAC2.demands, start=cold)
    assert not gone.feasible


def test_answers_are_ready_for_json():
    solution = solve(TAC2.network, TAC2.demands)
    tree = json.loads(json.dumps(solution.as_dict(), allow_nan=False))
    assert tree["path_flows"][0][0]["path"] == [0, 4]
    assert tree["feasible"] is True


# Where the problem is degenerate the answer is defined.

LINE = Network("abc", [Link("a", "b", 1e6, 0.1), Link("b", "c", 1e6, 0.1)])


def test_no_demands_at_all():
    solution = solve(LINE, [])
    assert (solution.feasible, solution.gamma_T, solution.mean_packet_delay_s) == (True, 0.0, 0.0)
    assert solution.link_flows_bps == (0.0, 0.0)
    assert solution.relative_gap == 0.0


def test_a_demand_of_zero_takes_no_path():
    solution = solve(LINE, [Demand("a", "c", 0.0), Demand("a", "c", 1e5)])
    assert solution.feasible
    assert solution.path_flows[0] == ()
    assert carried(solution, 1) == pytest.approx(1e5)
    assert solve(LINE, [Demand("a", "c", 0.0)]).feasible
    assert solve(LINE, [Demand("c", "a", 0.0)]).feasible


@pytest.mark.parametrize("method", fdm.METHODS)
def test_a_demand_without_a_path_is_cut_and_the_others_are_not(method):
    solution = solve(LINE, [Demand("c", "a", 1e5), Demand("a", "c", 1e5)], method=method)
    assert not solution.feasible
    assert solution.admitted_bps == (0.0, 1e5)
    assert solution.path_flows[0] == ()
    assert carried(solution, 1) == pytest.approx(1e5)


def test_a_link_of_capacity_zero_is_down():
    network = Network("ab", [Link("a", "b", 0.0, 0.0), Link("a", "b", 1e6, 9.0)])
    solution = solve(network, [Demand("a", "b", 1e5)])
    assert solution.feasible
    assert solution.link_flows_bps == (0.0, 1e5)
    only = solve(Network("ab", [Link("a", "b", 0.0, 0.0)]), [Demand("a", "b", 1e5)])
    assert (only.feasible, only.admitted_bps, only.gamma_T) == (False, (0.0,), 0.0)


@pytest.mark.parametrize("method", fdm.METHODS)
def test_parallel_links_share_evenly_if_equal(method):
    network = Network("ab", [Link("a", "b", 1e6, 0.1)] * 4)
    solution = solve(network, [Demand("a", "b", 3.6e6)], method=method)
    assert solution.feasible
    assert solution.link_flows_bps == pytest.approx([9e5] * 4, rel=1e-4)


def test_a_loop_carries_nothing():
    network = Network("ab", [Link("a", "a", 1e9, 0.0), Link("a", "b", 1e6, 0.1)])
    solution = solve(network, [Demand("a", "b", 1e5)])
    assert solution.link_flows_bps == (0.0, 1e5)


@pytest.mark.parametrize("method", fdm.METHODS)
@pytest.mark.parametrize("factor", [1.0, 1.0 + 1e-12, 1.5, 100.0, 1e9])
def test_demands_that_do_not_fit_are_cut_alike_and_proved_not_to_fit(method, factor):
    demands = [Demand("a", "c", 6e5 * factor), Demand("b", "c", 4e5 * factor)]
    solution = solve(LINE, demands, method=method, admission="proportional")
    assert not solution.feasible
    assert len(solution.proof) == 2
    assert solution.fitting_share == pytest.approx(1.0 / factor, rel=0.1)
    assert solution.fitting_share <= 1.0 + 1e-8
    assert solution.admitted_bps == pytest.approx([0.57e6, 0.38e6], rel=1e-6)
    assert carried(solution, 0) == pytest.approx(solution.admitted_bps[0], rel=1e-9)
    assert solution.relative_gap <= 1e-9
    assert max(solution.link_flows_bps) < 1e6


@pytest.mark.parametrize("method", fdm.METHODS)
@pytest.mark.parametrize(
    ("offered", "admitted"),
    [
        ((6e5, 4e5), (5.5e5, 4e5)),
        ((9e5, 6e5), (4.75e5, 4.75e5)),
        ((1e9, 1e5), (8.5e5, 1e5)),
        ((1e9, 0.0), (9.5e5, 0.0)),
    ],
)
def test_what_does_not_fit_is_let_in_max_min_fair(method, offered, admitted):
    demands = [Demand("a", "c", offered[0]), Demand("b", "c", offered[1])]
    solution = solve(LINE, demands, method=method)
    assert not solution.feasible
    assert solution.admitted_bps == pytest.approx(admitted, rel=1e-3)
    assert solution.cut_bps == pytest.approx(
        [rate - got for rate, got in zip(offered, admitted, strict=True)], rel=1e-2, abs=200.0
    )
    assert solution.relative_gap <= 1e-9
    assert carried(solution, 0) == pytest.approx(solution.admitted_bps[0], rel=1e-9)
    tree = json.loads(json.dumps(solution.as_dict(), allow_nan=False))
    assert tree["certificate"]["fitting_share"] <= 1.0 + 1e-8


def test_a_bottleneck_holds_only_those_that_need_it():
    # Two bottlenecks in a row: c is held at the second, and what it leaves of the first is a's.
    network = Network(
        "abcd", [Link("a", "b", 1e6), Link("c", "b", 1e9), Link("b", "d", 4e6), Link("c", "d", 2e6)]
    )
    demands = [Demand("a", "d", 5e6), Demand("c", "d", 9e6), Demand("c", "d", 1e5)]
    solution = solve(network, demands, capacity_share=0.9)
    assert solution.admitted_bps == pytest.approx([0.9e6, 4.4e6, 1e5], rel=1e-3)


def test_demands_that_only_just_fit():
    solution = solve(LINE, [Demand("a", "c", 1e6 * (1 - 1e-7))])
    assert solution.feasible
    assert math.isfinite(solution.gamma_T)


def test_a_limit_on_iterations_is_kept_and_the_gap_says_what_it_cost():
    instance = fdm.load(DATA / "tac10-90.json")
    solution = solve(instance.network, instance.demands, method="flow deviation", iterations=60)
    assert solution.iterations <= 120
    assert solution.relative_gap > 1e-9
    assert solution.lower_bound <= instance.optimum_gamma_T <= solution.gamma_T


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Network("aa", []), "node 'a' is there twice"),
        (lambda: Network("ab", [Link("a", "c", 1.0)]), "link 0 ends at 'c', which is no node"),
        (lambda: Network("ab", [Link("a", "b", -1.0)]), "capacity_bps of link 0 ('a' to 'b')"),
        (lambda: Network("ab", [Link("a", "b", math.inf)]), "finite number, 0 or more, not inf"),
        (lambda: Network("ab", [Link("a", "b", math.nan)]), "finite number, 0 or more, not nan"),
        (lambda: Network("ab", [Link("a", "b", 1.0, -0.1)]), "delay_s of link 0"),
        (lambda: solve(LINE, [Demand("a", "x", 1.0)]), "demand 0 ends at 'x', which is no node"),
        (lambda: solve(LINE, [Demand("a", "a", 1.0)]), "demand 0 begins where it ends, at 'a'"),
        (lambda: solve(LINE, [Demand("a", "b", -1.0)]), "rate_bps of demand 0 ('a' to 'b')"),
        (lambda: solve(LINE, [Demand("a", "b", math.nan)]), "not nan"),
        (lambda: solve(LINE, [], packet_bits=0.0), "packet_bits must be a finite number above 0"),
        (lambda: solve(LINE, [], kappa=math.nan), "kappa must be a finite number above 0, not nan"),
        (lambda: solve(LINE, [], method="simplex"), "method must be one of auto, flow deviation"),
        (lambda: solve(LINE, [], gap=math.nan), "gap must be 0 or more, not nan"),
    ],
)
def test_input_that_makes_no_sense_is_refused(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
