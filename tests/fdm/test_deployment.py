"""Few paths, few changes, nothing promised twice on the way."""

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fdm
from fdm import Demand, Kleinrock, Link, Network, QueueRate, limit_paths, queue_rates, solve
from fdm.queues import MODES, QueueKey, changes, judge_deployed, queue_ids, redeploy

DATA = Path(__file__).parent / "data"
TAC2 = fdm.load(DATA / "tac2.json")
DELAY = Kleinrock()


@pytest.mark.parametrize("name", ["tac10-90", "tac20-50", "tac20-90", "nsfnet-90"])
@pytest.mark.parametrize("most", [1, 2, 3])
def test_few_paths_are_nearly_as_good(name, most):
    instance = fdm.load(DATA / f"{name}.json")
    solution = solve(instance.network, instance.demands)
    few = limit_paths(instance.network, instance.demands, solution, DELAY, most=most)
    assert max(len(flows) for flows in few.path_flows) <= most
    for link, flow in zip(instance.network.links, few.link_flows_bps, strict=True):
        assert flow < link.capacity_bps or flow == 0.0
    if most > 1:
        assert few.feasible
        assert few.admitted_bps == pytest.approx([d.rate_bps for d in instance.demands])
        assert instance.optimum_gamma_T <= few.gamma_T * (1 + 1e-9)
        assert few.gamma_T <= instance.optimum_gamma_T * (1.05 if most == 2 else 1.01)
        assert few.lower_bound <= instance.optimum_gamma_T
    elif not few.feasible:
        assert sum(few.admitted_bps) < sum(d.rate_bps for d in instance.demands)


def test_an_answer_with_few_paths_stays_as_it_is():
    solution = solve(TAC2.network, TAC2.demands)
    assert limit_paths(TAC2.network, TAC2.demands, solution, DELAY) is solution
    with pytest.raises(ValueError, match="most must be 1 or more"):
        limit_paths(TAC2.network, TAC2.demands, solution, DELAY, most=0)


@pytest.mark.parametrize("mode", MODES)
def test_modes_differ_in_what_a_queue_may_take_beyond_its_guarantee(mode):
    solution = solve(TAC2.network, TAC2.demands)
    rates = queue_rates(TAC2.network, solution, mode=mode)
    assert rates[0, (1, 5), 5].min_bps == 388_267
    drone, satellite = rates[0, (1, 5), 5].max_bps, rates[0, (0, 4), 4].max_bps
    assert (drone == 388_267) == (mode != "work-conserving")
    assert (satellite == 2_611_732) == (mode == "strict")
    if mode == "work-conserving":
        assert drone == pytest.approx(1e6 / 2, abs=2)
    with pytest.raises(ValueError, match="mode must be one of"):
        queue_rates(TAC2.network, solution, mode="loose")


@given(
    st.dictionaries(st.integers(0, 20), st.integers(1, 40), max_size=10),
    st.sets(st.integers(0, 20)),
)
def test_queues_keep_their_numbers(numbers, wanted):
    deployed = {key: number for number, key in {n: key for key, n in numbers.items()}.items()}
    ids = queue_ids(deployed, wanted)
    assert set(ids) == wanted
    assert len(set(ids.values())) == len(ids)
    for key, number in ids.items():
        assert 1 <= number < 61440
        assert number == deployed[key] if key in deployed else number not in deployed.values()


def test_there_are_not_more_numbers_than_the_switch_takes():
    deployed = {"old": 61439, "gone": 61438}
    assert queue_ids(deployed, ["old", "new"], first=61438) == {"old": 61439, "new": 61438}
    with pytest.raises(ValueError, match="at most 61439 queues"):
        queue_ids(deployed, ["old", "new", "newer"], first=61438)


rates_of_queues = st.dictionaries(
    st.tuples(st.integers(0, 3), st.just((0,)), st.integers(0, 2)),
    st.builds(
        lambda low, more: QueueRate(low, low + more + 1), st.integers(0, 100), st.integers(0, 9)
    ),
)


@given(rates_of_queues, rates_of_queues, st.sampled_from([0.0, 0.05, 0.5]))
def test_guarantees_never_exceed_both_states_on_the_way(deployed, wanted, tolerance):
    def totals(state):
        total: Counter[int] = Counter()
        for (_, _, link), rate in state.items():
            total[link] += rate.min_bps
        return total

    before, after = totals(deployed), totals(wanted)
    state = dict(deployed)
    for key, rate in changes(deployed, wanted, tolerance=tolerance):
        if rate is None:
            del state[key]
        else:
            state[key] = rate
        for link, total in totals(state).items():
            assert total <= max(before[link], after[link])
    assert state.keys() == wanted.keys()
    if tolerance == 0.0:
        assert state == wanted


def test_small_changes_are_left_alone():
    key, other = (0, (0,), 0), (1, (0,), 0)
    deployed = {key: QueueRate(100, 200), other: QueueRate(100, 200)}
    assert changes(deployed, {key: QueueRate(104, 200), other: QueueRate(96, 200)}) == ()
    moved = changes(deployed, {key: QueueRate(120, 200), other: QueueRate(96, 200)})
    assert [change.key for change in moved] == [other, key]


def test_what_is_deployed_is_judged_without_solving():
    solution = solve(TAC2.network, TAC2.demands)
    same = judge_deployed(TAC2.network, TAC2.demands, solution, DELAY)
    assert same.fits
    assert same.relative_gap <= 1e-9
    assert not redeploy(same)

    def changed(link: int, factor: float) -> Network:
        links = list(TAC2.network.links)
        links[link] = links[link]._replace(capacity_bps=links[link].capacity_bps * factor)
        return Network(TAC2.network.nodes, links)

    little = judge_deployed(changed(5, 0.995), TAC2.demands, solution, DELAY)
    assert little.fits
    assert 0.0 < little.relative_gap < 0.01
    assert not redeploy(little)
    assert redeploy(little, epsilon=0.0)
    assert not redeploy(little, epsilon=0.0, since_s=1.0, dwell_s=5.0)
    for network in (changed(5, 0.5), changed(5, 0.0), Network(TAC2.network.nodes, [])):
        gone = judge_deployed(network, TAC2.demands, solution, DELAY)
        assert not gone.fits
        assert redeploy(gone, since_s=0.0, dwell_s=5.0)
    assert not judge_deployed(TAC2.network, TAC2.demands[:1], solution, DELAY).fits


def random_capacities(network: Network, count: int, seed: int) -> Iterator[Network]:
    """Networks in a row in which one link at a time gets 80 to 120 % of what it has at first."""
    numbers = random.Random(seed)
    links = list(network.links)
    for _ in range(count):
        which = numbers.randrange(len(links))
        first_bps = network.links[which].capacity_bps
        links[which] = links[which]._replace(capacity_bps=first_bps * numbers.uniform(0.8, 1.2))
        yield Network(network.nodes, links)


@pytest.mark.parametrize(
    ("epsilon", "dwell", "most_changes", "most_loss"),
    [(0.0, 0, 299, 1e-9), (1e-3, 0, 60, 1e-3), (1e-2, 0, 20, 1e-2), (0.0, 25, 12, 0.1)],
)
def test_hysteresis_saves_most_of_299_changes_at_little_loss(
    epsilon, dwell, most_changes, most_loss
):
    instance = fdm.load(DATA / "tac20-50.json")
    deployed, changed, since, worst = solve(instance.network, instance.demands), 0, 0, 0.0
    for network in random_capacities(instance.network, 299, seed=1):
        since += 1
        best = solve(network, instance.demands, start=deployed)
        verdict = judge_deployed(network, instance.demands, deployed, DELAY)
        if redeploy(verdict, epsilon=epsilon, since_s=since, dwell_s=dwell):
            deployed, changed, since = best, changed + 1, 0
        now = DELAY.total(network, deployed.link_flows_bps)  # infinite if it does not fit
        worst = max(worst, now / best.gamma_T - 1.0)
    assert 0 < changed <= most_changes
    assert changed == most_changes or epsilon > 0.0 or dwell > 0
    assert worst <= most_loss


def test_from_answer_to_answer_nothing_is_promised_twice_and_queues_keep_their_numbers():
    instance = fdm.load(DATA / "tac20-90.json")
    solution = solve(instance.network, instance.demands)
    state: dict[QueueKey, QueueRate] = {}
    numbers: dict[int, dict[QueueKey, int]] = {}
    for network in random_capacities(instance.network, 40, seed=2):
        solution = solve(network, instance.demands, start=solution)
        few = limit_paths(network, instance.demands, solution, DELAY, most=3)
        wanted = queue_rates(network, few, capacity_share=0.95)
        room = {link: 0.95 * one.capacity_bps for link, one in enumerate(network.links)}
        promised = Counter(dict.fromkeys(room, 0))
        for key, rate in state.items():
            promised[key[2]] += rate.min_bps
        before = Counter(promised)
        for key, rate in changes(state, wanted):
            promised[key[2]] += (rate.min_bps if rate else 0) - (
                state[key].min_bps if key in state else 0
            )
            # A link that has just become narrower is over its share until its queues are lowered.
            assert promised[key[2]] <= max(room[key[2]], before[key[2]])
            if rate is None:
                del state[key]
            else:
                state[key] = rate
        assert state.keys() == wanted.keys()
        for link in room:
            there = [key for key in state if key[2] == link]
            ids = queue_ids(numbers.get(link, {}), there)
            kept = numbers.get(link, {}).keys() & ids.keys()
            assert all(ids[key] == numbers[link][key] for key in kept)
            assert len(set(ids.values())) == len(there)
            numbers[link] = ids


def test_demands_that_grew_are_judged_at_their_new_rates():
    network = Network("ab", [Link("a", "b", 1e6)])
    deployed = solve(network, [Demand("a", "b", 6e5)])
    assert judge_deployed(network, [Demand("a", "b", 9e5)], deployed, DELAY).fits
    assert not judge_deployed(network, [Demand("a", "b", 1e6)], deployed, DELAY).fits
