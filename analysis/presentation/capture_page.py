"""One page about captures, in one file that needs no network."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from analysis.capture.result import (
    CaptureAnalysis,
    ConnectionResult,
    DirectionResult,
    FileQuality,
    Summary,
)
from analysis.presentation.page import Sentence, Words, document, escaped, figure, table
from analysis.presentation.quantities import NOTHING, megabits, milliseconds, seconds, whole
from analysis.presentation.style import LINES, PAGE_WIDTH_IN, Plot
from analysis.presentation.transfer_plots import (
    Panel,
    counts_over_time,
    data_sequence,
    distributions,
    fairness,
    interruption_times,
    lines_over_time,
    stacked_throughput,
)
from analysis.replacing import write_text
from analysis.transfer.trace import KINDS

TIME_LABEL = "time since the first packet (s)"
_CARDS = 3
_LISTED_CONNECTIONS = 100
_LISTED_REMARKS = 20
_LONG_TABLE = 12


@dataclass(frozen=True)
class Transfer:
    """One direction of a connection that is drawn."""

    name: str
    connection: ConnectionResult
    direction: DirectionResult
    forward: bool

    @property
    def source(self) -> str:
        """Who sends."""
        return self.connection.client if self.forward else self.connection.server

    @property
    def target(self) -> str:
        """Who receives."""
        return self.connection.server if self.forward else self.connection.client

    @property
    def near_receiver(self) -> bool:
        """The only capture was taken near the receiver."""
        return self.connection.near_receiver(forward=self.forward)


def transfers(analysis: CaptureAnalysis) -> list[Transfer]:
    """The directions with most data, which have series; in order of time."""
    found: list[Transfer] = []
    for connection in analysis.connections:
        for forward in (True, False):
            direction = connection.client_to_server if forward else connection.server_to_client
            if direction.trace is not None:
                found.append(Transfer(f"t{len(found) + 1}", connection, direction, forward))
    return found


def capture_report(analysis: CaptureAnalysis, path: str | Path) -> Path:
    """Write the report of some captures.

    Parameters
    ----------
    analysis : CaptureAnalysis
    path : str or Path
        The HTML file to write; it holds its figures and opens without a network.

    Returns
    -------
    Path
        The written file.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    target = Path(path)
    write_text(target, _page(analysis))
    return target


def capture_figures(
    analysis: CaptureAnalysis, *, width_in: float = PAGE_WIDTH_IN
) -> Iterator[tuple[str, Plot]]:
    """All figures of the report with a name for each, to be saved for a paper.

    Parameters
    ----------
    analysis : CaptureAnalysis
    width_in : float
        Their width, inches.

    Yields
    ------
    name : str
        Of letters, digits and hyphens.
    plot : Plot
    """
    for transfer in transfers(analysis):
        for kind, plot in _plots(transfer, width_in):
            yield f"{transfer.name}-{kind}", plot
    yield from _common_plots(analysis, width_in)


def _plots(transfer: Transfer, width_in: float) -> Iterator[tuple[str, Plot]]:
    trace = transfer.direction.trace
    assert trace is not None
    paired = len(transfer.connection.seen_at) == 2
    span_s = (float(trace.edges_s[0]), float(trace.edges_s[-1]))
    kinds: list[tuple[str, Plot | None]] = [
        (
            "throughput",
            stacked_throughput(
                trace.edges_s,
                dict(zip(trace.paths, trace.arriving_bps, strict=True)),
                trace.goodput_bps,
                time_label=TIME_LABEL,
                interruptions=transfer.direction.interruptions,
                width_in=width_in,
            ),
        ),
        (
            "sequence",
            data_sequence(
                trace.points, trace.paths, time_label=TIME_LABEL, span_s=span_s, width_in=width_in
            ),
        ),
        (
            "one-way-delay",
            distributions(trace.delays_s, delay_label="one-way delay", width_in=width_in)
            if paired
            else None,
        ),
        (
            "round-trip",
            distributions(
                trace.round_trips_s,
                delay_label="round-trip time"
                + (" to the sender, from timestamps" if transfer.near_receiver else ""),
                width_in=width_in,
            ),
        ),
        (
            "repeats",
            counts_over_time(
                trace.edges_s,
                dict(zip((f"{kind}s" for kind in KINDS[1:]), trace.repeats, strict=True)),
                time_label=TIME_LABEL,
                width_in=width_in,
            ),
        ),
        (
            "flight",
            lines_over_time(
                []
                if transfer.near_receiver
                else [Panel(f"over {path}", {path: each}) for path, each in trace.flight.items()],
                time_label=TIME_LABEL,
                span_s=span_s,
                quantity="flight size",
                unit="B",
                caption="Bytes of each subflow that were sent and not acknowledged, as the capture "
                "saw them: the largest value of each short time. " + _seen_where(transfer),
                width_in=width_in,
            ),
        ),
        (
            "waiting",
            lines_over_time(
                [Panel("", {"waiting": trace.waiting})] if trace.waiting is not None else [],
                time_label=TIME_LABEL,
                span_s=span_s,
                quantity="waiting",
                unit="B",
                caption="Data that had arrived but waited for earlier data (head-of-line "
                "blocking): the largest value of each short time.",
                width_in=width_in,
            ),
        ),
    ]
    yield from ((kind, plot) for kind, plot in kinds if plot is not None)


def _seen_where(transfer: Transfer) -> str:
    where = transfer.connection.capture_side
    if len(transfer.connection.seen_at) == 2 or where in ("client", "server"):
        return "Seen near the sender."
    return (
        "The capture was not taken near the sender: data on its way to it, and acknowledgments on "
        "their way back from it, are missing."
    )


def _common_plots(analysis: CaptureAnalysis, width_in: float) -> Iterator[tuple[str, Plot]]:
    rows = {
        _short(each): (
            each.direction.start_s or 0.0,
            each.direction.end_s or 0.0,
            each.direction.interruptions,
        )
        for each in transfers(analysis)
    }
    plot = interruption_times(rows, time_label=TIME_LABEL, width_in=width_in)
    if plot is not None:
        yield "interruptions", plot
    for each in analysis.fairness:
        found = fairness(
            np.array(each.edges_s),
            np.array(each.index),
            time_label=TIME_LABEL,
            width_in=width_in,
        )
        if found is not None:
            name = each.direction.replace("_", "-")
            place = f"-{each.place + 1}" if len(analysis.places) > 2 else ""
            yield f"jain-{name}{place}", found


def _page(analysis: CaptureAnalysis) -> str:
    names = [Path(each.file).name for each in analysis.files]
    drawn = transfers(analysis)
    return document(
        f"Captures: {', '.join(names)}",
        [
            _head(analysis, names, drawn),
            "<main>",
            _cards(analysis, drawn),
            _remarks(analysis),
            _connections(analysis),
            *(
                figure(plot, name)
                for name, plot in _common_plots(analysis, PAGE_WIDTH_IN)
                if name.startswith("interruptions") or drawn
            ),
            *(_transfer(each) for each in drawn),
            _quality(analysis),
            _definitions(analysis),
            "</main>",
        ],
    )


def _head(analysis: CaptureAnalysis, names: Sequence[str], drawn: Sequence[Transfer]) -> str:
    starts = [each.start_epoch_s for each in analysis.files if each.start_epoch_s is not None]
    spans = [each.duration_s for each in analysis.files if each.duration_s is not None]
    multipath = sum(each.protocol == "mptcp" for each in analysis.connections)
    facts = [
        f"{datetime.fromtimestamp(min(starts), UTC):%Y-%m-%d %H:%M:%S} UTC" if starts else "",
        f"{seconds(max(spans))} s" if spans else "",
        f"{whole(analysis.frames)} packets, {whole(analysis.tcp_frames)} of TCP",
        ", ".join(
            f"{whole(count)} {kind} connection{'s' if count > 1 else ''}"
            for kind, count in (
                ("multipath", multipath),
                ("single-path", len(analysis.connections) - multipath),
            )
            if count
        ),
    ]
    links = "".join(f'<a href="#{each.name}">{escaped(_short(each))}</a>' for each in drawn)
    title = names[0] if len(names) == 1 else f"{len(names)} captures"
    lead = " · ".join(fact for fact in facts if fact)
    files = f'<p class="soft">{escaped(", ".join(names))}</p>' if len(names) > 1 else ""
    return (
        f'<header><h1>{escaped(title)}</h1><p class="lead">{escaped(lead)}</p>{files}'
        '<nav aria-label="Sections"><a href="#connections">Connections</a>'
        f'{links}<a href="#quality">Data quality</a></nav></header>'
    )


def _short(transfer: Transfer) -> str:
    return f"{transfer.source} → {transfer.target}"


def _cards(analysis: CaptureAnalysis, drawn: Sequence[Transfer]) -> str:
    if not drawn:
        return ""
    biggest = sorted(drawn, key=lambda each: -each.direction.captured_bytes)[:_CARDS]
    cards = []
    for index, each in enumerate(biggest):
        found = each.direction
        rate = found.goodput_bps["in_order"] if found.goodput_bps else None
        cards.append(
            f'<li style="--card:{LINES[index % len(LINES)]}">'
            f"<strong>{escaped(_short(each))}</strong> "
            f'<span class="soft">{escaped(_protocol(each.connection))}</span>'
            f'<b>{megabits(rate)}<span class="unit">Mbit/s in order</span></b>'
            f"{whole(found.in_order_bytes)} bytes{_taken(found)}<br>{escaped(_longest(found))}</li>"
        )
    more = len(drawn) - len(biggest)
    rest = f'<p class="soft">and {more} more below.</p>' if more > 0 else ""
    return f'<ul class="cards">{"".join(cards)}</ul>{rest}'


def _taken(found: DirectionResult) -> str:
    if found.start_s is None or found.end_s is None:
        return ""
    return f" in {seconds(found.end_s - found.start_s)} s"


def _longest(found: DirectionResult) -> str:
    if not found.longest_stall_s:
        return "no stall"
    most = max(found.interruptions, key=lambda each: each.length_s, default=None)
    cause = f" ({most.cause})" if most is not None else ""
    return f"longest stall {seconds(found.longest_stall_s)} s{cause}"


def _protocol(connection: ConnectionResult) -> str:
    if connection.protocol != "mptcp":
        return "TCP, multipath refused" if connection.fallback else "TCP"
    version = f" v{connection.version}" if connection.version is not None else ""
    count = len(connection.subflows)
    paths = f", {count} subflow{'s' if count != 1 else ''}"
    return f"MPTCP{version}{paths}{', fell back to TCP' if connection.fallback else ''}"


def _remarks(analysis: CaptureAnalysis) -> str:
    if not analysis.remarks:
        return ""
    shown = list(analysis.remarks[:_LISTED_REMARKS])
    if len(analysis.remarks) > len(shown):
        shown.append(f"and {len(analysis.remarks) - len(shown)} more")
    items = "".join(f"<li>{escaped(each)}</li>" for each in shown)
    damaged = any(each.damage for each in analysis.files)
    kind = "failed" if damaged else "box"
    title = "Damaged" if damaged else "Remarks"
    return f'<div class="{kind}"><h3>{title}</h3><ul class="plain">{items}</ul></div>'


def _connections(analysis: CaptureAnalysis) -> str:
    head = '<h2 id="connections" class="first">Connections</h2>'
    if not analysis.connections:
        return f"{head}<p>No TCP connection was found.</p>"
    shown = analysis.largest(_LISTED_CONNECTIONS)
    lines: list[list[object]] = []
    for each in shown:
        for forward in (True, False):
            found = each.client_to_server if forward else each.server_to_client
            first = forward or not _says_something(each.client_to_server)
            if not _says_something(found) and (
                not forward or _says_something(each.server_to_client)
            ):
                continue
            ends = (each.client, each.server) if forward else (each.server, each.client)
            lines.append(
                [
                    Words(_protocol(each) if first else ""),
                    Words(f"{ends[0]} → {ends[1]}"),
                    seconds(each.opened_s),
                    whole(found.in_order_bytes),
                    megabits(found.goodput_bps["in_order"] if found.goodput_bps else None),
                    seconds(found.longest_stall_s),
                    whole(found.retransmissions),
                    whole(found.reinjections),
                    whole(found.resends),
                    Words(each.closed),
                ]
            )
    text = table(
        "Each direction that carried data: bytes complete from the start, and the rate of that "
        "from its first data to its last progress.",
        (
            "protocol",
            "from → to",
            "opened (s)",
            "in order (bytes)",
            "goodput (Mbit/s)",
            "longest stall (s)",
            "retrans.",
            "reinj.",
            "resent",
            "closed",
        ),
        lines,
    )
    rest = len(analysis.connections) - len(shown)
    more = f'<p class="soft">{rest} smaller connections are not listed.</p>' if rest > 0 else ""
    return head + text + more


def _says_something(found: DirectionResult) -> bool:
    return found.payload_bytes > 0 or found.captured_bytes > 0


def _transfer(transfer: Transfer) -> str:
    connection, found = transfer.connection, transfer.direction
    facts = [
        _protocol(connection),
        f"token {connection.server_token:#010x}" if connection.server_token is not None else "",
        f"opened at {seconds(connection.opened_s)} s",
        f"closed: {connection.closed}",
        _where(connection),
    ]
    parts = [
        f'<section aria-labelledby="{transfer.name}"><h2 id="{transfer.name}">'
        f"{escaped(_short(transfer))}</h2>",
        f'<p class="soft">{escaped(" · ".join(fact for fact in facts if fact))}</p>',
        _amounts(found),
        _subflows(transfer),
        *(figure(plot, f"{transfer.name}{kind}") for kind, plot in _plots(transfer, PAGE_WIDTH_IN)),
        _interruptions(found),
        "</section>",
    ]
    return "\n".join(part for part in parts if part)


def _where(connection: ConnectionResult) -> str:
    if len(connection.seen_at) == 2:
        return "seen at both sides"
    if connection.round_trip_to_client_s is None or connection.round_trip_to_server_s is None:
        return ""
    near = {"client": "near the client", "server": "near the server"}
    where = near.get(connection.capture_side or "", "")
    return (
        f"captured {where + ': ' if where else ''}"
        f"{milliseconds(connection.round_trip_to_client_s)} ms from the client and back, "
        f"{milliseconds(connection.round_trip_to_server_s)} ms from the server"
    )


def _amounts(found: DirectionResult) -> str:
    rates = found.goodput_bps or {}
    lines = [
        (
            Words(name),
            whole(size),
            megabits(rates.get(key)),
            Sentence(meaning),
        )
        for name, key, size, meaning in (
            ("announced", "announced", found.announced_bytes, "covered by mappings, sent or not"),
            ("captured", "captured", found.captured_bytes, "covered by packets, each byte once"),
            ("in order", "in_order", found.in_order_bytes, "complete from the start"),
            ("acknowledged", "acknowledged", found.acknowledged_bytes, "by the other side"),
        )
    ]
    text = table("Data of the connection.", ("data", "bytes", "Mbit/s", "meaning"), lines)
    late = found.reordering
    held = found.head_of_line
    said = [
        f"completed {seconds(found.completion_time_s)} s after the connection’s first packet"
        if found.completion_time_s is not None
        else "its end was not seen, or not acknowledged",
        f"{whole(found.redundant_bytes)} bytes arrived again",
        f"{whole(found.unmapped_bytes)} payload bytes without a mapping"
        if found.unmapped_bytes
        else "",
        f"{whole(late.pieces)} pieces of data overtaken ({100 * late.ratio:.2f} %), "
        f"{whole(late.over_other_subflow)} of them by another subflow, by up to "
        f"{whole(late.largest_extent)} pieces and {_ms(late.largest_late_s)}"
        if late is not None and late.pieces
        else "no reordering",
        f"data waited for earlier data {seconds(held.blocked_s)} s in all, "
        f"a byte {_ms(held.mean_wait_s)} on average, up to {whole(held.largest_waiting_bytes)} "
        "bytes at a time"
        if held is not None and held.blocked_s > 0
        else "",
    ]
    items = "".join(f"<li>{escaped(each)}</li>" for each in said if each)
    return f'{text}<ul class="plain">{items}</ul>'


def _ms(value: float | None) -> str:
    return NOTHING if value is None else f"{milliseconds(value)} ms"


def _interruptions(found: DirectionResult) -> str:
    if not found.interruptions:
        return ""
    text = table(
        "Times without progress that are over the limit. What the causes mean is said below.",
        ("start (s)", "length (s)", "cause"),
        [
            (seconds(each.start_s), seconds(each.length_s), Words(each.cause))
            for each in found.interruptions
        ],
    )
    if len(found.interruptions) > _LONG_TABLE:
        count = len(found.interruptions)
        text = f"<details><summary>All {count} interruptions</summary>{text}</details>"
    return f"<h3>Interruptions</h3>{text}"


def _subflows(transfer: Transfer) -> str:
    paired = len(transfer.connection.seen_at) == 2
    heads = ["client – server", "", "new (bytes)", "packets", "Mbit/s", "sent again"]
    heads += ["lost", "one way (ms)"] if paired else []
    heads += ["RTT (ms)"] + ([] if transfer.near_receiver else ["flight (bytes)"])
    lines: list[list[object]] = []
    for each in transfer.connection.subflows:
        way = each.client_to_server if transfer.forward else each.server_to_client
        notes = [
            "" if each.join else "first",
            "backup" if each.backup else "",
            ", ".join(each.interfaces),
            each.closed if each.closed != "orderly" else "",
        ]
        line: list[object] = [
            Sentence(f"{each.client} – {each.server}"),
            Words(", ".join(note for note in notes if note)),
            whole(way.fresh_bytes),
            whole(way.data_packets),
            megabits(way.throughput_bps),
            f"{whole(way.retransmissions)} / {whole(way.reinjections)} / {whole(way.resends)}",
        ]
        line += [whole(way.lost_packets), _three(way.one_way_delay)] if paired else []
        line.append(_three(transfer.connection.round_trip(each, forward=transfer.forward)))
        line += [] if transfer.near_receiver else [whole(way.largest_flight_bytes)]
        lines.append(line)
    return "<h3>Subflows</h3>" + table(
        "What each carried in this direction. New: bytes that arrived here first. Packets: with "
        "data. Sent again: retransmissions / reinjections / resends. Delays: least / median / 95th "
        "percentile. Flight: most bytes that were not "
        "acknowledged.",
        heads,
        lines,
    )


def _three(found: Summary | None) -> str:
    if found is None:
        return NOTHING
    return " / ".join(milliseconds(each) for each in (found.min_s, found.median_s, found.p95_s))


def _quality(analysis: CaptureAnalysis) -> str:
    lines = [
        (
            Words(Path(each.file).name),
            whole(each.frames),
            whole(each.tcp_frames),
            whole(each.snap_length_bytes) if each.snap_length_bytes else "whole",
            whole(each.dropped) if each.dropped is not None else "not told",
            whole(each.large_frames),
            whole(each.largest_frame_bytes),
            _clock(each),
            Words(_steps(each)),
            Words("yes" if each.damage else "no"),
        )
        for each in analysis.files
    ]
    parts = [
        '<section aria-labelledby="quality"><h2 id="quality">Data quality</h2><div class="box">',
        table(
            "Files.",
            (
                "file",
                "packets",
                "of TCP",
                "kept of a packet (bytes)",
                "drops",
                "over 1526 bytes",
                "largest (bytes)",
                "clock ticks",
                "steps back",
                "damaged",
            ),
            lines,
        ),
    ]
    said = [f"{whole(analysis.unmapped_bytes)} payload bytes without a data mapping"]
    if any(each.large_frames for each in analysis.files):
        said.append(
            "packets over 1526 bytes were glued together by offloads (GRO, TSO): packets are fewer "
            "than on the wire, their times are those of the whole, one-way delays of pairs may not "
            "match; switch offloads off (ethtool -K IF gro off gso off tso off) to count packets"
        )
    if any(each.dropped is None for each in analysis.files):
        said.append("files without a recorder’s counters do not tell how many packets it dropped")
    for index, place in enumerate(analysis.places):
        files = ", ".join(Path(analysis.files[each].file).name for each in place.files)
        if len(analysis.places) > 1 or len(place.files) > 1:
            said.append(f"place {index + 1}: {files}")
    recorders = {each.recorder for each in analysis.files if each.recorder}
    if recorders:
        said.append(f"recorded by {'; '.join(sorted(recorders))}")
    items = "".join(f"<li>{escaped(each)}</li>" for each in said)
    parts.append(f'<ul class="plain">{items}</ul>')
    interfaces = [(file, each) for file in analysis.files for each in file.interfaces]
    if interfaces:
        parts.append(
            table(
                "TCP packets of each interface, both directions, with headers.",
                ("interface", "file", "packets", "bytes", "mean (Mbit/s)", "peak (Mbit/s)"),
                [
                    (
                        Words(each.name),
                        Words(Path(file.file).name),
                        whole(each.packets),
                        whole(each.wire_bytes),
                        megabits(each.mean_rate_bps),
                        megabits(each.peak_rate_bps),
                    )
                    for file, each in interfaces
                ],
            )
        )
    return "".join(parts) + "</div></section>"


def _clock(each: FileQuality) -> str:
    if each.clock_resolution_s is None:
        return NOTHING
    for unit, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if each.clock_resolution_s >= 0.999 * unit:
            return f"{each.clock_resolution_s / unit:g} {name}"
    return f"{1e9 * each.clock_resolution_s:g} ns"


def _steps(each: FileQuality) -> str:
    if not each.steps_back:
        return "none"
    return f"{whole(each.steps_back)}, up to {milliseconds(each.largest_step_back_s)} ms"


def _definitions(analysis: CaptureAnalysis) -> str:
    words = (
        ("goodput", "data over the time from the first data to the last progress in order"),
        ("stall", "time between two moments in which data became complete from the start"),
        (
            "interruption",
            f"a stall over {analysis.listed_gap_s:g} s; its cause is the first that applies:",
        ),
        ("receiver window", "the receiver advertised a window of no bytes in it"),
        (
            "sender idle",
            "all that was sent was complete, and nothing new was sent for more than half of it "
            "(only a capture near the sender tells)",
        ),
        ("loss recovery", "the data it waited for had to be sent again"),
        ("slow path", "later data arrived; the missing data was sent once, and came later"),
        ("path silent", "data was on its way, and none arrived"),
        ("nothing arrived", "no data arrived, and no capture near the sender tells why"),
        (
            "round-trip time",
            "from data to the acknowledgment of it; data sent twice gives no sample (Karn). Of a "
            "capture near the receiver, and where a subflow has none: from a TCP timestamp to its "
            "first echo, with the time its side had nothing to send",
        ),
        (
            "retransmission",
            "a packet that TCP sent again under the same numbers; at the receiver its first copy "
            "may never have arrived",
        ),
        ("reinjection", "a packet with data that only other subflows had carried"),
        ("resend", "a packet with data that its subflow had carried under other TCP numbers"),
        ("reordering", "RFC 4737, in bytes of the connection: extent in pieces of data"),
    )
    items = "".join(f"<dt>{escaped(word)}</dt><dd>{escaped(said)}</dd>" for word, said in words)
    return f'<section><h2 class="first">Words</h2><dl>{items}</dl></section>'
