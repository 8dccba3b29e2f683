import dataclasses
import json
import math
import os
from pathlib import Path
from typing import Any

import pytest

import scenarios
from tactical.controller import network as description
from tactical.controller.__main__ import main
from tactical.emulation.control import controlled_network
from tactical.emulation.plan import make_plan


@pytest.fixture
def document() -> dict[str, Any]:
    scenario = scenarios.load("direct-move").build(1)
    return dataclasses.asdict(controlled_network(make_plan(scenario, "fdm"), scenario))


def write(tmp_path: Path, document: object) -> Path:
    file = tmp_path / "network.json"
    file.write_text(json.dumps(document))
    return file


def test_description_survives_the_file(tmp_path: Path) -> None:
    scenario = scenarios.load("direct-move").build(1)
    network = controlled_network(make_plan(scenario, "fdm"), scenario)
    description.save(network, tmp_path / "network.json")
    assert description.load(tmp_path / "network.json") == network


def without(document: dict[str, Any], key: str) -> dict[str, Any]:
    return {k: v for k, v in document.items() if k != key}


def put(document: dict[str, Any], part: str, field: str, value: object) -> dict[str, Any]:
    """The document with another value in the first row of a part."""
    first, *others = document[part]
    return {**document, part: [{**first, field: value}, *others]}


FAULTS = [
    (lambda d: without(d, "server"), "server: expected an object"),
    (lambda d: without(d, "trunks"), "trunks: expected a list"),
    (lambda d: without(d, "policy"), "policy is missing"),
    (
        lambda d: {**d, "policy": "magic"},
        "policy: 'magic'; expected one of ecmp, fdm, maxflow, shortest",
    ),
    (lambda d: {**d, "colour": "red"}, "unknown field 'colour'"),
    (lambda d: {**d, "datapaths": [1]}, r"datapaths\[0\]: expected an object"),
    (lambda d: {**d, "datapaths": []}, "datapath 'satcom' is used but not described"),
    (lambda d: {**d, "ports": []}, "datapath 'satcom' has no port 'satcom-eth1'"),
    (lambda d: {**d, "demands": [{"user": "x", "rate_bps": 1}]}, "user 'x' has no attachment"),
    (lambda d: {**d, "datapaths": [{"name": "s", "dpid": "1"}]}, "dpid: '1'; expected int"),
    (lambda d: {**d, "capacity_share": True}, "capacity_share: True; expected float"),
    (
        lambda d: {**d, "settings": {"queue_mode": "loose"}},
        "queue_mode: 'loose'; expected one of overflow",
    ),
    (lambda d: [], "expected an object at the top"),
    (lambda d: put(d, "datapaths", "dpid", 2**64), "dpid: 18446744073709551616; expected a number"),
    (lambda d: put(d, "ports", "number", 0), "number: 0; expected a number from 1 to 4294967040"),
    (lambda d: put(d, "attachments", "address", "10.0.0.999"), "'10.0.0.999'; expected an IPv4"),
    (lambda d: put(d, "attachments", "mac", "02:00"), "mac: '02:00'; expected a MAC address"),
    (lambda d: put(d, "attachments", "user", "\ud800"), "expected text that can be printed"),
    (lambda d: put(d, "trunks", "rate_bps", 10**400), "rate_bps: 10*…; expected 0 or a number"),
    (lambda d: put(d, "trunks", "delay_s", math.nan), "delay_s: nan; expected a number from 0"),
    (lambda d: put(d, "datapaths", "ovsdb", "ssl:h:1"), "'ssl:h:1'; expected tcp:ADDRESS:PORT"),
    (lambda d: {**d, "capacity_share": 1.5}, "capacity_share: 1.5; expected a number from"),
    (lambda d: {**d, "settings": {"period_s": 1e300}}, r"period_s: 1e\+300; expected a number"),
]


@pytest.mark.parametrize(("damage", "message"), FAULTS, ids=[m for _, m in FAULTS])
def test_faults_are_named(
    tmp_path: Path, document: dict[str, Any], damage: Any, message: str
) -> None:
    file = write(tmp_path, damage(document))
    with pytest.raises(description.NetworkError, match=message) as caught:
        description.load(file)
    assert str(file) in str(caught.value)


@pytest.mark.parametrize("content", [None, "{", "\x00\xff"])
def test_controller_refuses_a_bad_file_in_one_sentence(
    tmp_path: Path, content: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "network.json"
    if content is not None:
        file.write_bytes(content.encode("latin-1"))
    assert main(["--network", str(file)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert str(file) in said


def test_only_a_regular_file_of_modest_depth_is_a_description(tmp_path) -> None:
    os.mkfifo(tmp_path / "pipe")
    deep = tmp_path / "deep.json"
    deep.write_text("[" * 100_000)
    for path, names in (
        (tmp_path / "pipe", "no regular file"),
        (tmp_path, "no regular file"),
        (Path("/dev/zero"), "no regular file"),
        (deep, "deep.json"),
    ):
        with pytest.raises(description.NetworkError, match=names):
            description.load(path)
