import json
import math
import os
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fdm
from fdm import instance as reader

DATA = Path(__file__).parent / "data"
LINK = {"tail": 0, "head": 1, "capacity_bps": 1e6, "delay_s": 0.1}
COMMODITY = {"origin": 0, "destination": 1, "demand_bps": 1e5}
GOOD = {"nodes": 2, "links": [LINK], "commodities": [COMMODITY]}
LONG = "x" * 100_000


def write(tmp_path: Path, content: object) -> Path:
    path = tmp_path / "case.json"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_two_users_are_read_as_written():
    instance = fdm.load(DATA / "tac2.json")
    assert instance.name == "tac2"
    assert instance.packet_bits == 12000
    assert instance.network.links[5] == fdm.Link(3, 4, 1e6, 0.01)
    assert instance.demands == (fdm.Demand(0, 4, 3e6), fdm.Demand(1, 4, 3e6))
    assert instance.optimum_gamma_T == 113.12236109448199


def test_what_is_optional_may_be_missing(tmp_path):
    instance = fdm.load(write(tmp_path, GOOD))
    assert (instance.name, instance.packet_bits) == ("case", 12000.0)
    assert instance.optimum_gamma_T is None


def test_nodes_may_have_names(tmp_path):
    named = {
        "nodes": ["ship", "shore"],
        "links": [{"tail": "ship", "head": "shore", "capacity_bps": 1e6}],
        "commodities": [{"origin": "ship", "destination": "shore", "demand_bps": 1e5}],
    }
    instance = fdm.load(write(tmp_path, named))
    assert fdm.solve(instance.network, instance.demands).feasible


def test_a_file_of_an_editor_that_marks_its_encoding_is_read(tmp_path):
    assert fdm.load(write(tmp_path, b"\xef\xbb\xbf" + json.dumps(GOOD).encode())).demands


@pytest.mark.parametrize("name", ["tac2", "nsfnet-90"])
def test_what_was_read_can_be_written_and_read_again(tmp_path, name):
    first = fdm.load(DATA / f"{name}.json")
    again = fdm.load(write(tmp_path, first.as_dict()))
    assert (again.network, again.demands) == (first.network, first.demands)
    assert (again.name, again.packet_bits) == (first.name, first.packet_bits)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes": None}, "nodes is missing"),
        ({"nodes": 2.5}, "nodes must be a whole number or a list of names, not 2.5"),
        ({"nodes": True}, "nodes must be a whole number or a list of names, not True"),
        ({"nodes": 10**12}, "nodes must be from 0 to 1000000, not 1000000000000"),
        ({"nodes": -1}, "nodes must be from 0 to 1000000, not -1"),
        ({"nodes": [0] * 1_000_001}, "nodes must be at most 1000000, but there are 1000001"),
        ({"nodes": [*range(200_000), 7]}, "node 7 is there twice"),
        ({"nodes": [0, True]}, "nodes[1] must be text or a whole number, not True"),
        ({"nodes": [[0], [1]]}, "nodes[0] must be text or a whole number, not [0]"),
        ({"nodes": ["a", "\x1b[2J"]}, "nodes[1] must be 1 to 100 printable characters"),
        ({"nodes": [LONG]}, "nodes[0] must be 1 to 100 printable characters, not 'xxx"),
        ({"nodes": [10**200]}, "nodes[0] must have at most 100 digits"),
        ({"links": {}}, "links must be a list, not {}"),
        ({"links": [3]}, "links[0] must be an object, not 3"),
        ({"links": [LINK, {**LINK, "head": 2}]}, "link 1 ends at 2, which is no node"),
        ({"links": [{**LINK, "capacity_bps": "1M"}]}, "links[0].capacity_bps must be a number"),
        ({"links": [{**LINK, "capacity_bps": True}]}, "links[0].capacity_bps must be a number"),
        ({"links": [{**LINK, "capacity_bps": 10**400}]}, "links[0].capacity_bps is too large"),
        (
            {"links": [{**LINK, "capacity_bps": -1}]},
            "links[0].capacity_bps must be 0 or from 0.001 to 1e+15, not -1",
        ),
        ({"links": [{**LINK, "capacity_bps": 1e300}]}, "from 0.001 to 1e+15, not 1e+300"),
        ({"links": [{**LINK, "delay_s": -1}]}, "links[0].delay_s must be from 0 to 1e+09, not -1"),
        ({"links": [{"tail": 0, "head": 1}]}, "links[0].capacity_bps is missing"),
        ({"commodities": [{**COMMODITY, "origin": 1}]}, "demand 0 begins where it ends, at 1"),
        (
            {"commodities": [{**COMMODITY, "demand_bps": None}]},
            "commodities[0].demand_bps is missing",
        ),
        ({"packet_bits": "big"}, "packet_bits must be a number, not 'big'"),
        ({"packet_bits": 0}, "packet_bits must be above 0, not 0"),
        ({"commodities": [{**COMMODITY, "demand_bps": 1e-300}]}, "commodities[0].demand_bps must"),
        ({"optimum": {"T": 1}}, "optimum.gamma_T is missing"),
        ({"optimum": 3}, "optimum must be an object, not 3"),
        ({"name": 3}, "name must be text, not 3"),
    ],
)
def test_a_file_that_is_wrong_is_refused_by_name_and_field(tmp_path, change, message):
    path = write(tmp_path, {**GOOD, **change})
    with pytest.raises(fdm.InstanceError, match=re.escape(message)) as caught:
        fdm.load(path)
    assert str(caught.value).startswith(str(path))
    assert len(str(caught.value)) < len(str(path)) + 300


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not JSON: Expecting"),
        ("", "not JSON: it is empty"),
        (b"\xff\xfe", "not JSON: byte 0 is not UTF-8 text"),
        (b"\x7fELF\x02\x01\x01\x00\x00", "not JSON"),
        ("[]", "must hold one JSON object, not a list"),
        ("null", "must hold one JSON object, not null"),
        ("7", "must hold one JSON object, not a number"),
        ("[" * 200_000, "not JSON: it is nested too deeply"),
        ('{"nodes": ' + "9" * 5000 + "}", "not JSON: Exceeds the limit (4300 digits)"),
        ('{"nodes": 2, "packet_bits": NaN}', "not JSON: NaN is no number in JSON"),
        ('{"nodes": 2, "packet_bits": -Infinity}', "not JSON: -Infinity is no number"),
        ('{"nodes": 2, "links": [], "commodities": [], "packet_bits": 1e999}', "too large"),
    ],
)
def test_what_is_no_json_object_of_finite_numbers_is_refused(tmp_path, content, message):
    with pytest.raises(fdm.InstanceError, match=re.escape(message)):
        fdm.load(write(tmp_path, content))


def test_what_is_no_regular_file_is_refused_without_waiting(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path, message in [
        (tmp_path / "nothing.json", "cannot be read: No such file"),
        (tmp_path, "cannot be read: it is a directory"),
        (pipe, "cannot be read: it is no regular file"),
        (Path("/dev/zero"), "cannot be read: it is no regular file"),
        (tmp_path / ("x" * 300), "cannot be read: File name too long"),
    ]:
        with pytest.raises(fdm.InstanceError, match=message):
            fdm.load(path)


def test_a_huge_file_is_refused_unread(tmp_path):
    path = tmp_path / "huge.json"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # a hole; nothing is stored
    with pytest.raises(fdm.InstanceError, match="must hold at most 64 MB, but is larger"):
        fdm.load(path)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from([10**12, 1e308, -0.0, 5e-324, "0", LONG, 10**400]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*GOOD, *LINK, *COMMODITY, "packet_bits", "optimum", "name"])
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@st.composite
def damaged(draw):
    """An instance with a value somewhere replaced by anything."""
    tree = json.loads(json.dumps({**GOOD, "packet_bits": 1, "optimum": {"gamma_T": 1}}))
    places = [(tree, key) for key in [*tree, "name"]]
    places += [(tree["links"][0], key) for key in LINK]
    places += [(tree["commodities"][0], key) for key in COMMODITY]
    places += [(tree["links"], 0), (tree["commodities"], 0), (tree["optimum"], "gamma_T")]
    for holder, key in draw(st.lists(st.sampled_from(places), min_size=1, max_size=2)):
        holder[key] = draw(json_values)
    return json.dumps(tree)


def load_or_sentence(path: Path) -> fdm.Instance | None:
    try:
        return fdm.load(path)
    except fdm.InstanceError as error:
        sentence = str(error)
        assert "\n" not in sentence
        assert sentence.startswith(f"{path}: ")
        assert len(sentence) < len(str(path)) + 400
        return None


@given(damaged() | st.binary(max_size=60) | json_values.map(json.dumps))
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_in_a_file_gives_an_instance_or_one_sentence(tmp_path, content):
    instance = load_or_sentence(write(tmp_path, content))
    if instance is not None:
        assert math.isfinite(instance.packet_bits)
        assert len(instance.network.nodes) <= reader.MOST_NODES
        json.dumps(instance.as_dict(), allow_nan=False)
