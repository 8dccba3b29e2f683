import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mobility import Area, Fixed, Fleet, Orbit, Path, Straight, random_walk

WALKS = [
    random_walk(
        Area.square(5000.0), speed_mps=(5.0, 15.0), leg_s=(10.0, 30.0), duration_s=300.0, seed=1,
        stream=number, boundary="wrap",
    )
    for number in range(8)
]  # fmt: skip
NODES = [
    *WALKS,
    Fixed((1.0, 2.0, 3.0)),
    Straight((0.0, 0.0, 9.0), (3.0, -2.0, 0.1)),
    Path([10.0, 20.0, 20.0], [(0, 0, 0), (5, 5, 5), (1, 1, 9)]),
]


@given(st.lists(st.floats(0.0, 400.0), max_size=40), st.integers(1, 3000))
def test_a_fleet_is_where_its_nodes_are_to_the_last_bit(times, most_bytes):
    alone = np.array([node.position(times) for node in NODES])
    fleet = Fleet(NODES)
    assert (fleet.positions(times) == alone).all()
    together = np.full_like(alone, np.nan)
    for nodes, positions in fleet.in_chunks(times, most_bytes):
        together[nodes] = positions
    assert (together == alone).all()


def test_what_circles_is_in_the_fleet_as_well():
    nodes = [Orbit((0.0, 0.0, 100.0), 500.0, 25.0), WALKS[0] + Orbit((0.0, 0.0, 9.0), 50.0, 25.0)]
    times = np.linspace(0.0, 300.0, 77)
    assert Fleet(nodes).positions(times) == pytest.approx(
        np.array([node.position(times) for node in nodes])
    )


def test_nobody_is_nowhere():
    assert Fleet([]).positions([0.0, 1.0]).shape == (0, 2, 3)
    assert list(Fleet([]).in_chunks([0.0, 1.0])) == []


def test_memory_is_bounded_by_the_chunk():
    fleet = Fleet([WALKS[n % 8] for n in range(400)])
    times = np.linspace(0.0, 300.0, 5000)  # 48 MB for all
    tracemalloc.start()
    for _ in fleet.in_chunks(times, most_bytes=1 << 20):
        pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 << 20
