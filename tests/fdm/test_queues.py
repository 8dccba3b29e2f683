import math
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fdm
from fdm import Demand, Link, Network, QueueRate, queue_rates, solve
from fdm.queues import MODES

TAC2 = fdm.load(Path(__file__).parent / "data" / "tac2.json")

shares = st.floats(0.05, 1.0)


@st.composite
def solved(draw):
    users = draw(st.integers(1, 5))
    gateways = draw(
        st.lists(st.tuples(st.floats(1e4, 1e8), st.floats(0, 0.5)), min_size=1, max_size=4)
    )
    nodes = [f"u{user}" for user in range(users)] + [
        f"g{number}" for number in range(len(gateways))
    ]
    links = [Link(f"u{u}", f"g{g}", 1e8) for u in range(users) for g in range(len(gateways))]
    links += [Link(f"g{number}", "host", *gateway) for number, gateway in enumerate(gateways)]
    demands = [
        Demand(f"u{user}", "host", draw(st.just(0.0) | st.floats(1.0, 1e7)))
        for user in range(users)
    ]
    network = Network([*nodes, "host"], links)
    return network, solve(network, demands)


def test_two_users_are_held_on_the_drone_and_free_on_the_satellite():
    solution = solve(TAC2.network, TAC2.demands)
    rates = queue_rates(TAC2.network, solution, capacity_share=0.95)
    assert set(rates) == {
        (0, (0, 4), 0),
        (0, (0, 4), 4),
        (0, (1, 5), 1),
        (0, (1, 5), 5),
        (1, (2, 4), 2),
        (1, (2, 4), 4),
        (1, (3, 5), 3),
        (1, (3, 5), 5),
    }
    assert rates[0, (1, 5), 5] == rates[1, (3, 5), 5] == QueueRate(388_267, 388_267)
    satellite = rates[0, (0, 4), 4]
    assert satellite.max_bps == pytest.approx(rates[1, (2, 4), 4].max_bps, abs=1)  # rounded down
    assert satellite.min_bps == 2_611_732
    # Half of what 95 % of the satellite has left beyond both rates.
    assert satellite.max_bps == pytest.approx(0.95 * 50e6 / 2, abs=2)


def test_the_only_path_is_the_overflow_path():
    network = Network("ab", [Link("a", "b", 1e6)])
    rates = queue_rates(network, solve(network, [Demand("a", "b", 2e5)]), capacity_share=0.9)
    assert rates == {(0, (0,), 0): QueueRate(200_000, 900_000)}


def test_guarantees_are_cut_where_the_solution_uses_more_than_the_share():
    network = Network("ab", [Link("a", "b", 1e6)])
    solution = solve(network, [Demand("a", "b", 3e5), Demand("a", "b", 6e5)])
    rates = queue_rates(network, solution, capacity_share=0.45)
    assert rates[0, (0,), 0] == QueueRate(150_000, 300_000)
    assert rates[1, (0,), 0] == QueueRate(300_000, 600_000)


def test_a_demand_that_got_nothing_gets_no_queue():
    network = Network("abc", [Link("a", "b", 1e6)])
    solution = solve(network, [Demand("a", "c", 1e5), Demand("a", "b", 1e5), Demand("a", "b", 0.0)])
    assert {demand for demand, _, _ in queue_rates(network, solution)} == {1}


@given(solved(), shares)
def test_guarantees_add_up_to_no_more_than_the_share(problem, share):
    network, solution = problem
    guaranteed: Counter[int] = Counter()
    for (_, _, link), rate in queue_rates(network, solution, capacity_share=share).items():
        guaranteed[link] += rate.min_bps
    for link, total in guaranteed.items():
        assert total <= share * network.links[link].capacity_bps


@given(solved(), shares)
def test_rates_are_integers_that_open_vswitch_takes(problem, share):
    for rate in queue_rates(*problem, capacity_share=share).values():
        assert type(rate.min_bps) is int
        assert type(rate.max_bps) is int
        assert 0 <= rate.min_bps <= rate.max_bps
        assert rate.max_bps >= 1


@given(solved(), shares)
def test_every_path_flow_has_a_queue_on_each_of_its_links_and_fits_into_it(problem, share):
    network, solution = problem
    rates = queue_rates(network, solution, capacity_share=share)
    expected = {
        (demand, flow.path, link): flow.rate_bps
        for demand, flows in enumerate(solution.path_flows)
        for flow in flows
        for link in flow.path
    }
    assert set(rates) == set(expected)
    for key, rate_bps in expected.items():
        assert rates[key].max_bps >= math.floor(rate_bps)
        assert rates[key].min_bps <= rate_bps


@given(solved(), shares, st.sampled_from(MODES))
def test_the_most_that_queues_may_take_fits_the_link(problem, share, mode):
    network, solution = problem
    most: Counter[int] = Counter()
    queues: Counter[int] = Counter()
    rates = queue_rates(network, solution, capacity_share=share, mode=mode)
    for (_, _, link), rate in rates.items():
        most[link] += rate.max_bps
        queues[link] += 1
    for link, total in most.items():
        whole = 1.0 if mode == "work-conserving" else share
        limit = max(whole * network.links[link].capacity_bps, solution.link_flows_bps[link])
        assert total <= limit * (1 + 1e-12) + queues[link]  # at least 1 bit/s for each


@given(solved(), shares)
def test_only_the_path_with_most_room_overflows(problem, share):
    network, solution = problem
    rates = queue_rates(network, solution, capacity_share=share)
    room = [
        max(0.0, share * link.capacity_bps - flow)
        for link, flow in zip(network.links, solution.link_flows_bps, strict=True)
    ]
    over = defaultdict(set)
    for (demand, path, _), rate in rates.items():
        solved_bps = next(f.rate_bps for f in solution.path_flows[demand] if f.path == path)
        if rate.max_bps > max(1, math.floor(solved_bps)):
            over[demand].add(path)
    for demand, paths in over.items():
        assert len(paths) == 1
        widest = max(min(room[link] for link in flow.path) for flow in solution.path_flows[demand])
        assert min(room[link] for link in paths.pop()) == widest


@given(solved(), shares, shares)
def test_a_larger_share_never_lowers_a_guarantee(problem, one, other):
    low, high = sorted((one, other))
    less, more = (queue_rates(*problem, capacity_share=share) for share in (low, high))
    assert all(less[key].min_bps <= more[key].min_bps for key in less)


@pytest.mark.parametrize("share", [0.0, -0.1, 1.01, float("nan")])
def test_a_share_that_is_none_is_refused(share):
    solution = solve(TAC2.network, TAC2.demands)
    with pytest.raises(ValueError, match="capacity_share must be above 0 and at most 1"):
        queue_rates(TAC2.network, solution, capacity_share=share)


def test_a_solution_of_another_network_is_refused():
    solution = solve(TAC2.network, TAC2.demands)
    with pytest.raises(ValueError, match="the solution has 6 links, the network 1"):
        queue_rates(Network("ab", [Link("a", "b", 1e6)]), solution)
