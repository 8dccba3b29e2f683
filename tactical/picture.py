"""A picture of a network with the utilisation of its links."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import fdm


def draw(instance: fdm.Instance, solution: fdm.Solution, path: Path) -> None:
    """Write the picture; its format follows from the name of the file.

    Every direction of a link is an arrow, drawn beside the other one. Colour and width say how
    full it is. Where a link is down it is dotted.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

    network = instance.network
    places = layout(network)
    side = max(6.0, min(16.0, 1.6 * math.sqrt(len(network.nodes)) + 2.0))
    figure = Figure(figsize=(side * 1.15, side), layout="constrained")
    axes = figure.add_subplot()
    colours, scale = colormaps["viridis_r"], Normalize(0.0, 1.0)
    for link, flow in zip(network.links, solution.link_flows_bps, strict=True):
        if link.tail == link.head:
            continue
        used = flow / link.capacity_bps if link.capacity_bps > 0.0 else 0.0
        begin, end = _beside(places[network.index[link.tail]], places[network.index[link.head]])
        arrow: dict[str, Any] = {
            "arrowstyle": "-|>",
            "color": colours(scale(min(1.0, used))) if used > 0.0 else "lightgrey",
            "linewidth": 0.8 + 2.4 * min(1.0, used),
            "linestyle": "-" if link.capacity_bps > 0.0 else ":",
            "shrinkA": 9,
            "shrinkB": 9,
        }
        axes.annotate("", xy=end, xytext=begin, arrowprops=arrow)
        if used >= 0.005 and len(network.links) <= 80:
            axes.text(
                0.6 * end[0] + 0.4 * begin[0],
                0.6 * end[1] + 0.4 * begin[1],
                f"{used * 100:.0f} %",
                fontsize=7,
                ha="center",
                va="center",
                bbox={"boxstyle": "round,pad=0.1", "fc": "white", "ec": "none", "alpha": 0.8},
            )
    axes.scatter(
        [x for x, _ in places],
        [y for _, y in places],
        s=260,
        c="white",
        edgecolors="black",
        zorder=3,
    )
    for node, (x, y) in zip(network.nodes, places, strict=True):
        axes.text(x, y, str(node), fontsize=8, ha="center", va="center", zorder=4)
    axes.set_title(
        f"{instance.name}: mean packet delay {solution.mean_packet_delay_s * 1e3:.4g} ms"
        + ("" if solution.feasible else ", demands cut to fit")
    )
    axes.margins(0.1)
    axes.set_aspect("equal")
    axes.set_axis_off()
    figure.colorbar(ScalarMappable(scale, colours), ax=axes, label="link utilisation", shrink=0.7)
    figure.savefig(path)


def layout(network: fdm.Network) -> list[tuple[float, float]]:
    """Return places for the nodes, the same ones for the same network.

    Springs between neighbours and repulsion among all, from a circle (T. Fruchterman,
    E. Reingold, "Graph drawing by force-directed placement", 1991).
    """
    import numpy as np

    count = len(network.nodes)
    angle = 2.0 * math.pi * np.arange(count) / max(1, count)
    place = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    if count < 3:
        return [(float(x), float(y)) for x, y in place]
    joined = np.zeros((count, count))
    for link in network.links:
        tail, head = network.index[link.tail], network.index[link.head]
        if tail != head:
            joined[tail, head] = joined[head, tail] = 1.0
    ideal = 1.0 / math.sqrt(count)
    rounds = 200 if count <= 200 else 30
    for turn in range(rounds):
        apart = place[:, None, :] - place[None, :, :]
        distance = np.maximum(np.sqrt((apart**2).sum(axis=2)), 1e-3)
        force = ideal**2 / distance**2 - joined * distance / ideal
        move = (apart * force[:, :, None]).sum(axis=1)
        length = np.maximum(np.sqrt((move**2).sum(axis=1, keepdims=True)), 1e-9)
        place = place + move / length * np.minimum(length, 0.2 * (1.0 - turn / rounds))
    return [(float(x), float(y)) for x, y in place]


def _beside(
    begin: tuple[float, float], end: tuple[float, float]
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return both ends moved a little to the right of the way from one to the other."""
    dx, dy = end[0] - begin[0], end[1] - begin[1]
    length = math.hypot(dx, dy) or 1.0
    aside = 0.015
    x, y = aside * dy / length, -aside * dx / length
    return (begin[0] + x, begin[1] + y), (end[0] + x, end[1] + y)
