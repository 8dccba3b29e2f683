"""How figures look, on a page and in a paper: colours, lines, sizes, and their files.

Colours are Okabe and Ito's (Color Universal Design, 2008), which people with colour vision
deficiencies can tell apart; areas also differ in hatching, lines in dashes and points in shape, so
that a black-and-white print can be read.
"""

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from numpy.typing import NDArray

from analysis.run.result import Band

F64 = NDArray[np.float64]

INK, SOFT, GRID = "#1c2530", "#5b6673", "#e3e7eb"
AREAS = ("#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#F0E442")
AREA_LINES = ("#0072B2", "#A66400", "#00664A", "#A34D80", "#8A7F00")
HATCHES = ("", "////", "\\\\\\\\", "xx", "..")
HATCH_INK = "#7a5200"
LINES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
DASHES: tuple[Any, ...] = ("-", (0, (6, 2)), (0, (2, 1.2)), "-.")
MARKERS = ("o", "s", "^", "D", "v")
ALARM = "#B2182B"
BAND, HANDOVER = "#f1f3f5", "#c9d0d8"

PAGE_WIDTH_IN = 9.6
PAPER_WIDTH_IN = 7.16
"""Text width of a two-column IEEE page; half of it, without the gap, is 3.5 in."""

# `Any`: matplotlib types every key as a literal.
_STYLE: Any = {
    "svg.fonttype": "none",
    # The page sets the font; DejaVu's wide letters make matplotlib reserve enough room for it.
    "font.family": "DejaVu Sans",
    "font.size": 8.5,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "text.color": INK,
    "legend.frameon": False,
    "hatch.linewidth": 0.5,
    "hatch.color": HATCH_INK,
    # Publishers want fonts embedded as TrueType.
    "pdf.fonttype": 42,
}
# A page of somebody else has its own fonts or none of these: letters become outlines.
_EXPORT_STYLE: Any = {**_STYLE, "svg.fonttype": "path"}
_RASTER_DPI = 300


def styled() -> AbstractContextManager[None]:
    """The context in which figures are drawn."""
    return matplotlib.rc_context(_STYLE)


@dataclass(frozen=True)
class Drawing:
    """A figure that has been drawn for a page; the words are those of its `Plot`.

    Attributes
    ----------
    text, description, caption : str
    """

    text: str
    description: str
    caption: str

    def svg(self, name: str) -> str:
        """An inline SVG for a page.

        Parameters
        ----------
        name : str
            Unique in the page; prefixes the ids of the SVG.

        Returns
        -------
        str
        """
        return _inline(self.text, name)


@dataclass(frozen=True)
class Plot:
    """A figure, the caption below it, and the sentence that replaces it for who cannot see it.

    Attributes
    ----------
    figure : matplotlib Figure
    description : str
        What it shows, with its main figures.
    caption : str
        How to read it.
    """

    figure: Figure
    description: str
    caption: str = ""

    def draw(self) -> "Drawing":
        """Draw it for a page."""
        text = io.StringIO()
        with styled(), _transparent(self.figure):
            # `savefig` would lay out and draw everything twice.
            canvas: Any = FigureCanvasSVG(self.figure)
            canvas.print_svg(text, metadata={"Date": None, "Creator": None})
        return Drawing(text.getvalue(), self.description, self.caption)

    def save(self, path: Path) -> None:
        """Write the figure for a paper, as the path's suffix says: .svg or .pdf.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        kind = path.suffix.removeprefix(".")
        canvas = {"svg": FigureCanvasSVG, "pdf": FigureCanvasPdf}[kind]
        canvas(self.figure)
        unnamed: Any = {"Date": None} if kind == "svg" else {"CreationDate": None}
        with matplotlib.rc_context(_EXPORT_STYLE):
            self.figure.savefig(path, format=kind, metadata=unnamed, dpi=_RASTER_DPI)


@contextmanager
def _transparent(figure: Figure) -> Iterator[None]:
    """Let the page be seen through a figure, with images as fine as `_RASTER_DPI`."""
    patches = [figure.patch, *(axes.patch for axes in figure.axes)]
    before = [(patch.get_facecolor(), patch.get_edgecolor()) for patch in patches]
    dpi = figure.dpi
    figure.set_dpi(_RASTER_DPI)
    for patch in patches:
        patch.set(facecolor="none", edgecolor="none")
    try:
        yield
    finally:
        figure.set_dpi(dpi)
        for patch, (face, edge) in zip(patches, before, strict=True):
            patch.set(facecolor=face, edgecolor=edge)


def mark_bands(
    axes: Axes, bands: Sequence[Band], start_s: float, end_s: float, *, label: bool
) -> None:
    """Shade times in which something held (light) or was handed over (dark).

    Parameters
    ----------
    axes : Axes
        With seconds on its x axis.
    bands : sequence of Band
        All of them are drawn: choose those of one user first.
    start_s, end_s : float
        Where the axis begins and ends.
    label : bool
        Write what held above the axes.
    """
    for band in bands:
        begin, stop = max(band.start_s, start_s), min(band.end_s, end_s)
        if stop <= begin:
            continue
        handover = band.kind == "handover"
        axes.axvspan(
            begin,
            stop,
            color=HANDOVER if handover else BAND,
            zorder=0.5 if handover else 0,
            linewidth=0,
        )
        if label and not handover:
            axes.annotate(
                band.label,
                ((begin + stop) / 2, 1.0),
                xycoords=("data", "axes fraction"),
                ha="center",
                va="bottom",
                fontsize=7.5,
                color=SOFT,
            )


def mark_cut(axes: Axes, edges: F64, rates: F64, top: float) -> None:
    """Write their value where rates go beyond the top of the axes.

    Parameters
    ----------
    axes : Axes
    edges : float64 array
        Of the steps, one more than rates.
    rates : float64 array
    top : float
        Where the axes end.
    """
    for index in np.flatnonzero(rates > top).tolist():
        axes.annotate(
            f"↑ {rates[index]:.0f}",
            ((edges[index] + edges[index + 1]) / 2, top),
            xytext=(0, -2),
            textcoords="offset points",
            ha="center",
            va="top",
            fontsize=7,
            color=INK,
            bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"},
        )


def _inline(svg: str, name: str) -> str:
    svg = svg[svg.index("<svg") :]
    # Ids are unique in the page, and short: thousands of uses name them.
    numbers = count()
    short: dict[str, str] = {}
    for found in re.findall(r'id="([^"]+)"', svg):
        short.setdefault(found, f"{name}-{next(numbers)}")
    for pattern, form in ((r'id="([^"]+)"', 'id="{}"'), (r"url\(#([^)]+)\)", "url(#{})")):
        svg = re.sub(pattern, partial(_renamed, short, form), svg)
    svg = re.sub(r'href="#([^"]+)"', partial(_renamed, short, 'href="#{}"'), svg)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    # A hundredth of a point cannot be seen; six digits would be most of the page.
    svg = re.sub(r"<[^>]+>", lambda tag: re.sub(r"(\d\.\d\d)\d+", r"\1", tag[0]), svg)
    # The page decides the size; the view box keeps the proportions.
    return re.sub(r'<svg ([^>]*?)height="[^"]*"([^>]*?)width="[^"]*"', r"<svg \1\2", svg, count=1)


def _renamed(short: dict[str, str], form: str, found: re.Match[str]) -> str:
    return form.format(short[found[1]])
