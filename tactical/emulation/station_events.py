"""What access points say of their stations: the events of hostapd's control interface.

The interface is a datagram socket for each access point; whoever sends ATTACH gets every event as
a message of its own (hostapd's ``wpa_ctrl``).
"""

from __future__ import annotations

import re
import selectors
import socket
import threading
import time

from .control import ControllerProcess
from .events import EventLog
from .network import Network
from .processes import EmulationError

ANSWER_TIMEOUT_S = 10.0
_LONGEST_MESSAGE_BYTES = 4096


class StationEvents:
    """Passes on who joins and leaves the access points of a network; a context manager.

    Parameters
    ----------
    network
        The network; its access points run.
    control, events
        Whom to tell: the controller, and the log of the run.

    Raises
    ------
    EmulationError
        On entering, if a hostapd does not answer.
    """

    def __init__(self, network: Network, control: ControllerProcess, events: EventLog) -> None:
        self._sockets = {
            radio.access_point: str(network.hostapd_control / radio.interface)
            for radio in network.plan.radios
        }
        self._control = control
        self._events = events
        self._users = {i.mac: i.node for i in network.plan.host_interfaces if i.wireless}
        self._selector = selectors.DefaultSelector()
        self._end, self._ended = socket.socketpair()
        self._thread = threading.Thread(target=self._follow, name="station events", daemon=True)

    def __enter__(self) -> StationEvents:
        self._selector.register(self._ended, selectors.EVENT_READ)
        for access_point, path in self._sockets.items():
            attached = _attached(path, access_point)
            self._selector.register(attached, selectors.EVENT_READ, access_point)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.send(b".")
        self._thread.join(ANSWER_TIMEOUT_S)
        for key in list(self._selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
        self._end.close()
        self._selector.close()

    def _follow(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if key.data is None:
                    return
                assert isinstance(key.fileobj, socket.socket)
                message, now_s = key.fileobj.recv(_LONGEST_MESSAGE_BYTES), time.monotonic()
                self._pass_on(key.data, message.decode(errors="replace"), now_s)

    def _pass_on(self, access_point: str, message: str, now_s: float) -> None:
        if (change := station_change(message)) is None:
            return
        mac, joined = change
        if (user := self._users.get(mac)) is not None:
            self._control.report(user, access_point, joined, source="hostapd")
            kind = "station_joined" if joined else "station_left"
            self._events.write(kind, access_point, now_s, user=user)


def station_change(message: str) -> tuple[str, bool] | None:
    """MAC address of the station that a message is about, and whether it joined; else None."""
    found = re.match(r"<\d+>AP-STA-(DIS)?CONNECTED ((?:[0-9a-f]{2}:){5}[0-9a-f]{2})\b", message)
    return None if found is None else (found[2], found[1] is None)


def _attached(path: str, access_point: str) -> socket.socket:
    """A socket that gets the events of the hostapd that listens at `path`."""
    attached = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        attached.bind("")  # the kernel chooses an abstract address: unix(7), autobind
        attached.settimeout(ANSWER_TIMEOUT_S)
        attached.connect(path)
        attached.send(b"ATTACH")
        answer = attached.recv(_LONGEST_MESSAGE_BYTES)
    except OSError as error:
        attached.close()
        raise EmulationError(f"hostapd of {access_point} at {path}: {error.strerror}") from None
    if answer != b"OK\n":
        attached.close()
        raise EmulationError(f"hostapd of {access_point} at {path} refused ATTACH: {answer!r}")
    return attached
