import hashlib
import math

import numpy as np
import pyproj
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mobility.satcom import (
    DVB_S2,
    Site,
    bent_pipe_delay_s,
    capacity,
    geostationary_m,
    rain_fade,
    rain_shower,
    slant_range_m,
)
from mobility.steps import Steps

LOS_ANGELES = Site(34.05, -118.25, 90.0)
TO_EARTH_FIXED = pyproj.Transformer.from_crs("EPSG:4979", "EPSG:4978", always_xy=True)


@given(st.floats(-90, 90), st.floats(-180, 180), st.floats(-100, 20_000))
def test_a_site_is_where_proj_says(latitude, longitude, altitude):
    expected = TO_EARTH_FIXED.transform(longitude, latitude, altitude)
    assert Site(latitude, longitude, altitude).earth_fixed_m() == pytest.approx(expected, abs=1e-6)


def test_a_hop_from_los_angeles_takes_what_its_elevation_says():
    hops = []
    for longitude in range(-190, -40, 5):
        satellite = geostationary_m(float(longitude))
        look = LOS_ANGELES.look(satellite)
        delay_s = bent_pipe_delay_s(LOS_ANGELES, satellite, LOS_ANGELES)
        assert look.elevation_deg > 5.0
        # The sphere and the ellipsoid differ by 7 km in Los Angeles, both ways.
        assert delay_s == pytest.approx(
            2.0 * slant_range_m(look.elevation_deg) / 299_792_458.0, abs=1e-4
        )
        hops.append((look.elevation_deg, delay_s))
    hops.sort()
    delays = [delay for _, delay in hops]
    assert all(0.238 < delay < 0.281 for delay in delays)
    # 50 degrees, due south, is the most there is at this latitude.
    assert hops[-1][0] == pytest.approx(50.4, abs=0.1)
    assert delays[-1] == pytest.approx(0.2471, abs=1e-4)
    assert delays[0] == pytest.approx(0.2742, abs=1e-4)
    assert delays == sorted(delays, reverse=True)


def test_delay_over_a_geostationary_satellite_is_between_zenith_and_horizon():
    zenith, horizon = slant_range_m(90.0), slant_range_m(0.0)
    assert 2.0 * zenith / 299_792_458.0 == pytest.approx(0.2387, abs=1e-4)
    assert 2.0 * horizon / 299_792_458.0 == pytest.approx(0.2781, abs=1e-4)


def test_due_south_is_due_south():
    look = LOS_ANGELES.look(geostationary_m(-118.25))
    assert look.azimuth_deg == pytest.approx(180.0)
    assert Site(0.0, 10.0).look(geostationary_m(10.0)).elevation_deg == pytest.approx(90.0)
    assert Site(0.0, 10.0).look(geostationary_m(30.0)).azimuth_deg == pytest.approx(90.0)


def test_no_mode_of_the_table_is_useless():
    least, bits = np.array(DVB_S2).T
    assert (np.diff(least) > 0.0).all() and (np.diff(bits) > 0.0).all()


def test_a_shower_comes_stays_and_goes():
    shower = rain_shower(12.0, start_s=60.0, rise_s=30.0, hold_s=20.0, fall_s=60.0, step_s=1.0)
    assert shower.at([0.0, 59.9, 100.0, 170.0, 999.0]).tolist() == [0.0, 0.0, 12.0, 0.0, 0.0]
    assert shower.at(75.0) == pytest.approx(12.0 * 15.5 / 30.0)
    assert shower.at(140.0) == pytest.approx(12.0 * (170.0 - 140.5) / 60.0)
    at_once = rain_shower(3.0, start_s=0.0, rise_s=0.0, hold_s=5.0, fall_s=0.0, step_s=1.0)
    assert at_once.at([0.0, 4.5, 5.0]).tolist() == [3.0, 3.0, 0.0]


def test_capacity_steps_down_and_up_again_in_rain():
    shower = rain_shower(20.0, start_s=10.0, rise_s=10.0, hold_s=5.0, fall_s=10.0, step_s=1.0)
    rate = capacity(shower, clear_sky_db=12.0, symbols_per_s=1e6)
    assert rate.at(0.0) == 3_300_184.0  # 16APSK 5/6
    assert rate.at(22.0) == 0.0  # 8 dB too little for any
    falling = rate.at(np.arange(10.0, 22.0))
    assert (np.diff(falling) <= 0.0).all() and len(set(falling.tolist())) > 5
    assert rate.at(40.0) == rate.at(0.0)


def test_a_random_fade_has_the_median_and_the_memory_it_says():
    fade = rain_fade(2.0, 1.2, relaxation_s=50.0, duration_s=200_000.0, step_s=5.0, seed=1)
    logs = np.log(np.maximum(fade.at(np.arange(0.0, 200_000.0, 5.0)), 1e-3))
    assert np.exp(np.median(logs)) == pytest.approx(2.0, rel=0.05)
    assert logs.std() == pytest.approx(1.2, rel=0.04)
    lag = 10  # steps, the relaxation time
    assert np.corrcoef(logs[lag:], logs[:-lag])[0, 1] == pytest.approx(math.exp(-1.0), abs=0.04)


def test_a_seed_gives_the_same_weather_on_every_machine():
    fade = rain_fade(1.5, 1.1, relaxation_s=600.0, duration_s=3600.0, step_s=1.0, seed=42)
    rate = capacity(fade, clear_sky_db=10.5, symbols_per_s=5e6)
    digest = hashlib.sha256(rate.times_s.tobytes() + rate.values.tobytes()).hexdigest()[:16]
    assert digest == "b18c03ece85c7ee1"


def test_steps_know_their_mean_and_their_changes():
    steps = Steps(np.array([0.0, 10.0, 20.0]), np.array([1.0, 1.0, 4.0]))
    assert steps.changes().times_s.tolist() == [0.0, 20.0]
    assert steps.mean(10.0, 30.0) == 2.5
    assert steps.at([-5.0, 19.9, 20.0]).tolist() == [1.0, 1.0, 4.0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Site(91.0, 0.0), "a latitude from -90 to 90"),
        (lambda: Site(0.0, 0.0, math.inf), "altitude_m must be a finite number"),
        (lambda: slant_range_m(-1.0), "elevation_deg must be from 0 to 90"),
        (lambda: slant_range_m(10.0, 6e6), "orbit_radius_m must be above the ground"),
        (
            lambda: rain_shower(1.0, start_s=-1.0, rise_s=1.0, hold_s=1.0, fall_s=1.0, step_s=1.0),
            "times must be 0 or more",
        ),
        (
            lambda: rain_fade(0.0, 1.0, relaxation_s=1.0, duration_s=1.0, step_s=1.0, seed=0),
            "median_db must be a finite number above 0",
        ),
        (lambda: Steps(np.zeros(2), np.zeros(2)), "times of steps must be finite and increase"),
        (lambda: Steps(np.zeros(0), np.zeros(0)), "a row of times and as many values"),
    ],
)
def test_satellite_links_that_cannot_be_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
