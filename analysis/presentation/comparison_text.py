"""A comparison of runs as text for a terminal."""

from collections.abc import Sequence

from analysis.presentation.quantities import NOTHING, decimals
from analysis.run.compare import FIGURES, Comparison, Difference, Figure, Group

_LONGEST_HEAD = 30


def comparison_text(found: Comparison) -> str:
    """The comparison as a table for a terminal.

    Parameters
    ----------
    found : Comparison

    Returns
    -------
    str
        No line end after the last.
    """
    labels = [each.label for each in found.groups]
    named = {label: label for label in labels}
    legend: list[str] = []
    if any(len(label) > _LONGEST_HEAD for label in labels):
        # Columns as wide as all parameters that differ would leave the terminal.
        named = {label: f"({number})" for number, label in enumerate(labels, start=1)}
        legend = [f"{short}  {label}" for label, short in named.items()]
    heads = [named[label] for label in labels]
    rows = [
        (
            each.label,
            each.unit,
            [value_text(found, group, each) for group in found.groups],
        )
        for each in FIGURES
        if any(each.key in group.estimates for group in found.groups)
    ]
    rows.insert(0, ("seeds", "", [seeds(group) for group in found.groups]))
    lines = [method(found), *legend, *_aligned(found.scenario or "runs", heads, rows)]
    if found.differences:
        lines += ["", f"Differences, second less first, paired by seed ({percent(found)}):"]
        cells = [
            [
                f"  {named[difference.second]} – {named[difference.first]}",
                told.label,
                told.unit,
                difference_text(found, difference, told),
            ]
            for difference in found.differences
            for told in FIGURES
            if told.key == difference.figure
        ]
        widths = [max(len(row[column]) for row in cells) for column in range(4)]
        lines += [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in cells
        ]
    return "\n".join([*lines, *([""] if found.remarks else []), *found.remarks])


def _aligned(
    title: str, heads: Sequence[str], rows: Sequence[tuple[str, str, list[str]]]
) -> list[str]:
    label_width = max(len(title), *(len(label) for label, _, _ in rows))
    unit_width = max(len(unit) for _, unit, _ in rows)
    widths = [
        max(len(head), *(len(cells[column]) for _, _, cells in rows))
        for column, head in enumerate(heads)
    ]
    lines = [(title, "", list(heads)), *rows]
    out = [
        "  ".join(
            [
                f"{label:<{label_width}}",
                f"{unit:<{unit_width}}",
                *(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True)),
            ]
        ).rstrip()
        for label, unit, cells in lines
    ]
    out.insert(1, "─" * max(map(len, out)))
    return out


def percent(found: Comparison) -> str:
    """The confidence of the intervals."""
    return f"{100 * found.confidence:g} % intervals"


def method(found: Comparison) -> str:
    """How the groups were compared."""
    return f"Means and {percent(found)}. {found.method}."


def seeds(group: Group) -> str:
    """How many seeds a group has."""
    return str(len(group.seeds))


def value_text(found: Comparison, group: Group, told: Figure) -> str:
    """A group's mean and half of its interval, such as "34.8 ± 1.2"."""
    estimate = group.estimates.get(told.key)
    if estimate is None:
        return NOTHING
    digits = _digits(found, told)
    mean = f"{estimate.mean * told.scale:.{digits}f}"
    if estimate.low is None or estimate.high is None:
        return mean
    return f"{mean} ± {(estimate.high - estimate.low) / 2 * told.scale:.{digits}f}"


def difference_text(found: Comparison, difference: Difference, told: Figure) -> str:
    """A difference with its interval, and whether that shows one."""
    estimate = difference.estimate
    known = [each for each in estimate.values if each is not None]
    digits = _digits(found, told)
    said = f"{estimate.mean * told.scale:+.{digits}f}"
    if estimate.low is None or estimate.high is None:
        return f"{said} (one seed, no interval)"
    low, high = estimate.low * told.scale, estimate.high * told.scale
    judged = "differ" if difference.certain else "no difference shown"
    return f"{said} [{low:+.{digits}f}, {high:+.{digits}f}], {len(known)} seeds: {judged}"


def _digits(found: Comparison, told: Figure) -> int:
    """As many for intervals and differences as for the largest of the means."""
    means = [
        abs(each.estimates[told.key].mean) for each in found.groups if told.key in each.estimates
    ]
    return decimals(told.unit, max(means, default=0.0) * told.scale)
