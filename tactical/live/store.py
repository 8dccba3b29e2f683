"""Values and series that know when they changed, so that anybody can be told what is new. Pure.

Every change gets the next version number. Somebody who has seen version N is told all that changed
after it, each value once and as it is now: a late joiner asks since 0, and whoever is slow simply
asks less often. Nothing is queued for anybody.
"""

from __future__ import annotations

from collections import deque
from typing import Any

POINTS_KEPT = 1200
"""Points of a series that are kept: 20 minutes at one a second."""

Point = list[float | None]


class Store:
    """Sections of keyed values, and series of points, of plain data as JSON has it.

    Attributes
    ----------
    version : int
        Number of the last change; 0 is an empty store.
    """

    def __init__(self) -> None:
        self.version = 0
        self._sections: dict[str, dict[str, tuple[int, Any]]] = {}
        self._series: dict[str, deque[tuple[int, Point]]] = {}

    def put(self, section: str, key: str, value: Any) -> None:
        """Set a value; one that is the same already is no change."""
        entries = self._sections.setdefault(section, {})
        known = entries.get(key)
        if known is None or known[1] != value:
            self.version += 1
            entries[key] = (self.version, value)

    def get(self, section: str, key: str, default: Any = None) -> Any:
        """A value."""
        found = self._sections.get(section, {}).get(key)
        return default if found is None else found[1]

    def section(self, name: str) -> dict[str, Any]:
        """All values of a section."""
        return {key: value for key, (_, value) in self._sections.get(name, {}).items()}

    def forget(self, section: str, key: str) -> None:
        """Drop a value without telling anybody, to bound what is kept."""
        self._sections.get(section, {}).pop(key, None)

    def append(self, series: str, point: Point) -> None:
        """Add a point; the oldest goes when there are `POINTS_KEPT`."""
        self.version += 1
        self._series.setdefault(series, deque(maxlen=POINTS_KEPT)).append((self.version, point))

    def since(self, version: int) -> dict[str, Any]:
        """What has changed after `version`.

        Returns
        -------
        dict
            ``version`` to ask since next time, ``sections`` with the values that changed, and
            ``series`` with the points that were added.
        """
        sections = {
            name: changed
            for name, entries in self._sections.items()
            if (changed := {key: value for key, (at, value) in entries.items() if at > version})
        }
        series = {}
        for name, points in self._series.items():
            new = []
            for at, point in reversed(points):
                if at <= version:
                    break
                new.append(point)
            if new:
                series[name] = new[::-1]
        return {"version": self.version, "sections": sections, "series": series}
