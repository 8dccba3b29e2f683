"""What hostapd says of stations, from a socket that speaks as it does."""

import json
import socket
import threading
from pathlib import Path

import pytest

import scenarios
from tactical.emulation.events import EventLog
from tactical.emulation.mininet_network import MininetNetwork
from tactical.emulation.plan import make_plan
from tactical.emulation.processes import EmulationError
from tactical.emulation.station_events import StationEvents, station_change

MAC = "02:ac:00:02:00:01"


@pytest.mark.parametrize(
    ("message", "change"),
    [
        (f"<3>AP-STA-CONNECTED {MAC}", (MAC, True)),
        (f"<3>AP-STA-CONNECTED {MAC} keyid=lab", (MAC, True)),
        (f"<3>AP-STA-DISCONNECTED {MAC}", (MAC, False)),
        (f"<3>AP-STA-POLL-OK {MAC}", None),
        ("<3>AP-STA-CONNECTED 02:ac", None),
        ("FAIL\n", None),
        ("", None),
    ],
)
def test_messages(message: str, change: tuple[str, bool] | None) -> None:
    assert station_change(message) == change


class Told:
    """Stands where the controller's process does, and remembers."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, bool, str]] = []
        self.heard = threading.Event()

    def report(self, user: str, access_point: str, associated: bool, source: str) -> None:
        self.lines.append((user, access_point, associated, source))
        if len(self.lines) == 2:
            self.heard.set()


def test_who_joins_and_leaves_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = make_plan(scenarios.load("direct-move").build(0), "fdm")
    network = MininetNetwork(plan, tmp_path)
    monkeypatch.setattr(network, "hostapd_control", tmp_path)
    station = next(i for i in plan.host_interfaces if i.wireless)
    told = Told()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as hostapd, EventLog(tmp_path) as events:
        with pytest.raises(EmulationError, match=r"hostapd of uav at .* No such file"):
            StationEvents(network, told, events).__enter__()
        hostapd.bind(str(tmp_path / plan.radios[0].interface))

        def serve() -> None:
            request, client = hostapd.recvfrom(100)
            assert request == b"ATTACH"
            hostapd.sendto(b"OK\n", client)
            for what in ("CONNECTED 02:00:00:00:00:09", f"CONNECTED {station.mac}"):
                hostapd.sendto(f"<3>AP-STA-{what}".encode(), client)
            hostapd.sendto(f"<3>AP-STA-DISCONNECTED {station.mac}".encode(), client)

        serving = threading.Thread(target=serve)
        serving.start()
        with StationEvents(network, told, events):
            assert told.heard.wait(30.0)
        serving.join()
    user = station.node
    assert told.lines == [(user, "uav", True, "hostapd"), (user, "uav", False, "hostapd")]
    kinds = [json.loads(line)["kind"] for line in (tmp_path / "events.jsonl").open()]
    assert kinds[:1] == ["station_joined"]
