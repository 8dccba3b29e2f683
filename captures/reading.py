"""From a capture file to `Packets` and what is known about the recording."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from captures import compiled, headers
from captures.columns import MOST_ROWS_IN_MEMORY, Column
from captures.container import MOST_RECORDS, Batch, Header, Interface, batches
from captures.fragments import Fragments
from captures.headers import KEY_WORDS
from captures.packets import COLUMNS, Flows, Options, Packets, concatenate


@dataclass(frozen=True)
class Capture:
    """A capture file: its TCP packets and what is known about the recording.

    Attributes
    ----------
    path : Path
        The file.
    packets : Packets
        All TCP packets that could be decoded.
    interfaces : tuple of Interface
        With link type, snap length and time resolution.
    frames : int
        All packets in the file, and what else Wireshark gives a number.
    first_ns, last_ns : int or None
        Time of the first and last packet.
    largest_frame_bytes : int
        On the wire.
    large_frames : int
        TCP packets too large for a 1500-byte Ethernet: segmentation offload was on.
    snapped_frames : int
        Packets that were longer than what was kept.
    undecoded : int
        TCP packets whose header was not captured far enough to be used.
    fragments : int
        IP fragments of TCP packets, other than first ones.
    received, dropped : int or None
        The recorder's counters, if it stored them in the file.
    application : str
        The recorder, if it wrote its name.
    damage : str or None
        Why the file ends early; everything before is here.
    remarks : tuple of str
        Whatever else the reader of the results should know.
    """

    path: Path
    packets: Packets
    interfaces: tuple[Interface, ...]
    frames: int
    first_ns: int | None
    last_ns: int | None
    largest_frame_bytes: int
    large_frames: int
    snapped_frames: int
    undecoded: int
    fragments: int
    received: int | None
    dropped: int | None
    application: str
    damage: str | None
    remarks: tuple[str, ...]

    @property
    def damaged(self) -> bool:
        """The file ends early."""
        return self.damage is not None


def read(path: str | PathLike[str], *, progress: Callable[[int], None] | None = None) -> Capture:
    """Read a capture file, as far as it can be read.

    Parameters
    ----------
    path : str or path
        pcap (micro- or nanoseconds, either byte order) or pcapng, as it is or compressed by gzip
        or zstd.
    progress : callable, optional
        Told from time to time how many bytes of the file were read.

    Returns
    -------
    Capture
        `damaged` and `remarks` say what was wrong with the file, if anything. The columns of a
        capture of millions of packets are in temporary files (see `Packets.release`).

    Raises
    ------
    OSError
        If the file cannot be opened or read, or there is no room for temporary files.
    """
    path = Path(path)
    header = Header()
    reader = _Reader(header)
    for batch in batches(path, header, progress):
        reader.take(batch)
    packets = reader.packets()
    return Capture(
        path=path,
        packets=packets,
        interfaces=tuple(header.interfaces),
        frames=reader.count(headers.FRAMES),
        first_ns=reader.count(headers.FIRST_NS) if reader.count(headers.PACKETS) else None,
        last_ns=reader.count(headers.LAST_NS) if reader.count(headers.PACKETS) else None,
        largest_frame_bytes=reader.count(headers.LARGEST),
        large_frames=reader.count(headers.LARGE),
        snapped_frames=reader.count(headers.SNAPPED),
        undecoded=reader.count(headers.UNDECODED),
        fragments=reader.fragments.later,
        received=header.received,
        dropped=header.dropped,
        application=header.application,
        damage=header.first_damage,
        remarks=tuple(header.remarks + reader.remarks()),
    )


_TYPES: dict[str, type[np.generic]] = {
    "time_ns": np.int64,
    "sequence": np.uint32,
    "acknowledgment": np.uint32,
    "flags": np.uint8,
    "time_value": np.int64,
    "time_echo": np.int64,
    "window_scale": np.int8,
    "mptcp": np.int16,
    "dss_flags": np.uint8,
    "data_acknowledgment": np.uint64,
    "data_sequence": np.uint64,
    "subflow_sequence": np.uint32,
}
"""Of columns that are not int32."""


class _Reader:
    """Takes in batches and makes packets of them."""

    def __init__(self, header: Header) -> None:
        self._header = header
        self.fragments = Fragments()
        self._rows = 0
        self._columns = {name: Column(_TYPES.get(name, np.int32)) for name in COLUMNS}
        self._options = [Column(np.int64), Column(np.int64), Column(np.int64), Column(np.uint8)]
        # Room for what `headers.decode` finds in one batch.
        most = headers.MOST_OPTIONS * MOST_RECORDS
        self._values = np.zeros((len(COLUMNS), MOST_RECORDS), dtype=np.int64)
        self._option_table = np.zeros((3, most + 1), dtype=np.int64)
        self._option_bytes = np.zeros(40 * MOST_RECORDS, dtype=np.uint8)
        self._pieces = np.zeros((MOST_RECORDS, headers.FRAGMENT_FIELDS), dtype=np.int64)
        # What it keeps from batch to batch.
        self._tally = np.zeros(headers.COUNTERS, dtype=np.int64)
        self._unknown_link = np.zeros(8, dtype=np.int64)
        self._flow_keys = np.zeros((0, KEY_WORDS), dtype=np.uint32)
        self._slots = np.zeros(0, dtype=np.int32)
        self._key = np.zeros(KEY_WORDS, dtype=np.int64)

    def count(self, what: int) -> int:
        """What was counted so far, see `captures.headers`."""
        return int(self._tally[what])

    def take(self, batch: Batch) -> None:
        """Decode a batch and add its packets."""
        self._make_room(batch.count)
        decode = compiled.fast(headers.decode, batch.done_bytes)
        found = decode(
            batch.data if decode is headers.decode else batch.array,
            batch.records,
            batch.count,
            np.array([each.link_type for each in self._header.interfaces], dtype=np.int64),
            self._values,
            self._option_table,
            self._option_bytes,
            self._pieces,
            self._tally,
            self._unknown_link,
            self._flow_keys,
            self._slots,
            self._key,
        )
        for name, column in self._columns.items():
            column.add(self._values[getattr(headers, name.upper()), :found])
        self._take_options()
        if pieces := self.count(headers.FRAGMENTS):
            self.fragments.add(self._pieces[:pieces], self._rows)
        self._rows += found
        if self._rows > MOST_ROWS_IN_MEMORY:
            for column in self._columns.values():
                column.spill()

    def _take_options(self) -> None:
        count = self.count(headers.OPTIONS)
        if count:
            packet, subtype, start = self._option_table[:, : count + 1]
            data = self._option_bytes[: start[-1]]
            values = (packet[:-1] + self._rows, subtype[:-1], np.diff(start), data)
            for column, value in zip(self._options, values, strict=True):
                column.add(value)

    def _make_room(self, count: int) -> None:
        """For `count` more four-tuples; the hash table stays at most half full."""
        known = self.count(headers.FLOWS)
        if known + count > len(self._flow_keys):
            size = 1 << max(known + count, known * 2).bit_length()
            keys = np.zeros((size, KEY_WORDS), dtype=np.uint32)
            keys[:known] = self._flow_keys[:known]
            self._flow_keys, self._slots = keys, np.full(2 * size, -1, dtype=np.int32)
            place = compiled.fast(headers.place_keys, 100 * known)
            place(keys, known, self._slots, self._key)
        while len(self._header.interfaces) > len(self._unknown_link):
            self._unknown_link = np.concatenate(
                [self._unknown_link, np.zeros_like(self._unknown_link)]
            )

    def packets(self) -> Packets:
        """All of them; the reader is of no use after this."""
        finished = {name: column.finish() for name, column in self._columns.items()}
        columns: dict[str, Any] = {name: array for name, (array, _) in finished.items()}
        rows, missing = self.fragments.completed
        columns["payload_bytes"][rows] += missing.astype(np.int32)
        row, subtype, sizes, data = (column.finish()[0] for column in self._options)
        return Packets(
            **columns,
            options=Options(row, subtype, np.concatenate([[0], np.cumsum(sizes)]), data),
            flows=Flows.from_keys(self._flow_keys[: self.count(headers.FLOWS)]),
            pages=tuple(pages for _, pages in finished.values() if pages is not None),
        )

    def remarks(self) -> list[str]:
        """What there is to say about the packets."""
        by_link: dict[int, int] = {}
        for index, interface in enumerate(self._header.interfaces):
            if index < len(self._unknown_link) and self._unknown_link[index]:
                count = int(self._unknown_link[index])
                by_link[interface.link_type] = by_link.get(interface.link_type, 0) + count
        said = [
            f"{count} packets of link type {link_type}, which is not decoded"
            for link_type, count in sorted(by_link.items())
        ]
        incomplete = self.fragments.incomplete
        sentences = (
            (headers.UNDECODED, "TCP headers were cut off by the snap length"),
            (headers.ENCRYPTED, "wireless frames are encrypted"),
            (
                headers.AGGREGATED,
                "wireless frames hold several packets; only the first was decoded",
            ),
            (headers.TUNNELLED, "TCP packets were in tunnels (the innermost addresses count)"),
            (headers.QUOTED, "TCP headers are quoted in ICMP messages, which do not count"),
            (headers.LARGE, "packets larger than an Ethernet frame: segmentation offload was on"),
        )
        if incomplete:
            said.append(f"{incomplete} fragmented TCP packets are not complete")
        said += [f"{self.count(what)} {text}" for what, text in sentences if self.count(what)]
        return said


def merge(captures: Sequence[Capture]) -> Packets:
    """Packets of several captures of one host, in order of time.

    Parameters
    ----------
    captures : sequence of Capture
        Recorded with the same clock; at least one.

    Returns
    -------
    Packets
        Here `interface` is the position in `captures`; `frame` still counts in the own file.
    """
    parts = [
        replace(each.packets, interface=np.full(len(each.packets), index, dtype=np.int32))
        for index, each in enumerate(captures)
    ]
    together = concatenate(parts)
    if bool((np.diff(together.time_ns) >= 0).all()):
        return together  # without a copy of what may be large
    return together.select(np.argsort(together.time_ns, kind="stable"))
