"""How figures are written: one set of rows, used by the table and by the report."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from analysis.result import RunResult, UserResult

NOTHING = "–"

# The protocols in the order they are compared in.
_ORDER = ("sptcp", "mptcp", "fdm")


def in_order(results: Sequence[RunResult]) -> list[RunResult]:
    """By protocol, as they are compared, then by seed."""

    def place(result: RunResult) -> tuple[int, str, int]:
        known = _ORDER.index(result.protocol) if result.protocol in _ORDER else len(_ORDER)
        return known, result.protocol, result.seed if result.seed is not None else -1

    return sorted(results, key=place)


def run_name(result: RunResult, results: Sequence[RunResult]) -> str:
    """The protocol, with the seed where several runs share it."""
    name = result.protocol or result.run
    if sum(each.protocol == result.protocol for each in results) > 1:
        name += f" #{result.seed}"
    return name


def megabits(value: float | None, digits: int = 3) -> str:
    """A rate in bit/s, written in Mbit/s."""
    return NOTHING if value is None else f"{value / 1e6:.{digits}f}"


def number(value: float | None, digits: int = 3) -> str:
    """A plain number."""
    return NOTHING if value is None else f"{value:.{digits}f}"


def whole(value: int | None) -> str:
    """A count, with spaces between thousands."""
    return NOTHING if value is None else f"{value:,}".replace(",", " ")


def milliseconds(value: float | None) -> str:
    """A time in seconds, written in ms."""
    return NOTHING if value is None else f"{1000 * value:.1f}"


def worst(user: UserResult) -> str:
    """The longest interruption with its cause, if it is listed."""
    if user.longest_interruption_s is None:
        return NOTHING
    listed = max(user.interruptions, key=lambda each: each.length_s, default=None)
    text = f"{user.longest_interruption_s:.2f}"
    return f"{text} ({listed.cause})" if listed else text


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
    of_run(
        "the source's own average",
        "Mbit/s",
        lambda run: megabits(run.reference_goodput_bps, 4),
        key=True,
    )
    of_run("goodput, all users", "Mbit/s", lambda run: megabits(run.goodput_bps))
    of_run("Jain index", "", lambda run: number(run.jain, 4))
    of_run("solves", "", lambda run: whole(run.solves))
    of_run("handovers", "", lambda run: whole(run.handovers))
    of_run("capture drops", "packets", lambda run: whole(run.capture_drops))
    of_run("machine", "", _machine)
    names = list(dict.fromkeys(name for run in results for name in run.users))
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
            found.append(Row(label, unit, cells, user=name, key=key))

        of_user("goodput", "Mbit/s", lambda user: megabits(user.goodput_bps), key=True)
        of_user("offered", "Mbit/s", lambda user: megabits(user.offered_bps))
        of_user("longest interruption", "s", worst, key=True)
        of_user("interruptions over 0.5 s", "", lambda user: whole(len(user.interruptions)))
        of_user("packet delay, mean", "ms", lambda user: milliseconds(user.mean_packet_delay_s))
        of_user("packet delay, p95", "ms", lambda user: milliseconds(user.p95_packet_delay_s))
        of_user("throughput variation", "", lambda user: number(user.throughput_cov))
        of_user("data captured", "bytes", lambda user: whole(user.data_bytes))
        of_user("sent, says iperf3", "bytes", lambda user: whole(user.iperf_bytes))
        of_user("transfer", "", _transfer)
        for via in dict.fromkeys(
            share.via for run in results if name in run.users for share in run.users[name].subflows
        ):
            of_user(f"data over {via}", "bytes", partial(_over, via=via))
        of_user("lost on the way", "packets", lambda user: whole(user.lost_packets))
        of_user("retransmissions", "packets", lambda user: whole(user.retransmissions))
        of_user("reinjections", "packets", lambda user: whole(user.reinjections))
    return found


def _machine(run: RunResult) -> str:
    if run.machine is None:
        return NOTHING
    return "OVERLOADED" if run.overloaded else "kept up"


def _over(user: UserResult, via: str) -> str:
    return whole(sum(share.data_bytes for share in user.subflows if share.via == via))


def _transfer(user: UserResult) -> str:
    if not user.completed:
        return "not completed"
    return "complete" if user.bytes_agree else "complete, bytes differ"
