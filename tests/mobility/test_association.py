import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mobility import Area, Fixed, Orbit, Path, Straight, distance_m, random_walk
from mobility.association import Association, Reluctance, Selection, associations, positive

# Two masts 1000 m apart on the way of a ship at 10 m/s that passes between them.
MASTS = [Fixed((0.0, 0.0, 0.0)), Fixed((1000.0, 0.0, 0.0))]
SHIP = Straight((-1000.0, 0.0, 0.0), (10.0, 0.0, 0.0))


def test_without_a_reason_a_node_stays_until_it_is_lost():
    assert associations(SHIP, MASTS, 700.0, 300.0) == (
        Association(30.0, 170.0, 0, "lost"),
        Association(170.0, 270.0, 1, "lost"),
    )


def test_with_a_nearer_one_it_changes_half_way():
    found = associations(SHIP, MASTS, 700.0, 300.0, Reluctance())
    assert [(each.access_point, each.ended) for each in found] == [(0, "better"), (1, "lost")]
    assert found[0].end_s == found[1].start_s == pytest.approx(150.0, abs=5e-9)


def test_a_ratio_and_a_dwell_time_delay_the_change():
    # At x the second is nearer by 1.5 when x = 1.5 (1000 - x), so x = 600.
    found = associations(SHIP, MASTS, 700.0, 300.0, Reluctance(ratio=1.5, dwell_s=4.0))
    assert found[0].end_s == pytest.approx(160.0 + 4.0, abs=5e-9)
    # And the last one is lost at 1.5 times the range at which it is found.
    assert found[1] == (found[0].end_s, pytest.approx(300.0), 1, "end")


def test_what_is_better_for_less_than_the_dwell_time_is_left_alone():
    passing = [Fixed((0.0, 0.0, 0.0)), Straight((5000.0, 50.0, 0.0), (-100.0, 0.0, 0.0))]
    ship = Fixed((100.0, 0.0, 0.0))
    # It is nearer than 100 m for √(100² - 50²) · 2 / 100 = 1.73 s.
    assert len(associations(ship, passing, 700.0, 90.0, Reluctance(dwell_s=1.8))) == 1
    assert len(associations(ship, passing, 700.0, 90.0, Reluctance(dwell_s=1.7))) >= 2


def test_flapping_at_the_edge_is_what_the_ratio_prevents():
    bobbing = Orbit((700.0, 0.0, 0.0), 20.0, 5.0)
    flaps = associations(bobbing, MASTS[:1], 700.0, 100.0)
    assert [each.ended for each in flaps].count("lost") >= 3
    assert len(associations(bobbing, MASTS[:1], 700.0, 100.0, Reluctance(ratio=1.05))) == 1


def test_nearness_is_relative_to_the_range():
    # Half way between, the one with the greater range is received better.
    middle = Fixed((500.0, 0.0, 0.0))
    assert associations(middle, MASTS, [600.0, 900.0], 10.0)[0].access_point == 1


def test_a_ship_changes_the_beam_of_a_satellite_once_and_not_back_and_forth():
    # Beams of 200 km radius overlap; a ship runs along where they are equally strong.
    beams = [Fixed((-150e3, 0.0, 0.0)), Fixed((150e3, 0.0, 0.0))]
    zigzag = [(-2e3 + 400.0 * leg + (1500.0 if leg % 2 else 0.0), 0.0, 0.0) for leg in range(12)]
    ship = Path([200.0 * leg for leg in range(12)], zigzag)
    eager = associations(ship, beams, 200e3, 2200.0, Reluctance())
    steady = associations(ship, beams, 200e3, 2200.0, Reluctance(ratio=1.01, dwell_s=10.0))
    assert len(eager) > 3
    assert [each.access_point for each in steady] == [0, 1]


def test_out_of_everything_there_is_nothing():
    assert associations(Fixed((1e6, 0.0, 0.0)), MASTS, 700.0, 100.0) == ()
    assert associations(SHIP, [], [], 100.0) == ()


def test_two_that_are_equally_near_for_ever_change_nothing():
    between = Straight((500.0, -300.0, 0.0), (0.0, 5.0, 0.0))
    assert len(associations(between, MASTS, 700.0, 100.0, Reluctance())) == 1
    circling = Orbit((0.0, 0.0, 0.0), 300.0, 20.0)
    twins = [Fixed((0.0, 0.0, 50.0)), Fixed((0.0, 0.0, -50.0))]
    assert len(associations(circling, twins, 700.0, 100.0, Reluctance())) == 1


@given(st.integers(0, 10_000), st.floats(1.0, 2.0), st.floats(0.0, 10.0))
def test_the_rules_hold_at_every_instant(seed, ratio, dwell_s):
    node = random_walk(
        Area.square(3000.0), speed_mps=(20.0, 40.0), leg_s=(10.0, 30.0), duration_s=200.0, seed=seed
    )
    masts = [Fixed((x, y, 30.0)) for x in (-700.0, 700.0) for y in (-700.0, 700.0)]
    found = associations(node, masts, 900.0, 200.0, Reluctance(ratio, dwell_s))
    for before, after in itertools.pairwise(found):
        assert before.end_s <= after.start_s
        assert before.ended in ("lost", "better")
    for each in found:
        times = np.linspace(each.start_s, each.end_s, 50)[1:-1]
        away = distance_m(node, masts[each.access_point], times)
        assert (away <= 900.0 * ratio + 1e-6).all()
        if each.ended == "better":
            lead = times[times > each.end_s - dwell_s]
            successor = found[found.index(each) + 1].access_point
            nearer = distance_m(node, masts[successor], lead) * ratio
            assert (nearer <= distance_m(node, masts[each.access_point], lead) + 1e-5).all()
        if dwell_s == 0.0:
            nearest = np.min([distance_m(node, mast, times) for mast in masts], axis=0)
            assert (away <= nearest * ratio + 1e-5).all()


def test_positive_parts_of_a_function_are_enclosed_to_a_nanosecond():
    parts = positive(np.sin, 1.0, 0.0, 20.0)
    expected = [(2 * n * math.pi, (2 * n + 1) * math.pi) for n in range(4)]
    expected[-1] = (6 * math.pi, 20.0)
    assert np.array(parts) == pytest.approx(np.array(expected), abs=5e-9)


@pytest.mark.parametrize(("ratio", "dwell"), [(0.9, 0.0), (math.nan, 0.0), (1.0, -1.0)])
def test_a_reluctance_that_cannot_be_is_refused(ratio, dwell):
    with pytest.raises(ValueError, match="must be"):
        Reluctance(ratio, dwell)


@given(
    st.integers(0, 50),
    st.sampled_from([None, Reluctance(), Reluctance(1.2, 2.0), Reluctance(1.5, 0.0)]),
)
def test_step_by_step_the_same_is_used_as_is_known_beforehand(seed, reluctance):
    until_s, step_s = 120.0, 0.05
    node = random_walk(
        Area(-500.0, -500.0, 1500.0, 500.0),
        speed_mps=(5.0, 25.0),
        leg_s=(5.0, 30.0),
        duration_s=until_s,
        seed=seed,
    )
    known = associations(node, MASTS, 600.0, until_s, reluctance)
    selection, differing_s = Selection(), 0.0
    times = np.arange(step_s, until_s, step_s)
    shares = np.stack([distance_m(node, mast, times) / 600.0 for mast in MASTS], axis=1)
    for now_s, here in zip(times.tolist(), shares.tolist(), strict=True):
        selection = selection.after(here, now_s, reluctance)
        used = [each.access_point for each in known if each.start_s <= now_s < each.end_s]
        differing_s += step_s * ([selection.access_point] != (used or [None]))
    # Each change is noticed a step late at most, and so is what it depends on.
    assert differing_s <= 3 * step_s * (2 * len(known) + 1)
