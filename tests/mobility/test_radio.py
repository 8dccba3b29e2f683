import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mobility import Fixed, Orbit, Path, Straight, distance_m
from mobility.radio import (
    WIFI_20MHZ,
    FreeSpace,
    LogDistance,
    Radio,
    TwoRay,
    distance_ratio,
    horizon_m,
    shadowing_db,
)

MODELS = [
    FreeSpace(2.437e9),
    TwoRay(2.437e9, 20.0, 300.0),
    TwoRay(300e6, 5.0, 5.0),
    LogDistance(2.437e9, 2.7, 1.0),
    LogDistance(2.437e9, 3.2, 100.0, shadowing_db=-6.5),
]


def test_free_space_of_a_kilometre_at_a_gigahertz():
    # ITU-R P.525: 32.4 + 20 log f/MHz + 20 log d/km.
    assert FreeSpace(1e9).loss_db(1000.0) == pytest.approx(32.45 + 60.0, abs=0.01)


def test_two_rays_lose_forty_db_a_decade_beyond_their_crossover():
    model = TwoRay(300e6, 10.0, 20.0)
    beyond = model.crossover_m * 2.0
    near, far = model.loss_db([beyond, 10.0 * beyond])
    assert far - near == pytest.approx(40.0)
    assert near == pytest.approx(40.0 * math.log10(beyond) - 20.0 * math.log10(200.0))
    assert model.loss_db(model.crossover_m * 0.5) == FreeSpace(300e6).loss_db(
        model.crossover_m * 0.5
    )


@pytest.mark.parametrize("model", MODELS)
def test_loss_grows_without_a_jump_and_inverts(model):
    distances = np.geomspace(10.0, 1e6, 2000)
    losses = model.loss_db(distances)
    steps = np.diff(losses)
    assert (steps > 0.0).all() and steps.max() < 0.3
    back = [model.distance_m(loss) for loss in losses]
    assert back == pytest.approx(distances)


def test_log_distance_with_two_is_free_space():
    model = LogDistance(5e9, 2.0, 10.0)
    assert model.loss_db([50.0, 5000.0]) == pytest.approx(FreeSpace(5e9).loss_db([50.0, 5000.0]))


def test_shadowing_is_of_a_link_and_the_same_everywhere():
    values = np.array([shadowing_db(8.0, 1, a, b) for a in range(30) for b in range(30)])
    assert values.mean() == pytest.approx(0.0, abs=0.8)
    assert values.std() == pytest.approx(8.0, rel=0.1)
    assert shadowing_db(8.0, 1, 2, 3) == values[2 * 30 + 3]


def test_a_mast_and_an_aircraft_see_over_the_horizon():
    # The rule of thumb of mariners: 4.12 km times the root of the height in metres, for each.
    assert horizon_m(20.0, 0.0) == pytest.approx(4120.0 * math.sqrt(20.0), rel=2e-3)
    ground = 4120.0 * (math.sqrt(20.0) + math.sqrt(3000.0))
    assert horizon_m(20.0, 3000.0) == pytest.approx(math.hypot(ground, 2980.0), rel=2e-3)
    assert horizon_m(20.0, 3000.0) == horizon_m(3000.0, 20.0)


def test_a_ratio_of_distances_is_a_difference_of_loss():
    assert distance_ratio(6.0) == pytest.approx(10 ** (6 / 20))
    model = LogDistance(1e9, 3.5)
    assert model.loss_db(100.0 * distance_ratio(3.0, 3.5)) - model.loss_db(100.0) == pytest.approx(
        3.0
    )


RADIO = Radio(20.0, FreeSpace(2.437e9))


def test_the_ranges_of_a_radio_are_where_its_steps_are():
    ranges = RADIO.ranges_m()
    assert ranges == sorted(ranges, reverse=True)
    for (least_dbm, _), range_m in zip(WIFI_20MHZ, ranges, strict=True):
        assert RADIO.received_dbm(range_m) == pytest.approx(least_dbm)
    # 100 mW at 2.4 GHz and -82 dBm: 102 dB of free space.
    assert RADIO.range_m == pytest.approx(1233.0, rel=0.01)


def test_nothing_is_received_beyond_the_horizon():
    low = Radio(60.0, FreeSpace(2.437e9), limit_m=horizon_m(5.0, 5.0))
    assert low.range_m == horizon_m(5.0, 5.0) < 20_000.0
    assert low.received_dbm([10_000.0, 20_000.0])[1] == -math.inf


motions = st.sampled_from(
    [
        Straight((-2000.0, 150.0, 0.0), (20.0, 0.0, 0.0)),
        Path([0.0, 50.0, 90.0, 91.0], [(0, 0, 0), (900, 900, 0), (-50, 0, 0), (5000, 0, 0)]),
        Orbit((300.0, 0.0, 200.0), 400.0, 40.0),
        Fixed((100.0, 0.0, 0.0)),
        Fixed((9e5, 0.0, 0.0)),
    ]
)


@given(motions, st.floats(10.0, 300.0))
def test_the_rate_over_time_is_that_of_the_received_power(motion, until_s):
    station = Fixed((0.0, 0.0, 300.0))
    rate = RADIO.rate_over_time(motion, station, until_s)
    times = np.linspace(0.0, until_s, 700)[:-1]
    power = RADIO.received_dbm(distance_m(motion, station, times))
    table = np.array([(-np.inf, 0.0), *WIFI_20MHZ])
    expected = table[np.searchsorted(table[:, 0], power, side="right") - 1, 1]
    away = np.abs(times[:, None] - rate.times_s).min(axis=1) > 1e-6
    assert (rate.at(times) == expected)[away].all()
    assert rate.times_s[0] == 0.0 and (rate.times_s < until_s).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FreeSpace(0.0), "frequency_hz must be a finite number above 0"),
        (lambda: TwoRay(1e9, 0.0, 5.0), "height_a_m must be a finite number above 0"),
        (lambda: LogDistance(1e9, -2.0), "exponent must be a finite number above 0"),
        (lambda: LogDistance(1e9, 2.0, 1.0, math.nan), "shadowing_db must be a finite number"),
        (lambda: horizon_m(-1.0, 5.0), "heights must be 0 m or more"),
        (lambda: Radio(20.0, FreeSpace(1e9), ()), "rates must be pairs"),
        (lambda: Radio(20.0, FreeSpace(1e9), ((-80.0, 2.0), (-70.0, 1.0))), "both growing"),
    ],
)
def test_radios_that_cannot_be_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
