"""A picture of a network with the utilisation of its links, for a slide or a paper.

Coordinates are points (1/72 inch) of a 16:9 page, so that widths of lines, sizes of nodes and
distances between labels are in the same unit.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import fdm

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tactical.layout import Places

SUFFIXES = (".svg", ".png", ".pdf")

MOST_NODES = 500
"""Nodes beyond which a picture shows nothing but a tangle."""

_WIDTH, _HEIGHT = 960.0, 540.0
_LEFT, _RIGHT, _BOTTOM, _TOP = 60.0, 830.0, 50.0, 435.0  # where nodes may be
_MOST_LABELLED = 12  # links with their utilisation written beside them, if there are many
_UNUSED, _DOWN = "#c9c9c9", "#8a8a8a"
_NAMES_INSIDE = 3  # characters that fit into the circle of a node


_Point = tuple[float, float]


class _Arrow(NamedTuple):
    link: int
    begin: _Point
    end: _Point
    used: float
    width: float


def draw(
    instance: fdm.Instance,
    solution: fdm.Solution,
    path: Path,
    places: Mapping[fdm.Node, tuple[float, float]] | None = None,
) -> None:
    """Write the picture; its format follows from the name of the file.

    Every link is an arrow, on the right of its direction, so that the two directions and parallel
    links lie beside each other. Colour and width say how full it is; a link that is down is
    dotted.

    Parameters
    ----------
    instance, solution : fdm.Instance, fdm.Solution
        What was solved, and the answer.
    path : Path
        A name that ends in one of `SUFFIXES`.
    places : mapping, optional
        Where nodes are, in any unit, y upwards; those that are not named are put amid their
        neighbours. Without it, distance on the page stands for hops.

    Raises
    ------
    ValueError
        If there are more than `MOST_NODES` nodes.
    OSError
        If the file cannot be written.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import colormaps, rc_context
    from matplotlib.cm import ScalarMappable
    from matplotlib.collections import LineCollection, PolyCollection
    from matplotlib.colors import LinearSegmentedColormap, Normalize
    from matplotlib.figure import Figure
    from matplotlib.patches import Circle

    from tactical.layout import completed, layered, layout, spread

    network = instance.network
    if len(network.nodes) > MOST_NODES:
        raise ValueError(
            f"a picture shows at most {MOST_NODES} nodes, and there are {len(network.nodes)}"
        )
    # ColorBrewer's YlOrRd tells its steps by lightness, so colour-blind eyes and grey prints tell
    # them too. Its palest third is left out: it cannot be seen on white.
    colours = LinearSegmentedColormap.from_list(
        "utilisation", colormaps["YlOrRd"]([0.3 + 0.007 * step for step in range(101)])
    )
    scale = Normalize(0.0, 100.0)
    with rc_context({"svg.hashsalt": "tactical", "font.family": "sans-serif"}):
        figure = Figure(figsize=(_WIDTH / 72.0, _HEIGHT / 72.0))
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set_xlim(0.0, _WIDTH)
        axes.set_ylim(0.0, _HEIGHT)
        axes.set_axis_off()
        names = [str(node) for node in network.nodes]
        inside = max(map(len, names), default=0) <= _NAMES_INSIDE
        radius = max(4.0, min(17.0, 95.0 / math.sqrt(len(names) + 10.0))) * (1.0 if inside else 0.6)
        if places is not None:
            at = _on_page(completed(network, places), stretch=2.0)
        elif (columns := layered(network, instance.demands)) is not None:
            at = _on_page(columns, stretch=math.inf)
        else:
            at = _on_page(layout(network), stretch=1.6)
        at = spread(network, at, min(5.0 * radius, 90.0) if inside else 75.0, 1.8 * radius)
        at = _on_page(at, stretch=1.2)
        arrows = _arrows(network, solution, at, radius)
        for arrow in arrows:
            if network.links[arrow.link].capacity_bps <= 0.0:
                axes.add_collection(
                    LineCollection(
                        [[arrow.begin, arrow.end]], colors=_DOWN, linewidths=1.0, linestyles=":"
                    )
                )
        up = [a for a in arrows if network.links[a.link].capacity_bps > 0.0]
        paint = [colours(scale(100.0 * a.used)) if a.used > 0.0 else _UNUSED for a in up]
        axes.add_collection(
            PolyCollection(
                [_outline(arrow) for arrow in up], facecolors=paint, linewidths=0.0, zorder=2
            )
        )
        for x, y in at:
            face = "white" if inside else "#404040"
            axes.add_patch(Circle((x, y), radius, fc=face, ec="#303030", lw=1.3, zorder=3))
        taken = _Taken([(x, y, radius) for x, y in at], arrows)
        _name_nodes(axes, names, at, radius, inside, taken)
        _label_links(axes, solution, network, up, taken)
        _title(axes, instance, solution)
        bar = figure.add_axes((0.9, 0.16, 0.016, 0.62))
        figure.colorbar(
            ScalarMappable(scale, colours), cax=bar, ticks=range(0, 101, 20), format="%d %%"
        )
        bar.tick_params(labelsize=12)
        bar.set_title("link\nutilisation", fontsize=12, pad=10)
        _legend(axes, arrows, network)
        figure.savefig(path, dpi=200, metadata=_UNDATED.get(path.suffix))


_UNDATED: dict[str, dict[str, Any]] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
"""The same network gives the same file."""


def _on_page(places: Places, stretch: float) -> Places:
    """Scale places to fill the page, one axis by at most `stretch` more than the other."""
    import numpy as np

    if not len(places):
        return places
    low, high = places.min(axis=0), places.max(axis=0)
    size = np.array([_RIGHT - _LEFT, _TOP - _BOTTOM])
    extent = high - low
    factor = np.divide(size, extent, out=np.full(2, np.inf), where=extent > 1e-9)
    least = factor.min()
    if not math.isfinite(least):
        least, factor = 1.0, np.ones(2)
    factor = np.minimum(factor, stretch * least)
    factor[extent <= 1e-9] = 1.0
    middle = np.array([(_LEFT + _RIGHT) / 2.0, (_BOTTOM + _TOP) / 2.0])
    on_page: Places = middle + (places - (low + high) / 2.0) * factor
    return on_page


def _arrows(
    network: fdm.Network, solution: fdm.Solution, at: Places, radius: float
) -> list[_Arrow]:
    """All links that are no loops, the fullest last."""
    beside: dict[tuple[int, int], int] = defaultdict(int)
    dense = len(network.links) > 150
    arrows = []
    for number, link in enumerate(network.links):
        tail, head = network.index[link.tail], network.index[link.head]
        if tail == head:
            continue
        used = 0.0
        if link.capacity_bps > 0.0:
            used = min(1.0, solution.link_flows_bps[number] / link.capacity_bps)
        width = (0.6 + 2.6 * used) if dense else (1.0 + 4.0 * used)
        rank = beside[tail, head]
        beside[tail, head] += 1
        gap = 4.0 if dense else 6.5
        aside = min(gap * (0.5 + rank), 0.9 * radius)
        (x0, y0), (x1, y1) = at[tail], at[head]
        length = math.hypot(x1 - x0, y1 - y0) or 1.0
        dx, dy = (x1 - x0) / length, (y1 - y0) / length
        clear = math.sqrt(radius**2 - aside**2) + 1.5
        x, y = aside * dy, -aside * dx
        begin = (x0 + x + clear * dx, y0 + y + clear * dy)
        end = (x1 + x - clear * dx, y1 + y - clear * dy)
        arrows.append(_Arrow(number, begin, end, used, width))
    return sorted(arrows, key=lambda arrow: arrow.used)


def _outline(arrow: _Arrow) -> list[_Point]:
    """A shaft and a head."""
    (x0, y0), (x1, y1) = arrow.begin, arrow.end
    length = math.hypot(x1 - x0, y1 - y0) or 1.0
    dx, dy = (x1 - x0) / length, (y1 - y0) / length
    half, tip = arrow.width / 2.0, min(6.0 + 2.0 * arrow.width, 0.5 * length)
    wing = half + 2.0 + 0.6 * arrow.width

    def corner(along: float, aside: float) -> _Point:
        return x0 + along * dx + aside * dy, y0 + along * dy - aside * dx

    # Half a head, on the right: the left side is the other direction's.
    return [
        corner(0.0, -half),
        corner(length, -half),
        corner(length - tip, wing),
        corner(length - tip, half),
        corner(0.0, half),
    ]


class _Taken:
    """What is on the page already, to keep labels clear of it."""

    def __init__(
        self, circles: Sequence[tuple[float, float, float]], arrows: Sequence[_Arrow]
    ) -> None:
        self._circles = circles
        self._arrows = arrows
        self._boxes: list[tuple[float, float, float, float]] = []

    def cost(self, at: _Point, size: _Point, own: int | None) -> float:
        """How much a box with its middle there covers; infinite for another label or a node."""
        (x, y), (width, height) = at, size
        left, right = x - width / 2.0, x + width / 2.0
        low, high = y - height / 2.0, y + height / 2.0
        if left < 4.0 or right > _RIGHT + 30.0 or low < 4.0 or high > _TOP + 30.0:
            return math.inf
        for a, b, c, d in self._boxes:
            if left < b and right > a and low < d and high > c:
                return math.inf
        for cx, cy, radius in self._circles:
            beyond = math.hypot(max(left - cx, 0.0, cx - right), max(low - cy, 0.0, cy - high))
            if beyond < radius + 1.0:
                return math.inf
        return sum(
            1.0 + 4.0 * arrow.used
            for arrow in self._arrows
            if arrow.link != own and _crosses(arrow, left, right, low, high)
        )

    def take(self, at: _Point, size: _Point) -> None:
        (x, y), (width, height) = at, size
        self._boxes.append((x - width / 2, x + width / 2, y - height / 2, y + height / 2))


def _crosses(arrow: _Arrow, left: float, right: float, low: float, high: float) -> bool:
    """Whether the line from begin to end meets the box (Liang and Barsky 1984)."""
    (x0, y0), (x1, y1) = arrow.begin, arrow.end
    enter, leave = 0.0, 1.0
    for way, to_low, to_high in (
        (x1 - x0, left - x0, right - x0),
        (y1 - y0, low - y0, high - y0),
    ):
        if way == 0.0:
            if to_low > 0.0 or to_high < 0.0:
                return False
            continue
        first, last = sorted((to_low / way, to_high / way))
        enter, leave = max(enter, first), min(leave, last)
    return enter <= leave


def _text_size(text: str, size: float) -> _Point:
    lines = text.split("\n")
    return 0.62 * size * max(map(len, lines)) + 2.0, 1.25 * size * len(lines)


def _name_nodes(
    axes: Axes, names: Sequence[str], at: Places, radius: float, inside: bool, taken: _Taken
) -> None:
    size = 1.05 * radius if inside else 12.0 if len(names) <= 30 else 8.0
    if size < 5.0:
        return
    for name, (x, y) in zip(names, at, strict=True):
        place = (float(x), float(y))
        if not inside:
            width, height = _text_size(name, size)
            around = [
                (x, y - radius - height / 2 - 2),
                (x, y + radius + height / 2 + 2),
                (x - radius - width / 2 - 4, y),
                (x + radius + width / 2 + 4, y),
                *(
                    (x + sx * (radius + width / 2), y + sy * (radius + height / 2))
                    for sx in (-0.8, 0.8)
                    for sy in (-0.9, 0.9)
                ),
            ]
            place = min(around, key=lambda p: taken.cost(p, (width, height), None))
            taken.take(place, (width, height))
        _write(axes, place, name, size, weight="bold", zorder=5, halo=not inside)


def _label_links(
    axes: Axes,
    solution: fdm.Solution,
    network: fdm.Network,
    arrows: Sequence[_Arrow],
    taken: _Taken,
) -> None:
    """Write flow and utilisation beside links: all that are used, or the fullest of many."""
    used = [arrow for arrow in reversed(arrows) if arrow.used > 0.0]
    few = len(used) <= _MOST_LABELLED
    size = 11.0 if few else 10.0
    for arrow in used if few else [a for a in used if a.used >= 0.2][:_MOST_LABELLED]:
        text = f"{arrow.used * 100.0:.0f} %" if arrow.used >= 0.005 else "< 1 %"
        if few:
            text = f"{_rate(solution.link_flows_bps[arrow.link])}\n{text}"
        width, height = _text_size(text, size)
        (x0, y0), (x1, y1) = arrow.begin, arrow.end
        length = math.hypot(x1 - x0, y1 - y0) or 1.0
        nx, ny = (y1 - y0) / length, -(x1 - x0) / length
        away = 4.0 + arrow.width / 2.0 + abs(nx) * width / 2.0 + abs(ny) * height / 2.0
        spots = [
            (x0 + share * (x1 - x0) + nx * away * side, y0 + share * (y1 - y0) + ny * away * side)
            for side in (1.0, -1.0)
            for share in (0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74)
        ]
        costs = [taken.cost(spot, (width, height), arrow.link) for spot in spots]
        best = min(range(len(spots)), key=lambda number: costs[number] + 0.1 * number)
        if math.isinf(costs[best]):
            continue
        taken.take(spots[best], (width, height))
        _write(axes, spots[best], text, size, zorder=4)


def _write(
    axes: Axes, at: _Point, text: str, size: float, *, halo: bool = True, **how: Any
) -> None:
    from matplotlib.patheffects import withStroke

    effects = [withStroke(linewidth=2.5, foreground="white")] if halo else []
    axes.text(
        *at, text, fontsize=size, ha="center", va="center", path_effects=effects, color="#101010",
        parse_math=False, linespacing=1.05, **how,
    )  # fmt: skip


def _title(axes: Axes, instance: fdm.Instance, solution: fdm.Solution) -> None:
    axes.text(
        24.0, _HEIGHT - 32.0, instance.name, fontsize=19, weight="bold", va="center",
        parse_math=False,
    )  # fmt: skip
    network = instance.network
    sending = sum(demand.rate_bps > 0.0 for demand in instance.demands)
    said = [
        f"{len(network.nodes)} nodes, {len(network.links)} links, {sending} demands",
        f"mean packet delay {solution.mean_packet_delay_s * 1e3:.4g} ms",
    ]
    if not solution.feasible:
        share = sum(solution.admitted_bps) / (sum(solution.offered_bps) or 1.0)
        said.append(f"{100.0 * share:.3g} % of the demand admitted")
    axes.text(24.0, _HEIGHT - 58.0, "   ·   ".join(said), fontsize=13, va="center", color="#303030")


def _legend(axes: Axes, arrows: Sequence[_Arrow], network: fdm.Network) -> None:
    rows = []
    if any(a.used <= 0.0 and network.links[a.link].capacity_bps > 0.0 for a in arrows):
        rows.append(("unused", _UNUSED, "-"))
    if any(network.links[a.link].capacity_bps <= 0.0 for a in arrows):
        rows.append(("down", _DOWN, ":"))
    for number, (text, colour, style) in enumerate(rows):
        y = 52.0 - 20.0 * number
        axes.plot([850.0, 876.0], [y, y], color=colour, linestyle=style, linewidth=2.0)
        axes.text(882.0, y, text, fontsize=12, va="center")


def _rate(rate_bps: float) -> str:
    for factor, unit in ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")):
        if rate_bps >= 0.9995 * factor:
            return f"{rate_bps / factor:.3g} {unit}"
    return f"{rate_bps:.3g} bit/s"
