"""Rates from byte counters, smoothed. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from .events import Counted


@dataclass(frozen=True)
class Measurements:
    """Transmission rates of ports, queues and subflows.

    A rate is the exponentially weighted moving average of the rates between samples; a sample
    after Δt counts 1 − exp(−Δt/τ), so that the weights do not depend on how regular samples are.
    """

    rates_bps: Mapping[tuple[str, ...], float] = field(default_factory=dict)
    """Key of the counter → smoothed rate in bit/s."""
    last: Mapping[tuple[str, ...], tuple[float, int]] = field(default_factory=dict)
    """Key of the counter → time in seconds and bytes of the last sample."""

    def after(self, counted: Iterable[Counted], now_s: float, smoothing_s: float) -> Measurements:
        """The measurements with new samples, all taken at `now_s`."""
        rates, last = dict(self.rates_bps), dict(self.last)
        for sample in counted:
            key, sent = sample.key, sample.transmitted_bytes
            before = last.get(key)
            last[key] = (now_s, sent)
            if before is None or sent < before[1] or now_s <= before[0]:
                continue  # the first, or the counter began anew
            elapsed_s = now_s - before[0]
            rate_bps = 8 * (sent - before[1]) / elapsed_s
            weight = 1.0 - math.exp(-elapsed_s / smoothing_s) if key in rates else 1.0
            rates[key] = rates.get(key, 0.0) + weight * (rate_bps - rates.get(key, 0.0))
        return Measurements(rates, last)

    def sent_bps(self, user: str) -> float | None:
        """What `user` sends over all its subflows; None if nothing was measured yet."""
        rates = [r for key, r in self.rates_bps.items() if key[:2] == ("subflow", user)]
        return sum(rates) if rates else None

    def ports_bps(self) -> dict[tuple[str, str], float]:
        """(datapath, port) → what the port sends, as far as it was measured."""
        rates = ((key[1], key[2], r) for key, r in self.rates_bps.items() if key[0] == "port")
        return {(datapath, port): rate_bps for datapath, port, rate_bps in rates}
