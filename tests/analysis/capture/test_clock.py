"""Two clocks from the stamps that both put on the same packets."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.capture.clock import Crossings, lower_hull, relate

START_NS = 1_700_000_000_000_000_000


def exchange(
    rng: np.random.Generator,
    *,
    offset_s: float = 0.0,
    skew: float = 0.0,
    span_s: float = 60.0,
    packets: int = 3000,
    least_s: tuple[float, float] = (0.02, 0.02),
) -> tuple[Crossings, Crossings]:
    """Packets both ways over a path with queues, as two clocks stamp them."""

    def second(time_s: np.ndarray) -> np.ndarray:
        return time_s + offset_s + skew * time_s

    def stamps(time_s: np.ndarray) -> np.ndarray:
        return START_NS + np.round(time_s * 1e9).astype(np.int64)

    found = []
    for there, least in zip((True, False), least_s, strict=True):
        sent = np.sort(rng.uniform(0, span_s, packets))
        arrived = sent + least + rng.exponential(0.01, packets)
        pair = (sent, second(arrived)) if there else (second(sent), arrived)
        found.append(Crossings(*map(stamps, pair)))
    return found[0], found[1]


@pytest.mark.parametrize("offset_s", [0.0, 1e-4, -0.5, 3600.0])
@pytest.mark.parametrize("skew", [0.0, 20e-6, -150e-6])
def test_offset_and_skew_are_found(offset_s: float, skew: float) -> None:
    there, back = exchange(np.random.default_rng(1), offset_s=offset_s, skew=skew)
    found = relate([there], [back], apply=True)
    assert found is not None
    # The shortest packets queued for some microseconds.
    assert found.offset_s == pytest.approx(offset_s, abs=1e-3)
    assert found.lowest_offset_s <= offset_s + 1e-6
    assert found.highest_offset_s >= offset_s - 1e-6
    assert found.skew == pytest.approx(skew, abs=2e-6)
    assert found.skew_known == (skew != 0)
    assert found.consistent
    corrected = found.to_first(there.received_ns)
    assert ((corrected - there.sent_ns) / 1e9).min() == pytest.approx(0.02, abs=1.1e-3)


def test_what_asymmetry_hides_is_within_the_bounds() -> None:
    there, back = exchange(np.random.default_rng(2), offset_s=0.25, least_s=(0.25, 0.01))
    found = relate([there], [back], apply=True)
    assert found is not None
    assert found.offset_s == pytest.approx(0.25 + 0.12, abs=1e-3)  # half the asymmetry
    assert found.lowest_offset_s < 0.25 < found.highest_offset_s
    assert found.uncertainty_s == pytest.approx((0.25 + 0.01) / 2, abs=1e-3)


@pytest.mark.parametrize(("offset_s", "applied"), [(0.0, False), (0.019, False), (0.03, True)])
def test_times_are_left_alone_while_the_clocks_may_be_one(offset_s: float, applied: bool) -> None:
    there, back = exchange(np.random.default_rng(3), offset_s=offset_s)
    found = relate([there], [back], apply=None)
    assert found is not None
    assert found.applied == applied
    assert np.array_equal(found.to_first(back.sent_ns), back.sent_ns) != applied


def test_a_clock_that_is_set_meanwhile_is_noticed() -> None:
    there, back = exchange(np.random.default_rng(4), span_s=4.0)
    step_ns = 500_000_000
    second_half = there.received_ns > START_NS + 2_000_000_000
    there = Crossings(there.sent_ns, there.received_ns - step_ns * second_half)
    found = relate([there], [back], apply=None)
    assert found is not None
    assert not found.consistent
    assert found.applied


def test_one_direction_bounds_one_side() -> None:
    there, _ = exchange(np.random.default_rng(5), offset_s=0.1)
    none = np.zeros(0, dtype=np.int64)
    found = relate([there], [Crossings(none, none)], apply=None)
    assert found is not None
    assert found.lowest_offset_s == -np.inf
    assert found.highest_offset_s == pytest.approx(0.12, abs=1e-3)
    assert relate([Crossings(none, none)], [Crossings(none, none)], apply=None) is None


def test_the_path_with_the_shortest_round_trip_counts() -> None:
    rng = np.random.default_rng(6)
    near = exchange(rng, offset_s=1.0, least_s=(0.001, 0.001))
    far = exchange(rng, offset_s=1.0, least_s=(0.3, 0.1))
    found = relate([far[0], near[0]], [far[1], near[1]], apply=True)
    assert found is not None
    assert found.offset_s == pytest.approx(1.0, abs=1e-4)
    assert found.uncertainty_s < 2e-3


points = st.lists(
    st.tuples(st.integers(-1000, 1000), st.integers(-1000, 1000)), min_size=1, max_size=40
)


@given(points)
def test_the_hull_is_below_all_points_and_convex(given_points: list[tuple[int, int]]) -> None:
    x, y = np.array(sorted(given_points), dtype=np.float64).T
    hull = np.array(lower_hull(x, y))
    assert set(map(tuple, hull.tolist())) <= {(float(a), float(b)) for a, b in given_points}
    for (x0, y0), (x1, y1) in pairwise(hull):
        assert (((x1 - x0) * (y - y0) - (y1 - y0) * (x - x0)) >= 0).all()
