"""One page about one or more runs, in one file that needs no network."""

import html
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from analysis.figures import (
    ALARMING,
    NOTHING,
    Row,
    differing,
    in_order,
    made_at,
    megabits,
    milliseconds,
    number,
    parameter,
    rows,
    run_labels,
    run_names,
    source,
    whole,
    worst,
    worst_later,
)
from analysis.plots import LINES, Plot, comparison, delays, queue_rates, throughput
from analysis.replacing import write_text
from analysis.result import RunResult, UserResult
from analysis.run import analyse
from analysis.rundirectory import number as json_number

_PROTOCOLS = {
    "sptcp": "single-path TCP that hands over",
    "mptcp": "multipath TCP over both links, no allocation",
    "fdm": "multipath TCP with flow deviation and queues",
}

# Longer tables of interruptions are folded.
_LONG_TABLE = 12

_STYLE = """
:root { color-scheme: light; --ink: #1c2530; --soft: #5b6673; --line: #d8dde2; --pale: #f6f7f9;
  --alarm: #b2182b; --good: #00664a; }
* { box-sizing: border-box; }
html { font: 16px/1.55 "Source Sans 3", "Segoe UI", Roboto, "Helvetica Neue", Arial,
  "Liberation Sans", sans-serif; color: var(--ink); background: #fff; }
body { max-width: 66rem; margin: 0 auto; padding: 2.5rem 1.5rem 4rem; }
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
th, td { padding: .28rem .7rem; text-align: right; vertical-align: baseline; }
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
ul.plain { margin: .3rem 0; padding-left: 1.2rem; }
@media print { html { font-size: 10.5pt; } body { max-width: none; padding: 0; }
  nav { display: none; } h2 { break-before: page; } h2.first { break-before: auto; }
  h2, h3, caption { break-after: avoid; } table { font-size: 8.5pt; }
  figure, tr, .box, .cards li { break-inside: avoid; } th, td { padding: .14rem .4rem; }
  .wide { overflow: visible; } }
"""


def report(runs: Sequence[RunResult | str | Path], path: str | Path) -> Path:
    """Write the report of some runs.

    Parameters
    ----------
    runs : sequence of RunResult or path
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
    results = in_order([each if isinstance(each, RunResult) else analyse(each) for each in runs])
    target = Path(path)
    write_text(target, _page(results))
    return target


def _page(results: list[RunResult]) -> str:
    scenario = results[0].scenario if results else ""
    names = run_names(results)
    title = f"{scenario or 'Run'}: {', '.join(names)}"
    parts = [
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{_text(title)}</title>",
        f"<style>{_STYLE}</style>",
        "</head>",
        "<body>",
        _head(results),
        "<main>",
        _summary(results),
    ]
    for index, (result, name) in enumerate(zip(results, names, strict=True)):
        parts.append(_run(result, f"run{index}", name))
    parts += ["</main>", "</body>", "</html>", ""]
    return "\n".join(parts)


def _text(value: object) -> str:
    return html.escape(str(value))


def _head(results: list[RunResult]) -> str:
    if not results:
        return "<header><h1>No runs</h1></header>"
    links = "".join(
        f'<a href="#run{index}">{_text(name)}</a>' for index, name in enumerate(run_names(results))
    )
    names = differing(results)
    apart = ""
    if names:
        values = (
            f"{name} ({', '.join(dict.fromkeys(_value(each, name) for each in results))})"
            for name in names
        )
        apart = f'<p class="soft">The runs differ in {_text("; ".join(values))}.</p>'
    scenarios = ", ".join(dict.fromkeys(each.scenario for each in results if each.scenario))
    return (
        f"<header><h1>{_text(scenarios or 'Run')}</h1>"
        f'<p class="lead">{_text(" · ".join(_common(results)))}</p>{apart}'
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
    return f"<details><summary>{what}</summary><pre>{_text(chr(10).join(lines))}</pre></details>"


def _summary(results: list[RunResult]) -> str:
    if not results:
        return ""
    cards = []
    for index, (each, name) in enumerate(zip(results, run_names(results), strict=True)):
        reference = each.reference_goodput_bps
        cards.append(
            f'<li style="--card:{LINES[index % len(LINES)]}">'
            f"<strong>{_text(name)}</strong> "
            f'<span class="soft">{_text(_PROTOCOLS.get(each.protocol, ""))}</span>'
            f"<b>{megabits(each.mean_user_goodput_bps)}"
            '<span class="unit">Mbit/s a user</span></b>'
            f"{_text(_stalls(each))}"
            + (
                f'<br><span class="soft">{_text(_of_source(each))}: '
                f"{megabits(reference, 4)} Mbit/s</span>"
                if reference
                else ""
            )
            + "".join(f'<span class="bad wrong">{_text(said)}</span>' for said in _wrong(each))
            + "</li>"
        )
    parts = [f'<ul class="cards">{"".join(cards)}</ul>']
    plot = comparison(results, "all")
    if plot:
        parts.append(
            _figure(
                plot,
                "Goodput of all users together at the host, in steps of one second: data that is "
                "complete from the start of its connection.",
            )
        )
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
        f'<th scope="col">{_text(first)}'
        + "".join(f'<span class="soft">{_text(each)}</span>' for each in more)
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
                f"{_text(user)}</th></tr>"
            )
        lines.append(_figures_row(row))
    close()
    return (
        '<div class="wide"><table><caption>The runs side by side.</caption>'
        f'<thead><tr><th class="text" scope="col">figure</th>{heads}</tr></thead>'
        f"{''.join(bodies)}</table></div>"
    )


def _figures_row(row: Row) -> str:
    unit = f'<span class="unit">{_text(row.unit)}</span>' if row.unit else ""
    cells = "".join(
        f'<td class="bad">{_text(cell)}</td>' if cell in ALARMING else f"<td>{_text(cell)}</td>"
        for cell in row.cells
    )
    kind = ' class="key"' if row.key else ""
    return f'<tr{kind}><th scope="row">{_text(row.label)}{unit}</th>{cells}</tr>'


def _figure(plot: Plot, caption: str) -> str:
    svg = plot.svg.replace(
        "<svg ", f'<svg role="img" aria-label="{html.escape(plot.description)}" ', 1
    )
    return f"<figure>{svg}<figcaption>{_text(caption)}</figcaption></figure>"


def _table(caption: str, heads: Sequence[str], lines: Sequence[Sequence[object]]) -> str:
    """A table whose first columns, up to the first number, are text."""
    head = "".join(f'<th scope="col">{_text(each)}</th>' for each in heads)
    body = "".join(
        "<tr>" + "".join(f"<td{_cell_class(cell)}>{_text(cell)}</td>" for cell in line) + "</tr>"
        for line in lines
    )
    for index, cell in enumerate(lines[0] if lines else ()):
        if isinstance(cell, _Words):
            head = head.replace(
                f'<th scope="col">{_text(heads[index])}<',
                f'<th scope="col" class="text">{_text(heads[index])}<',
                1,
            )
    return (
        f'<div class="wide"><table><caption>{_text(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


class _Words(str):
    """A cell set to the left."""


class _Sentence(_Words):
    """A cell that may take several lines."""


def _cell_class(cell: object) -> str:
    if isinstance(cell, _Sentence):
        return ' class="text long"'
    return ' class="text"' if isinstance(cell, _Words) else ""


def _run(result: RunResult, anchor: str, name: str) -> str:
    about = _PROTOCOLS.get(result.protocol, "")
    parts = [f'<section aria-labelledby="{anchor}"><h2 id="{anchor}">{_text(name)}</h2>']
    parts.append(f'<p class="soft">{_text(about)} · run directory {_text(result.run)}</p>')
    if result.state != "done":
        parts.append(
            f'<p class="failed"><b>{_text(result.state)}</b>: {_text(result.reason or "")} '
            "Below is what was recorded until then.</p>"
        )
    if result.remarks:
        items = "".join(f"<li>{_text(each)}</li>" for each in result.remarks)
        parts.append(f'<div class="box"><h3>Remarks</h3><ul class="plain">{items}</ul></div>')
    plot = throughput(result, anchor + "t")
    if plot:
        parts.append(
            _figure(
                plot,
                "New data that arrived at the host in each second, by the link it came over, and "
                "the goodput (black). Light bands: associated with an access point; dark bands: "
                "handover; red on the axis: interruptions over 0.5 s.",
            )
        )
    plot = delays(result, anchor + "d")
    if plot:
        parts.append(
            _figure(
                plot,
                "One-way delay of the data packets sent in each second, from the user’s interface "
                "to the host’s, by link.",
            )
        )
    plot = queue_rates(result, anchor + "q")
    if plot:
        parts.append(
            _figure(
                plot,
                "Rates of the switch queues. Lines: measured from the queues’ counters (frames, "
                "with headers). Bands: from the lowest (dotted, the solved path flow) to the "
                "highest rate that the controller set.",
            )
        )
    parts += [_interruptions(result), _handovers(result), _paths(result)]
    parts += [_queues(result), _solves(result)]
    parts += [_quality(result), _environment(result), "</section>"]
    return "\n".join(part for part in parts if part)


def _interruptions(result: RunResult) -> str:
    lines = [
        (_Words(user), number(each.start_s, 2), number(each.length_s, 2), _Words(each.cause))
        for user, found in result.users.items()
        for each in found.interruptions
    ]
    if not lines:
        if all(user.longest_interruption_s is None for user in result.users.values()):
            return ""
        return "<h3>Interruptions</h3><p>None over 0.5 s.</p>"
    text = _table(
        "Times over 0.5 s in which a user was sending and nothing became complete at the host.",
        ("user", "start (s)", "length (s)", "cause"),
        lines,
    )
    if len(lines) > _LONG_TABLE:
        text = f"<details><summary>All {len(lines)} interruptions</summary>{text}</details>"
    return f"<h3>Interruptions</h3>{text}"


def _handovers(result: RunResult) -> str:
    lines = [
        (
            _Words(each.user),
            _Words(each.label),
            number(each.start_s, 2),
            number(each.end_s - each.start_s, 2),
        )
        for each in sorted(result.bands, key=lambda band: band.start_s)
        if each.kind == "handover"
    ]
    if not lines:
        return ""
    return "<h3>Handovers</h3>" + _table(
        "From the first step of a handover to its last.",
        ("user", "what", "start (s)", "length (s)"),
        lines,
    )


def _paths(result: RunResult) -> str:
    lines = [
        (
            _Words(user),
            _Words(share.via),
            _Words(share.client),
            whole(share.data_bytes),
            whole(share.data_packets),
            whole(share.lost_packets),
            whole(share.retransmissions),
            whole(share.reinjections),
            milliseconds(share.mean_packet_delay_s),
            milliseconds(share.p95_packet_delay_s),
            f"{share.first_s:.1f}–{share.last_s:.1f}",
            _Words(share.closed),
        )
        for user, found in result.users.items()
        for share in found.subflows
    ]
    if not lines:
        return ""
    return "<h3>Subflows</h3>" + _table(
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


def _queues(result: RunResult) -> str:
    lines = [
        (
            _Words(queue.port),
            whole(queue.queue_id),
            _Words(queue.user or NOTHING),
            _Words(queue.via or NOTHING),
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
    return "<h3>Queues</h3>" + _table(
        "Switch queues: bytes sent, and the rates that were set last.",
        ("port", "queue", "user", "over", "sent (bytes)", "drops", "times set", "last (Mbit/s)"),
        lines,
    )


def _solves(result: RunResult) -> str:
    if not result.solve_log:
        return ""
    lines = [
        (
            number(solve.t_s, 2),
            _Words(solve.trigger or NOTHING),
            f"{solve.relative_gap:.1e}" if solve.relative_gap is not None else NOTHING,
            milliseconds(solve.solve_time_s),
            _Sentence(
                "; ".join(
                    f"{flow.get('user', '?')} over {flow.get('via', '?')} "
                    f"{megabits(json_number(flow.get('rate_bps')))}"
                    for flow in solve.path_flows
                )
            ),
        )
        for solve in result.solve_log
    ]
    return "<h3>Solves</h3>" + _table(
        "Each solution of the flow allocation, with the gap its certificate leaves.",
        ("time (s)", "trigger", "relative gap", "solved in (ms)", "path flows (Mbit/s)"),
        lines,
    )


def _quality(result: RunResult) -> str:
    lines = [
        (
            _Words(each.file),
            whole(each.packets),
            whole(each.snap_length_bytes),
            whole(each.dropped),
            _Words("yes" if each.damaged else "no"),
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
            why = f" ({_text(user.incomplete)})" if user.incomplete else ""
            checks.append(
                f"<li>{_text(name)}: {said}{why}; {whole(user.data_bytes)} data bytes captured, "
                f"{whole(user.iperf_bytes)} sent, says iperf3</li>"
            )
        else:
            state = ("ok", "agree") if user.bytes_agree else ("bad", "do not agree")
            checks.append(
                f"<li>{_text(name)}: {whole(user.data_bytes)} data bytes captured and "
                f"{whole(user.iperf_bytes)} + 37 sent by iperf3 "
                f'<span class="{state[0]}">{state[1]}</span></li>'
            )
    parts.append(f'<ul class="plain">{"".join(checks)}</ul>' if checks else "")
    if lines:
        parts.append(
            _table(
                "Captures.",
                (
                    "file",
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
                parts.append(f'<p class="soft">{what}: {_text("; ".join(sorted(values)))}.</p>')
    else:
        parts.append("<p>No captures.</p>")
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
        f"<details><summary>Environment</summary><pre>{_text(chr(10).join(lines))}</pre></details>"
    )
