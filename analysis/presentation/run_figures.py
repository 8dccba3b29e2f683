"""Figures and tables of what happened inside a run: handovers, allocation, queues, places."""

from collections.abc import Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Patch
from numpy.typing import NDArray

from analysis.presentation.page import Sentence, Words, escaped, table
from analysis.presentation.quantities import NOTHING, megabits, milliseconds, seconds, whole
from analysis.presentation.style import (
    AREA_LINES,
    BAND,
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
from analysis.run.result import AllocationPeriod, Chart, CounterCheck, HandoverStory, RunResult

F64 = NDArray[np.float64]

_ONE_PANEL_IN = 1.55
_LONG_TABLE = 24


def links(run: RunResult) -> list[str]:
    """Every link that users of a run have, in the order in which they are coloured."""
    found = [via for user in run.users.values() if user.series for via in user.series.arriving_bps]
    return list(dict.fromkeys(found))


def stories_table(run: RunResult) -> str:
    """Handovers from cause to effect, as a table of a page; empty without any."""
    if not run.handover_stories:
        return ""
    latency = f"<p>{latency_words(run)}</p>" if run.handover_latency is not None else ""
    lines = [
        (
            whole(each.number),
            Words(each.user),
            Words(each.what),
            moment(each.cause_s, each.cause_error_s),
            Sentence(reaction(each)),
            Sentence(effect(each)),
        )
        for each in run.handover_stories
    ]
    return (
        '<h3>Handovers, from cause to effect</h3><p class="soft">The cause lies between the stamps '
        "before and after the command that changed the link, the later one drawn in to when the "
        "controller knew: the middle, and half their distance. Deployed means that the switches "
        "have confirmed flow entries and queues. Effects are seen at the host.</p>" + latency
    ) + table(
        "Times in seconds of the run.",
        ("no.", "user", "what", "cause (s)", "controller", "effect"),
        lines,
    )


def latency_words(run: RunResult) -> str:
    """How long the controller took from associations to deployments, in parts; empty without."""
    found = run.handover_latency
    if found is None:
        return ""
    names = ("detection", "waiting", "solve", "deploy", "total")
    parts = [
        f"{name} {milliseconds(spread.median_s)} / {milliseconds(spread.p95_s)} ms"
        for name, spread in ((name, getattr(found, name)) for name in names)
    ]
    what = f"{found.associations} association{'s' * (found.associations != 1)}"
    return f"From {what} to verified entries and queues, median / p95: {', '.join(parts)}."


def moment(at_s: float, error_s: float | None, digits: int = 2) -> str:
    """A time with its uncertainty, seconds."""
    if error_s is None:
        return f"after {at_s:.{digits}f}"
    return f"{at_s:.{digits}f} ± {error_s:.{digits}f}"


def reaction(story: HandoverStory) -> str:
    """What the controller did, in words."""
    if story.trigger is None:
        return "did nothing"
    said = [f"{story.trigger}:"]
    if story.solve_time_s is not None:
        gap = f", gap {story.relative_gap:.0e}" if story.relative_gap is not None else ""
        took_s = story.solve_time_s
        took = f"{1e6 * took_s:.0f} µs" if took_s < 1e-3 else f"{1e3 * took_s:.1f} ms"
        said.append(f"solved in {took}{gap};")
    if story.deployed_s is None:
        return " ".join([*said, "nothing to deploy"])
    what = []
    if story.queues_set:
        what.append(f"{story.queues_set} queues set")
    if story.entries_added:
        what.append(f"{story.entries_added} entries added")
    if story.entries_removed:
        what.append(f"{story.entries_removed} entries removed")
    within = f"in {1e3 * story.deploy_time_s:.0f} ms" if story.deploy_time_s is not None else ""
    done = " ".join(each for each in (", ".join(what) or "changed", within) if each)
    if story.verify_time_s is not None:
        done += f", read back in {1e3 * story.verify_time_s:.0f} ms"
    return " ".join([*said, f"{done}, deployed at {seconds(story.deployed_s)} s"])


def effect(story: HandoverStory) -> str:
    """What arrived at the host, in words."""
    said: list[str] = []
    if story.last_on_old_s is not None:
        said.append(f"last data over the old path at {seconds(story.last_on_old_s)} s")
    if story.path_was_in_use:
        said.append("the path that serves now was in use before")
    elif story.first_on_new_s is not None:
        said.append(f"first data over the new path at {seconds(story.first_on_new_s)} s")
    else:
        said.append("no data over the new path")
    said.append(f"longest interruption {interrupted(story)}")
    said.append(f"goodput {goodput(story)}")
    return "; ".join(said) + "."


def interrupted(story: HandoverStory) -> str:
    """The interruption at a handover, in words."""
    found = story.interruption
    if found is None:
        return NOTHING
    said = f"{seconds(found.length_s)} s from {seconds(found.start_s)} s ({found.cause})"
    if found.cause == "handover" and found.event_s is not None:
        ended_s = found.start_s + found.length_s - found.event_s
        if ended_s > 0:
            said += f", over {moment(ended_s, found.event_error_s)} s after its cause"
    return said


def goodput(story: HandoverStory) -> str:
    """How goodput went, in words."""
    if story.goodput_before_bps is None:
        return NOTHING
    said = f"{megabits(story.goodput_before_bps)} Mbit/s before"
    if story.goodput_lowest_bps is None:
        return said
    if not story.goodput_fell:
        return f"{said}, never under 90 % of it or of the offered rate"
    said += f", lowest second {megabits(story.goodput_lowest_bps)}"
    if story.goodput_back_s is None:
        return f"{said}, not back to 90 %"
    return f"{said}, back at {story.goodput_back_s:.1f} s"


def allocation_table(run: RunResult) -> str:
    """Allocated and achieved rates while each allocation was in force; empty without any."""
    if not run.allocation:
        return ""
    lines = [
        (
            f"{each.start_s:.1f}–{each.end_s:.1f}",
            Words(each.user),
            Words(each.via),
            Words(f"{each.port} {each.queue_id}" if each.port else NOTHING),
            megabits(each.solved_bps),
            f"{megabits(each.min_bps)} … {megabits(each.max_bps)}",
            megabits(each.captured_bps),
            megabits(each.counted_bps),
            f"{100 * each.captured_bps / each.solved_bps:.0f}"
            if each.captured_bps is not None and each.solved_bps > 0
            else NOTHING,
        )
        for each in run.allocation
    ]
    text = table(
        "While each allocation was in force: what a path was given, and what it carried, in frames "
        "with headers. Captured: arrived at the host; counted: sent by the queue.",
        (
            "time (s)",
            "user",
            "over",
            "queue",
            "solved (Mbit/s)",
            "set (Mbit/s)",
            "captured (Mbit/s)",
            "counted (Mbit/s)",
            "captured of solved (%)",
        ),
        lines,
    )
    if len(lines) > _LONG_TABLE:
        text = f"<details><summary>All {len(lines)} periods and paths</summary>{text}</details>"
    return f"<h3>Allocated and achieved</h3>{text}"


def checks_table(run: RunResult) -> str:
    """Counters beside captures, as a table of the quality box; empty without any."""
    if not run.counter_checks:
        return '<p class="soft">The kernel’s counters were not recorded.</p>'
    wrong = [each for each in run.counter_checks if not each.agrees]
    total = len(run.counter_checks)
    said = (
        f"All {total} comparisons of captures with counters agree."
        if not wrong
        else f"{total - len(wrong)} of {total} comparisons of captures with counters agree."
    )
    lines = [
        (
            Words(each.node),
            Words(each.what),
            whole(each.captured),
            whole(each.counted),
            Words(_judged(each)),
        )
        for each in sorted(run.counter_checks, key=lambda each: each.agrees)
    ]
    text = table(
        "Captures beside the counters of kernel (nstat, interfaces, queueing disciplines) and Open "
        "vSwitch.",
        ("where", "what", "captured", "counted", ""),
        lines,
    )
    doubtful = [each for each in run.counter_checks if _judged(each) != "agree" and each.note]
    notes = "".join(
        f"<li>{escaped(each.node)}, {escaped(each.what)}: {escaped(each.note)}.</li>"
        for each in doubtful
    )
    why = f'Why they may differ:<ul class="plain">{notes}</ul>' if notes else ""
    state = "bad" if wrong else "ok"
    return (
        f'<p class="{state}">{said}</p><details{" open" if wrong else ""}>'
        f"<summary>Counters</summary>{text}{why}</details>"
    )


def _judged(check: CounterCheck) -> str:
    if not check.agrees:
        return "differ"
    if check.at_most and check.captured < check.counted - check.tolerance:
        return "part of it captured"
    return "agree"


def allocation(run: RunResult) -> Plot | None:
    """Allocated and achieved rate of each path over time.

    Parameters
    ----------
    run : RunResult

    Returns
    -------
    Plot or None
        ``None`` if nothing was allocated.
    """
    paths = list(dict.fromkeys((each.user, each.via) for each in run.allocation))
    if not paths:
        return None
    end_s = max(each.end_s for each in run.allocation)
    with styled():
        figure = Figure(
            figsize=(PAGE_WIDTH_IN, 0.8 + _ONE_PANEL_IN * len(paths)), layout="constrained"
        )
        panels: list[Axes] = list(figure.subplots(len(paths), 1, sharex=True, squeeze=False)[:, 0])
        for axes, (user, via) in zip(panels, paths, strict=True):
            mine = [each for each in run.allocation if (each.user, each.via) == (user, via)]
            _allocation_panel(axes, run, user, via, mine, end_s)
        panels[-1].set_xlabel("run time (s)")
        panels[-1].set_xlim(0, end_s)
        handles: list[Artist] = [
            Line2D([], [], color=INK, linewidth=1.6, linestyle=DASHES[1], label="solved"),
            Patch(facecolor=SOFT, alpha=0.18, label="queue, from lowest to highest rate"),
            Line2D([], [], color=LINES[0], linewidth=1.4, label="captured at the host"),
            Line2D(
                [], [], color=LINES[1], linewidth=1.2, linestyle=DASHES[2], label="queue’s counter"
            ),
        ]
        figure.legend(handles=handles, loc="outside upper left", ncols=4, fontsize=8)
    last = {(each.user, each.via): each for each in run.allocation}
    told = "; ".join(
        f"{user} over {via} {megabits(each.captured_bps)} of {megabits(each.solved_bps)} Mbit/s"
        for (user, via), each in last.items()
    )
    return Plot(
        figure,
        f"Allocated and achieved rates over time, {run.protocol}. In the last allocation: {told}.",
        "What each path was given and what it carried, in frames with headers. The highest rate "
        "of a queue may lie far above the axis: there it may use what is left.",
    )


def _allocation_panel(
    axes: Axes,
    run: RunResult,
    user: str,
    via: str,
    periods: Sequence[AllocationPeriod],
    end_s: float,
) -> None:
    series = run.users[user].series
    tops = [each.solved_bps for each in periods]
    if series is not None and via in series.frames_bps:
        rates = np.array(series.frames_bps[via])
        edges = series.start_s + series.step_s * np.arange(len(rates) + 1)
        axes.stairs(rates / 1e6, edges, baseline=None, color=LINES[0], linewidth=1.4)
        tops.append(float(np.percentile(rates, 97)) if len(rates) else 0.0)
    for queue in run.queues:
        if (queue.user, queue.via) == (user, via) and queue.rates:
            axes.plot(
                [at for at, _ in queue.rates],
                [rate / 1e6 for _, rate in queue.rates],
                color=LINES[1],
                linewidth=1.2,
                linestyle=DASHES[2],
                drawstyle="steps-pre",
            )
    for each in periods:
        span = [each.start_s, each.end_s]
        axes.plot(span, [each.solved_bps / 1e6] * 2, color=INK, linewidth=1.6, linestyle=DASHES[1])
        if each.min_bps is not None and each.max_bps is not None:
            axes.fill_between(
                span, each.min_bps / 1e6, each.max_bps / 1e6, color=SOFT, alpha=0.18, linewidth=0
            )
    axes.set_ylim(0, 1.3e-6 * (max(tops, default=0.0) or 1e6))
    axes.set_title(f"{user} over {via}", loc="left", fontsize=9.5, fontweight="bold")
    axes.set_ylabel("Mbit/s")
    axes.grid(axis="y", color=GRID, linewidth=0.6)
    for band in run.bands:
        if band.user == user and band.kind == "associated" and band.label == f"with {via}":
            axes.axvspan(band.start_s, min(band.end_s, end_s), color=BAND, zorder=0, linewidth=0)


def backlog(run: RunResult) -> Plot | None:
    """What waited in the switch queues over time; nothing if that was not recorded."""
    queues = [each for each in run.queues if any(packets for _, packets, _ in each.backlog)]
    if not queues:
        return None
    ports = list(dict.fromkeys(each.port for each in queues))
    end_s = max(each.backlog[-1][0] for each in queues)
    end_s = max([end_s, *(user.sending_end_s or 0.0 for user in run.users.values())])
    with styled():
        figure = Figure(
            figsize=(PAGE_WIDTH_IN, 0.8 + _ONE_PANEL_IN * len(ports)), layout="constrained"
        )
        panels: list[Axes] = list(figure.subplots(len(ports), 1, sharex=True, squeeze=False)[:, 0])
        names: dict[str, int] = {}
        for axes, port in zip(panels, ports, strict=True):
            for queue in (each for each in queues if each.port == port):
                name = queue.user or f"queue {queue.queue_id}"
                index = names.setdefault(name, len(names))
                axes.plot(
                    [at for at, _, _ in queue.backlog],
                    [packets for _, packets, _ in queue.backlog],
                    color=LINES[index % len(LINES)],
                    linestyle=DASHES[index % len(DASHES)],
                    linewidth=1.2,
                    drawstyle="steps-post",
                )
            axes.set_ylim(bottom=0)
            axes.set_title(f"port {port}", loc="left", fontsize=9.5, fontweight="bold")
            axes.set_ylabel("packets")
            axes.grid(axis="y", color=GRID, linewidth=0.6)
        panels[-1].set_xlabel("run time (s)")
        panels[-1].set_xlim(0, end_s)
        handles: list[Artist] = [
            Line2D(
                [],
                [],
                color=LINES[index % len(LINES)],
                linestyle=DASHES[index % len(DASHES)],
                label=name,
            )
            for name, index in names.items()
        ]
        figure.legend(handles=handles, loc="outside upper left", ncols=6, fontsize=8)
    most = max(queues, key=lambda each: max(packets for _, packets, _ in each.backlog))
    highest = max(packets for _, packets, _ in most.backlog)
    return Plot(
        figure,
        f"Backlog of {len(queues)} switch queues over time, {run.protocol}; most in queue "
        f"{most.queue_id} of {most.port}: {highest:.0f} packets.",
        "Packets that waited in the switch queues, looked at twice a second; a line goes on until "
        "something changed.",
    )


def chart(run: RunResult) -> Plot | None:
    """Map of the run: tracks in the colour of the link that served, ranges, handovers.

    Parameters
    ----------
    run : RunResult

    Returns
    -------
    Plot or None
        ``None`` if no positions were recorded.
    """
    found = run.chart
    moving = [name for name in (found.tracks if found else ()) if name in run.users]
    if found is None or not moving:
        return None
    known = links(run)
    with styled():
        figure = Figure(figsize=(PAGE_WIDTH_IN, 4.2), layout="constrained")
        axes: Axes = figure.subplots()
        for name, range_m in found.ranges_m.items():
            _range(axes, found, name, range_m)
        for name in moving:
            _track(axes, run, found, name, known)
        _handover_marks(axes, run, found)
        _frame(axes, found)
        axes.set_xlabel("east (m)")
        axes.set_ylabel("north (m)")
        axes.grid(color=GRID, linewidth=0.6)
        handles: list[Artist] = [
            Line2D([], [], color=AREA_LINES[i % len(AREA_LINES)], linewidth=3, label=f"over {via}")
            for i, via in enumerate(known)
        ]
        handles.append(Line2D([], [], color=SOFT, linewidth=0.9, label="nothing arrived"))
        if run.handover_stories:
            handles.append(_mark("handover, by number"))
        if found.ranges_m:
            handles.append(
                Line2D([], [], color=SOFT, linewidth=1, linestyle=DASHES[1], label="range")
            )
        figure.legend(handles=handles, loc="outside upper left", ncols=6, fontsize=8)
    return Plot(
        figure,
        f"Map of the run: tracks of {', '.join(moving)}; ranges of "
        f"{', '.join(found.ranges_m) or 'no access point'}; {len(run.handover_stories)} handovers.",
        "Where users were, in the colour of the link over which most of their data arrived in each "
        "second; other links that carried data lie in it, thinner. A range is where its slant "
        "range meets the sea.",
    )


def _mark(label: str) -> Line2D:
    return Line2D(
        [],
        [],
        color=INK,
        marker="o",
        markersize=5,
        markerfacecolor="white",
        linestyle="none",
        label=label,
    )


def _place(track: Sequence[Sequence[float]], at_s: float) -> tuple[float, float]:
    rows = np.array(track)
    return (
        float(np.interp(at_s, rows[:, 0], rows[:, 1])),
        float(np.interp(at_s, rows[:, 0], rows[:, 2])),
    )


def _range(axes: Axes, found: Chart, name: str, range_m: float) -> None:
    """An access point, its way if it moves, and its range at the end of it."""
    rows = np.array(found.tracks[name])
    east, north, up = rows[-1, 1:]
    still = bool(np.ptp(rows[:, 1]) < 1 and np.ptp(rows[:, 2]) < 1)
    if not still:
        axes.plot(rows[:, 1], rows[:, 2], color=SOFT, linewidth=0.8, linestyle=DASHES[2])
    radius_m = float(np.sqrt(max(range_m**2 - up**2, 0.0)))
    axes.add_patch(
        Circle((east, north), radius_m, fill=False, color=SOFT, linewidth=1, linestyle=DASHES[1])
    )
    axes.plot([east], [north], color=INK, marker="^", markersize=7, linestyle="none")
    axes.annotate(
        f"{name}, {up:.0f} m up",
        (east, north),
        xytext=(6, 5),
        textcoords="offset points",
        fontsize=8,
    )


def _track(axes: Axes, run: RunResult, found: Chart, name: str, known: Sequence[str]) -> None:
    rows = np.array(found.tracks[name])
    axes.plot(rows[:, 1], rows[:, 2], color=SOFT, linewidth=0.9, zorder=1)
    series = run.users[name].series
    if series is not None and series.arriving_bps:
        nothing = [0.0] * len(series.goodput_bps)
        rates = np.array([series.arriving_bps.get(via, nothing) for via in known])
        for step in range(rates.shape[1]):
            begin_s = series.start_s + step * series.step_s
            if begin_s < rows[0, 0] or begin_s > rows[-1, 0]:
                continue
            # A little longer, so that no seam is seen.
            stop_s = begin_s + 1.04 * series.step_s
            ends = [_place(found.tracks[name], at) for at in (begin_s, stop_s)]
            # The link that carried most lies below, the others in it.
            carrying = [i for i in np.argsort(-rates[:, step]).tolist() if rates[i, step] > 0]
            for order, which in enumerate(carrying):
                axes.plot(
                    [east for east, _ in ends],
                    [north for _, north in ends],
                    color=AREA_LINES[which % len(AREA_LINES)],
                    linewidth=max(7 - 4 * order, 1.5),
                    solid_capstyle="butt",
                    zorder=2 + order,
                )
    axes.annotate(
        name,
        (rows[0, 1], rows[0, 2]),
        xytext=(-5, 0),
        textcoords="offset points",
        ha="right",
        va="center",
        fontsize=8.5,
        fontweight="bold",
    )


def _handover_marks(axes: Axes, run: RunResult, found: Chart) -> None:
    for story in run.handover_stories:
        if story.user not in found.tracks:
            continue
        east, north = _place(found.tracks[story.user], story.cause_s)
        axes.plot(
            [east],
            [north],
            color=INK,
            marker=MARKERS[0],
            markersize=5,
            markerfacecolor="white",
            linestyle="none",
            zorder=9,
        )
        axes.annotate(
            str(story.number),
            (east, north),
            xytext=(0, 6),
            textcoords="offset points",
            ha="center",
            fontsize=8,
            zorder=4,
        )


def _frame(axes: Axes, found: Chart) -> None:
    """Room for all tracks, to scale; ranges may reach out of it."""
    places = np.concatenate([np.array(track)[:, 1:3] for track in found.tracks.values()])
    low, high = places.min(axis=0), places.max(axis=0)
    size = max(float((high - low).max()), 100.0)
    margin = 0.12 * size
    width, height = (high - low + 2 * margin).tolist()
    # As wide as the page: what is too tall or too flat gets more room on the other side.
    shape = 0.42
    if height < shape * width:
        extra = (shape * width - height) / 2
        low[1], high[1] = low[1] - extra, high[1] + extra
    else:
        extra = (height / shape - width) / 2
        low[0], high[0] = low[0] - extra, high[0] + extra
    axes.set_xlim(low[0] - margin, high[0] + margin)
    axes.set_ylim(low[1] - margin, high[1] + margin)
    axes.set_aspect("equal")
