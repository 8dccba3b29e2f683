"""What is told of runs side by side: labels, and one set of rows for the table and the report."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from analysis.presentation.quantities import (
    NOTHING,
    jain,
    megabits,
    milliseconds,
    percent,
    ratio,
    seconds,
    whole,
)
from analysis.run.measure import LISTED_GAP_S
from analysis.run.result import ApplicationResult, RunResult, UserResult

_OVERLOADED, _NOT_COMPLETED = "OVERLOADED", "not completed"
ALARMING = ("failed", _OVERLOADED, _NOT_COMPLETED)
"""Cells that must not be overlooked."""

# The protocols in the order they are compared in.
_ORDER = ("sptcp", "mptcp", "fdm")
_TOLD_PARAMETERS = 4


def in_order(results: Sequence[RunResult]) -> list[RunResult]:
    """By protocol, as they are compared, then by seed, then by the time they were made."""

    def place(result: RunResult) -> tuple[int, str, int, str, str]:
        known = _ORDER.index(result.protocol) if result.protocol in _ORDER else len(_ORDER)
        seed = result.seed if result.seed is not None else -1
        return known, result.protocol, seed, result.created, result.run

    return sorted(results, key=place)


def differing(results: Sequence[RunResult]) -> list[str]:
    """Parameters that are not the same in all runs whose parameters are known."""
    known = [each.parameters for each in results if each.parameters]
    names = dict.fromkeys(name for each in known for name in each)
    return [name for name in names if len({repr(each.get(name)) for each in known}) > 1]


def parameter(result: RunResult, name: str) -> str:
    """A parameter as it is set: "satcom.delay_s=0.1"."""
    value = result.parameters.get(name, "?")
    return f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"


def run_labels(results: Sequence[RunResult]) -> list[list[str]]:
    """What tells each run from the others.

    Parameters
    ----------
    results : sequence of RunResult

    Returns
    -------
    list of list of str
        For each run: the protocol, with the seed where seeds differ; then one entry for each
        parameter that differs; then, if that leaves two alike, when they were made.
    """
    seeds = len({each.seed for each in results}) > 1
    scenarios = len({each.scenario for each in results}) > 1
    names = differing(results)
    labels: list[list[str]] = []
    for each in results:
        first = each.protocol or each.run
        if seeds and each.seed is not None:
            first += f" #{each.seed}"
        settings = [parameter(each, name) for name in names[:_TOLD_PARAMETERS] if each.parameters]
        labels.append([first, *([each.scenario] if scenarios else []), *settings])
    for tell in (made_at, lambda run: run.run):
        alike = [labels.count(label) > 1 for label in labels]
        labels = [
            [*label, tell(run)] if same and tell(run) else label
            for label, run, same in zip(labels, results, alike, strict=True)
        ]
    # The same directory twice.
    return [
        [*label, f"({labels[:index].count(label) + 1})"] if labels.count(label) > 1 else label
        for index, label in enumerate(labels)
    ]


def made_at(result: RunResult) -> str:
    """When the run was made, date and time, UTC."""
    return result.created.replace("T", " ").removesuffix("+00:00").removesuffix("Z")


def run_names(results: Sequence[RunResult]) -> list[str]:
    """`run_labels` in one line each."""
    return [" ".join(label) for label in run_labels(results)]


def source(results: Sequence[RunResult]) -> str:
    """Whose averages the runs are compared with."""
    named = {each.reference for each in results if each.reference}
    return named.pop() if len(named) == 1 else "the source's own"


def worst(user: UserResult) -> str:
    """The longest interruption with its cause."""
    return _with_cause(user.longest_interruption_s, user.longest_interruption_cause)


def worst_later(user: UserResult) -> str:
    """The longest interruption after the start-up, with its cause."""
    return _with_cause(
        user.longest_interruption_after_start_s, user.longest_interruption_after_start_cause
    )


def _with_cause(length_s: float | None, cause: str | None) -> str:
    if length_s is None:
        return NOTHING
    # What causes the short pauses of any transfer is of no interest.
    told = f" ({cause})" if cause and length_s > LISTED_GAP_S else ""
    return f"{seconds(length_s)}{told}"


@dataclass(frozen=True)
class Row:
    """One line: of a whole run, or of one user (`user` set)."""

    label: str
    unit: str
    cells: list[str]
    user: str | None = None
    key: bool = False


def rows(results: Sequence[RunResult]) -> list[Row]:
    """All figures, the runs side by side.

    Parameters
    ----------
    results : sequence of RunResult
        In the order of the columns.

    Returns
    -------
    list of Row
    """
    found: list[Row] = []

    def of_run(
        label: str, unit: str, text: Callable[[RunResult], str], *, key: bool = False
    ) -> None:
        found.append(Row(label, unit, [text(each) for each in results], key=key))

    of_run("state", "", lambda run: run.state)
    of_run(
        "goodput, mean of users",
        "Mbit/s",
        lambda run: megabits(run.mean_user_goodput_bps),
        key=True,
    )
    if any(run.reference_goodput_bps is not None for run in results):
        of_run(
            f"{source(results)} average",
            "Mbit/s",
            lambda run: megabits(run.reference_goodput_bps),
        )
    of_run("goodput, all users", "Mbit/s", lambda run: megabits(run.goodput_bps))
    of_run("Jain index", "", lambda run: jain(run.jain))
    of_run("solves", "", lambda run: whole(run.solves))
    of_run("handovers", "", lambda run: whole(run.handovers))
    of_run("longest handover", "s", lambda run: seconds(max(run.handover_s, default=None)))
    of_run("capture drops", "packets", lambda run: whole(run.capture_drops))
    of_run("machine", "", _machine)
    names = list(dict.fromkeys(name for run in results for name in run.users))
    with_applications = {each.user for run in results for each in run.applications}
    for name in names:

        def of_user(
            label: str,
            unit: str,
            text: Callable[[UserResult], str],
            *,
            key: bool = False,
            name: str = name,
        ) -> None:
            cells = [text(run.users[name]) if name in run.users else NOTHING for run in results]
            if name in with_applications and all(cell == NOTHING for cell in cells):
                return  # told of bulk transfers only
            found.append(Row(label, unit, cells, user=name, key=key))

        of_user("goodput", "Mbit/s", lambda user: megabits(user.goodput_bps), key=True)
        of_user("goodput to the end", "Mbit/s", lambda user: megabits(user.goodput_to_end_bps))
        of_user("offered", "Mbit/s", lambda user: megabits(user.offered_bps))
        of_user("longest interruption", "s", worst, key=True)
        of_user("longest after start-up", "s", worst_later)
        of_user("interruptions over 0.5 s", "", _interruptions)
        of_user("packet delay, mean", "ms", lambda user: milliseconds(user.mean_packet_delay_s))
        of_user("packet delay, p95", "ms", lambda user: milliseconds(user.p95_packet_delay_s))
        of_user("throughput variation", "", lambda user: ratio(user.throughput_cov))
        of_user("data captured", "bytes", lambda user: whole(user.data_bytes))
        of_user("sent, says the sender", "bytes", lambda user: whole(user.iperf_bytes))
        of_user("transfer", "", _transfer)
        for via in dict.fromkeys(
            share.via for run in results if name in run.users for share in run.users[name].subflows
        ):
            of_user(f"data over {via}", "bytes", partial(_over, via=via))
        of_user("lost on the way", "packets", lambda user: whole(user.lost_packets))
        of_user("retransmissions", "packets", lambda user: whole(user.retransmissions))
        of_user("reinjections", "packets", lambda user: whole(user.reinjections))
    return found + _of_applications(results)


def _interruptions(user: UserResult) -> str:
    return NOTHING if user.longest_interruption_s is None else whole(len(user.interruptions))


def _of_applications(results: Sequence[RunResult]) -> list[Row]:
    """What applications got; those of the same name side by side."""
    by_name = [{each.name: each for each in run.applications} for run in results]
    found: list[Row] = []
    for name in dict.fromkeys(name for named in by_name for name in named):
        mine = [named.get(name) for named in by_name]
        kind, transport = next((each.kind, each.transport) for each in mine if each is not None)
        unit, taken = ("s", seconds) if kind == "files" else ("ms", milliseconds)
        time = time_of(kind, transport)

        def row(
            label: str,
            unit: str,
            text: Callable[[ApplicationResult], str],
            *,
            key: bool = False,
            name: str = name,
            mine: list[ApplicationResult | None] = mine,
        ) -> None:
            cells = [NOTHING if each is None else text(each) for each in mine]
            found.append(Row(label, unit, cells, user=name, key=key))

        row("direction", "", lambda each: each.direction)
        row("offered", "Mbit/s", lambda each: megabits(each.offered_bps))
        row("goodput", "Mbit/s", lambda each: megabits(each.goodput_bps))
        if kind == "bulk":
            row("retransmissions", "packets", lambda each: whole(each.retransmissions))
            continue
        row("arrived", "", arrived)
        for which in ("mean", "p95", "longest"):
            of_which = partial(_time, taken, f"{which}_time_s")
            row(f"{time}, {which}", unit, of_which, key=which == "mean")
        if transport == "udp":
            row("lost", "%", lambda each: percent(each.loss), key=True)
            row("jitter", "ms", lambda each: milliseconds(each.jitter_s))
    return found


def time_of(kind: str, transport: str) -> str:
    """What the times of an application are called."""
    if transport == "udp":
        return "datagram delay"
    return {"files": "completion time", "requests": "response time"}.get(kind, "message delay")


def arrived(application: ApplicationResult) -> str:
    """How many of its items arrived in whole."""
    if application.items is None or application.completed is None:
        return NOTHING
    return f"{whole(application.completed)} of {whole(application.items)}"


def _time(written: Callable[[float | None], str], name: str, application: ApplicationResult) -> str:
    return written(getattr(application, name))


def _machine(run: RunResult) -> str:
    if run.machine is None:
        return NOTHING
    return _OVERLOADED if run.overloaded else "kept up"


def _over(user: UserResult, via: str) -> str:
    return whole(sum(share.data_bytes for share in user.subflows if share.via == via))


def _transfer(user: UserResult) -> str:
    if user.completed is None:
        return "not known"
    if not user.completed:
        return _NOT_COMPLETED
    if user.bytes_agree is None:
        return "complete"
    return "complete" if user.bytes_agree else "complete, bytes differ"
