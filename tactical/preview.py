"""A picture of a scenario before it runs: tracks and ranges, accesses over time, rates over time.

One colour stands for one access everywhere: on the part of a track where it is used, in the rows
of the schedule, and on the line of the rate that it offers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from scenarios import AccessPoint, Satellite
from tactical.forecast import Forecast, Reach

if TYPE_CHECKING:
    from matplotlib.animation import AbstractMovieWriter
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".svg", ".pdf")
MOVIES = (".gif", ".mp4")

MOST_STATIONS = 60
"""Stations beyond which rows and names cannot be told apart."""

FRAMES = 100
_FRAMES_PER_S = 12

# Okabe and Ito's colours, which colour-blind eyes can tell: greys and blues for what is always
# there, warm ones for what comes and goes.
_SATELLITES = ("#6f7f8f", "#0072b2", "#56b4e9")
_ACCESS_POINTS = ("#d55e00", "#009e73", "#cc79a7", "#e69f00", "#8a6d00", "#5b2c83")
_INK, _FAINT = "#202020", "#b8b8b8"
_MOST_TIMES = 10  # handovers of a row with their time written beside them
_TRACK_POINTS = 600
_UNDATED: dict[str, dict[str, Any]] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}


def draw(what: Forecast, path: Path) -> None:
    """Write the picture; its format follows from the name of the file.

    Parameters
    ----------
    what : Forecast
        What will happen.
    path : Path
        A name that ends in one of `SUFFIXES`.

    Raises
    ------
    ValueError
        If there are more than `MOST_STATIONS` stations.
    OSError
        If the file cannot be written.
    """
    from matplotlib import rc_context

    with rc_context(_style()):
        page = _Page(what, in_motion=False)
        page.show(None)
        page.figure.savefig(path, dpi=160, metadata=_UNDATED.get(path.suffix))


def animate(what: Forecast, path: Path, tell: Callable[[int, int], None]) -> None:
    """Write the picture in motion: ships and ranges move, a line runs through the schedule.

    Parameters
    ----------
    what : Forecast
        What will happen.
    path : Path
        A name that ends in one of `MOVIES`; .mp4 needs the program ffmpeg.
    tell : callable
        Told after each frame how many there are so far and in all.

    Raises
    ------
    ValueError
        If there are more than `MOST_STATIONS` stations.
    OSError
        If the file cannot be written.
    """
    from matplotlib import rc_context
    from matplotlib.animation import FFMpegWriter, PillowWriter

    with rc_context(_style()):
        page = _Page(what, in_motion=True)
        writer: AbstractMovieWriter
        if path.suffix == ".gif":
            writer = PillowWriter(fps=_FRAMES_PER_S)
        else:
            writer = FFMpegWriter(fps=_FRAMES_PER_S, extra_args=["-pix_fmt", "yuv420p"])
        with writer.saving(page.figure, path, dpi=80):
            for frame in range(FRAMES):
                page.show(what.scenario.duration_s * frame / (FRAMES - 1))
                writer.grab_frame()
                tell(frame + 1, FRAMES)


def _style() -> Any:
    return {
        "svg.hashsalt": "tactical",
        "font.family": "sans-serif",
        "font.size": 11.0,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlesize": 12.0,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
    }


class _Page:
    """The figure, and what of it moves."""

    def __init__(self, what: Forecast, *, in_motion: bool) -> None:
        from matplotlib.figure import Figure

        self._in_motion = in_motion
        self._ranges_move = False

        scenario = what.scenario
        if len(scenario.stations) > MOST_STATIONS:
            raise ValueError(
                f"a preview shows at most {MOST_STATIONS} stations, and there are "
                f"{len(scenario.stations)}"
            )
        self._what = what
        self._accesses = scenario.accesses
        groups: list[tuple[Sequence[Satellite | AccessPoint], Sequence[str]]] = [
            (scenario.satellites, _SATELLITES),
            (scenario.access_points, _ACCESS_POINTS),
        ]
        self._colours: dict[str, str] = {
            each.name: palette[number % len(palette)]
            for group, palette in groups
            for number, each in enumerate(group)
        }
        self.figure: Figure = Figure(figsize=(14.0, 7.4))
        self._moving = [each for each in self._accesses if what.delay_s(each).values.size > 1]
        heights = _heights(len(scenario.stations), len(self._moving) > 0)
        grid = self.figure.add_gridspec(
            len(heights), 2, width_ratios=(1.15, 1.0), height_ratios=heights,
            left=0.06, right=0.98, top=0.83, bottom=0.09, hspace=0.48, wspace=0.16,
        )  # fmt: skip
        self._chart = self.figure.add_subplot(grid[:, 0])
        self._rows = self.figure.add_subplot(grid[0, 1])
        self._over_time = [
            self.figure.add_subplot(grid[row, 1], sharex=self._rows)
            for row in range(1, len(heights))
        ]
        self._names: list[Any] = []
        self._discs: list[tuple[AccessPoint, Any, Any]] = []
        self._unit_m, self._unit = self._set_scale()
        self._draw_chart()
        self._draw_rows()
        self._draw_rates(self._over_time[0])
        if self._moving:
            self._draw_delays(self._over_time[1])
        self._over_time[-1].set_xlabel("run time (s)")
        self._title()
        self._ships = [
            self._chart.plot(
                [],
                [],
                marker="o",
                markersize=13,
                markeredgecolor=_INK,
                markeredgewidth=1.6,
                zorder=9,
            )[0]
            for _ in scenario.stations
        ]
        self._cursors = [
            axes.axvline(0.0, color=_INK, linewidth=1.2, visible=False, zorder=9)
            for axes in (self._rows, *self._over_time)
        ]
        self._clock = self._chart.text(
            0.985, 0.985, "", transform=self._chart.transAxes, ha="right", va="top",
            fontsize=15, fontweight="bold", zorder=9,
        )  # fmt: skip

    def show(self, time_s: float | None) -> None:
        """Show an instant, or the whole run."""
        at = 0.0 if time_s is None else time_s
        for access_point, disc, mark in self._discs:
            east, north, up = self._place(access_point, at)
            disc.set_center((east, north))
            disc.set_radius(self._ground_m(access_point, up * self._unit_m) / self._unit_m)
            mark.set_data([east], [north])
        for cursor in self._cursors:
            cursor.set_visible(time_s is not None)
        if time_s is None:
            return
        for name in self._names:
            name.set_visible(False)
        for station, ship, name in zip(
            self._what.scenario.stations, self._ships, self._names, strict=False
        ):
            east, north, _ = self._place(station, at)
            ship.set_data([east], [north])
            ship.set_markerfacecolor(self._colours[self._used(station.name, at)])
            name.xy = (east, north)
            name.set_visible(True)
        for cursor in self._cursors:
            cursor.set_xdata([at, at])
        self._clock.set_text(f"{at:.0f} s")

    def _set_scale(self) -> tuple[float, str]:
        stations = self._what.scenario.stations
        times = np.linspace(0.0, self._what.scenario.duration_s, 100)
        places = np.vstack([each.trajectory.position(times)[:, :2] for each in stations])
        return (1000.0, "km") if np.ptp(places, axis=0).max() > 5000.0 else (1.0, "m")

    def _place(self, node: Any, time_s: float) -> tuple[float, float, float]:
        east, north, up = node.trajectory.position(time_s)[0] / self._unit_m
        return float(east), float(north), float(up)

    def _ground_m(self, access_point: AccessPoint, up_m: float) -> float:
        """Radius at the height of the stations of the sphere that is the range."""
        stations = self._what.scenario.stations
        heights = [float(each.trajectory.position(0.0)[0, 2]) for each in stations]
        above = up_m - float(np.median(heights))
        return math.sqrt(max(access_point.range_m**2 - above**2, 0.0))

    def _used(self, station: str, time_s: float) -> str:
        used = [each for each in self._what.access_at(station) if each.start_s <= time_s]
        return used[-1].access

    def _draw_chart(self) -> None:
        from matplotlib.collections import LineCollection
        from matplotlib.patches import Circle

        axes, scenario = self._chart, self._what.scenario
        every = np.linspace(0.0, scenario.duration_s, _TRACK_POINTS)
        corners: list[Any] = []
        last: list[Any] = []
        for access_point in scenario.access_points:
            colour = self._colours[access_point.name]
            track = access_point.trajectory.position(every)[:, :2] / self._unit_m
            corners.append(track)
            if np.ptp(track, axis=0).max() > 0.0:
                axes.plot(*track.T, color=colour, linewidth=1.0, linestyle=":", zorder=3)
                self._ranges_move = True
            disc = Circle((0.0, 0.0), 1.0, facecolor=colour, alpha=0.10, zorder=1)
            edge = Circle((0.0, 0.0), 1.0, fill=False, edgecolor=colour, linewidth=1.2, zorder=2)
            axes.add_patch(disc)
            axes.add_patch(edge)
            (mark,) = axes.plot([], [], marker="^", markersize=11, color=colour, zorder=6)
            self._discs.append((access_point, _Both(disc, edge), mark))
        for station in scenario.stations:
            ends = []
            for used in self._what.access_at(station.name):
                times = np.unique(np.append(every, [used.start_s, used.end_s]))
                times = times[(times >= used.start_s) & (times <= used.end_s)]
                track = station.trajectory.position(times)[:, :2] / self._unit_m
                corners.append(track)
                jumps = np.flatnonzero(
                    np.linalg.norm(np.diff(track, axis=0), axis=1)
                    > 2.0 * station.trajectory.top_speed_mps(scenario.duration_s)
                    * np.diff(times) / self._unit_m + 1e-9
                )  # fmt: skip
                pieces = np.split(track, jumps + 1)
                axes.add_collection(
                    LineCollection(
                        pieces, colors=self._colours[used.access], linewidths=2.2, zorder=4,
                        capstyle="round",
                    )
                )  # fmt: skip
                ends.append(track[0])
            start = ends[0]
            axes.plot(*start, marker="o", markersize=6, color=_INK, zorder=7)
            axes.plot(
                *track[-1], marker="s", markersize=6, markerfacecolor="white", color=_INK, zorder=7
            )
            size = 10 if len(scenario.stations) <= 12 else 7
            self._names.append(self._name(station.name, start, size))
            if len(scenario.stations) <= 12:
                last.append(self._name(station.name, track[-1], size - 2))
            changes = np.array(ends[1:]).reshape(-1, 2)
            axes.scatter(
                changes[:, 0],
                changes[:, 1],
                s=34,
                facecolors="white",
                edgecolors=_INK,
                linewidths=1.2,
                zorder=5,
            )
        self._names += last
        self._set_window(np.vstack(corners))
        axes.set_xlabel(f"east ({self._unit})")
        axes.set_ylabel(f"north ({self._unit})")
        axes.set_title("Tracks and ranges", pad=8)
        axes.grid(color="#e8e8e8", linewidth=0.6, zorder=0)
        axes.set_axisbelow(True)

    def _name(self, name: str, place: Any, size: float) -> Any:
        from matplotlib.patheffects import withStroke

        return self._chart.annotate(
            name, place, (0, 10), textcoords="offset points", ha="center", fontsize=size, zorder=8,
            path_effects=[withStroke(linewidth=2.5, foreground="white")],
        )  # fmt: skip

    def _set_window(self, corners: Any) -> None:
        """Show all tracks and access points; ranges as far as they fit."""
        axes = self._chart
        low, high = corners.min(axis=0), corners.max(axis=0)
        box = axes.get_position()
        width, height = self.figure.get_size_inches()
        shape = (box.width * width) / (box.height * height)
        half = np.maximum((high - low) / 2.0 * 1.12, 1e-3)
        half = np.maximum(half, [half[1] * shape, half[0] / shape])
        middle = (low + high) / 2.0
        axes.set_xlim(middle[0] - half[0], middle[0] + half[0])
        axes.set_ylim(middle[1] - half[1], middle[1] + half[1])
        axes.set_aspect("equal", adjustable="datalim")

    def _draw_rows(self) -> None:
        axes, what = self._rows, self._what
        stations = what.scenario.stations
        for row, station in enumerate(stations):
            for satellite in what.scenario.satellites:
                self._draw_satellite(row, satellite)
            reached = [each for each in what.reaches if each.station == station.name]
            self._draw_bars(row, reached)
            changes = [each for each in what.handovers if each.station == station.name]
            for change in changes:
                axes.vlines(change.time_s, row - 0.38, row + 0.38, color=_INK, linewidth=1.0)
            if len(changes) <= _MOST_TIMES and len(stations) <= 6:
                self._write_times(row, [change.time_s for change in changes])
        axes.set_yticks(range(len(stations)), [station.name for station in stations])
        axes.tick_params(axis="y", length=0, labelsize=11 if len(stations) <= 12 else 6)
        axes.set_ylim(len(stations) - 0.35, -0.75)
        axes.set_xlim(0.0, what.scenario.duration_s)
        axes.spines["left"].set_visible(False)
        count = _count(len(what.handovers), len(what.satellite_handovers))
        axes.set_title(f"Accesses in range, and {count}", pad=8)

    def _draw_satellite(self, row: int, satellite: Satellite) -> None:
        """A line while it carries anything, side by side with other satellites."""
        what = self._what
        number = what.scenario.satellites.index(satellite)
        height = row + 0.1 * (number - (len(what.scenario.satellites) - 1) / 2.0)
        capacity = what.capacity_bps(satellite)
        ends = np.append(capacity.times_s[1:], what.scenario.duration_s)
        up = capacity.values > 0.0
        colour = self._colours[satellite.name]
        self._rows.hlines(
            np.full(int(up.sum()), height), capacity.times_s[up], ends[up], color=colour,
            linewidth=2.0,
        )  # fmt: skip
        turns = [e.time_s for e in what.satellite_handovers if e.satellite == satellite.name]
        self._rows.vlines(turns, height - 0.12, height + 0.12, color=colour, linewidth=1.6)

    def _draw_bars(self, row: int, reached: list[Reach]) -> None:
        for each in reached:
            self._rows.broken_barh(
                [(each.start_s, each.end_s - each.start_s)],
                (row - 0.24, 0.48),
                facecolors=self._colours[each.access],
                alpha=0.85,
                linewidth=0.0,
            )

    def _write_times(self, row: int, times: list[float]) -> None:
        last = -math.inf
        for time_s in times:
            # Too close to the one before to stand beside it.
            if time_s - last < 0.055 * self._what.scenario.duration_s:
                continue
            last = time_s
            self._rows.text(
                time_s, row - 0.42, f"{time_s:.1f}", ha="center", va="bottom", fontsize=9
            )

    def _draw_rates(self, axes: Any) -> None:
        what = self._what
        until_s = what.scenario.duration_s
        peaks = []
        for access in self._accesses:
            share = what.share_bps(access)
            times = np.append(share.times_s, until_s)
            values = np.append(share.values, share.values[-1]) / 1e6
            values[values == 0.0] = np.nan
            peaks += values[np.isfinite(values)].tolist()
            axes.step(times, values, where="post", color=self._colours[access.name], linewidth=2.4)
        offered = {what.scenario.offered_bps(each.name) for each in what.scenario.stations}
        demands = sorted(rate_bps / 1e6 for rate_bps in offered if rate_bps > 0)
        for demand in demands:
            axes.axhline(demand, color=_INK, linewidth=1.0, linestyle=(0, (4, 3)))
            crowded = any(demand < peak < 1.5 * demand for peak in peaks)
            axes.annotate(
                f"a user sends {demand:g} Mbit/s", (until_s, demand),
                (-2, -3 if crowded else 3), textcoords="offset points",
                ha="right", va="top" if crowded else "bottom", fontsize=9,
            )  # fmt: skip
        every = [*peaks, *demands] or [1.0]
        axes.set_yscale("log")
        axes.set_ylim(min(every) / 2.0, max(every) * 2.5)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.yaxis.set_minor_formatter("")
        axes.set_ylabel("Mbit/s")
        axes.set_title("Rate for each user, if its users share it evenly", pad=8)
        axes.grid(axis="y", color="#e8e8e8", linewidth=0.6)

    def _draw_delays(self, axes: Any) -> None:
        """Delays of what moves in orbit; those that stay are in the legend."""
        for access in self._moving:
            delay, capacity = self._what.delay_s(access), self._what.capacity_bps(access)
            ends = np.append(capacity.times_s, self._what.scenario.duration_s)
            times = np.union1d(delay.times_s, ends)
            values = np.where(capacity.at(times) > 0.0, delay.at(times) * 1000.0, np.nan)
            axes.step(times, values, where="post", color=self._colours[access.name], linewidth=2.4)
        axes.set_ylabel("ms")
        names = " and ".join(access.name for access in self._moving)
        axes.set_title(f"Propagation delay of {names}, one way", pad=8)
        axes.grid(axis="y", color="#e8e8e8", linewidth=0.6)

    def _title(self) -> None:
        from matplotlib.lines import Line2D

        scenario = self._what.scenario
        self.figure.text(0.06, 0.945, scenario.name, fontsize=19, fontweight="bold", va="center")
        stations = len(scenario.stations)
        count = f"{stations} station{'s' if stations != 1 else ''}"
        legend = "dot: start, square: end, circle: handover of a single path"
        if self._ranges_move and not self._in_motion:
            # Handovers lie elsewhere than on the edge that is drawn.
            legend += "\nranges: at the start, with a dotted line where they move"
        self.figure.text(
            0.06, 0.895, f"{count}, {scenario.duration_s:g} s; {legend}",
            fontsize=11, color="#505050", va="center",
        )  # fmt: skip
        handles = [
            Line2D([], [], color=self._colours[each.name], linewidth=4, label=_label(each))
            for each in self._accesses[:8]
        ]
        self.figure.legend(
            handles=handles, loc="upper right", bbox_to_anchor=(0.985, 0.985), frameon=False,
            ncols=1 if len(handles) <= 2 else 2, fontsize=10.5,
        )  # fmt: skip


class _Both:
    """A disc and its edge, moved together."""

    def __init__(self, *circles: Any) -> None:
        self._circles = circles

    def set_center(self, centre: tuple[float, float]) -> None:
        for circle in self._circles:
            circle.set_center(centre)

    def set_radius(self, radius: float) -> None:
        for circle in self._circles:
            circle.set_radius(radius)


def _heights(stations: int, delays: bool) -> tuple[float, ...]:
    rows = min(0.6 + 0.25 * stations, 2.2)
    return (rows, 1.0, 1.0) if delays else (rows, 1.0)


def _label(access: Satellite | AccessPoint) -> str:
    link = access.backhaul
    where = f"range {access.range_m:g} m" if isinstance(access, AccessPoint) else "everywhere"
    rate = f"{link.rate_bps / 1e6:g} Mbit/s, {link.delay_s * 1000.0:.4g} ms"
    if link.profile:
        where += ", changing"
    return f"{access.name}: {rate}, {where}"


def _count(handovers: int, turns: int) -> str:
    if turns:
        return f"handovers: {handovers}, and {turns} of satellites"
    return f"{handovers} handover{'s' if handovers != 1 else ''} at the lines"
