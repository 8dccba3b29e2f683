"""The page's server, over real sockets."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from tactical.live.server import STATIC, ServerError, serving
from tactical.live.sources import Replay
from tactical.live.viewers import MOST_VIEWERS, Viewers

from .conftest import RUNS

LARGEST_BYTES = 1_000_000


@pytest.fixture
def address() -> Iterator[str]:
    viewers = Viewers(Replay(RUNS / "fdm"), "secret")
    with serving(viewers, "127.0.0.1", 0) as served:
        yield served


def socket_url(address: str, token: str = "") -> str:
    return f"{address.replace('http', 'ws')}watch?token={token}"


def test_twenty_watch_and_one_steers(address: str) -> None:
    with ExitStack() as stack:
        watching = [
            stack.enter_context(connect(socket_url(address))) for _ in range(MOST_VIEWERS - 1)
        ]
        steering = stack.enter_context(connect(socket_url(address, "secret")))
        for each in watching:
            assert json.loads(each.recv(timeout=10))["full"]
        with connect(socket_url(address)) as one_more, pytest.raises(ConnectionClosed) as closed:
            one_more.recv(timeout=10)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1013
        steering.send('{"do": "seek", "t_s": 7.0}')
        for each in (*watching, steering):
            while (
                "ship1"
                not in (message := json.loads(each.recv(timeout=10)))["sections"].get(
                    "associated", {}
                )
                or message["sections"]["associated"]["ship1"] is None
            ):
                pass
            assert message["sections"]["associated"]["ship1"] == "uav"


@pytest.mark.parametrize(
    ("token", "text", "reason"),
    [
        ("", '{"do": "play", "playing": true}', "only watches"),
        ("secret", "no JSON", "JSON object"),
        ("secret", "[1]", "JSON object"),
        ("secret", '{"do": "link", "relay": "satcom", "up": false}', "a recording"),
        ("secret", '{"do": "seek", "t_s": NaN}', "seconds"),
        ("secret", '{"do": "speed", "speed": 1e9}', "speed"),
    ],
)
def test_what_cannot_be_done_is_answered_with_the_reason(
    address: str, token: str, text: str, reason: str
) -> None:
    with connect(socket_url(address, token)) as socket:
        socket.send(text)
        while (message := json.loads(socket.recv(timeout=10)))["type"] != "refused":
            pass
    assert reason in message["reason"]


@pytest.mark.parametrize(
    ("headers", "problem"),
    [({"Origin": "http://elsewhere.example"}, 403), ({"Host": "elsewhere.example"}, 400)],
)
def test_pages_of_other_sites_get_nothing(
    address: str, headers: dict[str, str], problem: int
) -> None:
    if "Host" in headers:
        assert httpx.get(f"{address}state", headers=headers).status_code == problem
        return
    with pytest.raises(InvalidStatus) as refused:
        connect(socket_url(address), additional_headers=headers)
    assert refused.value.response.status_code == problem


def test_the_state_is_one_document(address: str) -> None:
    document = httpx.get(f"{address}state").json()
    assert (document["mode"], document["setup"]["scenario"]) == ("replay", "direct-move")


def test_a_port_in_use_is_one_sentence(address: str) -> None:
    port = int(address.rstrip("/").rpartition(":")[2])
    viewers = Viewers(Replay(RUNS / "fdm"), "secret")
    with pytest.raises(ServerError, match="in use"), serving(viewers, "127.0.0.1", port):
        pass


def test_what_the_page_loads_is_small_and_licensed() -> None:
    files = [path for path in STATIC.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < LARGEST_BYTES
    for library in (path for path in (STATIC / "vendor").iterdir() if path.is_dir()):
        assert (library / "LICENSE").read_text().strip(), library.name


def test_no_file_of_ours_names_another_machine() -> None:
    own = [p for p in STATIC.iterdir() if p.is_file()]
    assert own
    for path in own:
        assert "://" not in Path(path).read_text(), path.name
