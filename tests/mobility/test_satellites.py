import itertools
import math
import re
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from sgp4.api import Satrec, jday
from sgp4.io import compute_checksum
from skyfield.api import EarthSatellite, load, wgs84

from mobility.satcom import Site, slant_range_m
from mobility.satellites import Satellite, delay_over_time, handovers, read_elements
from mobility.traces import TraceError

# The International Space Station on 20 September 2008, a set of elements that is widely printed.
ISS = (
    "1 25544U 98067A   08264.51782528 -.00002182  00000-0 -11606-4 0  2927",
    "2 25544  51.6416 247.4627 0006703 130.5360 325.0288 15.72125391563537",
)
EPOCH = datetime(2008, 9, 20, 12, 30, tzinfo=UTC)
KIEL = Site(54.32, 10.14, 10.0)
OSLO = Site(59.91, 10.75, 10.0)
STATION = Satellite("ISS", *ISS, EPOCH)


def made(number: int, node_deg: float, anomaly_deg: float) -> Satellite:
    """Return a satellite of a constellation of our own: circular, 86.4 degrees, 780 km."""
    first = f"1 {number:05d}U 26001A   08264.50000000  .00000000  00000-0  00000-0 0  999"
    angles = f"86.4000 {node_deg:8.4f} 0001000   0.0000 {anomaly_deg % 360.0:8.4f}"
    second = f"2 {number:05d}  {angles} 14.34000000    1"
    lines = (line + str(compute_checksum(line)) for line in (first, second))
    return Satellite(f"leo{number}", *lines, EPOCH)


RING = [made(plane * 11 + place, plane * 30.0, place * 360.0 / 11 + plane * 16.0)
        for plane in range(6) for place in range(11)]  # fmt: skip


def test_an_orbit_is_where_skyfield_sees_it_to_the_metre():
    scale = load.timescale(builtin=True)
    orbit = EarthSatellite(*ISS, "ISS", scale)
    times = np.arange(0.0, 86_400.0, 977.0)
    place = wgs84.latlon(KIEL.latitude_deg, KIEL.longitude_deg, KIEL.altitude_m)
    moments = scale.from_datetimes([EPOCH + timedelta(seconds=float(t)) for t in times])
    elevation, _, distance = (orbit - place).at(moments).altaz()
    ours = STATION.look(KIEL, times)
    assert ours[1] == pytest.approx(distance.m, abs=1.0)
    # Skyfield's horizon is tilted by the deflection of polar motion, which it leaves out here.
    assert ours[0] == pytest.approx(elevation.degrees, abs=1e-4)


def test_an_orbit_is_where_the_formula_of_sidereal_time_puts_it():
    # Vallado, "Revisiting Spacetrack Report #3": TEME turned by Greenwich mean sidereal time.
    whole, fraction = jday(2008, 9, 20, 12, 30, 0)
    satrec = Satrec.twoline2rv(*ISS)
    moment = load.timescale(builtin=True).from_datetime(EPOCH)
    for t in (0.0, 1800.0, 7200.0):
        _, place, _ = satrec.sgp4(whole, fraction + t / 86_400.0)
        ut1 = whole + fraction + (t + moment.dut1) / 86_400.0
        centuries = (ut1 - 2451545.0) / 36525.0
        seconds = (
            67310.54841
            + (876600.0 * 3600.0 + 8640184.812866) * centuries
            + 0.093104 * centuries**2
            - 6.2e-6 * centuries**3
        )
        angle = math.radians(seconds / 240.0 % 360.0)
        x, y, z = (1000.0 * axis for axis in place)
        turned = [
            x * math.cos(angle) + y * math.sin(angle), y * math.cos(angle) - x * math.sin(angle), z
        ]  # fmt: skip
        assert STATION.earth_fixed_m(t)[0] == pytest.approx(turned, abs=1.0)


def test_passes_are_those_that_looking_every_second_shows():
    until_s = 86_400.0
    times = np.arange(0.0, until_s)
    for mask in (0.0, 10.0, 40.0):
        passes = STATION.passes(KIEL, until_s, mask)
        elevation, _ = STATION.look(KIEL, times)
        edges = np.flatnonzero(np.diff(np.concatenate([[False], elevation > mask, [False]])))
        exact = np.array([(each.start_s, each.end_s) for each in passes]).ravel()
        assert edges.tolist() == np.ceil(exact).astype(int).tolist()
        for each in passes:
            during = (times > each.start_s) & (times < each.end_s)
            assert each.top_deg == pytest.approx(elevation[during].max(), abs=0.05)
            ends = STATION.look(KIEL, [each.start_s, each.end_s])[0]
            assert ends == pytest.approx([mask, mask], abs=1e-4)
    assert STATION.passes(KIEL, 0.0) == ()


def test_a_pass_shorter_than_a_look_is_found():
    best = max(STATION.passes(KIEL, 86_400.0), key=lambda each: each.top_deg)
    mask = float(STATION.look(KIEL, best.top_s + 2.0)[0][0])
    (short,) = STATION.passes(KIEL, 86_400.0, mask)
    assert 3.0 < short.end_s - short.start_s < 5.0


def test_a_constellation_serves_without_a_gap_and_with_few_handovers():
    servings = handovers(RING, [KIEL], 3600.0, mask_deg=8.0)
    assert servings[0].start_s == 0.0 and servings[-1].end_s == 3600.0
    assert all(a.end_s == b.start_s for a, b in itertools.pairwise(servings))
    assert 5 <= len(servings) <= 12
    by_name = {satellite.name: satellite for satellite in RING}
    for each in servings:
        times = np.linspace(each.start_s + 1e-3, each.end_s - 1e-3, 20)
        assert (by_name[each.satellite].look(KIEL, times)[0] > 8.0).all()


def test_a_bent_pipe_needs_both_ends_and_takes_as_long_as_the_way():
    servings = handovers(RING, [KIEL, OSLO], 1800.0, mask_deg=8.0)
    delay = delay_over_time(RING, servings, KIEL, OSLO, step_s=5.0)
    nearest, farthest = 2.0 * 775e3, 2.0 * slant_range_m(8.0, 6_378_137.0 + 800e3)
    assert (delay.values > nearest / 299_792_458.0).all()
    finite = delay.values[np.isfinite(delay.values)]
    assert finite.size > 300 and (finite < farthest / 299_792_458.0).all()


def test_one_satellite_leaves_gaps_in_which_the_delay_is_infinite():
    servings = handovers([STATION], [KIEL], 86_400.0)
    assert len(servings) == len(STATION.passes(KIEL, 86_400.0)) > 3
    delay = delay_over_time([STATION], servings, KIEL, KIEL, step_s=10.0)
    assert math.isinf(delay.at(servings[1].start_s - 1.0)[0])
    assert delay.at(servings[1].start_s)[0] < 0.02


def test_files_of_elements_come_with_names_and_without(tmp_path):
    path = tmp_path / "stations.tle"
    bare = "\r\n".join([*ISS, RING[3].line1, RING[3].line2])
    path.write_text(f"ISS (ZARYA)             \r\n{ISS[0]}\r\n{ISS[1]}\r\n\r\n{bare}\r\n")
    assert [each.name for each in read_elements(path, EPOCH)] == ["ISS (ZARYA)", "25544", "00003"]
    assert read_elements(path, EPOCH)[0].earth_fixed_m(60.0) == pytest.approx(
        STATION.earth_fixed_m(60.0)
    )


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 0, "expected two-line elements, found none"),
        (f"ISS\n{ISS[1]}\n", 2, "expected line 1 of the elements of ISS"),
        (f"ISS\n{ISS[0]}\n", 2, "expected the elements of ISS, found the end"),
        (f"{ISS[0]}\n{ISS[0]}\n", 2, "expected line 2 of two-line elements, 69 characters"),
        (f"{ISS[0][:-1]}8\n{ISS[1]}\n", 1, "expected the checksum 7 at the end"),
        (f"{ISS[0]}\n{ISS[1][:30]}\n", 2, "expected line 2 of two-line elements"),
        (f"{ISS[0]}\n{RING[0].line2}\n", 2, "the same catalogue number in both lines"),
    ],
)
def test_files_of_elements_that_are_wrong_are_refused(tmp_path, text, line, message):
    path = tmp_path / "wrong.tle"
    path.write_text(text)
    with pytest.raises(TraceError, match=re.escape(message)) as caught:
        read_elements(path, EPOCH)
    assert caught.value.line == line


def test_satellites_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="the epoch must have a time zone"):
        Satellite("ISS", *ISS, datetime(2008, 9, 20))
    with pytest.raises(ValueError, match="mask_deg must be from -90 to 90"):
        STATION.passes(KIEL, 100.0, 91.0)
    with pytest.raises(ValueError, match="elements of ISS: expected line 1"):
        Satellite("ISS", "1", "2", EPOCH)
