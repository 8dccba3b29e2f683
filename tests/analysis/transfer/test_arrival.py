"""Reordering and waiting, against their definitions followed step by step."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.transfer.arrival import gaps, reordering, waiting
from captures.coverage import cover

pieces = st.lists(
    st.tuples(st.integers(0, 40), st.integers(1, 10), st.integers(0, 2), st.integers(0, 5)),
    max_size=40,
)


def columns(given_pieces: list[tuple[int, int, int, int]]) -> tuple[np.ndarray, ...]:
    table = np.array(given_pieces, dtype=np.int64).reshape(-1, 4)
    position, length, subflow, steps = table.T
    return np.cumsum(steps), position, length, subflow


@given(pieces)
def test_reordering_is_that_of_rfc_4737(given_pieces: list[tuple[int, int, int, int]]) -> None:
    time_ns, position, length, subflow = columns(given_pieces)
    fresh = cover(position, length).fresh
    found = reordering(time_ns, position, fresh, subflow)
    new = [index for index in range(len(position)) if fresh[index] > 0]
    extents, lates, others = [], [], []
    for place, index in enumerate(new):
        # The earliest arrival with a higher number, section 4.2.1.
        above = [j for j in range(place) if position[new[j]] > position[index]]
        assert found.reordered[index] == bool(above)
        if above:
            extents.append(place - above[0])
            lates.append((time_ns[index] - time_ns[new[above[0]]]) / 1e9)
            others.append(subflow[index] != subflow[new[above[0]]])
    assert found.extent.tolist() == extents
    assert found.late_s.tolist() == pytest.approx(lates)
    assert found.other_subflow.tolist() == others


@given(pieces)
def test_bytes_wait_until_all_before_them_are_there(
    given_pieces: list[tuple[int, int, int, int]],
) -> None:
    time_ns, position, length, _ = columns(given_pieces)
    covered = cover(position, length)
    found = waiting(time_ns, position, length, covered.fresh, covered.edge)
    there: set[int] = set()
    ends = []
    blocked_ns = 0
    for index in range(len(position)):
        there |= set(range(position[index], position[index] + length[index]))
        edge = next(byte for byte in range(200) if byte not in there)
        ends.append(edge)
        assert found.waiting_bytes[index] == len(there) - edge
        if index + 1 < len(position) and len(there) > edge:
            blocked_ns += int(time_ns[index + 1] - time_ns[index])
    assert found.blocked_s == pytest.approx(blocked_ns / 1e9)
    new = np.flatnonzero(covered.fresh > 0)
    for index, wait_s in zip(new.tolist(), found.wait_s.tolist(), strict=True):
        last = position[index] + length[index]
        done = next((j for j in range(len(ends)) if ends[j] >= last), None)
        if done is None:
            assert np.isnan(wait_s)
        else:
            assert wait_s == pytest.approx((time_ns[done] - time_ns[index]) / 1e9)


def test_gaps_lie_between_start_progress_and_end() -> None:
    progress = np.array([10, 20, 50], dtype=np.int64)
    start, length = gaps(progress, 5, 60)
    assert start.tolist() == [5, 10, 20, 50]
    assert length.tolist() == [5, 10, 30, 10]
    start, length = gaps(progress[:0], 5, 5)
    assert length.tolist() == [0]
