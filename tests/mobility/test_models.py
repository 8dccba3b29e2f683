import hashlib
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mobility import (
    Area,
    Fixed,
    Orbit,
    Path,
    Straight,
    gauss_markov,
    random_walk,
    random_waypoint,
    reference_point_group,
    station_keeping,
)
from mobility.draws import Draws

AREA = Area(-1000.0, -500.0, 3000.0, 700.0)
seeds = st.integers(0, 2**63)


def walk(seed, boundary="reflect", **more):
    given = {"speed_mps": (5.0, 15.0), "leg_s": (10.0, 60.0), "duration_s": 600.0} | more
    return random_walk(AREA, seed=seed, boundary=boundary, altitude_m=30.0, **given)


def drift(seed, **more):
    given = {
        "mean_velocity_mps": (3.0, 1.0),
        "deviation_mps": 4.0,
        "memory": 0.9,
        "step_s": 5.0,
        "top_speed_mps": 12.0,
        "duration_s": 600.0,
    }
    return gauss_markov(AREA, seed=seed, **(given | more))


def trips(seed, **more):
    given = {"speed_mps": (5.0, 15.0), "pause_s": (0.0, 20.0), "duration_s": 600.0}
    return random_waypoint(AREA, seed=seed, **(given | more))


def inside(path):
    east, north = path.positions_m[:, 0], path.positions_m[:, 1]
    return all(AREA.contains(x, y) for x, y in zip(east, north, strict=True))


@given(seeds)
def test_a_walk_keeps_to_its_area_and_its_speed(seed):
    path = walk(seed)
    assert inside(path)
    assert path.times_s[-1] == 600.0
    assert (path.positions_m[:, 2] == 30.0).all()
    moving = np.linalg.norm(path.velocity(path.times_s[:-1]), axis=1)
    assert (moving > 4.99).all() and (moving < 15.01).all()


@given(seeds)
def test_a_walk_that_wraps_leaves_on_one_side_and_enters_on_the_other(seed):
    path = walk(seed, "wrap", speed_mps=(40.0, 40.0))
    assert inside(path)
    jumps = np.flatnonzero(np.diff(path.times_s) == 0.0)
    assert jumps.size
    leap = np.abs(np.diff(path.positions_m, axis=0)[jumps])
    assert all(row[0] in (0.0, 4000.0) and row[1] in (0.0, 1200.0) for row in leap)


@given(seeds)
def test_a_drift_keeps_to_its_area_and_its_limit(seed):
    path = drift(seed)
    assert inside(path)
    assert path.top_speed_mps(600.0) <= 12.0 * (1 + 1e-9)


@given(seeds)
def test_trips_keep_to_their_area_and_their_speed(seed):
    path = trips(seed, warm_up_s=100.0)
    assert inside(path)
    assert path.times_s[0] == -100.0 and path.times_s[-1] == 600.0
    moving = np.linalg.norm(path.velocity(path.times_s[:-1]), axis=1)
    assert ((moving == 0.0) | ((moving > 4.99) & (moving < 15.01))).all()


def test_a_drift_remembers_as_much_as_it_says():
    # Over a long run in an area it never leaves: mean, spread and correlation of the velocity.
    path = gauss_markov(
        Area.square(1e9),
        mean_velocity_mps=(5.0, 0.0),
        deviation_mps=2.0,
        memory=0.75,
        step_s=1.0,
        top_speed_mps=1000.0,
        duration_s=40_000.0,
        seed=5,
    )
    speed = path.velocity(path.times_s[:-1])
    assert speed[:, 0].mean() == pytest.approx(5.0, abs=0.1)
    assert speed[:, :2].std(axis=0) == pytest.approx([2.0, 2.0], rel=0.03)
    for axis in (0, 1):
        assert np.corrcoef(speed[1:, axis], speed[:-1, axis])[0, 1] == pytest.approx(0.75, abs=0.02)


def test_the_ends_of_memory_are_a_line_and_noise():
    line = drift(1, memory=1.0, duration_s=60.0, start_m=(500.0, 0.0))
    assert np.ptp(line.velocity(np.arange(0.0, 60.0))[:, 0]) == pytest.approx(0.0, abs=1e-9)
    steady = drift(1, memory=0.0, deviation_mps=0.0, duration_s=60.0, start_m=(500.0, 0.0))
    assert steady.velocity(30.0) == pytest.approx(np.array([[3.0, 1.0, 0.0]]))


def test_trips_of_a_lifetime_gather_in_the_middle():
    # The stationary density of random waypoint is greatest in the centre (Navidi and Camp).
    def central_share(warm_up_s):
        box = Area.square(1000.0)
        starts = np.array(
            [
                random_waypoint(
                    box, speed_mps=(10.0, 10.0), duration_s=1.0, seed=1, stream=n,
                    warm_up_s=warm_up_s,
                ).position(0.0)[0]
                for n in range(600)
            ]
        )  # fmt: skip
        return np.mean(np.abs(starts[:, :2]).max(axis=1) < 250.0)

    assert central_share(0.0) == pytest.approx(0.25, abs=0.05)
    assert central_share(500.0) > 0.36


def test_a_group_keeps_together_and_to_its_stations():
    centre = Path([0.0, 300.0, 600.0], [(0, 0, 0), (2400, 0, 0), (2400, 2400, 0)])
    stations = [(0.0, 0.0, 0.0), (0.0, 1500.0, 0.0), (-1500.0, 0.0, 300.0)]
    ships = reference_point_group(
        centre, stations, within_m=200.0, speed_mps=(0.5, 2.0), duration_s=600.0, seed=4,
        top_speed_mps=10.0,
    )  # fmt: skip
    times = np.arange(0.0, 601.0)
    for ship, station in zip(ships, stations, strict=True):
        off = ship.position(times) - centre.position(times) - station
        assert np.linalg.norm(off, axis=1).max() <= 200.0 + 1e-9
        assert np.ptp(off[:, 0]) > 100.0
        assert ship.top_speed_mps(600.0) <= 10.0 + 1e-9
    assert len({ship.position(100.0).tobytes() for ship in ships}) == 3


def test_a_group_that_outruns_its_members_is_refused():
    with pytest.raises(ValueError, match=r"may need 12 m/s .* more than its top speed of 11 m/s"):
        reference_point_group(
            Straight((0.0, 0.0, 0.0), (10.0, 0.0, 0.0)), [(0.0, 0.0, 0.0)], within_m=1.0,
            speed_mps=(1.0, 2.0), duration_s=9.0, seed=0, top_speed_mps=11.0,
        )  # fmt: skip


def test_a_station_kept_exactly_moves_with_its_guide():
    guide = Orbit((0.0, 0.0, 500.0), 1000.0, 30.0)
    wing = station_keeping(
        guide, (50.0, 0.0, 0.0), within_m=0.0, speed_mps=(1.0, 1.0), duration_s=9.0, seed=0
    )
    assert wing.position(7.0) - guide.position(7.0) == pytest.approx(np.array([[50.0, 0.0, 0.0]]))


def digest(path):
    return hashlib.sha256(path.times_s.tobytes() + path.positions_m.tobytes()).hexdigest()[:16]


STORED = [
    (walk, {}, "87234fb3538aab9f"),
    (walk, {"boundary": "wrap"}, "0672eb19f3d74f03"),
    (trips, {"warm_up_s": 60.0}, "d192ac8792864506"),
    (drift, {}, "b243d9d202829577"),
]


@pytest.mark.parametrize(("model", "more", "stored"), STORED)
def test_a_seed_gives_the_same_bits_on_every_machine(model, more, stored):
    assert digest(model(1234, **more)) == stored


def test_seeds_and_streams_differ():
    assert walk(1) == walk(1)
    assert len({digest(path) for path in (walk(1), walk(2), walk(1, stream=1))}) == 3


def test_draws_follow_the_raw_stream_of_the_generator():
    # The raw bits of PCG64 and its seeding are what NumPy promises not to change (NEP 19).
    raw = np.random.PCG64(np.random.SeedSequence(entropy=3, spawn_key=(1,))).random_raw(2)
    draws = Draws(3, 1)
    assert [draws.unit(), draws.unit()] == [int(word >> 11) / 2**53 for word in raw.tolist()]


def test_normal_deviates_are_normal():
    draws = Draws(11)
    values = np.sort([draws.normal() for _ in range(20_000)])
    # Kolmogorov-Smirnov distance against the distribution itself.
    from statistics import NormalDist

    expected = np.array([NormalDist().cdf(value) for value in values])
    assert np.abs(expected - (np.arange(values.size) + 0.5) / values.size).max() < 0.012


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Area(0.0, 0.0, 0.0, 1.0), "an area must have its west edge west of its east edge"),
        (lambda: Area(0.0, 0.0, np.inf, 1.0), "an area must"),
        (lambda: walk(0, speed_mps=(3.0, 2.0)), "speed_mps must be a least value, 0 or more"),
        (lambda: walk(0, leg_s=(0.0, 2.0)), "leg_s must be a least value, above 0"),
        (lambda: walk(0, duration_s=0.0), "duration_s must be above 0, not 0"),
        (lambda: walk(0, start_m=(9e9, 0.0)), "start_m must be in the area"),
        (lambda: walk(0, boundary="bounce"), "boundary must be 'reflect' or 'wrap', not 'bounce'"),
        (lambda: walk(-1), "a seed must be a whole number, 0 or more"),
        (lambda: walk(0, leg_s=(1e-6, 1e-6)), "about 600000015 waypoints would be needed"),
        (lambda: trips(0, speed_mps=(0.0, 2.0)), "speed_mps must be a least value, above 0"),
        (lambda: trips(0, warm_up_s=-1.0), "warm_up_s must be 0 or more"),
        (lambda: drift(0, memory=1.1), "memory must be from 0 to 1"),
        (lambda: drift(0, deviation_mps=np.nan), "deviation_mps must be 0 or more"),
        (lambda: drift(0, step_s=0.0), "step_s must be above 0"),
        (
            lambda: station_keeping(
                Fixed((0.0, 0.0, 0.0)), (0.0, 0.0, 0.0), within_m=-1.0, speed_mps=(1.0, 1.0),
                duration_s=1.0, seed=0,
            ),
            "within_m must be 0 or more",
        ),
    ],
)  # fmt: skip
def test_models_that_cannot_be_are_refused_in_one_sentence(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_importing_mobility_brings_nothing_but_numpy():
    # It is imported inside the virtual machine, where imports take long.
    code = (
        "import sys, numpy; before = set(sys.modules); import mobility;"
        "print(sorted({name.partition('.')[0] for name in set(sys.modules) - before}"
        " - set(sys.stdlib_module_names)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['mobility', 'numpy']\n"
