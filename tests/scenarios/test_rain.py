"""Rain in the path of a satellite."""

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import scenarios
from mobility.satcom import DVB_S2
from scenarios.components import Rain
from scenarios.scenario import Link

CLEAR = Link(rate_bps=4e6, delay_s=0.25, loss=0.001, buffer_packets=1000)


def test_without_rain_the_link_stays_as_it_is():
    assert Rain().over(CLEAR) == CLEAR
    assert scenarios.load("contended").build(0).satellites[0].backhaul.profile == ()


def test_a_shower_takes_rate_in_steps_of_the_modem_and_gives_it_back():
    link = scenarios.load("contended", ["satcom.rain.peak_db=10"]).build(0).satellites[0].backhaul
    rates = [state.rate_bps for state in link.profile]
    lowest = rates.index(min(rates))
    assert all(a > b for a, b in itertools.pairwise([link.rate_bps, *rates[: lowest + 1]]))
    assert all(a < b for a, b in itertools.pairwise(rates[lowest:]))
    assert rates[-1] == link.rate_bps == 4e6
    assert {state.delay_s for state in link.profile} == {0.25}
    # 12 dB in a clear sky: the mode at 11.61 dB; 10 dB less leave 2 dB: the mode at 1 dB.
    bits = dict(DVB_S2)
    assert min(rates) == int(4e6 * bits[1.00] / bits[11.61])
    assert link.profile[0].time_s >= 20.0 and link.profile[-1].time_s <= 61.0
    assert "rain fade 10.0 dB" in {state.cause for state in link.profile}


def test_a_fade_beyond_the_weakest_mode_is_an_outage():
    link = Rain(peak_db=20.0).over(CLEAR)
    (down,) = [state for state in link.profile if state.capacity_bps == 0.0]
    after = link.profile[link.profile.index(down) + 1]
    # 14.35 dB: of a rise of 2 dB a second, the step about 15 dB.
    assert (down.time_s, after.time_s) == (27.0, 53.0)
    assert (after.loss, after.capacity_bps) == (0.001, after.rate_bps)


# A rate that is multiplied before it is divided comes back one bit/s lower.
@example(1.0, 5.0, 0.0, 0.0, 0.0, 0.0, 6_580_121_863)
@given(
    st.floats(0, 100), st.floats(-2.35, 40), st.floats(0, 100), st.floats(0, 50),
    st.floats(0, 50), st.floats(0, 50), st.integers(1000, 10**10),
)  # fmt: skip
def test_any_rain_ends_and_never_makes_a_link_faster(
    peak_db, clear_sky_db, start_s, rise_s, hold_s, fall_s, rate_bps
):
    clear = Link(rate_bps=rate_bps, delay_s=0.25, buffer_packets=100)
    link = Rain(peak_db, clear_sky_db, start_s, rise_s, hold_s, fall_s).over(clear)
    assert all(state.rate_bps <= rate_bps for state in link.profile)
    end = link.at(start_s + rise_s + hold_s + fall_s + 2.0)
    assert (end.rate_bps, end.loss) == (rate_bps, 0.0)


def test_rain_that_is_none_is_refused():
    with pytest.raises(scenarios.ScenarioError, match=r"satcom\.rain\.peak_db must be a number in"):
        scenarios.load("direct-move", ["satcom.rain.peak_db=-1"])
