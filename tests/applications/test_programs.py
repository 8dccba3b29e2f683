"""Both programs of an application, over real sockets of this machine's loopback interface."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tactical.applications.connections import IPPROTO_MPTCP
from tactical.applications.description import Description

HOST, STATION = "127.0.0.2", "127.0.0.1"
LIMIT_S = 20.0


def kernel_has(transport: str) -> bool:
    if transport != "mptcp":
        return True
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP).close()
    except OSError:
        return False
    return True


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        return int(taken.getsockname()[1])


def described(kind: str, transport: str, *, upwards: bool, items: int, size: int) -> Description:
    every_s = 0.02
    think = kind == "requests"
    return Description(
        name=f"ship1-{kind}",
        kind=kind,
        transport=transport,
        upwards=upwards,
        host=HOST,
        station=STATION,
        port=free_port(),
        congestion_control="cubic",
        start_s=0.05,
        end_s=1e9,
        at_s=[every_s] * items if think else [0.05 + every_s * n for n in range(items)],
        size_bytes=[size + 16 * n for n in range(items)],
        request_bytes=300 if think else 0,
    )


Records = dict[str, dict[str, Any]]


def run_both(directory: Path, descriptions: list[Description], for_s: float) -> Records:
    """Both programs run for a while; what they wrote by its name."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tactical.applications", side, str(directory)],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for side in ("host", "station")
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(json.dumps([each.to_json() for each in descriptions]) + "\n")
        process.stdin.flush()
    for process in processes:
        assert process.stderr is not None
        assert process.stderr.readline() == "ready\n"
    zero_s = time.monotonic()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write(f"{zero_s!r}\n")
        process.stdin.flush()
    time.sleep(for_s)
    for process in processes:
        _, said = process.communicate(timeout=LIMIT_S)
        assert process.returncode == 0, said
    return {file.stem: json.loads(file.read_text()) for file in directory.glob("*.json")}


TRANSPORTS = ["tcp", *(["mptcp"] if kernel_has("mptcp") else [])]
KINDS = [
    (kind, transport, upwards)
    for kind in ("constant", "files", "requests")
    for transport in TRANSPORTS
    for upwards in (True, False)
] + [("constant", "udp", True), ("constant", "udp", False)]


@pytest.fixture(scope="module")
def everything(tmp_path_factory) -> tuple[list[Description], Records]:
    """All kinds at once, as the programs of a node run all its applications."""
    descriptions = [
        replace(described(*how[:2], upwards=how[2], items=10, size=1000), name=f"a{number}")
        for number, how in enumerate(KINDS)
    ]
    return descriptions, run_both(tmp_path_factory.mktemp("traffic"), descriptions, 2.0)


@pytest.mark.parametrize("number", range(len(KINDS)), ids=map(str, KINDS))
def test_every_item_arrives_in_whole_and_after_it_was_sent(everything, number):
    what = everything[0][number]
    client, server = (everything[1][f"a{number}-{side}"] for side in ("client", "server"))
    sender, receiver = (client, server) if what.upwards else (server, client)
    assert (sender["sends"], receiver["sends"]) == (True, False)
    assert client["errors"] == server["errors"] == {}
    assert receiver["received_bytes"] == sum(what.size_bytes)
    beginner = {"files": client, "requests": receiver}.get(what.kind, sender)
    for begin_s, done_s in zip(beginner["begun_s"], receiver["done_s"], strict=True):
        assert begin_s < done_s
    if what.kind != "requests":
        assert all(b >= at_s for b, at_s in zip(beginner["begun_s"], what.at_s, strict=True))


@pytest.mark.skipif(kernel_has("mptcp"), reason="this kernel has multipath TCP")
def test_a_kernel_without_multipath_tcp_is_told(tmp_path):
    what = described("files", "mptcp", upwards=True, items=1, size=1)
    done = subprocess.run(
        [sys.executable, "-m", "tactical.applications", "host", str(tmp_path)],
        input=json.dumps([what.to_json()]) + "\n",
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("a socket cannot be opened: Protocol not ")


def test_a_message_is_complete_only_with_its_last_byte(tmp_path):
    """A peer that sends byte by byte, so that reads and messages never end together."""
    what = replace(
        described("constant", "tcp", upwards=False, items=3, size=4), size_bytes=[4, 1, 5]
    )
    with socket.create_server((HOST, what.port)) as server:
        process = subprocess.Popen(
            [sys.executable, "-m", "tactical.applications", "station", str(tmp_path)],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdin is not None and process.stderr is not None
        process.stdin.write(json.dumps([what.to_json()]) + "\n")
        process.stdin.write(f"{time.monotonic()!r}\n")
        process.stdin.flush()
        connection, _ = server.accept()
        with connection:
            for _ in range(9):
                connection.sendall(b"x")
                time.sleep(0.02)
        process.communicate(timeout=LIMIT_S)
    record = json.loads((tmp_path / "ship1-constant-client.json").read_text())
    assert record["received_bytes"] == 9
    first, second, third = record["done_s"]
    assert first < second
    assert third is None
    assert record["errors"] == {"connection: ended early": 1}


def test_a_connection_that_is_refused_is_tried_again(tmp_path):
    what = described("files", "tcp", upwards=False, items=1, size=5000)
    station = subprocess.Popen(
        [sys.executable, "-m", "tactical.applications", "station", str(tmp_path)],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert station.stdin is not None and station.stderr is not None
    station.stdin.write(json.dumps([what.to_json()]) + f"\n{time.monotonic()!r}\n")
    station.stdin.flush()
    assert station.stderr.readline() == "ready\n"
    time.sleep(0.6)
    with socket.create_server((HOST, what.port)) as server:
        connection, _ = server.accept()
        with connection:
            assert connection.recv(4) == bytes(4)
            connection.sendall(bytes(5000))
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(1) == b""
    station.communicate(timeout=LIMIT_S)
    record = json.loads((tmp_path / "ship1-files-client.json").read_text())
    assert record["received_bytes"] == 5000
    assert record["errors"]["connect: Connection refused"] >= 1


def test_a_port_that_is_taken_is_told_at_once(tmp_path):
    what = described("files", "tcp", upwards=True, items=1, size=1)
    with socket.create_server((HOST, what.port)):
        done = subprocess.run(
            [sys.executable, "-m", "tactical.applications", "host", str(tmp_path)],
            input=json.dumps([what.to_json()]) + "\n",
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == "a socket cannot be opened: Address already in use\n"
