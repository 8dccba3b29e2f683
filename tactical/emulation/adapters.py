"""Network adapters: the libraries that a planned network can be built with.

An adapter is a :class:`~tactical.emulation.network.Network`; the rest of the emulation does not
know which one it works with. Their modules are imported on use, as each needs a library that is
slow to import, or that is not there.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ..host.libraries import mininet_wifi_problem
from .plan import Plan

if TYPE_CHECKING:
    from .network import Network

MININET, MININET_WIFI = "mininet", "mininet-wifi"
NETWORKS = (MININET, MININET_WIFI)


def adapter(name: str) -> Callable[[Plan, Path], Network]:
    """The adapter called `name`, one of `NETWORKS`.

    Raises
    ------
    ImportError
        If its library is not there; see `problem`.
    """
    if name == MININET_WIFI:
        from .mininet_wifi_network import MininetWifiNetwork

        return MininetWifiNetwork
    from .mininet_network import MininetNetwork

    return MininetNetwork


def problem(name: str) -> str | None:
    """Why networks cannot be built with this library here, and what to install; None if they can.

    Parameters
    ----------
    name
        One of `NETWORKS`.
    """
    return mininet_wifi_problem() if name == MININET_WIFI else None
