"""Runs side by side, as text for a terminal."""

from collections.abc import Sequence

from analysis.presentation.figures import in_order, rows, run_labels, run_names
from analysis.run.result import RunResult

_MOST_NOTES = 5


def table(results: Sequence[RunResult]) -> str:
    """Compare runs: one column each, beside the source's own averages.

    Parameters
    ----------
    results : sequence of RunResult
        In any order; the columns go sptcp, mptcp, fdm.

    Returns
    -------
    str
        Lines of at most about 90 characters for three runs; no line end after the last. What
        tells the runs apart heads the columns, what the reader should know is below them.
    """
    results = in_order(results)
    if not results:
        return "no runs"
    lines: list[tuple[str, str, list[str]]] = []
    heads = run_labels(results)
    user: str | None = None
    for row in rows(results):
        if row.user != user:
            user = row.user
            lines.append((f"{user}", "", []))
        lines.append((f"  {row.label}" if row.user else row.label, row.unit, row.cells))
    label_width = max(len(label) for label, _, _ in lines)
    unit_width = max(len(unit) for _, unit, _ in lines)
    widths = [
        max(*map(len, head), *(len(cells[index]) for _, _, cells in lines if cells))
        for index, head in enumerate(heads)
    ]
    title = results[0].scenario or "run"
    label_width = max(label_width, len(title))
    height = max(map(len, heads))
    out = [
        _line(
            title if level == 0 else "",
            "",
            [head[level] if level < len(head) else "" for head in heads],
            label_width,
            unit_width,
            widths,
        )
        for level in range(height)
    ]
    rule = "─" * len(
        _line("", "", ["x" * width for width in widths], label_width, unit_width, widths)
    )
    out.append(rule)
    for label, unit, cells in lines:
        if not cells:
            out.append(rule)
        out.append(_line(label, unit, cells, label_width, unit_width, widths))
    notes: list[str] = []
    for name, head, result in zip(run_names(results), heads, results, strict=True):
        told = _notes(result)
        # A long name stands above what is said of it.
        if told and len(head) > 1:
            notes += [f"{name}:", *(f"  {note}" for note in told)]
        else:
            notes += [f"{name}: {note}" for note in told]
    return "\n".join([*out, *([rule, *notes] if notes else [])])


def _notes(result: RunResult) -> list[str]:
    """Why it failed, and the first of its remarks."""
    said = list(dict.fromkeys([*([result.reason] if result.reason else []), *result.remarks]))
    if len(said) > _MOST_NOTES + 1:
        said[_MOST_NOTES:] = [f"and {len(said) - _MOST_NOTES} more remarks in result.json"]
    return said


def _line(
    label: str, unit: str, cells: list[str], label_width: int, unit_width: int, widths: list[int]
) -> str:
    text = f"{label:<{label_width}}  {unit:<{unit_width}}"
    for cell, width in zip(cells, widths, strict=False):
        text += f"  {cell:>{width}}"
    return text.rstrip()
