"""What every page of this package is made of: its style, figures, tables, boxes.

A page is one file: figures are inline, nothing is fetched, and it prints.
"""

import html
from collections.abc import Sequence

from analysis.presentation.style import Drawing, Plot

_CSS = """
:root { color-scheme: light; --ink: #1c2530; --soft: #5b6673; --line: #d8dde2; --pale: #f6f7f9;
  --alarm: #b2182b; --good: #00664a; }
* { box-sizing: border-box; }
html { font: 16px/1.55 "Source Sans 3", "Segoe UI", Roboto, "Helvetica Neue", Arial,
  "Liberation Sans", sans-serif; color: var(--ink); background: #fff; }
body { max-width: 72rem; margin: 0 auto; padding: 2.5rem 1.5rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .3rem; letter-spacing: -.01em; }
h2 { font-size: 1.35rem; margin: 3rem 0 .4rem; padding-top: 1rem;
  border-top: 2px solid var(--ink); }
h3 { font-size: 1.02rem; margin: 1.8rem 0 .4rem; }
p { margin: .4rem 0; max-width: 46rem; }
.lead, .soft, figcaption, caption { color: var(--soft); }
.lead { font-size: 1.05rem; }
nav { margin: 1rem 0 0; } nav a { margin-right: 1.2rem; }
a { color: #004f7c; }
figure { margin: 1rem 0 1.4rem; } figure svg { display: block; width: 100%; height: auto; }
figure svg text { font-family: inherit !important; }
figcaption, caption { font-size: .88rem; }
caption { text-align: left; padding-bottom: .4rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums;
  width: 100%; }
th, td { padding: .28rem .55rem; text-align: right; vertical-align: baseline; }
th[scope=row], td.text, th.text { text-align: left; }
th[scope=row] { font-weight: 400; }
td { white-space: nowrap; } td.long { white-space: normal; min-width: 14rem; }
thead th { border-bottom: 1.5px solid var(--ink); }
tbody + tbody tr:first-child > *, tbody.user tr:first-child > * {
  border-top: 1px solid var(--line); }
tbody tr:nth-child(even) { background: var(--pale); }
tr.key > * { font-weight: 600 !important; }
th.group { text-align: left; padding-top: .8rem; background: #fff; }
thead th { vertical-align: bottom; }
thead th .soft { display: block; font-weight: 400; font-size: .88em; }
.unit { color: var(--soft); font-size: .85em; padding-left: .35em; font-weight: 400; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); gap: 1rem;
  margin: 1.4rem 0 .5rem; padding: 0; list-style: none; }
.cards li { border: 1px solid var(--line); border-top: 4px solid var(--card, var(--ink));
  border-radius: 4px; padding: .8rem 1rem; }
.cards b { font-size: 1.8rem; line-height: 1.15; display: block;
  font-variant-numeric: tabular-nums; }
.cards .unit { font-size: 1rem; }
.box { border: 1px solid var(--line); background: var(--pale); border-radius: 4px;
  padding: .7rem 1rem .9rem; margin: 1rem 0; }
.box h3 { margin-top: .1rem; }
.failed { border-left: 5px solid var(--alarm); background: #fdf3f3; padding: .6rem 1rem; }
.failed b { color: var(--alarm); }
.cards .wrong { display: block; margin-top: .35rem; }
.ok { color: var(--good); } .bad { color: var(--alarm); font-weight: 600; }
details { margin: 1rem 0; } summary { cursor: pointer; font-weight: 600; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font: .78rem/1.45 "Liberation Mono",
  Menlo, Consolas, monospace; background: var(--pale); padding: .8rem 1rem; border-radius: 4px; }
dl { font-size: .9rem; display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.2rem; }
dt { font-weight: 600; } dd { margin: 0; max-width: 46rem; }
ul.plain { margin: .3rem 0; padding-left: 1.2rem; }
@media print { html { font-size: 10.5pt; } body { max-width: none; padding: 0; }
  nav { display: none; } h2 { break-before: page; } h2.first { break-before: auto; }
  h2, h3, caption { break-after: avoid; } table { font-size: 8.5pt; }
  figure, tr, .short, .cards li { break-inside: avoid; } th, td { padding: .14rem .4rem; }
  .wide { overflow: visible; } }
"""


def document(title: str, parts: Sequence[str]) -> str:
    """A whole page.

    Parameters
    ----------
    title : str
        Plain text.
    parts : sequence of str
        HTML of the body; empty ones are left out.

    Returns
    -------
    str
    """
    head = (
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escaped(title)}</title>",
        f"<style>{_CSS}</style>",
        "</head>",
        "<body>",
    )
    return "\n".join([*head, *(part for part in parts if part), "</body>", "</html>", ""])


def escaped(value: object) -> str:
    """Anything as text of a page."""
    return html.escape(str(value))


def figure(plot: Plot | Drawing | None, name: str) -> str:
    """A figure with its caption.

    Parameters
    ----------
    plot : Plot, Drawing or None
        Nothing is written for ``None``.
    name : str
        Unique in the page.

    Returns
    -------
    str
    """
    if plot is None:
        return ""
    drawing = plot.draw() if isinstance(plot, Plot) else plot
    svg = drawing.svg(name).replace(
        "<svg ", f'<svg role="img" aria-label="{html.escape(drawing.description)}" ', 1
    )
    return f"<figure>{svg}<figcaption>{escaped(drawing.caption)}</figcaption></figure>"


class Words(str):
    """A cell set to the left."""


class Sentence(Words):
    """A cell that may take several lines."""


def table(caption: str, heads: Sequence[str], lines: Sequence[Sequence[object]]) -> str:
    """A table; cells that are `Words`, and what heads them, are set to the left.

    Parameters
    ----------
    caption : str
    heads : sequence of str
    lines : sequence of sequence
        Each as long as `heads`.

    Returns
    -------
    str
    """
    first = lines[0] if lines else [""] * len(heads)
    head = "".join(
        f'<th scope="col"{_LEFT if isinstance(cell, Words) else ""}>{escaped(each)}</th>'
        for each, cell in zip(heads, first, strict=True)
    )
    body = "".join(
        "<tr>" + "".join(f"<td{_cell_class(cell)}>{escaped(cell)}</td>" for cell in line) + "</tr>"
        for line in lines
    )
    kind = "wide short" if len(lines) <= _SHORT_TABLE else "wide"
    return (
        f'<div class="{kind}"><table><caption>{escaped(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


# A table that a printed page keeps whole.
_SHORT_TABLE = 12
_LEFT = ' class="text"'


def _cell_class(cell: object) -> str:
    if isinstance(cell, Sentence):
        return ' class="text long"'
    return _LEFT if isinstance(cell, Words) else ""
