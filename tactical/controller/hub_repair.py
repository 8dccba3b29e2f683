"""Repairs of os-ken 4.1 and 4.2 on its native (threading) hub.

Two faults matter to a controller that must notice a dead switch: ``hub.Event.wait`` ignores
its timeout, and a datapath whose connection ends neither becomes dead nor ends its send
thread.  Nothing is done on another hub.
"""

from __future__ import annotations

import time
from typing import Any

from .framework import controller, handler, hub


def apply() -> None:
    """Repair the running os-ken; call once."""
    if getattr(hub, "HUB_TYPE", "") != "native":
        return
    hub.Event.wait = _wait
    receive = controller.Datapath._recv_loop

    def receive_then_end(datapath: Any) -> None:
        try:
            receive(datapath)
        finally:
            datapath.set_state(handler.DEAD_DISPATCHER)
            if (queue := datapath.send_q) is not None:
                queue.put((b"", True))  # wakes the send thread, which then ends

    controller.Datapath._recv_loop = receive_then_end


def _wait(event: Any, timeout: float | None = None) -> bool:
    deadline = None if timeout is None else time.monotonic() + timeout
    while not event.is_set():
        left = None if deadline is None else deadline - time.monotonic()
        if left is not None and left <= 0:
            break
        event._ev.wait(left)
    return bool(event.is_set())
