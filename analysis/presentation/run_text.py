"""Handovers of a run as text for a terminal."""

from collections.abc import Sequence

from analysis.presentation.figures import in_order, run_names
from analysis.presentation.quantities import seconds
from analysis.presentation.run_figures import (
    goodput,
    interrupted,
    latency_words,
    moment,
    reaction,
)
from analysis.run.result import HandoverStory, RunResult


def stories_text(results: Sequence[RunResult]) -> str:
    """Every handover from its cause to its effect.

    Parameters
    ----------
    results : sequence of RunResult

    Returns
    -------
    str
        Five or six lines a handover, then how long the controller took; no line end after the last.
    """
    results = in_order(results)
    lines: list[str] = []
    for name, result in zip(run_names(results), results, strict=True):
        if len(results) > 1:
            lines += [*([""] if lines else []), f"{name}:"]
        if not result.handover_stories:
            lines.append("no handovers")
        for story in result.handover_stories:
            lines += [*([""] if lines and not lines[-1].endswith(":") else []), *_told(story)]
        if latency := latency_words(result):
            lines += ["", latency]
    return "\n".join(lines)


def _told(story: HandoverStory) -> list[str]:
    lines = [
        f"handover {story.number}: {story.user} {story.what}",
        f"  cause         {moment(story.cause_s, story.cause_error_s)} s, between the stamps "
        f"before and after the command",
        f"  controller    {reaction(story)}",
    ]
    if story.path_was_in_use:
        lines.append("  new path      in use before")
    elif story.first_on_new_s is not None:
        lines.append(
            f"  new path      first data packet at the host at {seconds(story.first_on_new_s)} s"
        )
    if story.last_on_old_s is not None:
        lines.append(
            f"  old path      last data packet at the host at {seconds(story.last_on_old_s)} s"
        )
    lines.append(f"  interruption  {interrupted(story)}")
    lines.append(f"  goodput       {goodput(story)}")
    return lines
