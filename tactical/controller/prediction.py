"""When a station will lose its access point, from the trend of what is measured. Pure."""

from __future__ import annotations

from collections.abc import Sequence

TREND_SAMPLES = 5
TREND_SPAN_S = 10.0
"""Samples older than this say nothing about a station's present course."""


def time_of_crossing(samples: Sequence[tuple[float, float]], threshold: float) -> float | None:
    """When a falling quantity crosses `threshold`.

    The trend is the straight line of least squares through the last :data:`TREND_SAMPLES`
    samples of the last :data:`TREND_SPAN_S` seconds.

    Parameters
    ----------
    samples
        (time in seconds, value) in order of time.
    threshold
        In the unit of the values.

    Returns
    -------
    float or None
        A time in seconds, not before the last sample; None if there are fewer than three
        samples or the quantity does not fall.
    """
    if not samples:
        return None
    last_s = samples[-1][0]
    recent = [(t, v) for t, v in samples[-TREND_SAMPLES:] if t >= last_s - TREND_SPAN_S]
    if len(recent) < 3:
        return None
    mean_t = sum(t for t, _ in recent) / len(recent)
    mean_v = sum(v for _, v in recent) / len(recent)
    spread = sum((t - mean_t) ** 2 for t, _ in recent)
    if spread == 0.0:
        return None
    slope = sum((t - mean_t) * (v - mean_v) for t, v in recent) / spread
    if slope >= 0.0:
        return None
    return max(last_s, mean_t + (threshold - mean_v) / slope)
