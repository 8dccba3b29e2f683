"""One page about one or more runs, in one file that needs no network."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from analysis.presentation.figures import (
    ALARMING,
    Row,
    arrived,
    differing,
    in_order,
    made_at,
    parameter,
    rows,
    run_labels,
    run_names,
    source,
    time_of,
    worst,
    worst_later,
)
from analysis.presentation.page import Sentence, Words, document, escaped, figure, table
from analysis.presentation.quantities import (
    NOTHING,
    megabits,
    milliseconds,
    percent,
    seconds,
    whole,
)
from analysis.presentation.run_figures import (
    allocation,
    allocation_table,
    backlog,
    chart,
    checks_table,
    moment,
    stories_table,
)
from analysis.presentation.run_plots import comparison, delays, queue_rates, throughput
from analysis.presentation.style import LINES, Drawing, Plot
from analysis.presentation.transfer_plots import counts_over_time, data_sequence, distributions
from analysis.replacing import write_text
from analysis.run.analyse import analyse
from analysis.run.directory import number as json_number
from analysis.run.result import ApplicationResult, RunResult, UserResult
from analysis.transfer.trace import KINDS

_PROTOCOLS = {
    "sptcp": "single-path TCP that hands over",
    "mptcp": "multipath TCP over both links, no allocation",
    "fdm": "multipath TCP with flow deviation and queues",
}

# The page of many runs compares them; the report of each has its packets.
_DETAILED_RUNS = 3
_DRAWN_USERS = 4
# Longer tables of interruptions are folded.
_LONG_TABLE = 12


class DrawnRun:
    """A run and its figures, each of which is drawn once, on however many pages it is shown.

    Parameters
    ----------
    result : RunResult

    Attributes
    ----------
    result : RunResult
    """

    def __init__(self, result: RunResult) -> None:
        self.result = result
        self._drawings: dict[str, Drawing | None] = {}

    def figure(self, anchor: str, kind: str, make: Callable[[], Plot | None]) -> str:
        """A figure with its caption, for the page where the run has this anchor."""
        if kind not in self._drawings:
            plot = make()
            self._drawings[kind] = None if plot is None else plot.draw()
        return figure(self._drawings[kind], f"{anchor}{kind}")


def report(runs: Sequence[RunResult | DrawnRun | str | Path], path: str | Path) -> Path:
    """Write the report of some runs.

    Parameters
    ----------
    runs : sequence of RunResult, DrawnRun or path
        Results, or run directories that are analysed first.
    path : str or Path
        The HTML file to write; it holds its figures and opens without a network.

    Returns
    -------
    Path
        The written file.

    Raises
    ------
    RunDirectoryError
        If one of the paths is no run directory.
    OSError
        If the file cannot be written.
    """
    drawn = [each if isinstance(each, DrawnRun) else DrawnRun(_result(each)) for each in runs]
    target = Path(path)
    write_text(target, _page(drawn))
    return target


def _result(run: RunResult | str | Path) -> RunResult:
    return run if isinstance(run, RunResult) else analyse(run)


def _page(runs: list[DrawnRun]) -> str:
    results = in_order([each.result for each in runs])
    drawn = {id(each.result): each for each in runs}
    scenario = results[0].scenario if results else ""
    names = run_names(results)
    title = f"{scenario or 'Run'}: {', '.join(names)}"
    sections = [
        _run(drawn[id(result)], f"run{index}", name, in_detail=len(results) <= _DETAILED_RUNS)
        for index, (result, name) in enumerate(zip(results, names, strict=True))
    ]
    return document(title, [_head(results), "<main>", _summary(results), *sections, "</main>"])


def _head(results: list[RunResult]) -> str:
    if not results:
        return "<header><h1>No runs</h1></header>"
    links = "".join(
        f'<a href="#run{index}">{escaped(name)}</a>'
        for index, name in enumerate(run_names(results))
    )
    names = differing(results)
    apart = ""
    if names:
        values = (
            f"{name} ({', '.join(dict.fromkeys(_value(each, name) for each in results))})"
            for name in names
        )
        apart = f'<p class="soft">The runs differ in {escaped("; ".join(values))}.</p>'
    scenarios = ", ".join(dict.fromkeys(each.scenario for each in results if each.scenario))
    return (
        f"<header><h1>{escaped(scenarios or 'Run')}</h1>"
        f'<p class="lead">{escaped(" · ".join(_common(results)))}</p>{apart}'
        f"{_parameters(results, names)}"
        f'<nav aria-label="Runs"><a href="#figures">All figures</a>{links}</nav></header>'
    )


def _common(results: list[RunResult]) -> list[str]:
    """What holds for all runs, and between when they were made."""

    def same(*said: str) -> str:
        return said[0] if len(set(said)) == 1 else ""

    made = sorted(made_at(each) for each in results if each.created)
    facts = [
        same(*(each.protocol for each in results)) if len(results) > 1 else "",
        same(*(f"seed {each.seed}" if each.seed is not None else "" for each in results)),
        same(*(f"backend {each.backend}" if each.backend else "" for each in results)),
        same(*(f"{each.duration_s:g} s" if each.duration_s else "" for each in results)),
        same(*(f"{len(each.users)} users" if each.users else "" for each in results)),
        same(*(f"scenario {each.fingerprint}" if each.fingerprint else "" for each in results)),
        " to ".join(dict.fromkeys([made[0], made[-1]])) + " UTC" if made else "",
    ]
    return [fact for fact in facts if fact]


def _value(result: RunResult, name: str) -> str:
    return parameter(result, name).split("=", 1)[1]


def _parameters(results: list[RunResult], differ: list[str]) -> str:
    known = next((each for each in results if each.parameters), None)
    lines = (
        [parameter(known, name) for name in known.parameters if name not in differ]
        if (known is not None)
        else []
    )
    if not lines:
        return ""
    what = "Parameters" if len(results) == 1 else "Parameters that all runs share"
    return f"<details><summary>{what}</summary><pre>{escaped(chr(10).join(lines))}</pre></details>"


def _summary(results: list[RunResult]) -> str:
    if not results:
        return ""
    cards = []
    for index, (each, name) in enumerate(zip(results, run_names(results), strict=True)):
        reference = each.reference_goodput_bps
        cards.append(
            f'<li style="--card:{LINES[index % len(LINES)]}">'
            f"<strong>{escaped(name)}</strong> "
            f'<span class="soft">{escaped(_PROTOCOLS.get(each.protocol, ""))}</span>'
            f"<b>{megabits(each.mean_user_goodput_bps)}"
            '<span class="unit">Mbit/s a user</span></b>'
            f"{escaped(_stalls(each))}"
            + (
                f'<br><span class="soft">{escaped(_of_source(each))}: '
                f"{megabits(reference)} Mbit/s</span>"
                if reference
                else ""
            )
            + "".join(f'<span class="bad wrong">{escaped(said)}</span>' for said in _wrong(each))
            + "</li>"
        )
    parts = [f'<ul class="cards">{"".join(cards)}</ul>']
    parts.append(figure(comparison(results), "all"))
    parts.append('<h2 id="figures" class="first">All figures</h2>')
    parts.append(_figures_table(results))
    parts.append(
        '<p class="soft">Goodput: data that became complete at the host within the user’s planned '
        "time of sending, counted from the first data there, divided by that time; goodput to the "
        "end: all data, divided by the time from the first data sent to the last progress. "
        "Interruption: the longest time without such progress while the user was sending; one "
        "that begins in the first two seconds is its start-up. Packet delay: one way, from the "
        "user’s interface to the "
        "host’s, of all data packets. Throughput variation: standard deviation over mean of "
        "the new data that arrives in each second.</p>"
    )
    return "\n".join(parts)


def _stalls(run: RunResult) -> str:
    """The longest interruption of any user; beside a start-up also the longest after it."""
    users = [each for each in run.users.values() if each.longest_interruption_s is not None]
    if not users:
        return f"longest interruption {NOTHING}"

    def first(user: UserResult) -> float:
        return user.longest_interruption_s or 0.0

    def later(user: UserResult) -> float:
        return user.longest_interruption_after_start_s or 0.0

    most = max(users, key=first)
    said = f"longest interruption {_seconds(worst(most))}"
    most_later = max(users, key=later)
    if later(most_later) < first(most):
        said += f"; after the start-up {_seconds(worst_later(most_later))}"
    return said


def _seconds(text: str) -> str:
    length, *cause = text.split(" ", 1)
    return " ".join([f"{length} s", *cause]) if length != NOTHING else text


def _of_source(run: RunResult) -> str:
    whose = source([run])
    return f"{whose} average" if not run.reference else whose


def _wrong(run: RunResult) -> list[str]:
    """What makes the figures of a run doubtful, in short."""
    said = (
        [f"{run.state}: {run.reason}" if run.reason else run.state] if run.state != "done" else []
    )
    if run.overloaded:
        said.append("the machine could not keep up")
    said += [
        f"{name} not completed: {user.incomplete}"
        if user.completed is False
        else f"{name} perhaps not completed: {user.incomplete}"
        for name, user in run.users.items()
        if not user.completed
    ]
    return said


def _figures_table(results: list[RunResult]) -> str:
    heads = "".join(
        f'<th scope="col">{escaped(first)}'
        + "".join(f'<span class="soft">{escaped(each)}</span>' for each in more)
        + "</th>"
        for first, *more in run_labels(results)
    )
    bodies: list[str] = []
    lines: list[str] = []
    user: str | None = None

    def close() -> None:
        kind = ' class="user"' if user else ""
        bodies.append(f"<tbody{kind}>{''.join(lines)}</tbody>")

    for row in rows(results):
        if row.user != user:
            close()
            lines, user = [], row.user
            lines.append(
                f'<tr><th scope="rowgroup" class="group" colspan="{len(results) + 1}">'
                f"{escaped(user)}</th></tr>"
            )
        lines.append(_figures_row(row))
    close()
    return (
        '<div class="wide"><table><caption>The runs side by side.</caption>'
        f'<thead><tr><th class="text" scope="col">figure</th>{heads}</tr></thead>'
        f"{''.join(bodies)}</table></div>"
    )


def _figures_row(row: Row) -> str:
    unit = f'<span class="unit">{escaped(row.unit)}</span>' if row.unit else ""
    cells = "".join(
        f'<td class="bad">{escaped(cell)}</td>' if cell in ALARMING else f"<td>{escaped(cell)}</td>"
        for cell in row.cells
    )
    kind = ' class="key"' if row.key else ""
    return f'<tr{kind}><th scope="row">{escaped(row.label)}{unit}</th>{cells}</tr>'


def _sent(run: DrawnRun, anchor: str) -> Iterator[str]:
    """What the users sent: delays of all, and the data sequence and repeats of the first ones."""
    result = run.result
    traces = {user: found.trace for user, found in result.users.items() if found.trace is not None}
    samples = {
        f"{user}, {link}": found
        for user, trace in traces.items()
        for link, found in trace.delays_s.items()
    }
    yield run.figure(anchor, "c", lambda: distributions(samples, delay_label="one-way delay"))
    for index, (user, trace) in enumerate(list(traces.items())[:_DRAWN_USERS]):
        bands = [each for each in result.bands if each.user == user]
        span_s = (float(trace.edges_s[0]), float(trace.edges_s[-1]))
        yield f"<h3>Sent by {escaped(user)}</h3>"
        yield run.figure(
            anchor,
            f"s{index}",
            partial(
                data_sequence,
                trace.points,
                trace.paths,
                time_label="run time (s)",
                span_s=span_s,
                bands=bands,
            ),
        )
        yield run.figure(
            anchor,
            f"r{index}",
            partial(
                counts_over_time,
                trace.edges_s,
                dict(zip((f"{kind}s" for kind in KINDS[1:]), trace.repeats, strict=True)),
                time_label="run time (s)",
                bands=bands,
            ),
        )


def _run(run: DrawnRun, anchor: str, name: str, *, in_detail: bool) -> str:
    result = run.result
    about = _PROTOCOLS.get(result.protocol, "")
    parts = [f'<section aria-labelledby="{anchor}"><h2 id="{anchor}">{escaped(name)}</h2>']
    parts.append(f'<p class="soft">{escaped(about)} · run directory {escaped(result.run)}</p>')
    if result.state != "done":
        parts.append(
            f'<p class="failed"><b>{escaped(result.state)}</b>: {escaped(result.reason or "")} '
            "Below is what was recorded until then.</p>"
        )
    if result.remarks:
        items = "".join(f"<li>{escaped(each)}</li>" for each in result.remarks)
        parts.append(f'<div class="box"><h3>Remarks</h3><ul class="plain">{items}</ul></div>')
    parts += [
        run.figure(anchor, "t", lambda: throughput(result)),
        run.figure(anchor, "d", lambda: delays(result)),
        *(_sent(run, anchor) if in_detail else ()),
        run.figure(anchor, "m", lambda: chart(result)),
        run.figure(anchor, "q", lambda: allocation(result) or queue_rates(result)),
        run.figure(anchor, "b", lambda: backlog(result)),
    ]
    parts += [_applications(result)]
    parts += [_interruptions(result), stories_table(result) or _handovers(result), _paths(result)]
    parts += [allocation_table(result), _queues(result), _solves(result)]
    parts += [_quality(result), _environment(result), "</section>"]
    return "\n".join(part for part in parts if part)


def _interruptions(result: RunResult) -> str:
    lines = [
        (
            Words(user),
            seconds(each.start_s),
            seconds(each.length_s),
            Words(each.cause),
            moment(each.event_s, each.event_error_s) if each.event_s is not None else NOTHING,
        )
        for user, found in result.users.items()
        for each in found.interruptions
    ]
    if not lines:
        if all(user.longest_interruption_s is None for user in result.users.values()):
            return ""
        return "<h3>Interruptions</h3><p>None over 0.5 s.</p>"
    text = table(
        "Times over 0.5 s in which a user was sending and nothing became complete at the host.",
        ("user", "start (s)", "length (s)", "cause", "event that explains it (s)"),
        lines,
    )
    if len(lines) > _LONG_TABLE:
        text = f"<details><summary>All {len(lines)} interruptions</summary>{text}</details>"
    return f"<h3>Interruptions</h3>{text}"


def _handovers(result: RunResult) -> str:
    lines = [
        (
            Words(each.user),
            Words(each.label),
            seconds(each.start_s),
            seconds(each.end_s - each.start_s),
        )
        for each in sorted(result.bands, key=lambda band: band.start_s)
        if each.kind == "handover"
    ]
    if not lines:
        return ""
    return "<h3>Handovers</h3>" + table(
        "From the first step of a handover to its last.",
        ("user", "what", "start (s)", "length (s)"),
        lines,
    )


def _paths(result: RunResult) -> str:
    lines = [
        (
            Words(user),
            Words(share.via),
            Words(share.client),
            whole(share.data_bytes),
            whole(share.data_packets),
            whole(share.lost_packets),
            whole(share.retransmissions),
            whole(share.reinjections),
            milliseconds(share.mean_packet_delay_s),
            milliseconds(share.p95_packet_delay_s),
            f"{share.first_s:.1f}–{share.last_s:.1f}",
            Words(share.closed),
        )
        for user, found in result.users.items()
        for share in found.subflows
    ]
    if not lines:
        return ""
    return "<h3>Subflows</h3>" + table(
        "What each subflow carried. Data: bytes that reached the host here first.",
        (
            "user",
            "over",
            "from",
            "data (bytes)",
            "packets",
            "lost",
            "retrans.",
            "reinj.",
            "delay (ms)",
            "p95 (ms)",
            "time (s)",
            "end",
        ),
        lines,
    )


def _applications(result: RunResult) -> str:
    def taken(each: ApplicationResult, time_s: float | None) -> str:
        return (seconds if each.kind == "files" else milliseconds)(time_s)

    lines = [
        (
            Words(each.name),
            Words(each.direction),
            Words(each.transport),
            megabits(each.offered_bps),
            megabits(each.goodput_bps),
            arrived(each),
            Words(time_of(each.kind, each.transport) if each.completed is not None else NOTHING),
            Words("s" if each.kind == "files" else "ms"),
            taken(each, each.mean_time_s),
            taken(each, each.p95_time_s),
            taken(each, each.longest_time_s),
            percent(each.loss),
            milliseconds(each.jitter_s),
        )
        for each in result.applications
    ]
    if not lines:
        return ""
    return "<h3>Applications</h3>" + table(
        "What applications saw at their own ends. Rates in Mbit/s; lost datagrams in percent; "
        "jitter in ms.",
        (
            "application",
            "way",
            "over",
            "offered",
            "goodput",
            "arrived",
            "time",
            "unit",
            "mean",
            "p95",
            "longest",
            "lost",
            "jitter",
        ),
        lines,
    )


def _queues(result: RunResult) -> str:
    lines = [
        (
            Words(queue.port),
            whole(queue.queue_id),
            Words(queue.user or NOTHING),
            Words(queue.via or NOTHING),
            whole(queue.tx_bytes),
            whole(queue.tx_errors),
            whole(len(queue.settings)),
            " … ".join(megabits(rate) for rate in queue.settings[-1][1:])
            if queue.settings
            else NOTHING,
        )
        for queue in result.queues
        if queue.tx_bytes or queue.settings
    ]
    if not lines:
        return ""
    return "<h3>Queues</h3>" + table(
        "Switch queues: bytes sent, and the rates that were set last.",
        ("port", "queue", "user", "over", "sent (bytes)", "drops", "times set", "last (Mbit/s)"),
        lines,
    )


def _solves(result: RunResult) -> str:
    if not result.solve_log:
        return ""
    lines = [
        (
            seconds(solve.t_s),
            Words(solve.trigger or NOTHING),
            f"{solve.relative_gap:.1e}" if solve.relative_gap is not None else NOTHING,
            milliseconds(solve.solve_time_s),
            Sentence(
                "; ".join(
                    f"{flow.get('user', '?')} over {flow.get('via', '?')} "
                    f"{megabits(json_number(flow.get('rate_bps')))}"
                    for flow in solve.path_flows
                )
            ),
        )
        for solve in result.solve_log
    ]
    return "<h3>Solves</h3>" + table(
        "Each solution of the flow allocation, with the gap its certificate leaves.",
        ("time (s)", "trigger", "relative gap", "solved in (ms)", "path flows (Mbit/s)"),
        lines,
    )


def _quality(result: RunResult) -> str:
    lines = [
        (
            Words(each.file),
            Words(each.position.partition(":")[0] if ":" in each.position else NOTHING),
            whole(each.packets),
            whole(each.snap_length_bytes),
            whole(each.dropped),
            Words("yes" if each.damaged else "no"),
            whole(each.large_packets),
            whole(each.unmapped_bytes),
        )
        for each in result.captures
    ]
    parts = ['<div class="box"><h3>Data quality</h3>']
    checks = []
    for name, user in result.users.items():
        if user.bytes_agree is None:
            if user.completed:
                said = '<span class="ok">the transfer completed</span>'
            elif user.completed is None:
                said = '<span class="bad">not known whether the transfer completed</span>'
            else:
                said = '<span class="bad">the transfer did not complete</span>'
            why = f" ({escaped(user.incomplete)})" if user.incomplete else ""
            checks.append(
                f"<li>{escaped(name)}: {said}{why}; {whole(user.data_bytes)} data bytes captured, "
                f"{whole(user.iperf_bytes)} sent, says the sender</li>"
            )
        else:
            state = ("ok", "agree") if user.bytes_agree else ("bad", "do not agree")
            checks.append(
                f"<li>{escaped(name)}: {whole(user.data_bytes)} data bytes captured and "
                f"{whole(user.iperf_bytes)} + 37 sent, says the sender, "
                f'<span class="{state[0]}">{state[1]}</span></li>'
            )
    parts.append(f'<ul class="plain">{"".join(checks)}</ul>' if checks else "")
    if lines:
        parts.append(
            table(
                "Captures.",
                (
                    "file",
                    "point",
                    "packets",
                    "snap length (bytes)",
                    "drops",
                    "damaged",
                    "over 1526 bytes",
                    "unmapped (bytes)",
                ),
                lines,
            )
        )
        for what, values in (
            ("Position", {each.position for each in result.captures}),
            ("Clock", {each.clock for each in result.captures if each.clock}),
            ("Recorder", {each.recorder for each in result.captures if each.recorder}),
        ):
            if values:
                parts.append(f'<p class="soft">{what}: {escaped("; ".join(sorted(values)))}.</p>')
    else:
        parts.append("<p>No captures.</p>")
    parts.append(checks_table(result))
    return "".join(parts) + "</div>"


def _environment(result: RunResult) -> str:
    if not result.environment:
        return ""
    lines: list[str] = []

    def walk(prefix: str, value: Any) -> None:
        if isinstance(value, dict) and value:
            for key, each in value.items():
                walk(f"{prefix}.{key}" if prefix else str(key), each)
        else:
            lines.append(f"{prefix} = {value}")

    walk("", result.environment)
    return (
        "<details><summary>Environment</summary>"
        f"<pre>{escaped(chr(10).join(lines))}</pre></details>"
    )
