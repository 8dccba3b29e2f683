"""How quantities are written: with the same digits in every table, page and caption.

Mbit/s have three digits after the point, Jain's index four; milliseconds one, below 10 ms two and
below 1 ms three, so that delays within one room can be told apart, too; seconds two, below 0.1 s
three; percent two.
"""

NOTHING = "–"
"""What stands for a value that is not known."""

# For each unit: digits after the point, from which size on.
_DECIMALS = {
    "Mbit/s": ((3, 0.0),),
    "ms": ((1, 10.0), (2, 1.0), (3, 0.0)),
    "s": ((2, 0.1), (3, 0.0)),
    "%": ((2, 0.0),),
    "": ((4, 0.0),),
}


def decimals(unit: str, value: float) -> int:
    """Digits after the point.

    Parameters
    ----------
    unit : str
        "Mbit/s", "s", "ms", "%", or "" for Jain's index.
    value : float
        In that unit.
    """
    known = _DECIMALS[unit]
    size = abs(value)
    return next((digits for digits, least in known if size >= least and size), known[0][0])


def _written(value: float | None, unit: str, scale: float = 1.0) -> str:
    if value is None:
        return NOTHING
    return f"{value * scale:.{decimals(unit, value * scale)}f}"


def megabits(value: float | None) -> str:
    """A rate in bit/s, written in Mbit/s."""
    return _written(value, "Mbit/s", 1e-6)


def seconds(value: float | None) -> str:
    """A time in seconds."""
    return _written(value, "s")


def milliseconds(value: float | None) -> str:
    """A time in seconds, written in ms."""
    return _written(value, "ms", 1e3)


def percent(share: float | None) -> str:
    """A share, written in percent."""
    return _written(share, "%", 1e2)


def jain(value: float | None) -> str:
    """Jain's index of fairness."""
    return _written(value, "")


def ratio(value: float | None) -> str:
    """A plain number without a unit."""
    return NOTHING if value is None else f"{value:.3f}"


def whole(value: int | None) -> str:
    """A count, with spaces between thousands."""
    return NOTHING if value is None else f"{value:,}".replace(",", " ")
