"""κ from measured delay."""

import math
from collections.abc import Iterable
from typing import NamedTuple


class DelaySample(NamedTuple):
    """One measurement of a loaded link.

    Attributes
    ----------
    flow_bps : float
        Mean flow in bit/s, below the capacity.
    capacity_bps : float
        Capacity in bit/s.
    delay_s : float
        Mean time from a packet's arrival at the queue to the end of its transmission, in seconds:
        one-way delay without propagation.
    """

    flow_bps: float
    capacity_bps: float
    delay_s: float


class Calibration(NamedTuple):
    """κ and how far the samples are from it.

    Attributes
    ----------
    kappa : float
        The coefficient.
    error : float
        Root mean square of the relative residuals: 0 if all samples lie on one curve.
    samples : int
        Samples used.
    """

    kappa: float
    error: float
    samples: int


def calibrate(samples: Iterable[DelaySample], packet_bits: float) -> Calibration:
    """Return the κ for which κ·b/(C − f) fits measured delays best.

    Parameters
    ----------
    samples : iterable of DelaySample
        Measurements at one load or at several.
    packet_bits : float
        Mean packet b in bits.

    Raises
    ------
    ValueError
        If there is no sample, one is not a positive delay on a link with room, or `packet_bits`
        is not a finite number above 0.

    Notes
    -----
    Relative residuals are squared, so that the long delays near saturation do not outvote the
    others: with m the delay that κ = 1 predicts and d the measured one, κ = Σ(m/d)/Σ(m/d)².
    """
    if not 0.0 < packet_bits < math.inf:
        raise ValueError(f"packet_bits must be a finite number above 0, not {packet_bits!r}")
    ratios = []
    for number, (flow_bps, capacity_bps, delay_s) in enumerate(samples):
        if not 0.0 <= flow_bps < capacity_bps < math.inf or not 0.0 < delay_s < math.inf:
            raise ValueError(
                f"sample {number} must have a delay above 0 and a flow below the capacity, "
                f"not {delay_s!r} s at {flow_bps!r} of {capacity_bps!r} bit/s"
            )
        ratios.append(packet_bits / (capacity_bps - flow_bps) / delay_s)
    if not ratios:
        raise ValueError("κ cannot be worked out from no samples")
    kappa = sum(ratios) / sum(ratio * ratio for ratio in ratios)
    error = math.sqrt(sum((kappa * ratio - 1.0) ** 2 for ratio in ratios) / len(ratios))
    return Calibration(kappa, error, len(ratios))
