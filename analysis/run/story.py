"""Handovers as stories: what changed, what the controller did about it, what users noticed.

The parts come from different witnesses. When a link changed is known from stamps before and after
the command that changed it; what was solved and deployed, from the controller's events; the
effect, from what the host recorded.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from analysis.run.directory import Event, count, number
from analysis.run.links import link_to
from analysis.run.result import HandoverStory
from analysis.transfer.interruption import Interruption

F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

# How long after its last step a handover is still held responsible.
_EFFECT_S = 5.0
_BEFORE_S = 5.0
_SECOND_S = 1.0
_STEP_S = 0.1
_BACK = 0.9
# A path that carried data so shortly before was in use.
_IN_USE_S = 1.0
# A decision so long before a change may have foreseen it.
_FORECAST_S = 60.0


@dataclass(frozen=True)
class LinkChange:
    """A user's link that came or went between two stamps.

    Attributes
    ----------
    user, relay : str
    joins : bool
        It came.
    old, new : str
        The relay that served before and the one that serves after, where the testbed said so.
    after_s, before_s : float or None
        It happened after the first and before the second; ``None`` if the command did not end.
    """

    user: str
    relay: str
    joins: bool
    old: str
    new: str
    after_s: float
    before_s: float | None

    @property
    def event_s(self) -> float:
        """The middle of the stamps."""
        return self.after_s if self.before_s is None else (self.after_s + self.before_s) / 2

    @property
    def error_s(self) -> float | None:
        """Half of the time between them."""
        return None if self.before_s is None else (self.before_s - self.after_s) / 2


@dataclass(frozen=True)
class Timeline:
    """What arrived at the host from one user, in order of time.

    Attributes
    ----------
    arrived_s : float64 array
        Run time of each piece of data.
    in_order : int64 array
        Bytes complete from the start after it.
    via : int64 array
        Index into `links`.
    links : tuple of str
    start_s, end_s : float
        When the user was sending.
    gaps : tuple of (start_s, length_s)
        Times without progress.
    explain : callable
        Makes an interruption of a gap.
    offered_bps : float or None
        What the user had to send.
    """

    arrived_s: F64
    in_order: I64
    via: I64
    links: tuple[str, ...]
    start_s: float
    end_s: float
    gaps: tuple[tuple[float, float], ...]
    explain: Callable[[float, float], Interruption]
    offered_bps: float | None = None

    def rate_bps(self, from_s: F64, until_s: F64) -> F64:
        """Goodput between pairs of moments."""
        bytes_at = np.concatenate([[0], np.maximum.accumulate(self.in_order)])
        first = bytes_at[np.searchsorted(self.arrived_s, from_s, side="right")]
        last = bytes_at[np.searchsorted(self.arrived_s, until_s, side="right")]
        rate: F64 = 8 * (last - first) / (until_s - from_s)
        return rate


def link_changes(events: Sequence[Event]) -> list[LinkChange]:
    """Every change of a user's links, in order of time.

    Parameters
    ----------
    events : sequence of Event
        Of the whole run: associations, handovers and what the controller solved.

    Returns
    -------
    list of LinkChange
        One for each association that came or went, and for each handover without one.
    """
    found: list[LinkChange] = []
    begun: dict[tuple[str, str, bool], float] = {}
    handover: dict[str, tuple[Event, int]] = {}
    for event in events:
        user = event.node
        if event.kind == "handover" and event.data.get("phase", "begin") == "begin":
            handover[user] = (event, len(found))
        elif event.kind == "handover" and user in handover:
            begin, before = handover.pop(user)
            if not any(each.user == user for each in found[before:]):
                found.append(_of_handover(begin, event.t_s))
        elif event.kind == "association":
            relay = str(event.data.get("access_point", ""))
            state = str(event.data.get("state", ""))
            joins = state.startswith("associat")
            if state in ("associating", "dissociating"):
                begun.setdefault((user, relay, joins), event.t_s)
            elif state in ("associated", "dissociated"):
                open_since = handover[user][0] if user in handover else None
                stamp = open_since.t_s if open_since is not None else event.t_s
                after_s = begun.pop((user, relay, joins), stamp)
                found.append(_of_association(user, relay, joins, open_since, after_s, event.t_s))
    for (user, relay, joins), after_s in begun.items():
        open_since = handover.pop(user)[0] if user in handover else None
        found.append(_of_association(user, relay, joins, open_since, after_s, None))
    found += [_of_handover(begin, None) for begin, _ in handover.values()]
    drawn_in = [_drawn_in(each, events) for each in found]
    return sorted(drawn_in, key=lambda change: (change.after_s, change.user))


def _of_handover(begin: Event, before_s: float | None) -> LinkChange:
    old, new = str(begin.data.get("from", "?")), str(begin.data.get("to", "?"))
    return LinkChange(begin.node, new, True, old, new, begin.t_s, before_s)


def _of_association(
    user: str,
    relay: str,
    joins: bool,
    handover: Event | None,
    after_s: float,
    before_s: float | None,
) -> LinkChange:
    old = str(handover.data.get("from", "")) if handover is not None else ""
    new = str(handover.data.get("to", "")) if handover is not None else ""
    return LinkChange(user, relay, joins, old, new, after_s, before_s)


def _drawn_in(change: LinkChange, events: Sequence[Event]) -> LinkChange:
    """The later stamp no later than the controller knew."""
    for event in events:
        if event.kind in ("solve", "assignment") and _concerns(event, change):
            took_s = [
                number(event.data.get(f"{step}_s")) or 0.0
                for step in ("waited", "solve_time", "deploy_time")
            ]
            known_s = event.t_s - sum(took_s)
            if change.before_s is None or known_s < change.before_s:
                return replace(change, before_s=max(known_s, change.after_s))
            return change
    return change


def _concerns(event: Event, change: LinkChange, *, expected: bool = False) -> bool:
    """Whether the controller decided because of this change, or because it was expected."""
    trigger = str(event.data.get("trigger", ""))
    named = all(
        re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", trigger)
        for name in (change.user, change.relay)
    )
    if not named or ("expected" in trigger) != expected:
        return False
    leaves = any(word in trigger for word in ("dissociated", "leave"))
    early_s = _FORECAST_S if expected else 0.0
    return leaves != change.joins and event.t_s >= change.after_s - early_s


def what_changed(change: LinkChange, *, multipath: bool) -> str:
    """A change in words: a single path moves, one of several comes or goes."""
    if not multipath and change.old and change.new:
        return f"{change.old} → {change.new}"
    return f"{'joins' if change.joins else 'leaves'} {change.relay}"


def stories(
    events: Sequence[Event],
    changes: Sequence[LinkChange],
    timelines: dict[str, Timeline],
    *,
    multipath: bool,
) -> list[HandoverStory]:
    """Tell each change from its cause to its effect.

    Parameters
    ----------
    events : sequence of Event
    changes : sequence of LinkChange
        As `link_changes` finds them.
    timelines : dict of Timeline
        By user; of those that are missing the effect is not known.
    multipath : bool
        Whether users have several paths at once.

    Returns
    -------
    list of HandoverStory
        In order of time, numbered from 1.
    """
    told: list[HandoverStory] = []
    for index, change in enumerate(changes):
        story = HandoverStory(
            number=index + 1,
            user=change.user,
            what=what_changed(change, multipath=multipath),
            relay=change.relay,
            cause_after_s=change.after_s,
            cause_before_s=change.before_s,
        )
        later = [each for each in changes[index + 1 :] if each.user == change.user]
        following = [each.after_s for each in later]
        # A slow reaction may come after the next change, but not after the next of its kind.
        alike = [e.after_s for e in later if (e.relay, e.joins) == (change.relay, change.joins)]
        until_s = alike[0] if alike else None
        story = _with_reaction(story, events, change, until_s)
        if story.trigger is None:
            story = _with_reaction(story, events, change, until_s, expected=True)
        timeline = timelines.get(change.user)
        if timeline is not None and len(timeline.arrived_s):
            # With several paths, one that comes takes the place of none.
            seen = replace(change, old="") if multipath else change
            story = _with_effect(story, seen, timeline, following[0] if following else None)
        told.append(story)
    return told


def _with_reaction(
    story: HandoverStory,
    events: Sequence[Event],
    change: LinkChange,
    next_s: float | None,
    *,
    expected: bool = False,
) -> HandoverStory:
    """What the controller solved and deployed because of a change, or expecting it."""
    set_queues = added = removed = 0
    for event in events:
        if next_s is not None and event.t_s >= next_s:
            break
        if event.kind == "queue_set":
            set_queues += 1
        elif event.kind == "flow_mod":
            added += count(event.data.get("added")) or 0
            removed += count(event.data.get("removed")) or 0
        elif (
            event.kind == "solve"
            and story.solve_s is None
            and _concerns(event, change, expected=expected)
        ):
            story = replace(
                story,
                trigger=str(event.data.get("trigger")),
                solve_s=event.t_s,
                solve_time_s=number(event.data.get("solve_time_s")),
                relative_gap=number(event.data.get("relative_gap")),
            )
        elif event.kind == "assignment":
            if _concerns(event, change, expected=expected):
                return replace(
                    story,
                    trigger=str(event.data.get("trigger")),
                    deployed_s=event.t_s,
                    deploy_time_s=number(event.data.get("deploy_time_s")),
                    verify_time_s=number(event.data.get("verify_time_s")),
                    queues_set=set_queues,
                    entries_added=added,
                    entries_removed=removed,
                )
            # What was set before belongs to that one.
            set_queues = added = removed = 0
    return story


def _with_effect(
    story: HandoverStory, change: LinkChange, timeline: Timeline, next_s: float | None
) -> HandoverStory:
    """What arrived at the host around a change."""
    after_s = change.after_s
    last_step_s = max(each for each in (after_s, change.before_s, story.deployed_s) if each)
    until_s = min(last_step_s + _EFFECT_S, timeline.end_s)
    until_s = until_s if next_s is None else min(until_s, next_s)
    if until_s <= timeline.start_s or after_s >= timeline.end_s:
        return story
    gaps = [gap for gap in timeline.gaps if gap[0] < until_s and gap[0] + gap[1] > after_s]
    longest = max(gaps, key=lambda gap: gap[1], default=None)
    if longest is not None:
        interruption = timeline.explain(*longest)
        if interruption.cause == "handover":
            interruption = replace(
                interruption, event_s=change.event_s, event_error_s=change.error_s
            )
        story = replace(story, interruption=interruption)
        until_s = min(max(until_s, sum(longest) + _EFFECT_S), timeline.end_s)
        until_s = until_s if next_s is None else min(until_s, next_s)
    story = _with_paths(story, change, timeline, until_s)
    begin_s = max(timeline.start_s, after_s - _BEFORE_S)
    # Slow start says nothing about what is normal.
    if after_s - begin_s < _SECOND_S:
        return story
    before_bps = float(timeline.rate_bps(np.array([begin_s]), np.array([after_s]))[0])
    starts = np.arange(after_s, max(until_s - _SECOND_S, after_s) + _STEP_S / 2, _STEP_S)
    starts = starts[starts + _SECOND_S <= timeline.end_s]
    if not len(starts) or before_bps <= 0:
        return replace(story, goodput_before_bps=before_bps)
    rates = timeline.rate_bps(starts, starts + _SECOND_S)
    # What catches up is faster than what goes on.
    low = rates < _BACK * min(before_bps, timeline.offered_bps or before_bps)
    back_s = None
    if low.any():
        # Goodput over several paths goes up and down anyway: what counts is after the interruption.
        began_s = story.interruption.start_s if story.interruption is not None else after_s
        fallen = np.flatnonzero(low & (starts >= min(began_s, starts[low][-1])))
        good = np.flatnonzero(~low[fallen[0] :])
        back_s = float(starts[fallen[0] + good[0]]) if len(good) else None
    return replace(
        story,
        goodput_before_bps=before_bps,
        goodput_lowest_bps=float(rates.min()),
        goodput_back_s=back_s,
        goodput_fell=bool(low.any()),
    )


def _with_paths(
    story: HandoverStory, change: LinkChange, timeline: Timeline, until_s: float
) -> HandoverStory:
    """The last data over the old path and the first over the new one."""
    times, links = timeline.arrived_s, timeline.links
    new = link_to(change.new, links) or (link_to(change.relay, links) if change.joins else None)
    old = link_to(change.old if change.joins else change.relay, links)
    if new is None and not change.joins:
        new = next((each for each in links if each != link_to(change.relay, links)), None)
    first_new = last_old = None
    in_use = False
    if new is not None:
        over = times[timeline.via == links.index(new)]
        in_use = bool(((over > change.after_s - _IN_USE_S) & (over <= change.after_s)).any())
        later = over[(over > change.after_s) & (over <= until_s)]
        first_new = float(later[0]) if len(later) and not in_use else None
    if old is not None and (not change.joins or not in_use):
        over = times[timeline.via == links.index(old)]
        last = over[over <= until_s]
        last_old = float(last[-1]) if len(last) else None
    if change.joins and last_old is not None and first_new is not None and last_old > first_new:
        # It goes on beside the new one.
        last_old = None
    return replace(story, first_on_new_s=first_new, last_on_old_s=last_old, path_was_in_use=in_use)
