"""Round trips from acknowledgments and from timestamps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.transfer.roundtrip import from_acknowledgments, from_timestamps


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def test_the_last_data_that_an_acknowledgment_covers_is_measured() -> None:
    found = from_acknowledgments(
        ints(0, 10, 20), ints(0, 100, 200), ints(100, 200, 300), np.zeros(3, bool),
        ints(50, 90), ints(200, 300),
    )  # fmt: skip
    assert found.time_ns.tolist() == [50, 90]
    assert (found.rtt_s * 1e9).tolist() == pytest.approx([40, 70])


def test_data_sent_twice_and_what_waited_for_it_give_no_sample() -> None:
    """Karn: the acknowledgment of 300 waited for the second copy of 0 to 100."""
    found = from_acknowledgments(
        ints(0, 10, 20, 500, 600), ints(0, 100, 200, 0, 300), ints(100, 200, 300, 100, 400),
        np.array([False, False, False, True, False]),
        ints(550, 650), ints(300, 400),
    )  # fmt: skip
    assert found.time_ns.tolist() == [650]
    assert (found.rtt_s * 1e9).tolist() == pytest.approx([50])


@given(
    st.lists(st.tuples(st.integers(1, 50), st.integers(1, 30)), min_size=1, max_size=30),
    st.lists(st.tuples(st.integers(1, 50), st.integers(0, 900)), max_size=30),
    st.sets(st.integers(0, 29)),
)
def test_samples_are_those_of_the_definition(
    sends: list[tuple[int, int]], acks: list[tuple[int, int]], repeated_at: set[int]
) -> None:
    sent_ns = np.cumsum([step for step, _ in sends])
    end = np.cumsum([size for _, size in sends])
    start = end - np.array([size for _, size in sends])
    repeated = np.array([index in repeated_at for index in range(len(sends))])
    answered_ns = np.cumsum(np.array([step for step, _ in acks], dtype=np.int64))
    acknowledged = np.array([number for _, number in acks], dtype=np.int64)
    found = from_acknowledgments(sent_ns, start, end, repeated, answered_ns, acknowledged)
    expected = []
    edge = np.iinfo(np.int64).min
    for at, number in zip(answered_ns.tolist(), acknowledged.tolist(), strict=True):
        if number <= edge:
            continue
        again = [
            i for i in range(len(sends)) if repeated[i] and start[i] < number and end[i] > edge
        ]
        covered = [i for i in range(len(sends)) if not repeated[i] and edge < end[i] <= number]
        if covered and not again and at >= sent_ns[covered[-1]]:
            expected.append((at, (at - sent_ns[covered[-1]]) / 1e9))
        edge = number
    assert found.time_ns.tolist() == [at for at, _ in expected]
    assert found.rtt_s.tolist() == pytest.approx([rtt for _, rtt in expected])


def test_a_timestamp_is_measured_once_from_its_first_packet_to_its_first_echo() -> None:
    found = from_timestamps(
        ints(0, 1, 5, 9), ints(7, 7, 8, -1), ints(3, 20, 21, 22), ints(6, 7, 7, 8)
    )
    assert found.time_ns.tolist() == [20, 22]
    assert (found.rtt_s * 1e9).tolist() == pytest.approx([20, 17])
