"""Rates over time and fairness."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.transfer.rates import edges_s, jain_over_time, rates_bps, step_s


@given(st.floats(1e-2, 1e6), st.integers(10, 500))
def test_steps_are_round_and_not_too_many(duration_s: float, most: int) -> None:
    step = step_s(duration_s, most)
    assert duration_s / step <= most
    mantissa = float(f"{step:e}".split("e")[0])
    assert mantissa in (1, 2, 5)


@given(st.lists(st.tuples(st.floats(0, 50), st.integers(0, 1500)), min_size=1, max_size=60))
def test_no_byte_is_lost_between_steps(seen: list[tuple[float, int]]) -> None:
    at = np.array([moment for moment, _ in seen])
    sizes = np.array([size for _, size in seen], dtype=np.int64)
    edges = edges_s(float(at.min()), float(at.max()), 0.5)
    rates = rates_bps(at, sizes, edges)
    assert (rates * np.diff(edges)).sum() / 8 == pytest.approx(sizes.sum())


def test_fairness_is_of_those_that_take_part() -> None:
    rates = np.array([[1.0, 3.0, 0.0, 2.0], [1.0, 1.0, 0.0, 5.0]])
    active = np.array([[True, True, True, True], [True, True, True, False]])
    found = jain_over_time(rates, active)
    assert found[:2].tolist() == pytest.approx([1.0, 16 / 20])
    assert np.isnan(found[2:]).all()  # nothing moved; only one took part
