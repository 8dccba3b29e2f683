"""Who watches, who of them steers, and what each has still to be told. Pure.

A viewer that does not take a message in time is not sent those in between: its next one holds all
that has changed since its last. So a slow browser never holds anything up, and needs no queue.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from typing import Any

from .sources import Source

MOST_VIEWERS = 20


class Full(Exception):
    """There are as many viewers as there may be."""


@dataclass(eq=False)
class Viewer:
    """One page that is connected.

    Attributes
    ----------
    allowed : bool
        It has the token, and may steer.
    version, epoch : int
        What it has been told.
    tick : int
        When it was told that.
    coalesced : int
        Ticks that it did not get a message of its own for, because it was slow.
    """

    allowed: bool
    version: int = 0
    epoch: int = 0
    tick: int = 0
    coalesced: int = 0


class Viewers:
    """Everybody who watches one source.

    Parameters
    ----------
    source : Source
        What is watched.
    token : str
        What somebody who steers has to know.
    """

    def __init__(self, source: Source, token: str) -> None:
        self.source = source
        self.tick = 0
        self.coalesced = 0
        self._token = token
        self._present: list[Viewer] = []
        self._steering: Viewer | None = None
        self._messages: dict[tuple[int, int, bool], str] = {}

    @property
    def count(self) -> int:
        """How many watch."""
        return len(self._present)

    def join(self, token: str) -> Viewer:
        """Let somebody watch; one with the token steers from now on, and who did before does not.

        Raises
        ------
        Full
            If `MOST_VIEWERS` watch already.
        """
        if len(self._present) >= MOST_VIEWERS:
            raise Full(f"{MOST_VIEWERS} viewers are connected, and no more can be")
        viewer = Viewer(secrets.compare_digest(token.encode(), self._token.encode()))
        self._present.append(viewer)
        if viewer.allowed:
            self._steering = viewer
        return viewer

    def leave(self, viewer: Viewer) -> None:
        """Somebody has gone; of those with the token, the last to come steers."""
        self._present.remove(viewer)
        if self._steering is viewer:
            self._steering = next((v for v in reversed(self._present) if v.allowed), None)

    def steers(self, viewer: Viewer) -> bool:
        """Whether this is the one who steers."""
        return viewer is self._steering

    def advance(self, now_s: float) -> None:
        """One tick later: take in what has happened."""
        self.tick += 1
        self._messages.clear()
        self.source.advance(now_s)

    def message(self, viewer: Viewer) -> str:
        """What a viewer has to be told now, as JSON; it counts as told."""
        source = self.source  # another thread may exchange it
        first = viewer.epoch != source.epoch
        seen = 0 if first else viewer.version
        if viewer.tick:
            missed = max(0, self.tick - viewer.tick - 1)
            viewer.coalesced += missed
            self.coalesced += missed
        key = (source.epoch, seen, self.steers(viewer))
        text = self._messages.get(key)
        if text is None:
            text = json.dumps(self._told(source, seen, first, key[2]), allow_nan=False)
            self._messages[key] = text
        viewer.version, viewer.epoch = source.state.store.version, source.epoch
        viewer.tick = self.tick
        return text

    def _told(self, source: Source, seen: int, first: bool, steering: bool) -> dict[str, Any]:
        told = {
            "type": "state",
            "full": first,
            "steering": steering,
            "viewers": self.count,
            "coalesced": self.coalesced,
            **source.state.store.since(seen),
        }
        if first:
            told["mode"] = source.mode
            told["setup"] = source.state.setup.document()
        return told
