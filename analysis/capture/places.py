"""Where captures were taken: files of one host are read as one, two hosts become a pair.

Nothing but the packets is asked. Two files that hold the same packet were taken at two places; two
that hold different packets of one connection (its subflows over two interfaces, the pieces of a
ring buffer) at one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.capture.clock import ClockRelation, Crossings, relate
from analysis.transfer.direction import Direction, StreamKey, directions, streams_by_key
from analysis.transfer.roundtrip import from_timestamps
from captures import (
    Capture,
    Connection,
    Endpoint,
    Packets,
    Stream,
    connections,
    each_connection,
    merge,
    one_way_delays,
)
from captures.columns import Column
from captures.packets import ACK, COLUMNS, SYN

I64 = NDArray[np.int64]

CLIENT, SERVER, BETWEEN = "client", "server", "between"

_SORTED_AT_ONCE = 1_000_000
_COMPARED_PACKETS = 50_000
_COMPARED_STREAMS = 3
# A capture is at an end if less than this part of the round trip lies on that side.
_NEAR = 0.15
# Below this a round trip is scheduling, not distance.
_SHORTEST_ROUND_TRIP_S = 200e-6


class PlacesError(ValueError):
    """The files cannot be told apart into one or two places."""


@dataclass(frozen=True)
class Place:
    """Captures taken at one place, read as one.

    Attributes
    ----------
    files : tuple of int
        Which of the given captures.
    captures : tuple of Capture
    packets : Packets
        In order of time; `interface` counts the captures if there are several.
    streams : dict
        From `streams_by_key`.
    """

    files: tuple[int, ...]
    captures: tuple[Capture, ...]
    packets: Packets
    streams: dict[StreamKey, Stream]

    @cached_property
    def connections(self) -> tuple[Connection, ...]:
        """All connections, which are kept: see `each_connection`."""
        found = connections(self.packets)
        self.packets.release()
        return found

    def each_connection(self) -> Iterator[Connection]:
        """The same one by one, none of which is kept: all of a large capture may not fit."""
        kept = self.__dict__.get("connections")
        return iter(kept) if kept is not None else each_connection(self.packets)

    def directions(self, connection: Connection) -> tuple[Direction, Direction]:
        """Both directions of one of the connections."""
        return directions(self.packets, connection, self.streams)


@dataclass(frozen=True)
class Group:
    """Captures of the same traffic.

    Attributes
    ----------
    places : tuple of Place
        One, or two: the one nearer to the clients first.
    clock : ClockRelation or None
        Of the second place's clock to the first's; times of `places` are already corrected.
    sent_row, received_row : int64 array
        Packets seen at both: positions in the first and in the second place.
    ambiguous_row : int64 array
        Positions in the first place of packets that cannot be told apart from copies.
    """

    places: tuple[Place, ...]
    clock: ClockRelation | None
    sent_row: I64
    received_row: I64
    ambiguous_row: I64


def place(files: Sequence[int], captures: Sequence[Capture]) -> Place:
    """Read captures of one place as one."""
    packets = captures[0].packets if len(captures) == 1 else merge(list(captures))
    if len(packets) and (np.diff(packets.time_ns) < 0).any():
        packets = _in_order_of_time(packets)
    return _place(tuple(files), tuple(captures), packets)


def _in_order_of_time(packets: Packets) -> Packets:
    order = np.argsort(packets.time_ns, kind="stable")
    if not packets.pages:
        return packets.select(order)
    # What came from files because of its size goes to files.
    finished = {}
    for name in COLUMNS:
        values = getattr(packets, name)
        column = Column(values.dtype)
        column.spill()
        for begin in range(0, len(order), _SORTED_AT_ONCE):
            column.add(values[order[begin : begin + _SORTED_AT_ONCE]])
        finished[name] = column.finish()
        packets.release()
    columns: dict[str, Any] = {name: values for name, (values, _) in finished.items()}
    return Packets(
        **columns,
        options=packets.options.select(order),
        flows=packets.flows,
        pages=tuple(pages for _, pages in finished.values() if pages is not None),
    )


def _place(files: tuple[int, ...], captures: tuple[Capture, ...], packets: Packets) -> Place:
    by_key = streams_by_key(packets)
    packets.release()
    return Place(files, captures, packets, by_key)


def groups(captures: Sequence[Capture], *, same_clock: bool | None = None) -> list[Group]:
    """Sort captures into groups of the same traffic, each with one or two places.

    Parameters
    ----------
    captures : sequence of Capture
    same_clock : bool or None
        Whether two places share a clock; ``None`` takes them to as long as no packet contradicts.

    Returns
    -------
    list of Group
        In order of their first files.

    Raises
    ------
    PlacesError
        If the same packets are in files of more than two places.
    """
    single = [place([index], [each]) for index, each in enumerate(captures)]
    if len(single) == 1:
        return [_alone(single[0])]
    same_traffic, elsewhere = _links(single)
    found: list[Group] = []
    for members in _components(len(single), same_traffic | elsewhere):
        sides = _sides(members, elsewhere, single)
        together = [
            single[side[0]] if len(side) == 1 else place(side, [captures[each] for each in side])
            for side in sides
        ]
        found.append(_alone(together[0]) if len(together) == 1 else _pair(together, same_clock))
    return found


def _alone(only: Place) -> Group:
    none = np.zeros(0, dtype=np.int64)
    return Group((only,), None, none, none, none)


Pairs = set[tuple[int, int]]
_Key = frozenset[Endpoint]


def _links(single: list[Place]) -> tuple[Pairs, Pairs]:
    """Pairs of files of the same traffic, and those of them that hold the same packets."""
    ends = [_streams_by_ends(each) for each in single]
    tokens = [
        {
            token
            for connection in each.connections
            for token in (connection.client_token, connection.server_token)
            if token is not None
        }
        for each in single
    ]
    same_traffic: Pairs = set()
    elsewhere: Pairs = set()
    for a, b in combinations(range(len(single)), 2):
        shared = ends[a].keys() & ends[b].keys()
        if shared and _same_packets(single[a], single[b], shared, ends[a], ends[b]):
            elsewhere.add((a, b))
        elif shared or tokens[a] & tokens[b]:
            same_traffic.add((a, b))
    return same_traffic, elsewhere


def _streams_by_ends(one: Place) -> dict[_Key, list[Stream]]:
    found: dict[_Key, list[Stream]] = {}
    for stream in one.streams.values():
        found.setdefault(frozenset((stream.client, stream.server)), []).append(stream)
    return found


def _same_packets(
    a: Place,
    b: Place,
    shared: "set[_Key]",
    of_a: dict[_Key, list[Stream]],
    of_b: dict[_Key, list[Stream]],
) -> bool:
    def rows(one: Place, streams: list[Stream]) -> I64:
        halves = [
            stream.half(one.packets, forward=forward).rows
            for stream in streams
            for forward in (True, False)
        ]
        return np.sort(np.concatenate(halves))[:_COMPARED_PACKETS]

    chosen = [(rows(a, of_a[ends]), rows(b, of_b[ends])) for ends in shared]
    chosen.sort(key=lambda each: -min(len(each[0]), len(each[1])))
    for here, there in chosen[:_COMPARED_STREAMS]:
        matched = one_way_delays(a.packets.select(here), b.packets.select(there), data_only=False)
        if len(matched.sent_row) > 0.05 * min(len(here), len(there)):
            return True
    return False


def _components(count: int, links: Pairs) -> list[list[int]]:
    label = list(range(count))
    for a, b in sorted(links):
        old, new = max(label[a], label[b]), min(label[a], label[b])
        label = [new if each == old else each for each in label]
    return [
        [index for index, each in enumerate(label) if each == first]
        for first in dict.fromkeys(label)
    ]


def _sides(members: list[int], elsewhere: Pairs, single: list[Place]) -> list[list[int]]:
    """The members of each place, the one nearer to the clients first."""
    neighbours = {
        each: [b if a == each else a for a, b in elsewhere if each in (a, b)] for each in members
    }
    if not any(neighbours.values()):
        return [members]
    side: dict[int, int] = {}
    for first in sorted(members, key=lambda each: -len(neighbours[each])):
        if first not in side:
            tree = _two_colours(first, neighbours, single)
            leans = [
                np.mean([_lean(single[each]) for each in tree if tree[each] == colour])
                for colour in (0, 1)
            ]
            # Whoever is nearer to the clients counts as the first place.
            turned = int(leans[1] > leans[0])
            side |= {each: colour ^ turned for each, colour in tree.items()}
    return [[each for each in members if side[each] == number] for number in (0, 1)]


def _two_colours(
    first: int, neighbours: dict[int, list[int]], single: list[Place]
) -> dict[int, int]:
    colours = {first: 0}
    waiting = [first]
    while waiting:
        here = waiting.pop()
        for other in neighbours[here]:
            if other not in colours:
                colours[other] = 1 - colours[here]
                waiting.append(other)
            elif colours[other] == colours[here]:
                names = ", ".join(str(single[each].captures[0].path) for each in sorted(colours))
                raise PlacesError(
                    f"{names} hold the same packets, taken at more than two places: "
                    "give the files of two"
                )
    return colours


def _lean(one: Place) -> float:
    """From -1, next to the servers, to 1, next to the clients: the mean of the connections."""
    found = [
        (to_server_s - to_client_s) / (to_server_s + to_client_s)
        for to_client_s, to_server_s in filter(
            None, (nearness(one, connection) for connection in one.connections)
        )
        if to_server_s + to_client_s > 0
    ]
    return sum(found) / len(found) if found else 0.0


def nearness(one: Place, connection: Connection) -> tuple[float, float] | None:
    """Shortest round trips from the place of a capture to both ends of a connection.

    Parameters
    ----------
    one : Place
    connection : Connection
        One of its connections.

    Returns
    -------
    to_client_s, to_server_s : float
        From the handshakes of the subflows, else from TCP timestamps; ``None`` if one of the two
        cannot be measured.
    """
    packets = one.packets
    to_client: list[float] = []
    to_server: list[float] = []
    forward, backward = one.directions(connection)
    for there, back in zip(forward.subflows, backward.subflows, strict=True):
        for rows, opposite, found in (
            (there.rows, back.rows, to_server),
            (back.rows, there.rows, to_client),
        ):
            answers = from_timestamps(
                packets.time_ns[rows],
                packets.time_value[rows],
                packets.time_ns[opposite],
                packets.time_echo[opposite],
            )
            found += [float(answers.rtt_s.min())] if len(answers.rtt_s) else []
            shake = _handshake(packets, rows, opposite)
            found += [shake] if shake is not None else []
    if not to_client or not to_server:
        return None
    return min(to_client), min(to_server)


def _handshake(packets: Packets, rows: I64, opposite: I64) -> float | None:
    """From a SYN, with or without ACK, to what answers it."""
    opening = rows[packets.flags[rows] & SYN != 0]
    if len(opening) != 1:
        return None
    wanted = (int(packets.sequence[opening[0]]) + 1) & 0xFFFFFFFF
    answers = opposite[
        (packets.flags[opposite] & ACK != 0) & (packets.acknowledgment[opposite] == wanted)
    ]
    if not len(answers):
        return None
    return max(int(packets.time_ns[answers[0]] - packets.time_ns[opening[0]]), 0) / 1e9


def position(near: tuple[float, float] | None) -> str | None:
    """Where a capture lies on a connection: `CLIENT`, `SERVER`, `BETWEEN`, or not known.

    Parameters
    ----------
    near : (float, float) or None
        From `nearness`.

    Returns
    -------
    str or None
    """
    if near is None or sum(near) < _SHORTEST_ROUND_TRIP_S:
        return None
    share = near[0] / sum(near)
    return CLIENT if share < _NEAR else SERVER if share > 1 - _NEAR else BETWEEN


def _pair(together: list[Place], same_clock: bool | None) -> Group:
    first, second = together
    matched = one_way_delays(first.packets, second.packets, data_only=False)
    there, back = _crossings(first, second, matched.sent_row, matched.received_row)
    relation = relate(
        there,
        back,
        tolerance_s=_resolution_s(together),
        apply=None if same_clock is None else not same_clock,
    )
    if relation is not None and relation.applied:
        corrected = replace(second.packets, time_ns=relation.to_first(second.packets.time_ns))
        second = _place(second.files, second.captures, corrected)
    return Group(
        (first, second), relation, matched.sent_row, matched.received_row, matched.ambiguous_row
    )


def _crossings(
    first: Place, second: Place, here: I64, there: I64
) -> tuple[list[Crossings], list[Crossings]]:
    """What crossed from the first place to the second and back, for each subflow."""
    counterpart = np.full(len(first.packets), -1, dtype=np.int64)
    counterpart[here] = there
    onwards: list[Crossings] = []
    back: list[Crossings] = []
    for connection in first.connections:
        forward, _ = first.directions(connection)
        for sent in forward.subflows:
            for rows, found, out in ((sent.rows, onwards, True), (sent.opposite_rows, back, False)):
                own = rows[counterpart[rows] >= 0]
                stamps = (
                    first.packets.time_ns[own],
                    second.packets.time_ns[counterpart[own]],
                )
                found.append(Crossings(*(stamps if out else stamps[::-1])))
    return onwards, back


def _resolution_s(together: Sequence[Place]) -> float:
    ticks = [
        interface.ticks_per_second
        for each in together
        for capture in each.captures
        for interface in capture.interfaces
    ]
    return max((1 / each for each in ticks if each > 0), default=0.0)
