import json
import re
from pathlib import Path

import pytest

import fdm

DATA = Path(__file__).parent / "data"
LINK = {"tail": 0, "head": 1, "capacity_bps": 1e6, "delay_s": 0.1}
COMMODITY = {"origin": 0, "destination": 1, "demand_bps": 1e5}
GOOD = {"nodes": 2, "links": [LINK], "commodities": [COMMODITY]}


def write(tmp_path: Path, tree: object) -> Path:
    path = tmp_path / "case.json"
    path.write_text(json.dumps(tree))
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
    assert (instance.name, instance.packet_bits, instance.optimum_gamma_T) == (
        "case",
        12000.0,
        None,
    )


def test_nodes_may_have_names(tmp_path):
    named = {
        "nodes": ["ship", "shore"],
        "links": [{"tail": "ship", "head": "shore", "capacity_bps": 1e6}],
        "commodities": [{"origin": "ship", "destination": "shore", "demand_bps": 1e5}],
    }
    instance = fdm.load(write(tmp_path, named))
    assert fdm.solve(instance.network, instance.demands).feasible


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes": None}, "nodes is missing"),
        ({"nodes": 2.5}, "nodes must be a number or a list, not 2.5"),
        ({"nodes": True}, "nodes must be a number or a list, not True"),
        ({"nodes": [[0], [1]]}, "unhashable"),
        ({"links": {}}, "links must be a list"),
        ({"links": [3]}, "links[0] must be an object, not 3"),
        ({"links": [LINK, {**LINK, "head": 2}]}, "link 1 ends at 2, which is no node"),
        ({"links": [{**LINK, "capacity_bps": "1M"}]}, "links[0].capacity_bps must be a number"),
        ({"links": [{**LINK, "capacity_bps": -1}]}, "capacity_bps of link 0 (0 to 1) must be"),
        ({"links": [{"tail": 0, "head": 1}]}, "links[0].capacity_bps is missing"),
        ({"commodities": [{**COMMODITY, "origin": 1}]}, "demand 0 begins where it ends, at 1"),
        (
            {"commodities": [{**COMMODITY, "demand_bps": None}]},
            "commodities[0].demand_bps is missing",
        ),
        ({"packet_bits": "big"}, "packet_bits must be a number, not 'big'"),
        ({"optimum": {"T": 1}}, "optimum.gamma_T is missing"),
        ({"name": 3}, "name must be text, not 3"),
    ],
)
def test_a_file_that_is_wrong_is_refused_by_name_and_field(tmp_path, change, message):
    path = write(tmp_path, {**GOOD, **change})
    with pytest.raises(fdm.InstanceError, match=re.escape(message)) as caught:
        fdm.load(path)
    assert str(caught.value).startswith(str(path))


def test_what_is_no_json_object_is_refused(tmp_path):
    path = tmp_path / "case.json"
    with pytest.raises(fdm.InstanceError, match="cannot be read: No such file"):
        fdm.load(path)
    path.write_text("{")
    with pytest.raises(fdm.InstanceError, match="not JSON"):
        fdm.load(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(fdm.InstanceError, match="not JSON"):
        fdm.load(path)
    path.write_text("[]")
    with pytest.raises(fdm.InstanceError, match="must hold one JSON object, not list"):
        fdm.load(path)
