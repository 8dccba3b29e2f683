"""The range arithmetic against sets of bytes."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from captures.coverage import cover

RANGES = st.lists(st.tuples(st.integers(-3, 40), st.integers(0, 12)), max_size=30)


@given(RANGES)
def test_same_as_with_sets(ranges: list[tuple[int, int]]) -> None:
    first = np.array([start for start, _ in ranges], dtype=np.int64)
    length = np.array([size for _, size in ranges], dtype=np.int64)
    found = cover(first, length)
    seen: set[int] = set()
    for index, (start, size) in enumerate(ranges):
        new = {byte for byte in range(start, start + size) if byte >= 0} - seen
        seen |= new
        edge = next(byte for byte in range(100) if byte not in seen)
        assert found.fresh[index] == len(new)
        assert found.edge[index] == edge
    assert found.total == len(seen)
    edge = next(byte for byte in range(100) if byte not in seen)
    holes = sum(byte not in seen and byte + 1 in seen for byte in range(edge, 100))
    assert found.gaps == holes
