"""Runs side by side, as text for a terminal."""

from collections.abc import Sequence

from analysis.figures import in_order, rows, run_name
from analysis.result import RunResult


def table(results: Sequence[RunResult]) -> str:
    """Compare runs: one column each, beside the source's own averages.

    Parameters
    ----------
    results : sequence of RunResult
        In any order; the columns go sptcp, mptcp, fdm.

    Returns
    -------
    str
        Lines of at most about 90 characters for three runs; no line end after the last.
    """
    results = in_order(results)
    if not results:
        return "no runs"
    lines: list[tuple[str, str, list[str]]] = []
    heads = [run_name(result, results) for result in results]
    user: str | None = None
    for row in rows(results):
        if row.user != user:
            user = row.user
            lines.append((f"{user}", "", []))
        lines.append((f"  {row.label}" if row.user else row.label, row.unit, row.cells))
    label_width = max(len(label) for label, _, _ in lines)
    unit_width = max(len(unit) for _, unit, _ in lines)
    widths = [
        max(len(head), *(len(cells[index]) for _, _, cells in lines if cells))
        for index, head in enumerate(heads)
    ]
    title = results[0].scenario or "run"
    out = [_line(title, "", heads, label_width, unit_width, widths)]
    rule = "─" * len(out[0])
    out.append(rule)
    for label, unit, cells in lines:
        if not cells:
            out.append(rule)
        out.append(_line(label, unit, cells, label_width, unit_width, widths))
    notes = [
        f"{run_name(result, results)}: {result.reason}"
        for result in results
        if result.reason is not None
    ]
    notes += [
        f"{run_name(result, results)}: the machine could not keep up, and the figures show it "
        f"({result.machine})"
        for result in results
        if result.overloaded
    ]
    return "\n".join([*out, *([rule, *notes] if notes else [])])


def _line(
    label: str, unit: str, cells: list[str], label_width: int, unit_width: int, widths: list[int]
) -> str:
    text = f"{label:<{label_width}}  {unit:<{unit_width}}"
    for cell, width in zip(cells, widths, strict=False):
        text += f"  {cell:>{width}}"
    return text.rstrip()
