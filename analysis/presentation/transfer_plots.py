"""Figures of transfers from plain series; a run's report and a capture's report share them.

All of them take the width of the figure and, where time is on the x axis, `bands` to be shaded
behind (associations, handovers).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import EngFormatter, FuncFormatter, LogLocator, NullFormatter
from numpy.typing import NDArray

from analysis.presentation.style import (
    ALARM,
    AREAS,
    BAND,
    DASHES,
    GRID,
    HANDOVER,
    HATCH_INK,
    HATCHES,
    INK,
    LINES,
    MARKERS,
    PAGE_WIDTH_IN,
    Plot,
    mark_bands,
    mark_cut,
    styled,
)
from analysis.run.result import Band
from analysis.transfer.interruption import Interruption
from analysis.transfer.trace import KINDS, NEW, REINJECTION, RESEND, RETRANSMISSION, Line, Points

F64 = NDArray[np.float64]

# More points than this make a vector file slow to open: they become a picture inside it.
_MOST_VECTOR_POINTS = 12_000
_FEW_POINTS = 1000
# Of Okabe and Ito's those that also differ in brightness, as points have no hatching.
_POINTS = ("#0072B2", "#E69F00", "#00664A", "#CC79A7", "#56B4E9")
_CUT_BURSTS = 3
_INCH_A_LEGEND_LETTER = 0.075
_LEGEND_HANDLE_IN = 0.5


def stacked_throughput(
    edges_s: F64,
    arriving_bps: Mapping[str, F64],
    goodput_bps: F64,
    *,
    time_label: str,
    interruptions: Sequence[Interruption] = (),
    bands: Sequence[Band] = (),
    width_in: float = PAGE_WIDTH_IN,
) -> Plot:
    """New data that each path carried, stacked, with what became complete in order.

    Parameters
    ----------
    edges_s : float64 array
        Limits of the steps.
    arriving_bps : mapping of str to float64 array
        Rate in each step for each path.
    goodput_bps : float64 array
        Rate of the data that became complete from the start.
    time_label : str
        What the x axis counts.
    interruptions : sequence of Interruption
    bands : sequence of Band
    width_in : float

    Returns
    -------
    Plot
    """
    with styled():
        figure, axes = _one(width_in, 2.9)
        mark_bands(axes, bands, float(edges_s[0]), float(edges_s[-1]), label=True)
        unit, factor = _unit(max(_top(arriving_bps.values()), float(goodput_bps.max(initial=0))))
        base = np.zeros(len(edges_s) - 1)
        handles: list[Artist] = []
        for index, (path, rates) in enumerate(arriving_bps.items()):
            hatch = HATCHES[index % len(HATCHES)]
            look: Any = {
                "facecolor": AREAS[index % len(AREAS)],
                "edgecolor": HATCH_INK if hatch else "none",
                "hatch": hatch or None,
                "linewidth": 0,
            }
            axes.stairs(base + rates * factor, edges_s, baseline=base, fill=True, **look)
            handles.append(Patch(**look, label=f"new data over {path}"))
            base = base + rates * factor
        axes.stairs(goodput_bps * factor, edges_s, baseline=None, color=INK, linewidth=1.1)
        handles.append(Line2D([], [], color=INK, linewidth=1.3, label="in order (goodput)"))
        if interruptions:
            handles.append(Line2D([], [], color=ALARM, linewidth=4, label="interruption"))
        for each in interruptions:
            axes.plot(
                [each.start_s, each.start_s + each.length_s],
                [0, 0],
                color=ALARM,
                linewidth=4,
                solid_capstyle="butt",
                clip_on=False,
                zorder=5,
            )
        handles += _band_handles(bands)
        top = max(float(base.max(initial=0)), float((goodput_bps * factor).max(initial=0)))
        _limit_rates(axes, edges_s, np.maximum(base, goodput_bps * factor), top)
        _finish_time_axis(axes, edges_s, time_label, f"{unit}bit/s")
        _legend(figure, handles, width_in)
    return Plot(
        figure,
        f"Throughput over time by path, with goodput; {len(interruptions)} interruptions.",
        f"New data in each {_duration(edges_s[1] - edges_s[0])}, by the path it came over, and "
        "data that became complete from the start in the same time (black). Data that waited for "
        "earlier data counts when it came, and in the black line when it was complete."
        + (" Red on the axis: interruptions." if interruptions else ""),
    )


def data_sequence(
    points: Sequence[Points],
    paths: Sequence[str],
    *,
    time_label: str,
    span_s: tuple[float, float] | None = None,
    bands: Sequence[Band] = (),
    width_in: float = PAGE_WIDTH_IN,
) -> Plot | None:
    """Place of the data in the connection against time, by path, with what was sent again.

    Parameters
    ----------
    points : sequence of Points
    paths : sequence of str
        Their `path` counts in this.
    time_label : str
    span_s : (float, float), optional
        Limits of the x axis; otherwise what the points need.
    bands : sequence of Band
    width_in : float

    Returns
    -------
    Plot or None
        ``None`` if there is no data.
    """
    if not points:
        return None
    times = np.concatenate([each.time_s for each in points])
    count = len(times)
    with styled():
        figure, axes = _one(width_in, 3.6)
        span = span_s or _padded((float(times.min()), float(times.max())))
        mark_bands(axes, bands, *span, label=True)
        highest = max(float(each.position_bytes.max()) for each in points)
        factor = _bytes_unit(highest)
        handles: list[Artist] = []
        for each in points:
            look = _point_look(each)
            axes.plot(
                each.time_s,
                each.position_bytes / factor[0],
                linestyle="none",
                rasterized=count > _MOST_VECTOR_POINTS,
                **(look if each.kind != NEW or count > _FEW_POINTS else {**look, "ms": 2.8}),
            )
        for path in sorted({each.path for each in points}):
            look = _point_look(Points(path, NEW, times, times))
            handles.append(
                Line2D([], [], linestyle="none", label=f"over {paths[path]}", **{**look, "ms": 5})
            )
        for kind in sorted({each.kind for each in points} - {NEW}):
            look = _point_look(Points(0, kind, times, times))
            handles.append(Line2D([], [], linestyle="none", label=KINDS[kind], **{**look, "ms": 6}))
        handles += _band_handles(bands)
        axes.set_xlim(*span)
        axes.set_ylim(bottom=0)
        axes.set_xlabel(time_label)
        axes.set_ylabel(f"data sequence ({factor[1]})")
        axes.grid(axis="y", color=GRID, linewidth=0.6)
        _legend(figure, handles, width_in)
    return Plot(
        figure,
        "Data sequence against time by path.",
        "Each point is a packet: when it was seen, and the place of its first byte in the "
        "connection’s data. A retransmission is TCP’s own (crosses); a reinjection brings data "
        "that only other subflows had carried (circles), a resend data that its own subflow had "
        "carried under other TCP numbers (triangles). Packets too close to be told apart are drawn "
        "once.",
    )


def _point_look(points: Points) -> dict[str, Any]:
    if points.kind == NEW:
        return {
            "marker": MARKERS[points.path % len(MARKERS)],
            "ms": 1.8,
            "mew": 0,
            "color": _POINTS[points.path % len(_POINTS)],
        }
    marker, color = {
        RETRANSMISSION: ("x", ALARM),
        REINJECTION: ("o", INK),
        RESEND: ("^", "#A34D80"),
    }[points.kind]
    return {"marker": marker, "ms": 5, "mew": 1.0, "color": color, "markerfacecolor": "none"}


@dataclass(frozen=True)
class Panel:
    """What one panel of a figure shows: its title, and a line for each name."""

    title: str
    lines: Mapping[str, Line]


def distributions(
    samples_s: Mapping[str, F64], *, delay_label: str, width_in: float = PAGE_WIDTH_IN
) -> Plot | None:
    """Cumulative distributions of delays.

    Parameters
    ----------
    samples_s : mapping of str to float64 array
        Ascending samples, or equally spaced quantiles, of each line; empty ones are left out.
    delay_label : str
        What kind of delay it is.
    width_in : float

    Returns
    -------
    Plot or None
        ``None`` if there is no sample.
    """
    known = {name: each for name, each in samples_s.items() if len(each)}
    if not known:
        return None
    with styled():
        figure, axes = _one(width_in, 2.9)
        every = np.concatenate(list(known.values())) * 1e3
        for index, (name, values) in enumerate(known.items()):
            share = np.linspace(0, 1, len(values)) if len(values) > 1 else np.ones(1)
            axes.plot(
                np.r_[values[0], values] * 1e3,
                np.r_[0, share],
                drawstyle="steps-post",
                color=LINES[index % len(LINES)],
                linestyle=DASHES[index % len(DASHES)],
                linewidth=1.4,
                label=name,
            )
        if every.min() > 0 and every.max() / every.min() > 20:
            axes.set_xscale("log")
            axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=12))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_ylim(0, 1.01)
        axes.set_xlabel(f"{delay_label} (ms)")
        axes.set_ylabel("share of samples")
        axes.grid(color=GRID, linewidth=0.6)
        _legend(figure, list(axes.get_lines()), width_in)
    said = "; ".join(
        f"{name}: half below {1e3 * float(np.median(values)):.3g} ms"
        for name, values in known.items()
    )
    return Plot(
        figure,
        f"Distribution of the {delay_label}. {said}.",
        "Share of the samples that are at most so long.",
    )


def lines_over_time(
    panels: Sequence[Panel],
    *,
    time_label: str,
    quantity: str,
    unit: str,
    caption: str,
    span_s: tuple[float, float] | None = None,
    bands: Sequence[Band] = (),
    width_in: float = PAGE_WIDTH_IN,
) -> Plot | None:
    """One or more quantities over time, a line a name.

    Parameters
    ----------
    panels : sequence of Panel
        Those without a line are left out.
    time_label : str
    quantity, unit : str
        What the y axis shows.
    caption : str
    span_s : (float, float), optional
        Limits of the x axis; otherwise what the lines need.
    bands : sequence of Band
    width_in : float

    Returns
    -------
    Plot or None
        ``None`` if there is nothing to draw.
    """
    shown = [panel for panel in panels if any(len(each.time_s) for each in panel.lines.values())]
    if not shown:
        return None
    names = list(dict.fromkeys(name for panel in shown for name in panel.lines))
    with styled():
        figure = Figure(figsize=(width_in, 0.75 + 1.7 * len(shown)), layout="constrained")
        column: list[Axes] = list(figure.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0])
        starts, stops = [], []
        for axes, panel in zip(column, shown, strict=True):
            for name, each in panel.lines.items():
                if not len(each.time_s):
                    continue
                index = names.index(name)
                axes.plot(
                    each.time_s,
                    each.value,
                    drawstyle="steps-post",
                    color=LINES[index % len(LINES)],
                    linestyle=DASHES[index % len(DASHES)],
                    linewidth=1.1,
                )
                starts.append(float(each.time_s[0]))
                stops.append(float(each.time_s[-1]))
            axes.set_title(panel.title, loc="left", fontsize=9.5, fontweight="bold")
            axes.set_ylabel(f"{quantity} ({unit})" if unit != "B" else quantity)
            axes.yaxis.set_major_formatter(
                EngFormatter(unit=unit, sep="\N{NO-BREAK SPACE}") if unit == "B" else _PLAIN
            )
            axes.set_ylim(bottom=0)
            axes.grid(axis="y", color=GRID, linewidth=0.6)
        span = span_s or _padded((min(starts), max(stops)))
        for axes in column:
            mark_bands(axes, bands, *span, label=axes is column[0])
        column[-1].set_xlim(*span)
        column[-1].set_xlabel(time_label)
        handles: list[Artist] = [
            Line2D(
                [],
                [],
                color=LINES[index % len(LINES)],
                linestyle=DASHES[index % len(DASHES)],
                linewidth=1.3,
                label=name,
            )
            for index, name in enumerate(names)
        ]
        _legend(figure, handles + _band_handles(bands), width_in)
    return Plot(figure, f"{quantity} over time.", caption)


_PLAIN = FuncFormatter(lambda value, _: f"{value:g}")


def counts_over_time(
    edges_s: F64,
    counts: Mapping[str, F64],
    *,
    time_label: str,
    bands: Sequence[Band] = (),
    width_in: float = PAGE_WIDTH_IN,
) -> Plot | None:
    """Packets of some kinds in each step, stacked.

    Parameters
    ----------
    edges_s : float64 array
        Limits of the steps.
    counts : mapping of str to float64 array
        For each kind.
    time_label : str
    bands : sequence of Band
    width_in : float

    Returns
    -------
    Plot or None
        ``None`` if there are none.
    """
    if not any(each.any() for each in counts.values()):
        return None
    with styled():
        figure, axes = _one(width_in, 2.2)
        mark_bands(axes, bands, float(edges_s[0]), float(edges_s[-1]), label=True)
        base = np.zeros(len(edges_s) - 1)
        handles: list[Artist] = []
        for index, (kind, number) in enumerate(counts.items()):
            hatch = HATCHES[index % len(HATCHES)]
            look: Any = {
                "facecolor": ("#CC6677", "#E69F00", "#56B4E9")[index % 3],
                "edgecolor": HATCH_INK if hatch else "none",
                "hatch": hatch or None,
                "linewidth": 0,
            }
            axes.stairs(base + number, edges_s, baseline=base, fill=True, **look)
            handles.append(Patch(**look, label=f"{kind} ({int(number.sum())})"))
            base = base + number
        axes.set_ylim(0, 1.08 * float(base.max()))
        _finish_time_axis(axes, edges_s, time_label, "packets")
        _legend(figure, handles + _band_handles(bands), width_in)
    said = ", ".join(f"{int(number.sum())} {kind}" for kind, number in counts.items())
    return Plot(
        figure,
        f"Packets sent again over time: {said}.",
        f"Packets that repeat data, in each {_duration(edges_s[1] - edges_s[0])}.",
    )


def interruption_times(
    rows: Mapping[str, tuple[float, float, Sequence[Interruption]]],
    *,
    time_label: str,
    width_in: float = PAGE_WIDTH_IN,
) -> Plot | None:
    """When transfers were under way, and when they were interrupted, by cause.

    Parameters
    ----------
    rows : mapping of str to (start_s, end_s, interruptions)
        For each transfer.
    time_label : str
    width_in : float

    Returns
    -------
    Plot or None
        ``None`` if nothing was interrupted.
    """
    causes = list(dict.fromkeys(each.cause for _, _, some in rows.values() for each in some))
    if not causes:
        return None
    with styled():
        figure, axes = _one(width_in, 0.9 + 0.34 * len(rows))
        for place, (start_s, end_s, some) in enumerate(rows.values()):
            axes.barh(place, end_s - start_s, left=start_s, height=0.16, color="#c3cad2")
            for each in some:
                index = causes.index(each.cause)
                axes.barh(
                    place,
                    each.length_s,
                    left=each.start_s,
                    height=0.62,
                    facecolor=LINES[index % len(LINES)],
                    edgecolor="white",
                    hatch=HATCHES[index % len(HATCHES)] or None,
                    linewidth=0,
                )
        axes.set_yticks(range(len(rows)), list(rows))
        axes.invert_yaxis()
        axes.set_xlim(left=min(0.0, *(start_s for start_s, _, _ in rows.values())))
        axes.set_xlabel(time_label)
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x", color=GRID, linewidth=0.6)
        handles: list[Artist] = [
            Patch(
                facecolor=LINES[index % len(LINES)],
                edgecolor="white",
                hatch=HATCHES[index % len(HATCHES)] or None,
                label=cause,
            )
            for index, cause in enumerate(causes)
        ]
        _legend(figure, handles, width_in)
    count = sum(len(some) for _, _, some in rows.values())
    return Plot(
        figure,
        f"{count} interruptions over time, by cause.",
        "Thin grey: the transfer was under way. Thick: no data became complete from the start.",
    )


def fairness(
    edges_s: F64, index: F64, *, time_label: str, width_in: float = PAGE_WIDTH_IN
) -> Plot | None:
    """Jain's index over time.

    Parameters
    ----------
    edges_s : float64 array
        Limits of the steps.
    index : float64 array
        In each step; NaN where it does not exist.
    time_label : str
    width_in : float

    Returns
    -------
    Plot or None
        ``None`` if it exists nowhere.
    """
    if not np.isfinite(index).any():
        return None
    with styled():
        figure, axes = _one(width_in, 2.0)
        axes.stairs(index, edges_s, baseline=None, color=LINES[0], linewidth=1.3)
        axes.set_ylim(0, 1.03)
        _finish_time_axis(axes, edges_s, time_label, "Jain index")
    return Plot(
        figure,
        f"Jain’s index over time, mean {float(np.nanmean(index)):.3f}.",
        f"Jain’s index of the goodputs in each {_duration(edges_s[1] - edges_s[0])}, of the "
        "transfers that were under way then (two or more): 1 is equal.",
    )


def _one(width_in: float, height_in: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width_in, height_in), layout="constrained")
    return figure, figure.subplots()


def _finish_time_axis(axes: Axes, edges_s: F64, time_label: str, what: str) -> None:
    axes.set_xlim(float(edges_s[0]), float(edges_s[-1]))
    axes.set_xlabel(time_label)
    axes.set_ylabel(what)
    axes.grid(axis="y", color=GRID, linewidth=0.6)


def _padded(span: tuple[float, float]) -> tuple[float, float]:
    width = span[1] - span[0]
    pad = 0.02 * width if width > 0 else 0.5e-3
    return span[0] - pad, span[1] + pad


def _band_handles(bands: Sequence[Band]) -> list[Artist]:
    kinds = {band.kind for band in bands}
    handles: list[Artist] = []
    if kinds - {"handover"}:
        handles.append(Patch(facecolor=BAND, edgecolor=HANDOVER, label="associated"))
    if "handover" in kinds:
        handles.append(Patch(facecolor=HANDOVER, label="handover"))
    return handles


def _legend(figure: Figure, handles: Sequence[Artist], width_in: float) -> None:
    if not handles:
        return
    longest = max(len(str(each.get_label())) for each in handles)
    room = int(width_in / (longest * _INCH_A_LEGEND_LETTER + _LEGEND_HANDLE_IN))
    figure.legend(
        handles=list(handles),
        loc="outside upper left",
        ncols=max(1, min(room, len(handles))),
        fontsize=8,
    )


def _limit_rates(axes: Axes, edges_s: F64, rates: F64, top: float) -> None:
    """Let one catching-up burst not flatten everything else; what is cut off has its value."""
    usual = 2.0 * float(np.percentile(rates, 95)) if len(rates) else 0.0
    cut = np.flatnonzero(rates > usual)
    # Many bursts, or some close together, are what the figure is about.
    apart = len(cut) <= _CUT_BURSTS and (np.diff(cut) > len(rates) / 12).all()
    if usual <= 0 or top <= 1.15 * usual or not apart:
        axes.set_ylim(0, 1.08 * top or 1.0)
        return
    axes.set_ylim(0, usual)
    mark_cut(axes, edges_s, rates, usual)


def _top(rates: "Sequence[F64] | Any") -> float:
    total = sum(rates)
    return float(np.max(total)) if np.size(total) else 0.0


def _unit(highest_bps: float) -> tuple[str, float]:
    """Prefix of bit/s that suits a rate, and its factor."""
    if highest_bps >= 2e9:
        return "G", 1e-9
    return ("M", 1e-6) if highest_bps >= 2e5 else ("k", 1e-3)


def _bytes_unit(highest: float) -> tuple[float, str]:
    """Divisor and unit for bytes, in powers of 1000."""
    for factor, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if highest >= 2 * factor:
            return factor, unit
    return 1.0, "bytes"


def _duration(step: float) -> str:
    if step == 1:
        return "second"
    return f"{step:g} s" if step >= 1 else f"{step * 1e3:g} ms"
