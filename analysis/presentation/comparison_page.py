"""A comparison of runs as one page with figures."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D

from analysis.presentation.comparison_text import (
    difference_text,
    method,
    percent,
    seeds,
    value_text,
)
from analysis.presentation.page import Words, document, escaped, figure, table
from analysis.presentation.quantities import megabits, milliseconds
from analysis.presentation.style import (
    DASHES,
    GRID,
    INK,
    LINES,
    MARKERS,
    PAGE_WIDTH_IN,
    SOFT,
    Plot,
    styled,
)
from analysis.replacing import write_text
from analysis.run.compare import FIGURES, Comparison, Figure, Group

_BOX_FROM = 5
"""Fewer values are drawn as points only: quartiles of four numbers are no quartiles."""


def comparison_report(found: Comparison, path: str | Path) -> Path:
    """Write the comparison as one page that opens without a network.

    Parameters
    ----------
    found : Comparison
    path : str or Path

    Returns
    -------
    Path

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    target = Path(path)
    runs = sum(len(group.runs) for group in found.groups)
    parts = [
        f"<header><h1>{escaped(found.scenario or 'Runs')}: comparison</h1>"
        f'<p class="lead">{runs} runs in {len(found.groups)} groups. {escaped(method(found))}</p>'
        "</header><main>",
        _remarks(found),
        '<h2 class="first">Figures</h2>',
        _means(found),
        figure(boxes(found), "box"),
        figure(distribution(found, "delay"), "delay"),
        figure(distribution(found, "goodput"), "goodput"),
        _pairs(found),
        _members(found),
        "</main>",
    ]
    write_text(target, document(f"{found.scenario}: comparison of {runs} runs", parts))
    return target


def _remarks(found: Comparison) -> str:
    if not found.remarks:
        return ""
    lines = "".join(f"<li>{escaped(each)}</li>" for each in found.remarks)
    return f'<div class="box"><h3>Remarks</h3><ul class="plain">{lines}</ul></div>'


def _means(found: Comparison) -> str:
    lines = [(Words("seeds"), Words(""), *(seeds(group) for group in found.groups))]
    lines += [
        (
            Words(each.label),
            Words(each.unit),
            *(value_text(found, group, each) for group in found.groups),
        )
        for each in FIGURES
        if any(each.key in group.estimates for group in found.groups)
    ]
    return table(
        f"Means over seeds, with half of the {percent(found)}.",
        ("figure", "unit", *(group.label for group in found.groups)),
        lines,
    )


def _pairs(found: Comparison) -> str:
    lines = [
        (
            Words(f"{each.second} – {each.first}"),
            Words(f"{told.label} ({told.unit})" if told.unit else told.label),
            Words(difference_text(found, each, told)),
        )
        for each in found.differences
        for told in FIGURES
        if told.key == each.figure
    ]
    if not lines:
        return ""
    return "<h2>Differences</h2>" + table(
        f"What the first has more than the second, seed by seed, with {percent(found)}. An "
        "interval without zero shows a difference; many intervals at once do so by chance now and "
        "then.",
        ("groups", "figure", "difference"),
        lines,
    )


def _members(found: Comparison) -> str:
    lines = [
        (Words(group.label), Words(", ".join(map(str, group.seeds))), Words(run))
        for group in found.groups
        for run in group.runs
    ]
    return (
        "<details><summary>All runs</summary>"
        + table("Which runs are in which group.", ("group", "seeds", "run"), lines)
        + "</details>"
    )


def boxes(found: Comparison) -> Plot | None:
    """Box plots of each figure by group, with every seed as a point."""
    shown = [each for each in FIGURES if any(each.key in g.estimates for g in found.groups)]
    if not shown:
        return None
    columns = min(3, len(shown))
    lines = -(-len(shown) // columns)
    with styled():
        canvas = Canvas(figsize=(PAGE_WIDTH_IN, 2.5 * lines), layout="constrained")
        panels: list[Axes] = list(canvas.subplots(lines, columns, squeeze=False).flat)
        for axes, told in zip(panels, shown, strict=False):
            _box_panel(axes, found.groups, told)
        for axes in panels[len(shown) :]:
            axes.set_axis_off()
    told_all = "; ".join(
        f"{each.label}: "
        + ", ".join(f"{g.label} {value_text(found, g, each)}" for g in found.groups)
        for each in shown
    )
    return Plot(
        canvas,
        f"Figures by group. {told_all}.",
        "Every seed is a point, the diamond is their mean. From five seeds on a box shows the "
        "quartiles, and whiskers what lies within 1.5 times their distance. The line through the "
        "diamond is the confidence interval; it may reach out of the axes.",
    )


def _box_panel(axes: Axes, groups: Sequence[Group], told: Figure) -> None:
    for place, group in enumerate(groups):
        estimate = group.estimates.get(told.key)
        if estimate is None:
            continue
        color = LINES[place % len(LINES)]
        values = [each * told.scale for each in estimate.values if each is not None]
        if len(values) >= _BOX_FROM:
            axes.boxplot(
                [values],
                positions=[place],
                widths=0.5,
                showfliers=False,
                medianprops={"color": INK},
                boxprops={"color": color},
                whiskerprops={"color": color},
                capprops={"color": color},
            )
        # Side by side, so that equal values can be counted.
        spread = [
            place + 0.24 * (index / max(len(values) - 1, 1) - 0.5) for index in range(len(values))
        ]
        axes.plot(
            spread,
            values,
            linestyle="none",
            marker=MARKERS[place % len(MARKERS)],
            markersize=4.5,
            color=color,
        )
        axes.plot(
            [place + 0.33],
            [estimate.mean * told.scale],
            linestyle="none",
            marker="D",
            markersize=5,
            color=INK,
            markerfacecolor="white",
        )
        if estimate.low is not None and estimate.high is not None:
            axes.plot(
                [place + 0.33] * 2,
                [estimate.low * told.scale, estimate.high * told.scale],
                color=INK,
                linewidth=1.1,
            )
    axes.set_xlim(-0.6, len(groups) - 0.4)
    axes.set_xticks(range(len(groups)), [group.label.replace(" ", "\n") for group in groups])
    axes.set_title(told.label, loc="left", fontsize=9)
    axes.set_ylabel(told.unit)
    _limit(axes, groups, told)
    axes.grid(axis="y", color=GRID, linewidth=0.6)


def _limit(axes: Axes, groups: Sequence[Group], told: Figure) -> None:
    """Room for the values; of two seeds the interval may be a hundred times as wide."""
    values = [
        each * told.scale
        for group in groups
        if told.key in group.estimates
        for each in group.estimates[told.key].values
        if each is not None
    ]
    low, high = min(values), max(values)
    margin = max(0.35 * (high - low), 0.02 * abs(high), 1e-3)
    axes.set_ylim(0 if 0 <= low < 0.6 * high else low - margin, high + margin)


def distribution(found: Comparison, what: str) -> Plot | None:
    """Cumulative distribution of packet delays ("delay") or of goodput ("goodput") by group."""
    delay = what == "delay"
    lines = [
        (index, group, points)
        for index, group in enumerate(found.groups)
        if (points := group.delay_cdf if delay else group.goodput_cdf)
    ]
    if not lines:
        return None
    scale = 1e3 if delay else 1e-6
    with styled():
        canvas = Canvas(figsize=(PAGE_WIDTH_IN, 3.0), layout="constrained")
        axes: Axes = canvas.subplots()
        handles: list[Artist] = []
        for index, group, points in lines:
            color, dash = LINES[index % len(LINES)], DASHES[index % len(DASHES)]
            axes.plot(
                [value * scale for value, _ in points],
                [share for _, share in points],
                color=color,
                linestyle=dash,
                linewidth=1.5,
            )
            handles.append(Line2D([], [], color=color, linestyle=dash, label=group.label))
        axes.set_ylim(0, 1.01)
        if delay:
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        else:
            axes.set_xlim(left=0)
        axes.set_xlabel("one-way packet delay (ms)" if delay else "goodput of a second (Mbit/s)")
        axes.set_ylabel("share")
        axes.grid(color=GRID, linewidth=0.6)
        axes.axhline(0.5, color=SOFT, linewidth=0.6)
        canvas.legend(handles=handles, loc="outside upper left", ncols=4, fontsize=8)
    written = milliseconds if delay else megabits
    medians = ", ".join(
        f"{group.label} {written(next(v for v, share in points if share >= 0.5))}"
        for _, group, points in lines
    )
    unit = "ms" if delay else "Mbit/s"
    return Plot(
        canvas,
        f"Cumulative distribution of {what} by group; medians in {unit}: {medians}.",
        "Share of all packets with at most this delay; every packet of every run counts alike."
        if delay
        else "Share of the full seconds of sending with at most this goodput; all users and runs.",
    )
