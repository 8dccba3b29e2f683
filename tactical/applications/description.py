"""What an application shall do, and what it did. Pure, but for reading the clock."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Description:
    """An application as both of its ends know it.

    Attributes
    ----------
    name, kind : str
        As in the plan; the kind is that of `scenarios.traffic`.
    transport : str
        "tcp", "mptcp" or "udp".
    upwards : bool
        Whether data go from the station to the host; with requests, the responses.
    host, station : str
        Addresses; the station's is that of its first interface.
    port : int
        At the host; for datagrams also at the station.
    congestion_control : str
    start_s, end_s : float
        Run times between which something may begin.
    at_s : list of float
        When each item begins; with requests, the time to think before each.
    size_bytes : list of int
        Size of each item, or response.
    request_bytes : int
        Size of each request.
    """

    name: str
    kind: str
    transport: str
    upwards: bool
    host: str
    station: str
    port: int
    congestion_control: str
    start_s: float
    end_s: float
    at_s: list[float]
    size_bytes: list[int]
    request_bytes: int = 0

    def to_json(self) -> dict[str, Any]:
        """Plain data, from which `Description` can be made again."""
        return asdict(self)


@dataclass
class Record:
    """What one end of an application saw; times are run time.

    Attributes
    ----------
    begun_s : list of float or None
        When each item began to be sent here, or a request to be asked; ``None`` if it never was,
        or that is for the other end to say.
    done_s : list of float or None
        When all of an item had arrived here.
    received_bytes : int
        Also of items that did not arrive completely.
    duplicates : int
        Datagrams that came again.
    errors : dict of str to int
        What the network did to it, and how often.
    """

    begun_s: list[float | None]
    done_s: list[float | None]
    received_bytes: int = 0
    duplicates: int = 0
    errors: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, description: Description) -> Record:
        """The record of an application that has done nothing so far."""
        nothing: list[float | None] = [None] * len(description.size_bytes)
        return cls([*nothing], [*nothing])

    def failed(self, what: str, error: OSError) -> None:
        """Note what the network did."""
        said = f"{what}: {error.strerror}"
        self.errors[said] = self.errors.get(said, 0) + 1


class Clock:
    """Run time, from the machine's monotonic clock at run time 0."""

    def __init__(self, zero_s: float) -> None:
        self._zero_s = zero_s

    @property
    def now_s(self) -> float:
        """Seconds of run time."""
        return round(time.monotonic() - self._zero_s, 6)
