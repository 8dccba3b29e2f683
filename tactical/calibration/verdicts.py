"""What was measured against what was configured or follows from theory: rows of a table. Pure.

Every criterion is stated here, once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from scipy.stats import binom

from fdm.calibration import DelaySample
from fdm.calibration import calibrate as fit_kappa

RATE_ERROR = 0.01
DELAY_ERROR_S, DELAY_ERROR = 0.001, 0.01
JITTER_S = 0.001
CONFIDENCE = 0.99
"""Of such measurements of a perfect network, this share meets the criterion for loss."""
WAIT_ERROR_S, WAIT_ERROR = 0.001, 0.10
GOODPUT_SHARE = 0.9
"""Of the links' rates together: 9 of 10 Mbit/s; headers take 6 %."""
HANDOVER_S = 2.0
"""Associations take 0.3 to 1 s in an emulated processor; twice that is not normal."""
HANDOVER_ERROR_S = 0.05

MEASURES = ("rate", "delay", "loss", "queue rate", "queueing delay", "multipath", "handover")


@dataclass(frozen=True)
class Row:
    """One quantity.

    Attributes
    ----------
    quantity, where : str
        What it is, and of which part of the network.
    unit : str
        Of the numbers below, SI: "bit/s", "s", or "" for a share or a coefficient.
    expected, measured : float or None
        None where there is no such number.
    lowest, highest : float or None
        Bounds within which `measured` meets the criterion; None: no bound on that side.
    criterion : str
        The same in words; empty if there is none.
    note : str
        What else there is to know.
    """

    quantity: str
    where: str
    unit: str
    expected: float | None
    measured: float | None
    lowest: float | None = None
    highest: float | None = None
    criterion: str = ""
    note: str = ""

    @property
    def verdict(self) -> str:
        """Whether the criterion is met: "ok" or "missed"; empty where there is none."""
        if not self.criterion:
            return ""
        if self.measured is None:
            return "missed"
        low = self.lowest is None or self.lowest <= self.measured
        high = self.highest is None or self.measured <= self.highest
        return "ok" if low and high else "missed"

    @property
    def error(self) -> float | None:
        """`measured` less `expected`, where both are known."""
        if self.measured is None or self.expected is None:
            return None
        return self.measured - self.expected

    def to_json(self) -> dict[str, Any]:
        """All of it as a JSON object."""
        return {
            "quantity": self.quantity,
            "where": self.where,
            "unit": self.unit,
            "expected": self.expected,
            "measured": self.measured,
            "error": self.error,
            "lowest": self.lowest,
            "highest": self.highest,
            "criterion": self.criterion,
            "verdict": self.verdict,
            "note": self.note,
        }


def judge(measurements: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[Row]:
    """Rows for all that the worker measured; what it could not measure is missed, with the reason.

    Parameters
    ----------
    measurements
        What the worker writes as ``measurements``: lists by name.
    """
    rows: list[Row] = []
    for name in MEASURES:
        found = measurements.get(name, [{"problem": "it was not measured"}])
        problem = next((str(each["problem"]) for each in found if "problem" in each), None)
        if problem is not None:
            rows.append(Row(name, "", "", None, None, criterion="to be measured", note=problem))
            continue
        rows += [row for each in found for row in _ROWS[name](each)]
        if name == "queueing delay":
            rows.append(_kappa(found))
    return rows


def _rate(found: Mapping[str, Any]) -> list[Row]:
    expected = float(found["configured_bps"])
    return [
        Row(
            "rate",
            found["what"],
            "bit/s",
            expected,
            found["measured_bps"],
            (1.0 - RATE_ERROR) * expected,
            (1.0 + RATE_ERROR) * expected,
            "within 1 %",
        )
    ]


def _delay(found: Mapping[str, Any]) -> list[Row]:
    expected = float(found["configured_s"])
    error_s = DELAY_ERROR_S + DELAY_ERROR * expected
    return [
        Row(
            "delay",
            found["what"],
            "s",
            expected,
            found["measured_s"],
            expected - error_s,
            expected + error_s,
            "within 1 ms + 1 %",
            f"median of {found['packets']}",
        ),
        Row(
            "jitter", found["what"], "s", 0.0, found["jitter_s"], None, JITTER_S, "at most 1 ms", ""
        ),
    ]


def _queue_rate(found: Mapping[str, Any]) -> list[Row]:
    return [replace(row, quantity="queue rate") for row in _rate(found)]


def _loss(found: Mapping[str, Any]) -> list[Row]:
    expected, sent = float(found["configured"]), int(found["sent"])
    if not sent:
        return [Row("loss", found["what"], "", expected, None, criterion="nothing was sent")]
    fewest, most = (float(count) for count in binom.interval(CONFIDENCE, sent, expected))
    return [
        Row(
            "loss",
            found["what"],
            "",
            expected,
            found["lost"] / sent,
            fewest / sent,
            most / sent,
            f"{100 * fewest / sent:.2f} to {100 * most / sent:.2f} %",
            f"{found['lost']} of {sent}; 99 % confidence",
        )
    ]


def _wait(found: Mapping[str, Any]) -> list[Row]:
    expected = float(found["bucket_wait_s"])
    error_s = WAIT_ERROR_S + WAIT_ERROR * expected
    md1_s, mm1_s = analytic_waits_s(found["flow_bps"], found["capacity_bps"], found["packet_bits"])
    return [
        Row(
            "queueing delay",
            found["what"],
            "s",
            expected,
            found["wait_s"],
            max(0.0, expected - error_s),
            expected + error_s,
            "within 1 ms + 10 %",
            f"no bucket {1e3 * found['fifo_wait_s']:.2f} ms, M/D/1 {1e3 * md1_s:.2f} ms, "
            f"M/M/1 {1e3 * mm1_s:.2f} ms",
        )
    ]


def analytic_waits_s(
    flow_bps: float, capacity_bps: float, packet_bits: float
) -> tuple[float, float]:
    """Mean wait in the queue of M/D/1 and of M/M/1, before transmission.

    With the load ρ and the service time s, M/M/1 waits ρs/(1 − ρ), and packets of one size half
    of that (Pollaczek and Khinchine's formula; L. Kleinrock, Queueing Systems I, 1975, 5.6).
    """
    load, service_s = flow_bps / capacity_bps, packet_bits / capacity_bps
    mm1_s = load * service_s / (1.0 - load)
    return 0.5 * mm1_s, mm1_s


def _kappa(found: Sequence[Mapping[str, Any]]) -> Row:
    """κ over all loads, and at each: they differ where the bucket is not small beside the wait."""
    bits = float(found[0]["packet_bits"])
    samples = [
        DelaySample(each["flow_bps"], each["capacity_bps"], each["wait_s"])
        for each in found
        if 0.0 <= each["flow_bps"] < each["capacity_bps"] and each["wait_s"] > 0.0
    ]
    if not samples:
        return Row("κ", "Poisson", "", None, None, note="no load gave a delay to fit")
    each_load = (
        f"{fit_kappa([s], bits).kappa:.2f} at {s.flow_bps / s.capacity_bps:.2f}" for s in samples
    )
    note = f"of κ·b/(C − f), M/M/1 has 1; {', '.join(each_load)}"
    return Row("κ", "Poisson", "", None, fit_kappa(samples, bits).kappa, note=note)


def _multipath(found: Mapping[str, Any]) -> list[Row]:
    expected = float(sum(found["links_bps"]))
    lowest = GOODPUT_SHARE * expected
    return [
        Row(
            "MPTCP goodput",
            found["what"],
            "bit/s",
            expected,
            found["goodput_bps"],
            lowest,
            None,
            f"at least {lowest / 1e6:g} Mbit/s",
        )
    ]


def _handover(found: Mapping[str, Any]) -> list[Row]:
    association_s, interruption_s = found["association_s"], found["interruption_s"]
    took_s = median(found["handover_s"])
    return [
        Row(
            "association",
            found["what"],
            "s",
            None,
            median(association_s),
            0.0,
            HANDOVER_S,
            f"at most {HANDOVER_S:g} s",
            _longest(association_s),
        ),
        Row(
            "interruption",
            found["what"],
            "s",
            None,
            median(interruption_s),
            None,
            took_s + found["period_s"] + HANDOVER_ERROR_S,
            "at most the handover + 50 ms",
            f"{_longest(interruption_s)}; leaving and joining took {1e3 * took_s:.0f} ms",
        ),
    ]


def _longest(times_s: Sequence[float]) -> str:
    return f"median of {len(times_s)}, longest {1e3 * max(times_s):.0f} ms"


_ROWS: dict[str, Callable[[Mapping[str, Any]], list[Row]]] = {
    "rate": _rate,
    "delay": _delay,
    "loss": _loss,
    "queue rate": _queue_rate,
    "queueing delay": _wait,
    "multipath": _multipath,
    "handover": _handover,
}


def table(rows: Sequence[Row]) -> str:
    """The rows for people, in columns, and what there is to note about them below."""
    heads = ("quantity", "where", "expected", "measured", "error", "criterion", "verdict")
    cells = [heads, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(heads))]
    lines = []
    for line in cells:
        padded = [
            text.rjust(width) if 2 <= column <= 4 else text.ljust(width)
            for column, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
        lines.append("  ".join(padded).rstrip())
    notes = [f"{row.quantity} {row.where}".strip() + f": {row.note}" for row in rows if row.note]
    return "\n".join([*lines, "", *notes] if notes else lines)


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.quantity,
        row.where,
        _number(row.expected, row),
        _number(row.measured, row),
        _error(row),
        row.criterion,
        row.verdict,
    )


def _number(value: float | None, row: Row) -> str:
    if value is None:
        return "–"
    if row.unit == "bit/s":
        return f"{value / 1e6:.3f} Mbit/s"
    if row.unit == "s":
        return f"{1e3 * value:.3f} ms"
    return f"{100 * value:.2f} %" if row.quantity == "loss" else f"{value:.2f}"


def _error(row: Row) -> str:
    if row.error is None or row.expected is None:
        return ""
    if row.unit == "s":
        return f"{1e3 * row.error:+.3f} ms"
    if row.quantity == "loss":
        return f"{100 * row.error:+.2f} %"
    return f"{100 * row.error / row.expected:+.2f} %"
