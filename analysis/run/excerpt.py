"""The few packets around an event, decoded in full by tshark.

Which packets these are is found by our own reader, which also knows what tshark does not: the
subflow's place in its connection, and where a packet's data lies in the connection. tshark (through
pyshark) then decodes exactly those, cut out of the captures with editcap: it takes milliseconds for
each packet, and minutes for a whole capture.
"""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.run.directory import RunDirectory, check_regular, items, mapping, number
from analysis.run.result import HandoverStory
from captures import Capture, Packets, connections, read
from captures.packets import DSS, FIN, RST, SYN, concatenate

I64 = NDArray[np.int64]
Mask = NDArray[np.bool_]

# editcap(1) takes this many selections.
_MOST_PACKETS = 500
_TIMEOUT_S = 120.0
_MEANINGS = {
    "version": "version",
    "sendkey": "sender's key",
    "recvkey": "receiver's key",
    "recvtok": "receiver's token",
    "sendrand": "random",
    "sendtrunchmac": "HMAC",
    "sendhmac": "HMAC",
    "addrid": "address id",
    "ipv4": "address",
    "ipv6": "address",
    "port": "port",
    "echo": "echo",
    "rawdataseqno": "DSN",
    "subflowseqno": "SSN",
    "datalvllen": "length",
    "rawdataack": "data ACK",
    "rst_reason": "reason",
    "backup.flag": "backup",
    "datafin.flag": "DATA_FIN",
}


class ExcerptError(ValueError):
    """What was asked for cannot be shown; the message says why."""


@dataclass(frozen=True)
class Source:
    """A capture to look into.

    Attributes
    ----------
    file : Path
    node, interface : str
        Where it was made; empty if that is not known.
    """

    file: Path
    node: str = ""
    interface: str = ""


@dataclass(frozen=True)
class Moment:
    """What the packets are looked for around.

    Attributes
    ----------
    label : str
        In words.
    from_ns, until_ns : int
        Wall clock between which it happened; equal if that is known exactly.
    at_ns : int
        What times are told relative to.
    user : str
        Whom it is about; empty if it is about nobody or everybody.
    """

    label: str
    from_ns: int
    until_ns: int
    at_ns: int
    user: str = ""


@dataclass(frozen=True)
class DecodedPacket:
    """One packet: where it was seen, and what is in it.

    Attributes
    ----------
    t_s : float
        Relative to the moment, seconds.
    time_ns : int
        Wall clock.
    frame : int
        Number in its file, from 1.
    subflow : str
        Place in its connection: "0" the first, "1" the second; empty if it belongs to none.
    relative_sequence, relative_acknowledgment : int or None
        From the first number seen in each direction of the subflow.
    data_position : int or None
        Of its first byte in the connection's data; ``None`` without data or mapping.
    options : tuple of str
        Those of multipath TCP, in words.
    """

    t_s: float
    time_ns: int
    file: str
    frame: int
    node: str
    interface: str
    source: str
    destination: str
    subflow: str
    flags: str
    sequence: int
    acknowledgment: int
    relative_sequence: int | None
    relative_acknowledgment: int | None
    payload_bytes: int
    data_position: int | None
    options: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class Excerpt:
    """The packets around a moment.

    Attributes
    ----------
    found : int
        Packets in the window; those that are shown may be fewer.
    """

    moment: Moment
    window_s: float
    found: int
    packets: tuple[DecodedPacket, ...]


def sources_of_run(files: RunDirectory) -> list[Source]:
    """Captures of a run, as its plan names them."""
    found = [
        _source(files.path, str(each.get("file", "")), str(each.get("node", "")))
        for each in map(mapping, items(files.plan.get("captures")))
    ]
    if not found:  # a run of an earlier version
        for user, described in mapping(files.plan.get("users")).items():
            for interface in mapping(mapping(described).get("interfaces")).values():
                file = str(mapping(interface).get("capture", ""))
                found.append(_source(files.path, file, str(user)))
        host = mapping(files.plan.get("host"))
        name = str(host.get("name", "host"))
        found += [_source(files.path, str(file), name) for file in items(host.get("captures"))]
    return [each for each in found if each.file.is_file()]


def _source(directory: Path, file: str, node: str) -> Source:
    return Source(directory / file, node, Path(file).name.split(".")[0])


def moment_of_run(
    files: RunDirectory, stories: Sequence[HandoverStory], around: str | None, at_s: float | None
) -> Moment:
    """The moment in a run that somebody asked for.

    Parameters
    ----------
    files : RunDirectory
    stories : sequence of HandoverStory
    around : str or None
        ``KIND:N``, the N-th event of a kind (from 1). Of a handover also ``handover:N:PART`` with
        cause, solve, deployed, old, new, interruption or back.
    at_s : float or None
        Run time instead, seconds.

    Returns
    -------
    Moment

    Raises
    ------
    ExcerptError
        If there is no such event, or nothing ties run time to the clock of the captures.
    """
    states = files.of_kind("state")
    epochs = [each for state in states if (each := number(state.data.get("epoch_s"))) is not None]
    if not epochs:
        raise ExcerptError(
            f"{files.path}: no event of it says when the traffic began (epoch_s), so that run time "
            "and the clock of the captures cannot be brought together; look into a capture alone"
        )
    epoch_ns = round(epochs[0] * 1e9)

    def moment(label: str, at: float, error_s: float = 0.0, user: str = "") -> Moment:
        middle = epoch_ns + round(at * 1e9)
        error_ns = round(error_s * 1e9)
        return Moment(label, middle - error_ns, middle + error_ns, middle, user)

    if at_s is not None:
        return moment(f"run time {at_s:g} s", at_s)
    kind, _, rest = (around or "").partition(":")
    position, _, part = rest.partition(":")
    if not position.isdecimal() or int(position) < 1:
        raise ExcerptError(f"{around!r}: expected KIND:N with N from 1, such as handover:2")
    index = int(position) - 1
    if kind == "handover":
        if index >= len(stories):
            raise ExcerptError(f"{around}: the run has {len(stories)} handovers")
        story = stories[index]
        label = f"handover {story.number} ({story.user} {story.what})"
        if part in ("", "cause"):
            error_s = story.cause_error_s or 0.0
            return moment(f"{label}, cause", story.cause_s, error_s, story.user)
        found = _parts(story)
        if part not in found:
            raise ExcerptError(f"{around}: expected one of cause, {', '.join(found)} after it")
        at = found[part]
        if at is None:
            raise ExcerptError(f"{around}: this handover has no such moment")
        return moment(f"{label}, {part}", at, 0.0, story.user)
    events = files.of_kind(kind)
    if not events:
        kinds = sorted({each.kind for each in files.events})
        raise ExcerptError(f"{around}: the run has no event {kind!r}, only {', '.join(kinds)}")
    if index >= len(events):
        raise ExcerptError(f"{around}: the run has {len(events)} events {kind!r}")
    event = events[index]
    known = mapping(files.plan.get("users"))
    label = f"{kind} {index + 1} ({event.node}) at {event.t_s:.3f} s"
    return moment(label, event.t_s, 0.0, event.node if event.node in known else "")


def _parts(story: HandoverStory) -> dict[str, float | None]:
    return {
        "solve": story.solve_s,
        "deployed": story.deployed_s,
        "old": story.last_on_old_s,
        "new": story.first_on_new_s,
        "interruption": story.interruption.start_s if story.interruption else None,
        "back": story.goodput_back_s,
    }


def moment_of_capture(capture: Capture, at_s: float) -> Moment:
    """A time in a capture: seconds from its first packet, or of the epoch.

    Raises
    ------
    ExcerptError
        If the capture is empty.
    """
    if capture.first_ns is None:
        raise ExcerptError(f"{capture.path}: there is no packet in it")
    # Nobody records for thirty years.
    at_ns = round(at_s * 1e9) + (0 if at_s > 1e9 else capture.first_ns)
    return Moment(f"{at_s:g} s", at_ns, at_ns, at_ns)


def excerpt(
    sources: Sequence[Source],
    moment: Moment,
    *,
    window_s: float = 0.5,
    limit: int = 200,
    port: int | None = None,
) -> Excerpt:
    """Decode the packets around a moment.

    Parameters
    ----------
    sources : sequence of Source
    moment : Moment
    window_s : float
        How far before and after it, seconds.
    limit : int
        At most so many packets (500 at most). Where there are more, those that open, join, change
        or end something are kept first, then those nearest to the moment.
    port : int, optional
        Only packets from or to this TCP port.

    Returns
    -------
    Excerpt
        Packets in order of time.

    Raises
    ------
    ExcerptError
        If tshark or editcap is missing or fails, or nothing can be read.
    """
    for program in ("tshark", "editcap"):
        if shutil.which(program) is None:
            raise ExcerptError(
                f"{program} is not installed, and it decodes the packets: install Debian's and "
                "Ubuntu's package tshark (editcap is in wireshark-common)"
            )
    if not 1 <= limit <= _MOST_PACKETS:
        raise ExcerptError(f"limit: expected 1 to {_MOST_PACKETS} packets, got {limit}")
    low_ns = moment.from_ns - round(window_s * 1e9)
    high_ns = moment.until_ns + round(window_s * 1e9)
    found: list[_InFile] = []
    for source in sources:
        try:
            check_regular(source.file)
            packets = read(source.file).packets
        except (OSError, ValueError) as error:
            problem = getattr(error, "strerror", None) or error
            raise ExcerptError(f"{source.file}: {problem}") from error
        here = (packets.time_ns >= low_ns) & (packets.time_ns <= high_ns)
        if port is not None:
            here &= (packets.source_port == port) | (packets.destination_port == port)
        inside = np.flatnonzero(here)
        found.append(_InFile(source, packets, inside))
    chosen = _nearest(found, moment, limit)
    known = _known(found, chosen)
    decoded = [
        packet
        for index, (each, rows) in enumerate(zip(found, chosen, strict=True))
        if len(rows)
        for packet in _decode(each, rows, moment, index, known)
    ]
    decoded.sort(key=lambda packet: packet.time_ns)
    return Excerpt(moment, window_s, sum(len(each.rows) for each in found), tuple(decoded))


@dataclass(frozen=True)
class _InFile:
    """Packets of one file that lie in the window."""

    source: Source
    packets: Packets
    rows: I64


def _nearest(found: Sequence[_InFile], moment: Moment, limit: int) -> list[I64]:
    """Of each file, the rows to show."""
    if not found:
        return []
    times = np.concatenate([each.packets.time_ns[each.rows] for each in found])
    owner = np.repeat(np.arange(len(found)), [len(each.rows) for each in found])
    telling = np.concatenate([_telling(each.packets, each.rows) for each in found])
    order = np.lexsort((np.abs(times - moment.at_ns), ~telling))[:limit]
    rows = np.concatenate([each.rows for each in found])
    return [np.sort(rows[order[owner[order] == index]]) for index in range(len(found))]


def _telling(packets: Packets, rows: I64) -> Mask:
    """Packets that open, join, change or end something."""
    other_options = packets.mptcp[rows].astype(np.int64) & ~(1 << DSS)
    told: Mask = (packets.flags[rows] & (SYN | FIN | RST) != 0) | (other_options != 0)
    return told


_End = tuple[str, int]
_Pair = tuple[_End, _End]


def _pair(packets: Packets, row: int) -> _Pair:
    """Source and destination of a packet."""
    return (
        (packets.source(row), int(packets.source_port[row])),
        (packets.destination(row), int(packets.destination_port[row])),
    )


@dataclass(frozen=True)
class _Known:
    """What our reader knows of packets in several files.

    Attributes
    ----------
    numbers : dict of str
        Of each subflow in its connection, by its ends, in either direction.
    positions : dict of int
        Of a packet's data in its connection, by file and row.
    """

    numbers: dict[_Pair, str]
    positions: dict[tuple[int, int], int]


def _known(found: Sequence[_InFile], chosen: Sequence[I64]) -> _Known:
    """Subflows are numbered over all captures of a node: they use several interfaces."""
    numbers: dict[_Pair, str] = {}
    positions: dict[tuple[int, int], int] = {}
    nodes: dict[str, list[int]] = {}
    for index, each in enumerate(found):
        nodes.setdefault(each.source.node or str(each.source.file), []).append(index)
    for members in nodes.values():
        if not any(len(chosen[index]) for index in members):
            continue
        parts = [
            replace(
                found[index].packets,
                interface=np.full(len(found[index].packets), index, dtype=np.int32),
                # Where a row came from, through the order of time.
                frame=np.arange(len(found[index].packets), dtype=np.int32),
            )
            for index in members
        ]
        together = concatenate(parts)
        together = together.select(np.argsort(together.time_ns, kind="stable"))
        wanted = np.zeros(len(together), dtype=np.bool_)
        for index in members:
            wanted |= (together.interface == index) & np.isin(together.frame, chosen[index])
        rows = np.flatnonzero(wanted)
        pairs = {_pair(together, row) for row in rows.tolist()}
        for connection in connections(together):
            mine: dict[_Pair, str] = {}
            for place, subflow in enumerate(connection.subflows):
                client = (subflow.client.address, subflow.client.port)
                server = (subflow.server.address, subflow.server.port)
                mine |= {(client, server): str(place), (server, client): str(place)}
            if not pairs & mine.keys():
                continue
            numbers |= mine
            for flow in (connection.forward, connection.backward):
                here = np.isin(flow.row, rows)
                # Of a packet in two pieces the first one counts.
                for row, position in zip(flow.row[here], flow.position[here], strict=True):
                    key = (int(together.interface[row]), int(together.frame[row]))
                    positions.setdefault(key, int(position))
    return _Known(numbers, positions)


def _decode(
    found: _InFile, rows: I64, moment: Moment, index: int, known: _Known
) -> Iterable[DecodedPacket]:
    packets = found.packets
    flows, firsts = np.unique(packets.flow, return_index=True)
    pairs = {
        flow: _pair(packets, row) for flow, row in zip(flows.tolist(), firsts.tolist(), strict=True)
    }
    initial = {
        pairs[flow]: int(packets.sequence[row])
        for flow, row in zip(flows.tolist(), firsts.tolist(), strict=True)
    }
    with tempfile.TemporaryDirectory(prefix="tactical-inspect-") as directory:
        cut = Path(directory) / "cut.pcapng"
        _cut(found.source.file, packets.frame[rows].tolist(), cut)
        layers = _dissected(cut)
    if len(layers) != len(rows):
        raise ExcerptError(
            f"{found.source.file}: tshark decoded {len(layers)} of {len(rows)} packets"
        )
    for row, told in zip(rows.tolist(), layers, strict=True):
        here, there = pairs[int(packets.flow[row])]
        sequence, acknowledgment = int(packets.sequence[row]), int(packets.acknowledgment[row])
        back = initial.get((there, here))
        yield DecodedPacket(
            t_s=(int(packets.time_ns[row]) - moment.at_ns) / 1e9,
            time_ns=int(packets.time_ns[row]),
            file=str(found.source.file),
            frame=int(packets.frame[row]),
            node=found.source.node,
            interface=found.source.interface,
            source=_text(here),
            destination=_text(there),
            subflow=known.numbers.get((here, there), ""),
            flags=told.flags,
            sequence=sequence,
            acknowledgment=acknowledgment,
            relative_sequence=(sequence - initial[here, there]) % 2**32,
            relative_acknowledgment=None if back is None else (acknowledgment - back) % 2**32,
            payload_bytes=int(packets.payload_bytes[row]),
            data_position=known.positions.get((index, row)),
            options=told.options,
        )


def _text(end: _End) -> str:
    address, port = end
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _cut(file: Path, frames: Sequence[int], target: Path) -> None:
    """Copy some packets of a capture into a file of their own."""
    argv = ["editcap", "-r", str(file), str(target), *map(str, frames)]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ExcerptError(f"editcap cannot cut {file}: {error}") from error
    # A capture that ends in the middle of a packet gives what is before, and status 2.
    if not target.exists() or target.stat().st_size == 0:
        said = " ".join(done.stderr.split()) or f"status {done.returncode}"
        raise ExcerptError(f"editcap cannot cut {file}: {said}")


@dataclass(frozen=True)
class _Told:
    """What tshark says about a packet."""

    flags: str
    options: tuple[str, ...]


def _dissected(file: Path) -> list[_Told]:
    """Decode every packet of a small file.

    tshark's answer is read at once and given to pyshark packet by packet: its own reader has an
    event loop, which clashes with that of a notebook, and now and then loses a process that ends
    quickly.
    """
    from pyshark.tshark.output_parser.tshark_xml import packet_from_xml_packet

    # Numbers as they are in the packets; ours are added later.
    argv = ["tshark", "-n", "-T", "pdml", "-r", str(file), "-o", "mptcp.analyze_mappings:FALSE"]
    try:
        done = subprocess.run(argv, capture_output=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ExcerptError(f"tshark cannot decode {file.name}: {error}") from error
    if done.returncode:
        said = " ".join(done.stderr.decode(errors="replace").split())
        raise ExcerptError(f"tshark cannot decode {file.name}: {said}")
    found = re.findall(rb"<packet>.*?</packet>", done.stdout, re.DOTALL)
    return [_told(packet_from_xml_packet(each)) for each in found]


def _told(packet: Any) -> _Told:
    if "TCP" not in packet:
        return _Told("", ())
    layer = packet.tcp
    flags = str(layer.get_field("flags").showname)
    words = flags.partition("(")[2].partition(")")[0] if "(" in flags else flags
    return _Told(words.replace(", ", " "), tuple(_options(layer)))


def _options(layer: Any) -> Iterable[str]:
    """MPTCP options of a packet in words: all in one line, as tshark does not keep them apart."""
    subtypes = layer.get_field("tcp.options.mptcp.subtype")
    if subtypes is None:
        return
    names = [
        str(each.showname).partition(":")[2].rpartition("(")[0].strip() or str(each.showname)
        for each in subtypes.all_fields
    ]
    told: list[str] = []
    for key, meaning in _MEANINGS.items():
        value = layer.get_field(f"tcp.options.mptcp.{key}")
        for each in value.all_fields if value is not None else ():
            if key.endswith(".flag"):
                told += [meaning] * (str(each.show) in ("1", "True"))
            elif f"{meaning} {each.show}" not in told:
                told.append(f"{meaning} {each.show}")
    yield f"{' + '.join(names)}: {', '.join(told)}" if told else " + ".join(names)
