"""Bounds of the numbers that the controller is told, whoever tells them. Pure."""

from __future__ import annotations

from dataclasses import dataclass

_SHOWN_CHARACTERS = 60


@dataclass(frozen=True)
class Quantity:
    """Which numbers are accepted: those between two bounds, and perhaps zero."""

    least: float
    most: float
    or_zero: bool = False

    def check(self, value: object) -> float:
        """Return `value` if it is one of them.

        Raises
        ------
        ValueError
            If it is not; the message says what it is and what is expected.
        """
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{shown(value)}; expected {self}")
        # Compared as it is: an integer may be too large for a float.
        if self.least <= value <= self.most or (self.or_zero and value == 0):
            return value
        raise ValueError(f"{shown(value)}; expected {self}")

    def __str__(self) -> str:
        zero = "0 or " if self.or_zero else ""
        return f"{zero}a number from {self.least:.12g} to {self.most:.12g}"


def shown(value: object) -> str:
    """A value as it is told in a message: its beginning will do."""
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


RATE_BPS = Quantity(1.0, 1e15)
RATE_OR_NONE_BPS = Quantity(1.0, 1e15, or_zero=True)
DELAY_S = Quantity(0.0, 1e6)
SPAN_S = Quantity(0.0, 1e9)
"""Some 30 years; Python waits no longer than 292 (`threading.TIMEOUT_MAX`)."""
POSITIVE_SPAN_S = Quantity(1e-6, 1e9)
MOMENT_S = Quantity(-1e9, 1e9)
"""So far from now."""
RATIO = Quantity(0.0, 1e6)
SIGNAL_DBM = Quantity(-1000.0, 1000.0)
DISTANCE_M = Quantity(0.0, 1e12)
