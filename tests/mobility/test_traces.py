import pickle
import re
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mobility import Area, Path, random_walk, traces
from mobility.geodesy import LocalFrame
from mobility.traces import Fix, GeoFix, TraceError, ais, eel, gpx, sumo, table

KIEL = LocalFrame(54.4, 10.2)

# Small files as the tools of each format write them, made for these tests.
SAMPLES = {
    "setdest.ns_movements": """\
#
# nodes: 2, pause: 2.00, max speed: 10.00, max x: 500.00, max y: 500.00
#
$node_(0) set X_ 10.0
$node_(0) set Y_ 20.0
$node_(0) set Z_ 0.0
$node_(1) set X_ 100.000000000000
$node_(1) set Y_ 100.000000000000
$node_(1) set Z_ 0.000000000000
$god_ set-dist 0 1 1
$ns_ at 2.000000000000 "$node_(0) setdest 40.0 60.0 5.0"
$ns_ at 4.0 "$god_ set-dist 0 1 2"
$ns_ at 20.0 "$node_(0) setdest 40.0 160.0 10.0"
$ns_ at 22.0 "$node_(0) setdest 140.0 80.0 10.0"
""",
    "script.tcl": """\
set val(nn) 1
set ns_ [new Simulator]
for {set i 0} {$i < $val(nn)} {incr i} {
    $node_($i) random-motion 0
}
$node_(0) set X_ 5.0
$node_(0) set Y_ 5.0
$ns at 1.0 " $node_(0) setdest 15.0 5.0 1.0 "
$ns at 3.0 "$node_(0) off"
$ns at 30.0 "$node_(0) reset";
""",
    "plane.movements": "0.0 1.5 2.5 10.0 11.5 2.5 20.0 11.5 2.5\n0.0 5.0 5.0\n",
    "solid.movements": "0.0 1.0 2.0 300.0 10.0 11.0 2.0 310.0\n",
    "demo.eel": """\
# locations
-Inf   nem:1 location gps 54.40,10.20,3.0
0.0  nem:1 pathloss nem:2,90.0 nem:3,90.0
0.0  nem:1 antennaprofile 1,0.0,0.0
0.0  nem:2 location gps 54.41,10.20,3.000000,msl
0.0 nem:2 velocity 180.0,0.0,10.0
10.0 nem:2 location gps 54.42,10.20,3.000000
""",
    "receiver.gpx": """\
<?xml version="1.0" encoding="UTF-8" standalone="no" ?>
<gpx xmlns="http://www.topografix.com/GPX/1/1" xmlns:x="urn:x" version="1.1" creator="any">
  <metadata><name>a day out</name><time>2026-06-01T10:00:00Z</time></metadata>
  <wpt lat="54.0" lon="10.0"><name>buoy</name></wpt>
  <trk><name>Möwe &amp; co</name><trkseg>
    <trkpt lat="54.40" lon="10.20"><ele>1.5</ele><time>2026-06-01T10:00:00Z</time></trkpt>
    <trkpt lat="54.41" lon="10.20"><time>2026-06-01T12:01:00.500+02:00</time>
      <extensions><x:speed>9.9</x:speed></extensions></trkpt>
  </trkseg><trkseg>
    <trkpt lat="54.42" lon="10.20"><ele>2</ele><time>2026-06-01T10:05:00Z</time></trkpt>
  </trkseg></trk>
  <trk><trkseg>
    <trkpt lat="54.50" lon="10.20"><time>2026-06-01T10:00:00Z</time></trkpt>
  </trkseg></trk>
</gpx>
""",
    "local.csv": "node,time_s,east_m,north_m,up_m\nuav,0,0,0,300\nship,0,1,2,\nuav,10,50,0,300\n",
    "coast.csv": """\
MMSI,BaseDateTime,LAT,LON,SOG,VesselName
366999712,2026-01-01T00:00:03,54.40,10.20,0.1,"NORD, STERN"
366999712,2026-01-01T00:01:13,54.41,10.20,8.0,"NORD, STERN"
""",
    # Addresses of receivers, a report of class A twice, a base station, two parts, no position.
    "coast.nmea": r"""# log
$PGHP,1,2026
\s:2573535,c:1671533231*08\!BSVDM,1,1,,A,13nN34?000QFpgRWnQLLSPpF00SO,0*06
\s:2573135,c:1671533291*01\!AIVDM,1,1,,B,15NG6V0P01G?cFhE`R2IU?wn28R>,0*05
\g:1-2-73874,n:157036,s:r003669930,c:1671533240*4A\!AIVDM,2,1,3,B,55P5TL01VIaAL@7WKO@mBplU@<PDhh000000001S;AJ::4A80?4i@E53,0*3E
\g:2-2-73874,n:157037*15\!AIVDM,2,2,3,B,1@0000000000000,2*55
!AIVDM,1,1,,A,403OviQuMGCqWrRO9>E6fE700@GO,0*4D,r003669930,1671533300
!AIVDM,1,1,,B,15NG6V0P01G?cFhE`R2IU?wn28R>,0*05,r003669930,1671533301
""",
    "town.fcd.xml": """\
<?xml version="1.0" encoding="UTF-8"?>
<!-- generated on 2026-01-01 -->
<fcd-export xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
    <timestep time="0.00">
        <vehicle id="a" x="5.10" y="-1.60" angle="90.00" type="car" speed="0.0" lane="e_0"/>
    </timestep>
    <timestep time="1.00">
        <vehicle id="a" x="7.10" y="-1.60" angle="90.00" type="car" speed="2.0" lane="e_0"/>
        <person id="p" x="1.0" y="2.0" z="3.0" speed="1.0" edge="e"/>
    </timestep>
    <timestep time="2.00"/>
</fcd-export>
""",
    "town.geo.fcd.xml": """\
<fcd-export><timestep time="0.00"><vehicle id="a" x="10.20" y="54.40"/></timestep></fcd-export>
""",
}


@pytest.fixture
def sample(tmp_path):
    def write(name, text=None):
        path = tmp_path / name
        text = SAMPLES[name] if text is None else text
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_setdest_goes_stays_and_is_turned_back_on_the_way(sample):
    nodes = traces.load(sample("setdest.ns_movements"))
    assert list(nodes) == ["0", "1"]
    # 50 m at 5 m/s from 2 s on; at 22 s the second leg is 20 m old; 100 m at 10 m/s more.
    assert nodes["0"].position([0, 2, 12, 20, 21, 22, 32.0, 99]).tolist() == [
        [10, 20, 0],
        [10, 20, 0],
        [40, 60, 0],
        [40, 60, 0],
        [40, 70, 0],
        [40, 80, 0],
        [140, 80, 0],
        [140, 80, 0],
    ]
    assert nodes["1"].position(50.0).tolist() == [[100, 100, 0]]


def test_movements_inside_a_script_are_found(sample):
    nodes = traces.load(sample("script.tcl"))
    assert nodes["0"].position([1.0, 6.0, 99.0])[:, 0].tolist() == [5.0, 10.0, 15.0]


def test_bonnmotion_in_the_plane_and_in_space(sample):
    plane = traces.load(sample("plane.movements"))
    assert plane["0"].position(5.0).tolist() == [[6.5, 2.5, 0.0]]
    assert plane["1"].times_s.tolist() == [0.0]
    assert traces.load(sample("solid.movements"))["0"].position(5.0).tolist() == [[6, 2, 305]]


def test_eel_has_an_initial_state_and_other_events(sample):
    nodes = traces.load(sample("demo.eel"), frame=KIEL)
    assert nodes["1"].position(0.0) == pytest.approx(np.array([[0.0, 0.0, 3.0]]), abs=1e-6)
    assert nodes["2"].position(5.0)[0, 1] == pytest.approx(1669.7, abs=0.5)


def test_gpx_has_tracks_of_segments_with_time_zones(sample):
    found = list(traces.fixes(sample("receiver.gpx")))
    assert [fix.node for fix in found] == ["Möwe & co"] * 3 + ["track2"]
    assert [fix.time_s - found[0].time_s for fix in found] == [0.0, 60.5, 300.0, 0.0]
    assert [fix.altitude_m for fix in found] == [1.5, 0.0, 2.0, 0.0]
    nodes = traces.load(sample("receiver.gpx"))
    assert nodes["Möwe & co"].position(0.0) == pytest.approx(np.array([[0, 0, 1.5]]))


def test_tables_may_be_local_or_those_of_a_coast_guard(sample):
    local = traces.load(sample("local.csv"))
    assert local["uav"].position(5.0).tolist() == [[25.0, 0.0, 300.0]]
    assert local["ship"].position(5.0).tolist() == [[1.0, 2.0, 0.0]]
    coast = traces.load(sample("coast.csv"))
    assert coast["366999712"].times_s.tolist() == [0.0, 70.0]
    assert coast["366999712"].positions_m[1, 1] == pytest.approx(1113.3, abs=1.0)


def test_ais_takes_its_time_from_the_log(sample):
    found = list(traces.fixes(sample("coast.nmea")))
    assert [(fix.node, fix.time_s) for fix in found] == [
        ("258442000", 1671533231.0),
        ("367380120", 1671533291.0),
        ("367380120", 1671533301.0),
    ]
    assert found[1][2:] == (37.806948, -122.404333, 0.0)


def test_sumo_has_vehicles_and_persons(sample):
    nodes = traces.load(sample("town.fcd.xml"))
    assert nodes["a"].position(0.5) == pytest.approx(np.array([[6.1, -1.6, 0.0]]))
    assert nodes["p"].position(1.0).tolist() == [[1.0, 2.0, 3.0]]
    (fix,) = traces.fixes(sample("town.geo.fcd.xml"))
    assert fix == GeoFix("a", 0.0, 54.40, 10.20, 0.0)


MALFORMED = [
    ("a.ns_movements", "$node_(0) set X_ west\n", 1, "expected X_ in metres, found 'west'"),
    ("a.ns_movements", '\n$ns_ at soon "$node_(0) setdest 1 2 3"\n', 2, "a time in seconds"),
    ("a.ns_movements", '$ns_ at 1.0 "$node_(0) setdest 1 2"\n', 1, "expected setdest X Y SPEED"),
    ("a.ns_movements", '$ns_ at 1.0 "$node_(0) setdest 1 2 $v"\n', 1, "a speed in m/s, found '$v'"),
    ("a.ns_movements", '$ns_ at 1.0 "$node_(0) setdest 1 2 -3"\n', 1, "a speed of 0 m/s or more"),
    ("a.ns_movements", '$ns_ at 1.0 "$node_(x) setdest 1 2 3"\n', 1, "the number of a node"),
    ("a.ns_movements", "$node_(0) setdest 1 2 3\n", 1, "expected $ns_ at TIME"),
    (
        "a.ns_movements",
        '$ns_ at 9 "$node_(0) setdest 1 2 3"\n$ns_ at 8 "$node_(0) setdest 1 2 3"\n',
        2,
        "a time no earlier than the last of node 0 (9 s), found 8",
    ),
    ("a.ns_movements", "# nothing\n", 0, "expected at least one position, found none"),
    ("a.movements", "0 1 2\n0 1 2 3 4\n", 2, "expected waypoints of 3 numbers, found 5 numbers"),
    ("a.movements", "0 1\n", 1, "expected waypoints of 3 or 4 numbers"),
    ("a.movements", "0 1 2 x 3 4\n", 1, "expected a number (time in s, place in m), found 'x'"),
    ("a.movements", "5 1 2 3 3 4\n", 1, "times that do not decrease, found 3 s after 5 s"),
    ("a.movements", "0 1 2 inf 3 4\n", 1, "found 'inf'"),
    ("a.eel", "0.0 nem:1\n", 1, "expected TIME nem:ID EVENT"),
    ("a.eel", "now nem:1 location gps 1,2,3\n", 1, "a time in seconds or -Inf"),
    ("a.eel", "0.0 node1 location gps 1,2,3\n", 1, "expected nem:ID, found 'node1'"),
    ("a.eel", "0.0 nem:1 location 1,2,3\n", 1, "location gps LATITUDE,LONGITUDE,ALTITUDE"),
    ("a.eel", "0.0 nem:1 location gps 1,2\n", 1, "expected LATITUDE,LONGITUDE,ALTITUDE"),
    ("a.eel", "0.0 nem:1 location gps 91,2,3\n", 1, "a latitude from -90 to 90 degrees"),
    ("a.eel", "0.0 nem:1 location gps 1,2,3,hae\n", 1, "msl or agl"),
    ("a.gpx", "<gpx><trk><trkseg>\n<trkpt lat='1' lon='2'/></trkseg></trk></gpx>", 2, "a <time>"),
    ("a.gpx", "<gpx><trk><trkseg><trkpt lat='1'/>", 1, "a longitude in degrees, found 'nothing'"),
    ("a.gpx", "<gpx>\n\n<trk></gpx>", 3, "expected XML: mismatched tag"),
    ("a.gpx", "<kml></kml>", 1, "expected the root element <gpx>, found '<kml>'"),
    ("a.gpx", "<gpx><trk><trkpt lat='1' lon='2'><time>noon</time>", 1, "2026-12-01T12:00:00Z"),
    ("a.gpx", "", 1, "expected XML: no element found"),
    ("a.csv", "", 0, "expected a header such as node,time_s"),
    ("a.csv", "node,east_m,north_m\n", 1, "expected a column time_s"),
    ("a.csv", "node,time_s,east_m\n", 1, "either columns east_m and north_m or latitude_deg"),
    ("a.csv", "node,time_s,x,y\na,0,1,2\nb,1,2\n", 3, "expected at least 4 columns, found 'b,1,2'"),
    ("a.csv", "node,time_s,x,y\na,0,1_0,2\n", 2, "expected metres east, found '1_0'"),
    ("a.csv", "node,time_s,x,y\n,0,1,2\n", 2, "the name of a node"),
    ("a.csv", 'node,time_s,x,y\n"a,0,1,2\n', 2, "comma-separated values"),
    ("a.csv", "node,time,lat,lon\na,2026-13-01T00:00:00,1,2\n", 2, "a time such as"),
    ("a.csv", b"node,time_s,x,y\n\xff\xfe,0,1,2\n", 2, "text in UTF-8"),
    (
        "a.nmea",
        "!AIVDM,1,1,,B,15NG6V0P01G?cFhE`R2IU?wn28R>,0*06\n",
        1,
        "the checksum 05, found '06'",
    ),
    ("a.nmea", "!AIVDM,1,1,,B,15NG6V0P01G?cFhE`R2IU?wn28R>,0*05\n", 1, "the time of reception"),
    ("a.nmea", "\\c:1671533231*5A\\!AIVDM,1,1,,B,1,0*14\n", 1, "found one cut short"),
    ("a.nmea", "!AIVDM,1,1,,B,,0*25\n", 1, "cannot be decoded"),
    ("a.nmea", "ship 5 is at home\n", 1, "expected a sentence such as !AIVDM"),
    ("a.fcd.xml", "<fcd-export><vehicle id='a'/></fcd-export>", 1, "inside a <timestep>"),
    ("a.fcd.xml", "<fcd-export><timestep/></fcd-export>", 1, "the time of a timestep"),
    (
        "a.fcd.xml",
        "<fcd-export><timestep time='0'><vehicle x='1' y='2'/>",
        1,
        "expected an id of the <vehicle>",
    ),
    ("a.fcd.xml", "<routes/>", 1, "expected the root element <fcd-export>"),
    (
        "a.gpx",
        '<!DOCTYPE g [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]>\n<gpx>&b;</gpx>',
        1,
        "no document type declaration",
    ),
    ("a.xyz", "", 0, "a name that ends in one of .ns_movements"),
]


@pytest.mark.parametrize(("name", "text", "line", "message"), MALFORMED)
def test_a_malformed_file_is_refused_with_its_line(sample, name, text, line, message):
    path = sample(name, text)
    with pytest.raises(TraceError, match=re.escape(message)) as caught:
        traces.load(path)
    assert caught.value.line == line
    where = f"{path}, line {line}: " if line else f"{path}: "
    assert str(caught.value).startswith(where)
    assert "\n" not in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(TraceError, match=r"nowhere\.csv: expected a file, found none"):
        traces.load(tmp_path / "nowhere.csv")


@given(st.sampled_from(sorted(SAMPLES)), st.data())
def test_no_damage_is_a_crash(tmp_path_factory, name, data):
    raw = bytearray(SAMPLES[name].encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw) - 1))
        kind = data.draw(st.sampled_from(["change", "cut", "double"]))
        if kind == "change":
            raw[at] = data.draw(st.integers(0, 255))
        elif kind == "cut":
            del raw[at : at + data.draw(st.integers(1, 40))]
        else:
            raw[at:at] = raw[at : at + 40]
        if not raw:
            break
    path = tmp_path_factory.getbasetemp() / f"damaged-{name}"
    path.write_bytes(bytes(raw))
    try:
        for node in traces.load(path).values():
            assert np.isfinite(node.positions_m).all()
    except TraceError as error:
        assert str(error).startswith(str(path))


numbers = st.floats(-1e7, 1e7)
fixes = st.builds(
    Fix, st.text("abcdef<&\"',é ", min_size=1).map(str.strip).filter(bool),
    st.floats(-1e6, 1e10), numbers, numbers, numbers,
)  # fmt: skip
places = st.builds(
    GeoFix, st.integers(1, 999_999_999).map(str),
    st.integers(0, 2 * 10**15).map(lambda us: us / 1e6),
    st.floats(-90, 90), st.floats(-180, 180), st.floats(-500, 50_000),
)  # fmt: skip


def round_trip(module, path, given_fixes, reader="read", writer="write"):
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        getattr(module, writer)(given_fixes, stream)
    return list(getattr(module, reader)(path))


def in_time(found):
    return sorted(found, key=lambda fix: fix.time_s)


@given(st.lists(fixes, min_size=1, max_size=20))
def test_local_fixes_come_back_to_the_last_bit(tmp_path_factory, given_fixes):
    path = tmp_path_factory.getbasetemp() / "local"
    assert round_trip(table, path, given_fixes) == given_fixes
    assert round_trip(sumo, path, given_fixes) == in_time(given_fixes)


@given(st.lists(places, min_size=1, max_size=20))
def test_places_come_back_to_the_last_bit(tmp_path_factory, given_fixes):
    path = tmp_path_factory.getbasetemp() / "earth"
    assert round_trip(table, path, given_fixes) == given_fixes
    assert round_trip(eel, path, given_fixes) == in_time(given_fixes)
    assert round_trip(sumo, path, given_fixes, "read_geo", "write_geo") == in_time(given_fixes)
    together = [fix for node in dict.fromkeys(f.node for f in given_fixes)
                for fix in given_fixes if fix.node == node]  # fmt: skip
    assert round_trip(gpx, path, given_fixes) == together


@given(
    st.integers(200_000_000, 799_999_999),
    st.lists(
        st.tuples(
            st.integers(0, 2 * 10**9),
            st.integers(-90 * 600_000, 90 * 600_000),
            st.integers(-180 * 600_000 + 1, 180 * 600_000),
        ),
        min_size=1,
        max_size=9,
    ),
)
def test_ais_comes_back_to_a_ten_thousandth_of_a_minute(tmp_path_factory, mmsi, rows):
    path = tmp_path_factory.getbasetemp() / "ais"
    given_fixes = [
        GeoFix(str(mmsi), float(time), lat / 600_000, lon / 600_000, 0.0) for time, lat, lon in rows
    ]
    found = round_trip(ais, path, given_fixes)
    for there, here in zip(in_time(given_fixes), found, strict=True):
        assert here[:2] == there[:2]
        assert here[2:] == pytest.approx(there[2:], abs=1e-6)
    # What has been through the format once does not change any more.
    assert round_trip(ais, path, found) == found


WALKS = {
    str(number): random_walk(
        Area.square(2000.0), speed_mps=(0.0, 15.0), leg_s=(3.0, 30.0), duration_s=300.0, seed=9,
        stream=number, altitude_m=50.0 * number, boundary=("reflect", "wrap")[number % 2],
    )
    for number in range(6)
} | {"6": Path([0.0, 5.0, 9.0], [(1, 1, 1), (1, 1, 1), (4, 5, 1)])}  # fmt: skip


@pytest.mark.parametrize("name", ["a.ns_movements", "a.movements"])
def test_paths_come_back_to_the_last_bit_from_formats_of_waypoints(tmp_path, name):
    traces.save(WALKS, tmp_path / name)
    again = traces.load(tmp_path / name)
    if name == "a.movements":
        assert again == WALKS
        return
    for node, path in WALKS.items():
        assert again[node].position(path.times_s).tolist() == path.position(path.times_s).tolist()
        between = np.linspace(0.0, 320.0, 500)
        assert again[node].position(between) == pytest.approx(path.position(between), abs=1e-6)


@pytest.mark.parametrize("name", ["a.csv", "a.fcd.xml"])
def test_paths_come_back_to_the_last_bit_from_tables(tmp_path, name):
    steady = {node: path for node, path in WALKS.items() if (np.diff(path.times_s) > 0).all()}
    traces.save(steady, tmp_path / name)
    assert traces.load(tmp_path / name) == steady


@pytest.mark.parametrize("name", ["a.eel", "a.gpx", "a.csv", "a.geo.fcd.xml"])
def test_paths_come_back_from_the_earth_to_a_micrometre(tmp_path, name):
    steady = {node: path for node, path in WALKS.items() if (np.diff(path.times_s) > 0).all()}
    traces.save(steady, tmp_path / name, frame=KIEL, start_s=1.7e9)
    again = traces.load(tmp_path / name, frame=KIEL, start_s=1.7e9)
    for node, path in steady.items():
        assert again[node].positions_m == pytest.approx(path.positions_m, abs=1e-6)
        assert again[node].times_s == pytest.approx(path.times_s, abs=1e-6)


def test_what_a_format_cannot_say_is_refused(tmp_path):
    climb = {"0": Path([0.0, 5.0], [(0, 0, 0), (5, 5, 5)])}
    with pytest.raises(ValueError, match="ns-2 moves in the plane, and node 0 climbs"):
        traces.save(climb, tmp_path / "a.ns_movements")
    with pytest.raises(ValueError, match="no time before 0 s"):
        traces.save({"0": Path([-1.0], [(0, 0, 0)])}, tmp_path / "a.ns_movements")
    with pytest.raises(ValueError, match="a frame must be given"):
        traces.save(climb, tmp_path / "a.eel")
    with pytest.raises(ValueError, match="EEL names nodes by numbers"):
        traces.save({"ship": climb["0"]}, tmp_path / "a.eel", frame=KIEL)
    with pytest.raises(ValueError, match="an MMSI of nine digits"):
        traces.save(climb, tmp_path / "a.nmea", frame=KIEL)
    with pytest.raises(ValueError, match="whole seconds since 1970"):
        traces.save({"211000001": Path([0.5], [(0, 0, 0)])}, tmp_path / "a.nmea", frame=KIEL)
    with pytest.raises(ValueError, match="no trace format 'kml'"):
        traces.load(tmp_path / "a.kml", "kml")


def test_logs_of_receivers_that_overlap_are_put_in_order(sample):
    rows = "a,5,5,0\na,1,1,0\na,3,9,9\na,3,3,0\n"
    path = traces.load(sample("a.csv", f"node,time_s,x,y\n{rows}"))["a"]
    assert path.times_s.tolist() == [1.0, 3.0, 5.0]
    assert path.positions_m[:, 0].tolist() == [1.0, 3.0, 5.0]


def test_a_long_file_is_read_in_little_memory(tmp_path):
    path = tmp_path / "long.fcd.xml"
    with path.open("w") as stream:
        stream.write("<fcd-export>\n")
        for step in range(20_000):
            stream.write(f'<timestep time="{step}"><vehicle id="a" x="{step}" y="0"/></timestep>\n')
        stream.write("</fcd-export>\n")
    tracemalloc.start()
    count = sum(1 for _ in traces.fixes(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 20_000
    assert peak < 3 << 20  # the fixes alone would be more


def test_charts_keep_distances_about_their_origin():
    frame = LocalFrame(54.4, 10.2)
    here = frame.to_local([54.4, 54.4], [10.2, 10.9], [0.0, 10.0])
    # 0.7 degrees of longitude at this latitude, by the geodesic of WGS 84.
    import pyproj

    _, _, distance = pyproj.Geod(ellps="WGS84").inv(10.2, 54.4, 10.9, 54.4)
    assert np.hypot(*here[1, :2]) == pytest.approx(distance, abs=1e-3)
    assert frame.to_geodetic(here) == pytest.approx(
        np.array([[54.4, 10.2, 0.0], [54.4, 10.9, 10.0]])
    )
    with pytest.raises(ValueError, match="a latitude from -90 to 90"):
        LocalFrame(100.0, 0.0)
