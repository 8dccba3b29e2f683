"""Mappings, options and numbers of any kind against the same done byte by byte."""

from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from captures.coverage import cover, fill, union_bytes
from captures.mapping import ENDLESS, Mappings, place, relative_numbers
from captures.options import decode
from captures.streams import Half, unwrap

SIZES = st.integers(1, 12)
# Where a mapping begins, how long it is (0: infinite), how far away its data are, and with which
# packet it comes.
ANNOUNCED = st.lists(
    st.tuples(st.integers(1, 40), st.integers(0, 15), st.sampled_from([0, 100, 200])), max_size=8
)


def half(positions: list[int], sizes: list[int]) -> Half:
    return Half(
        rows=np.arange(len(positions)),
        position=np.array(positions, dtype=np.int64),
        payload_bytes=np.array(sizes, dtype=np.int64),
        keep_alive=np.zeros(len(positions), dtype=np.bool_),
        initial=0,
        start_known=True,
        end=None,
        reset=False,
    )


@given(st.lists(st.tuples(st.integers(1, 40), SIZES), max_size=10), ANNOUNCED)
def test_placing_is_the_same_byte_by_byte(
    packets: list[tuple[int, int]], announced: list[tuple[int, int, int]]
) -> None:
    """Mappings in packets of their own, so that the one announced first counts everywhere."""
    # An infinite mapping is the last one, as in a connection.
    finite = [each for each in announced if each[1]]
    mappings = finite + [each for each in announced if not each[1]][:1]
    sizes = [0] * len(mappings) + [size for _, size in packets]
    positions = [1] * len(mappings) + [position for position, _ in packets]
    known = Mappings(
        packet=np.arange(len(mappings)),
        start=np.array([start for start, _, _ in mappings], dtype=np.int64),
        data=np.array([start + shift for start, _, shift in mappings], dtype=np.int64),
        length=np.array([size or ENDLESS for _, size, _ in mappings], dtype=np.int64),
        fin=None,
    )
    owner: dict[int, int] = {}
    for start, size, shift in mappings:
        later = [other for other, length, _ in mappings if length and other > start]
        stop = start + size if size else min(later, default=1000)
        for byte in range(start, stop):
            owner.setdefault(byte, byte + shift)
    expected = [
        (row, owner[byte])
        for row, (position, size) in enumerate(zip(positions, sizes, strict=True))
        for byte in range(position, position + size)
        if byte in owner
    ]
    found = place(half(positions, sizes), known, goes_on=False)
    spread = [
        (row, position + offset)
        for row, position, length in zip(
            found.packet.tolist(), found.position.tolist(), found.length.tolist(), strict=True
        )
        for offset in range(length)
    ]
    assert spread == expected
    assert found.unmapped_bytes == sum(sizes) - len(expected)


@given(
    st.integers(0, (1 << 64) - 1),
    st.lists(st.tuples(st.integers(-(1 << 30), 1 << 31), st.booleans()), min_size=1, max_size=20),
)
def test_numbers_of_four_and_eight_bytes(initial: int, steps: list[tuple[int, bool]]) -> None:
    """Positions that move by less than 2**31 are found again, also from 4 bytes."""
    positions = np.cumsum([min(step, (1 << 31) - 1) for step, _ in steps])
    long = np.array([each for _, each in steps])
    wire = [
        (initial + 1 + int(position)) % (1 << (64 if wide else 32))
        for position, wide in zip(positions, long, strict=True)
    ]
    found = relative_numbers(np.array(wire, dtype=np.uint64), long, initial)
    assert found.tolist() == positions.tolist()


@given(st.integers(0, 1 << 40), st.lists(st.integers(-(1 << 31), (1 << 31) - 1), max_size=20))
def test_unwrapping_is_the_inverse_of_wrapping(start: int, steps: list[int]) -> None:
    series = start + np.cumsum(np.array([0, *steps], dtype=np.int64))
    assert unwrap(series & 0xFFFFFFFF, start).tolist() == series.tolist()


@given(st.binary(max_size=40), st.sampled_from([None, 0, 1, 3, 4, 5, 6, 7, 8]))
def test_any_bytes_are_an_option_or_none(content: bytes, subtype: int | None) -> None:
    if subtype is not None and len(content) > 2:
        content = bytes([30, len(content), subtype << 4 | content[2] & 15]) + content[3:]
    found = decode(content)
    assert found is None or asdict(found)


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 12)), max_size=20))
def test_ranges_together(ranges: list[tuple[int, int]]) -> None:
    first = np.array([start for start, _ in ranges], dtype=np.int64)
    length = np.array([size for _, size in ranges], dtype=np.int64)
    everything = {byte for start, size in ranges for byte in range(start, start + size)}
    assert union_bytes(first, length) == len(everything) == cover(first, length).total


def test_the_compiled_loop_is_the_plain_one() -> None:
    numba = pytest.importorskip("numba")
    source = np.random.default_rng(3)
    compiled = numba.njit(fill)
    for _ in range(50):
        first, length = source.integers(-5, 500, 200), source.integers(0, 40, 200)
        results = []
        for loop in (fill, compiled):
            fresh, edges = np.empty_like(first), np.empty_like(first)
            total, gaps = loop(first, length, fresh, edges)
            results.append((fresh.tolist(), edges.tolist(), int(total), int(gaps)))
        assert results[0] == results[1]
