import pytest
from hypothesis import given
from hypothesis import strategies as st

import fdm
from fdm import DelaySample, calibrate

MEASURED = [(0.5, 1.25e-3), (0.8, 5.9e-3), (0.9, 16.3e-3)]  # load and mean wait, 4 Mbit/s HTB class


@given(
    st.floats(0.05, 20.0),
    st.lists(st.floats(0.0, 0.99), min_size=1, max_size=9),
    st.floats(64, 1e5),
)
def test_what_the_model_says_gives_back_its_own_coefficient(kappa, loads, bits):
    samples = [DelaySample(u * 4e6, 4e6, kappa * bits / (4e6 - u * 4e6)) for u in loads]
    result = calibrate(samples, bits)
    assert result.kappa == pytest.approx(kappa, rel=1e-9)
    assert result.error <= 1e-9
    assert result.samples == len(loads)


def test_a_shaped_queue_that_was_measured_is_smoother_than_poisson():
    transmission_s = 8000 / 4e6
    samples = [DelaySample(u * 4e6, 4e6, wait + transmission_s) for u, wait in MEASURED]
    result = calibrate(samples, 8000)
    assert 0.6 <= result.kappa <= 0.95
    assert result.error < 0.1


@pytest.mark.parametrize(
    "samples",
    [[], [(1.0, 1.0, 0.1)], [(0.5, 1.0, 0.0)], [(0.5, 1.0, float("nan"))], [(-1.0, 1.0, 1.0)]],
)
def test_samples_that_say_nothing_are_refused(samples):
    with pytest.raises(ValueError, match="sample"):
        fdm.calibrate([DelaySample(*sample) for sample in samples], 12000)


@pytest.mark.parametrize("bits", [0.0, -1.0, float("nan"), float("inf")])
def test_packets_of_no_size_are_refused(bits):
    with pytest.raises(ValueError, match="packet_bits must be a finite number above 0"):
        calibrate([DelaySample(0.5, 1.0, 1.0)], bits)


def test_long_delays_near_saturation_do_not_outvote_the_others():
    """Twice as long at one of two loads: κ lies between, whichever of them it is."""
    found = []
    for slow in (0, 1):
        samples = [
            DelaySample(load * 1e6, 1e6, (1.0 + (number == slow)) * 12000 / (1e6 - load * 1e6))
            for number, load in enumerate((0.1, 0.99))
        ]
        found.append(calibrate(samples, 12000).kappa)
    assert found[0] == pytest.approx(found[1])
    assert 1.0 < found[0] < 2.0
