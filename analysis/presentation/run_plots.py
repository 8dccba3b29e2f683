"""Figures of runs: users over time, runs side by side, queues."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from numpy.typing import NDArray

from analysis.presentation.figures import run_names
from analysis.presentation.quantities import megabits, milliseconds
from analysis.presentation.style import (
    ALARM,
    AREA_LINES,
    AREAS,
    BAND,
    DASHES,
    GRID,
    HANDOVER,
    HATCH_INK,
    HATCHES,
    INK,
    LINES,
    PAGE_WIDTH_IN,
    SOFT,
    Plot,
    mark_bands,
    mark_cut,
    styled,
)
from analysis.run.result import Band, QueueResult, RunResult, UserResult

F64 = NDArray[np.float64]


def throughput(run: RunResult) -> Plot | None:
    """New data that arrives at the hosts for each user, stacked by link, with its goodput.

    Parameters
    ----------
    run : RunResult

    Returns
    -------
    Plot or None
        ``None`` if nothing was measured.
    """
    users = [(user, found) for user, found in run.users.items() if found.series is not None]
    if not users:
        return None
    links = list(
        dict.fromkeys(
            via for _, found in users for via in (found.series.arriving_bps if found.series else ())
        )
    )
    with styled():
        figure = Figure(figsize=(PAGE_WIDTH_IN, 0.75 + 2.0 * len(users)), layout="constrained")
        panels: list[Axes] = list(
            figure.subplots(len(users), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
        )
        for axes, (user, found) in zip(panels, users, strict=True):
            _throughput_panel(axes, run, user, found, links)
        panels[-1].set_xlabel("run time (s)")
        panels[0].set_xlim(_span(run))
        tops = [_highest_rates(found) for _, found in users]
        _limit(panels, tops, max((found.offered_bps or 0) / 1e6 for _, found in users))
        handles: list[Artist] = [
            Patch(
                facecolor=AREAS[index % len(AREAS)],
                hatch=HATCHES[index % len(HATCHES)],
                label=f"new data over {via}",
            )
            for index, via in enumerate(links)
        ]
        (line,) = panels[0].plot([], [], color=INK, linewidth=1.3, label="goodput (in order)")
        (offered,) = panels[0].plot(
            [], [], color=SOFT, linewidth=0.9, linestyle=(0, (4, 3)), label="offered"
        )
        handles += [line, offered]
        kinds = {band.kind for band in run.bands}
        if "associated" in kinds:
            handles.append(Patch(facecolor=BAND, edgecolor=HANDOVER, label="associated"))
        if "handover" in kinds:
            handles.append(Patch(facecolor=HANDOVER, label="handover"))
        if any(found.interruptions for _, found in users):
            handles.append(Patch(facecolor=ALARM, label="interruption"))
        figure.legend(
            handles=handles, loc="outside upper left", ncols=min(len(handles), 4), fontsize=8
        )
    sentences = [
        f"{user}: {megabits(found.goodput_bps)} Mbit/s goodput, "
        f"{len(found.interruptions)} interruptions over 0.5 s"
        for user, found in users
    ]
    return Plot(
        figure,
        f"Throughput over time, {run.protocol}. {'; '.join(sentences)}.",
        "New data that arrived at the host in each second, by the link it came over, and "
        "the goodput (black). Light bands: associated with an access point; dark bands: "
        "handover; red on the axis: interruptions over 0.5 s.",
    )


def _highest_rates(found: UserResult) -> tuple[F64, F64]:
    """Edges and heights of what is drawn for a user, Mbit/s."""
    series = found.series
    assert series is not None
    edges = series.start_s + series.step_s * np.arange(len(series.goodput_bps) + 1.0)
    highest = np.array(series.goodput_bps)
    if series.arriving_bps:
        highest = np.maximum(highest, np.sum(list(series.arriving_bps.values()), axis=0))
    return edges, highest / 1e6


def _span(run: RunResult) -> tuple[float, float]:
    """Run time that the users' series cover."""
    series = [user.series for user in run.users.values() if user.series is not None]
    starts = [each.start_s for each in series]
    ends = [each.start_s + each.step_s * len(each.goodput_bps) for each in series]
    return min([0.0, *starts]), max([1.0, run.duration_s or 0.0, *ends])


def _throughput_panel(
    axes: Axes, run: RunResult, user: str, found: UserResult, links: Sequence[str]
) -> None:
    series = found.series
    assert series is not None
    edges = series.start_s + series.step_s * np.arange(len(series.goodput_bps) + 1)
    mark_bands(axes, _of(run, user), *_span(run), label=True)
    base = np.zeros(len(edges) - 1)
    for index, via in enumerate(links):
        rates = np.array(series.arriving_bps.get(via, [0.0] * len(base))) / 1e6
        axes.stairs(
            base + rates,
            edges,
            baseline=base,
            fill=True,
            facecolor=AREAS[index % len(AREAS)],
            edgecolor=HATCH_INK if HATCHES[index % len(HATCHES)] else "none",
            hatch=HATCHES[index % len(HATCHES)] or None,
            linewidth=0,
        )
        base = base + rates
    axes.stairs(np.array(series.goodput_bps) / 1e6, edges, baseline=None, color=INK, linewidth=1.1)
    if found.offered_bps:
        axes.axhline(found.offered_bps / 1e6, color=SOFT, linewidth=0.9, linestyle=(0, (4, 3)))
    for each in found.interruptions:
        axes.plot(
            [each.start_s, each.start_s + each.length_s],
            [0, 0],
            color=ALARM,
            linewidth=4,
            solid_capstyle="butt",
            clip_on=False,
            zorder=5,
        )
    axes.set_ylabel("Mbit/s")
    axes.set_title(user, loc="left", fontsize=9.5, fontweight="bold")
    axes.grid(axis="y", color=GRID, linewidth=0.6)


def _of(run: RunResult, user: str) -> list[Band]:
    return [band for band in run.bands if band.user == user]


def _limit(
    panels: Sequence[Axes],
    steps: Sequence[tuple[F64, F64]],
    offered_mbps: float,
) -> None:
    """Scale the rates so that one catching-up burst does not flatten everything else.

    What is cut off carries its value.
    """
    every = np.concatenate([rates for _, rates in steps])
    highest = float(every.max(initial=0.0))
    top = max(1.7 * offered_mbps, 1.25 * float(np.percentile(every, 95)) if len(every) else 0.0)
    if highest <= 1.15 * top or top <= 0:
        panels[0].set_ylim(0, 1.08 * max(highest, offered_mbps) or 1.0)
        return
    panels[0].set_ylim(0, top)
    for axes, (edges, rates) in zip(panels, steps, strict=True):
        mark_cut(axes, edges, rates, top)


def delays(run: RunResult) -> Plot | None:
    """One-way delay of the data packets of each user over time, by link."""
    users = [
        (user, found.series)
        for user, found in run.users.items()
        if found.series is not None
        and any(value is not None for each in found.series.delay_s.values() for value in each)
    ]
    if not users:
        return None
    links = list(dict.fromkeys(via for _, series in users for via in series.delay_s))
    start_s, end_s = _span(run)
    with styled():
        figure = Figure(figsize=(PAGE_WIDTH_IN, 0.75 + 1.5 * len(users)), layout="constrained")
        panels: list[Axes] = list(
            figure.subplots(len(users), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
        )
        for axes, (user, series) in zip(panels, users, strict=True):
            edges = series.start_s + series.step_s * np.arange(len(series.goodput_bps) + 1)
            for index, via in enumerate(links):
                color = AREA_LINES[index % len(AREA_LINES)]
                for values, width, dash in (
                    (series.delay_s, 1.5, "-"),
                    (series.delay_p95_s, 0.9, (0, (2, 1.2))),
                ):
                    heights = np.array(
                        [np.nan if each is None else 1000 * each for each in values.get(via, [])]
                    )
                    if np.isfinite(heights).any():
                        axes.stairs(
                            heights,
                            edges,
                            baseline=None,
                            color=color,
                            linewidth=width,
                            linestyle=dash,
                        )
            mark_bands(axes, _of(run, user), start_s, end_s, label=False)
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axes.yaxis.set_minor_locator(NullLocator())
            axes.set_ylabel("ms")
            axes.set_title(user, loc="left", fontsize=9.5, fontweight="bold")
            axes.grid(axis="y", color=GRID, linewidth=0.6)
        low, high = panels[0].get_ylim()
        panels[0].set_ylim(low / 1.25, max(1.25 * high, 4 * low))
        panels[0].set_xlim(start_s, end_s)
        panels[-1].set_xlabel("run time (s)")
        handles: list[Artist] = []
        for index, via in enumerate(links):
            for said, width, dash in (("median", 1.5, "-"), ("95 %", 0.9, (0, (2, 1.2)))):
                (line,) = panels[0].plot(
                    [],
                    [],
                    color=AREA_LINES[index % len(AREA_LINES)],
                    linewidth=width,
                    linestyle=dash,
                    label=f"{via}, {said}",
                )
                handles.append(line)
        figure.legend(handles=handles, loc="outside upper left", ncols=4, fontsize=8)
    said_all = "; ".join(
        f"{user}: mean {milliseconds(found.mean_packet_delay_s)} ms, "
        f"95 % below {milliseconds(found.p95_packet_delay_s)} ms"
        for user, found in run.users.items()
        if found.mean_packet_delay_s is not None
    )
    return Plot(
        figure,
        f"One-way packet delay over time, {run.protocol}. {said_all}.",
        "One-way delay of the data packets sent in each second, from the user’s interface "
        "to the host’s, by link.",
    )


def comparison(runs: Sequence[RunResult]) -> Plot | None:
    """Goodput of all users together over time, one line a run."""
    lines: list[tuple[str, RunResult, F64, F64]] = []
    for label, run in zip(run_names(runs), runs, strict=True):
        series = [user.series for user in run.users.values() if user.series is not None]
        if not series:
            continue
        first = int(min(each.start_s for each in series))
        last = max(int(each.start_s) + len(each.goodput_bps) for each in series)
        total = np.zeros(last - first)
        for each in series:
            at = int(each.start_s) - first
            total[at : at + len(each.goodput_bps)] += each.goodput_bps
        lines.append((label, run, np.arange(first, last + 1, dtype=np.float64), total))
    if len(lines) < 2:
        return None
    with styled():
        # Long names take a line of the legend each.
        columns = max(1, min(6, 120 // (max(len(label) for label, _, _, _ in lines) + 8)))
        height_in = 2.7 + 0.18 * -(-(len(lines) + 1) // columns)
        figure = Figure(figsize=(PAGE_WIDTH_IN, height_in), layout="constrained")
        axes = figure.subplots()
        for index, (label, _, edges, total) in enumerate(lines):
            axes.stairs(
                total / 1e6,
                edges,
                baseline=None,
                color=LINES[index % len(LINES)],
                linestyle=DASHES[index % len(DASHES)],
                linewidth=1.5,
                label=label,
            )
        offered = [user.offered_bps or 0.0 for user in lines[0][1].users.values()]
        if any(offered):
            axes.axhline(
                sum(offered) / 1e6,
                color=SOFT,
                linewidth=0.9,
                linestyle=(0, (4, 3)),
                label="offered",
            )
        axes.set_xlim(min(0, min(edges[0] for _, _, edges, _ in lines)), None)
        _limit(
            [axes] * len(lines),
            [(edges, total / 1e6) for _, _, edges, total in lines],
            sum(offered) / 1e6,
        )
        axes.set_xlabel("run time (s)")
        axes.set_ylabel("goodput of all users (Mbit/s)")
        axes.grid(axis="y", color=GRID, linewidth=0.6)
        figure.legend(loc="outside upper left", ncols=columns, fontsize=8)
    said = ", ".join(f"{label} {megabits(run.goodput_bps)} Mbit/s" for label, run, _, _ in lines)
    return Plot(
        figure,
        f"Goodput of all users over time. Over the whole run: {said}.",
        "Goodput of all users together at the host, in steps of one second: data that is "
        "complete from the start of its connection.",
    )


def queue_rates(run: RunResult) -> Plot | None:
    """Rates of the switch queues: as measured, and as the controller set them."""
    queues = [each for each in run.queues if each.settings and (each.rates or each.user)]
    if not queues:
        return None
    ports = list(dict.fromkeys((each.via or each.datapath, each.port) for each in queues))
    users = list(dict.fromkeys(each.user or f"queue {each.queue_id}" for each in queues))
    _, end_s = _span(run)
    with styled():
        figure = Figure(figsize=(PAGE_WIDTH_IN, 0.75 + 1.9 * len(ports)), layout="constrained")
        panels: list[Axes] = list(figure.subplots(len(ports), 1, sharex=True, squeeze=False)[:, 0])
        for axes, (via, port) in zip(panels, ports, strict=True):
            for queue in (each for each in queues if each.port == port):
                index = users.index(queue.user or f"queue {queue.queue_id}")
                dash = DASHES[index % len(DASHES)]
                _queue_lines(axes, queue, LINES[index % len(LINES)], dash, end_s)
            axes.set_title(f"{via}, port {port}", loc="left", fontsize=9.5, fontweight="bold")
            axes.set_ylabel("Mbit/s")
            for band in run.bands:
                if band.kind == "associated" and band.label == f"with {via}":
                    stop = max(min(band.end_s, end_s), band.start_s)
                    axes.axvspan(band.start_s, stop, color=BAND, zorder=0, linewidth=0)
            # Room for what was sent and solved; an upper rate far above needs no more.
            here = [each for each in queues if each.port == port]
            used = [rate for each in here for _, rate in each.rates]
            used += [setting[1] for each in here for setting in each.settings]
            allowed = [setting[2] for each in here for setting in each.settings]
            axes.set_ylim(0, max(min(max(allowed), 1.6 * max(used)), max(used)) * 1.08e-6 or 1.0)
            axes.grid(axis="y", color=GRID, linewidth=0.6)
        panels[-1].set_xlabel("run time (s)")
        panels[-1].set_xlim(0, end_s)
        handles: list[Artist] = []
        for index, user in enumerate(users):
            color = LINES[index % len(LINES)]
            dash = DASHES[index % len(DASHES)]
            (measured,) = panels[0].plot([], [], color=color, linewidth=1.3, linestyle=dash)
            measured.set_label(f"{user}, measured")
            handles.append(measured)
            handles.append(
                Patch(facecolor=color, alpha=0.18, label=f"{user}, as set (lowest to highest)")
            )
        figure.legend(handles=handles, loc="outside upper left", ncols=4, fontsize=8)
    return Plot(
        figure,
        f"Rates of {len(queues)} switch queues over time, as measured and as solved.",
        "Rates of the switch queues. Lines: measured from the queues’ counters (frames, "
        "with headers). Bands: from the lowest (dotted, the solved path flow) to the "
        "highest rate that the controller set.",
    )


def _queue_lines(axes: Axes, queue: QueueResult, color: str, dash: Any, end_s: float) -> None:
    # A queue that is no longer counted was taken away.
    gone_s = min(end_s, queue.rates[-1][0] + 2.0) if queue.rates else end_s
    times = [setting[0] for setting in queue.settings] + [gone_s]
    for index, (start, low, high) in enumerate(queue.settings):
        stop = max(times[index + 1], start)
        axes.fill_between(
            [start, stop], low / 1e6, high / 1e6, color=color, alpha=0.16, linewidth=0
        )
        axes.plot([start, stop], [low / 1e6] * 2, color=color, linewidth=1, linestyle=(0, (2, 2)))
    if queue.rates:
        axes.plot(
            [at for at, _ in queue.rates],
            [rate / 1e6 for _, rate in queue.rates],
            color=color,
            linewidth=1.3,
            linestyle=dash,
            drawstyle="steps-pre",
        )
