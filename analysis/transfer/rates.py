"""Rates over time, and how equally they are divided."""

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

# Steps that people count in.
_STEPS_S = tuple(m * 10.0**e for e in range(-5, 9) for m in (1, 2, 5))
MOST_STEPS = 120


def step_s(duration_s: float, most: int = MOST_STEPS) -> float:
    """A round length of time of which so many at most fill the duration.

    Parameters
    ----------
    duration_s : float
    most : int

    Returns
    -------
    float
        1, 2 or 5 times a power of ten, seconds.
    """
    return next((each for each in _STEPS_S if duration_s / each <= most), _STEPS_S[-1])


def edges_s(start_s: float, end_s: float, step: float) -> F64:
    """Limits of the steps that cover a time, multiples of the step."""
    first, last = np.floor(start_s / step), np.ceil(end_s / step)
    return np.arange(first, max(last, first + 1) + 1) * step


def rates_bps(at_s: F64, sizes: I64, edges: F64) -> F64:
    """Mean rate in each step.

    Parameters
    ----------
    at_s : float64 array
        When something was seen.
    sizes : int64 array
        Bytes of it.
    edges : float64 array
        Limits of the steps, seconds.

    Returns
    -------
    float64 array
        bit/s, one entry fewer than edges.
    """
    summed, _ = np.histogram(at_s, bins=edges, weights=sizes.astype(np.float64))
    rates: F64 = 8 * summed / np.diff(edges)
    return rates


def jain_over_time(rates: F64, active: NDArray[np.bool_]) -> F64:
    """Jain's fairness index in each step of those who take part in it.

    Parameters
    ----------
    rates : float64 array (connections, steps)
    active : bool array (connections, steps)
        Who takes part.

    Returns
    -------
    float64 array (steps,)
        (Σr)² / (n Σr²) over the active (Jain, Chiu, Hawe 1984, DEC-TR-301); NaN where fewer than
        two are, or nothing moves.
    """
    taking = np.where(active, rates, 0.0)
    number = active.sum(axis=0)
    squares = (taking**2).sum(axis=0)
    index = np.full(rates.shape[1], np.nan)
    known = (number >= 2) & (squares > 0)
    index[known] = taking.sum(axis=0)[known] ** 2 / (number[known] * squares[known])
    return index
