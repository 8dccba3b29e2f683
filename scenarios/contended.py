"""Contended: direct move where both paths are nearly full and their buffers deep."""

from dataclasses import dataclass, field
from typing import ClassVar

from scenarios.components import EntryTime, Load, Satcom, Uav
from scenarios.direct_move import DirectMove


@dataclass(frozen=True)
class Contended(DirectMove):
    """Two ships want nearly all that a satellite and a UAV can carry, behind deep buffers.

    In direct move the satellite has room for everybody, so that a careless split costs little.
    Here neither path carries the demand alone and both together only just do: two users of
    2.5 Mbit/s, 5.35 Mbit/s on the wire, over 4 + 2 Mbit/s. Whoever overfills a path waits in its
    buffer, and makes the others wait. It is what an allocation is for.

    Everything not listed is as in direct move.

    **Chosen here**:

    - ``satcom.rate_bps`` 4 Mbit/s, ``uav.rate_bps`` 2 Mbit/s, ``traffic.rate_bps`` 2.5 Mbit/s: a
      load of 0.89 once both paths are there; before that, 1.34 times what the satellite carries.
    - ``satcom.buffer_packets`` 1000: 3 s at the full rate. Satellite modems hold seconds of
      traffic, so that a TCP sender can fill a path of such a delay.
    - ``uav.buffer_packets`` 250: 1.5 s. Linux's own Wi-Fi default is 1000.
    - ``entry_time_s`` 20: a fifth of the run shows the satellite alone, overloaded.
    """

    name: ClassVar[str] = "contended"
    REFERENCE_GOODPUT_BPS: ClassVar[dict[str, float]] = {}
    REFERENCE: ClassVar[str] = ""

    entry_time_s: EntryTime = 20.0
    satcom: Satcom = field(default_factory=lambda: Satcom(rate_bps=4e6, buffer_packets=1000))
    uav: Uav = field(default_factory=lambda: Uav(rate_bps=2e6, buffer_packets=250))
    traffic: Load = field(default_factory=lambda: Load(rate_bps=2.5e6))
