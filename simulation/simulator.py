"""A simulation that can be run piece by piece and looked at in between."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulation import compilation, engine, state
from simulation.congestion import ALGORITHMS, VEGAS_LEAST
from simulation.draws import M1, M2
from simulation.engine import ACKNOWLEDGMENT, DATA, UNRESPONSIVE
from simulation.network import Connection, Link, Source
from simulation.queueing import RING_FULL
from simulation.scheduling import SCHEDULERS
from simulation.transport import RTO_FIRST_S

ENDLESS = 1 << 60
_RING, _SLACK = 256, 8
_PIECE_EVENTS = 400_000
_PLAIN_PIECE_EVENTS = 20_000
"""Events between two looks at progress, compiled and not; some tenths of a second."""


class SimulationError(RuntimeError):
    """A limit of the simulation was hit; its result would be wrong."""


@dataclass(frozen=True)
class Counters:
    """What has happened so far.

    Attributes
    ----------
    time_s : float
        Simulated time.
    hops : int
        Packets that have passed a link, each link counted.
    delivered_packets : array
        For each connection: data that have arrived in order on their subflow.
    subflow_packets : list of arrays
        The same for each subflow of each connection.
    retransmitted, recoveries, timeouts, limited : array
        For each connection: packets sent again, fast recoveries, retransmission timeouts, and
        times that the receive window held a subflow back.
    unsent_packets : array
        For each connection: what its application has written and no subflow has taken.
    done_s : array
        When transfers were complete; infinite for those that are not.
    link_packets : array
        For each link: packets that it has taken.
    link_drops : array
        Packets that found the buffer full, or nearly.
    link_losses : array
        Packets lost at random.
    source_packets : array
        For each source: packets that have arrived.
    """

    time_s: float
    hops: int
    delivered_packets: NDArray[np.int64]
    subflow_packets: list[NDArray[np.int64]]
    retransmitted: NDArray[np.int64]
    recoveries: NDArray[np.int64]
    timeouts: NDArray[np.int64]
    limited: NDArray[np.int64]
    unsent_packets: NDArray[np.int64]
    done_s: NDArray[np.float64]
    link_packets: NDArray[np.int64]
    link_drops: NDArray[np.int64]
    link_losses: NDArray[np.int64]
    source_packets: NDArray[np.int64]


class Simulation:
    """Links, connections and sources, at some moment.

    Equal arguments give equal results to the last bit, on every machine and however the time is cut
    into calls of `run`.

    Parameters
    ----------
    links, connections, sources : sequence
        What is simulated. Paths name links by their index.
    seed : int
        Of random losses, drops and bursts.
    compiled : bool, optional
        Whether to compile; by default, if there is Numba. The result is the same.

    Raises
    ------
    ValueError
        If a path names a link that is not there, or Numba is to compile and cannot be used.
    """

    def __init__(
        self,
        links: Sequence[Link],
        connections: Sequence[Connection],
        sources: Sequence[Source] = (),
        seed: int = 1,
        compiled: bool | None = None,
    ) -> None:
        self._compiled = compilation.available() if compiled is None else compiled
        if self._compiled and not compilation.available():
            raise ValueError("compiled is True; Numba is not installed, or switched off")
        self._links = list(links)
        self._given = connections
        steps = _Steps(len(links))
        clock = state.zeros(state.CLOCK, 1)
        first, second = np.random.SeedSequence(seed).generate_state(2)
        clock["seed1"], clock["seed2"] = 1 + first % (M1 - 1), 1 + second % (M2 - 1)
        self._fill_connections(connections, steps)
        self._sources = state.zeros(state.SOURCE, len(sources))
        for i, source in enumerate(sources):
            bits = 8.0 * source.packet_bytes
            self._sources[i]["forward"] = steps.add(source.links, bits, i, UNRESPONSIVE)
            self._sources[i]["interval_s"] = bits / source.rate_bps
            self._sources[i]["on_s"] = source.on_s
            self._sources[i]["off_s"] = source.off_s
            self._sources[i]["poisson"] = source.poisson
        self._steps = steps.records()
        self._fill_links(links, min(steps.bits, default=1.0))
        self._fill_timers(clock, sources)
        self._heap = state.zeros(state.HEAP, max(len(links), 1))
        self._seen: Any = np.zeros(int(self._subflows["limit"].sum()), np.int8)
        self._clock = clock
        if not self._compiled:
            for name in _RECORDS:
                setattr(self, name, state.as_objects(getattr(self, name)))
            self._seen = self._seen.tolist()

    def _fill_connections(self, connections: Sequence[Connection], steps: "_Steps") -> None:
        self._connections = state.zeros(state.CONNECTION, len(connections))
        count = sum(len(connection.paths) for connection in connections)
        self._subflows = state.zeros(state.SUBFLOW, count)
        self._windows = state.zeros(state.WINDOW, count)
        s = seen = 0
        for c, connection in enumerate(connections):
            record = self._connections[c]
            packets = ENDLESS if connection.packets is None else connection.packets
            record["first"], record["last"] = s, s + len(connection.paths)
            record["algorithm"] = ALGORITHMS[connection.algorithm]
            record["undelivered"] = packets
            written = connection.rate_bps == math.inf
            record["unsent" if written else "unwritten"] = packets
            record["interval_s"] = 8.0 * connection.packet_bytes / connection.rate_bps
            record["scheduler"] = SCHEDULERS[connection.scheduler]
            record["done_s"] = math.inf
            for path in connection.paths:
                own, window = self._subflows[s], self._windows[s]
                own["connection"] = c
                own["forward"] = steps.add(path.links, 8.0 * connection.packet_bytes, s, DATA)
                own["back"] = (
                    steps.add(path.back, 8.0 * connection.acknowledgment_bytes, s, ACKNOWLEDGMENT)
                    if path.back
                    else -1
                )
                own["ssthresh"] = own["expires_s"] = math.inf
                own["rto_s"] = RTO_FIRST_S
                own["rto_min_s"] = connection.rto_min_s
                own["limit"] = connection.receive_window_packets
                own["seen"] = seen
                window["w"] = connection.initial_window_packets
                window["epoch_s"] = -1.0
                window["target"] = VEGAS_LEAST
                window["queueing_s"] = math.inf
                seen += connection.receive_window_packets
                s += 1

    def _fill_links(self, links: Sequence[Link], least_bits: float) -> None:
        self._link_records = state.zeros(state.LINK, len(links))
        begin = 0
        for i, link in enumerate(links):
            size = _RING
            if link.buffer_packets is not None and link.rate_bps < math.inf:
                under_way = link.delay_s * link.rate_bps / least_bits
                size = _SLACK + 2 * (link.buffer_packets + int(min(under_way, 1e4)))
            size = 1 << (size - 1).bit_length()
            record = self._link_records[i]
            record["s_per_bit"] = 1.0 / link.rate_bps
            record["delay_s"], record["loss"] = link.delay_s, link.loss
            buffer = -1 if link.buffer_packets is None else link.buffer_packets
            record["buffer"], record["early"] = buffer, buffer - link.early_drop_packets
            places = max(link.early_drop_packets, 1)
            record["early_drop"] = link.early_drop_probability / places
            record["ring"], record["mask"] = begin, size - 1
            begin += size
        self._ring = state.zeros(state.PACKET, begin)

    def _fill_timers(self, clock: Any, sources: Sequence[Source]) -> None:
        starts = [self._given[c].start_s for c in self._subflows["connection"]]
        starts += [source.start_s for source in sources]
        # Applications start after the subflows of their connection.
        running = list(range(len(starts)))
        starts += [connection.start_s for connection in self._given]
        running += [
            len(running) + c
            for c, connection in enumerate(self._given)
            if connection.rate_bps < math.inf
        ]
        self._timers = state.zeros(state.TIMER, len(starts))
        self._timers["place"] = -1
        # A sorted list is a heap.
        for row, who in enumerate(sorted(running, key=starts.__getitem__)):
            self._timers[row]["at_s"], self._timers[row]["who"] = starts[who], who
            self._timers[who]["place"] = row
        clock["timers"] = len(running)

    @property
    def time_s(self) -> float:
        """Simulated time."""
        return float(self._clock[0]["now_s"] if self._compiled else self._clock[0].now_s)

    def run(self, until_s: float, progress: Callable[[float], None] | None = None) -> None:
        """Simulate until a time.

        Parameters
        ----------
        until_s : float
            Nothing happens if this time has passed.
        progress : callable, optional
            Gets the simulated time every now and then.

        Raises
        ------
        SimulationError
            If a limit was hit.
        """
        loop = compilation.advance() if self._compiled else engine.advance
        # Nothing but the time of the next look depends on it.
        piece = _PIECE_EVENTS if self._compiled else _PLAIN_PIECE_EVENTS
        while True:
            more = loop(
                float(until_s), piece, self._clock, self._heap, self._timers, self._link_records,
                self._ring, self._steps, self._subflows, self._windows, self._connections,
                self._sources, self._seen,
            )  # fmt: skip
            clock = self._clock[0]
            fault, who, crowded = (
                (clock["fault"], clock["faulty"], clock["crowded"])
                if self._compiled
                else (clock.fault, clock.faulty, clock.crowded)
            )
            if fault:
                raise SimulationError(
                    f"link {who} has more packets on it than its ring holds"
                    if fault == RING_FULL
                    else f"subflow {who} got a packet beyond its receive window"
                )
            if crowded:
                self._grow()
            elif not more:
                return
            if progress is not None:
                progress(min(self.time_s, until_s))

    def _grow(self) -> None:
        """Double the rings that are half full."""
        plain = not self._compiled
        links = state.as_records(self._link_records, state.LINK) if plain else self._link_records
        ring = state.as_records(self._ring, state.PACKET) if plain else self._ring
        old = links.copy()
        sizes = np.where(2 * (old["tail"] - old["head"]) > old["mask"], 2, 1) * (old["mask"] + 1)
        links["mask"] = sizes - 1
        links["ring"] = np.cumsum(sizes) - sizes
        grown = state.zeros(state.PACKET, int(sizes.sum()))
        for before, after in zip(old, links, strict=True):
            on_link = np.arange(before["head"], before["tail"])
            grown[after["ring"] + (on_link & after["mask"])] = ring[
                before["ring"] + (on_link & before["mask"])
            ]
        if plain:
            self._link_records, self._ring = state.as_objects(links), state.as_objects(grown)
            self._clock[0].crowded = 0
        else:
            self._ring = grown
            self._clock["crowded"] = 0

    def change(
        self, link: int, *, rate_bps: float | None = None, loss: float | None = None
    ) -> None:
        """Give a link another rate, or another probability of loss, from now on.

        Packets that wait already leave when they would have. With a loss of 1 the link is down.

        Parameters
        ----------
        link : int
            Its index.
        rate_bps, loss : float, optional
            New values, as for `Link`.

        Raises
        ------
        ValueError
            If there is no such link, or a value is out of its range.
        """
        if not 0 <= link < len(self._links):
            raise ValueError(f"there is no link {link}; there are 0 to {len(self._links) - 1}")
        now = self._links[link]
        now = replace(
            now,
            rate_bps=now.rate_bps if rate_bps is None else rate_bps,
            loss=now.loss if loss is None else loss,
        )
        self._links[link] = now
        if self._compiled:
            self._link_records[link]["s_per_bit"] = 1.0 / now.rate_bps
            self._link_records[link]["loss"] = now.loss
        else:
            self._link_records[link].s_per_bit = 1.0 / now.rate_bps
            self._link_records[link].loss = now.loss

    def counters(self) -> Counters:
        """Return what has happened so far."""
        clock = self._table("_clock", state.CLOCK)[0]
        links = self._table("_link_records", state.LINK)
        subflows = self._table("_subflows", state.SUBFLOW)
        connections = self._table("_connections", state.CONNECTION)

        def each(name: str) -> NDArray[np.int64]:
            sums = [
                subflows[name][own["first"] : own["last"]].sum(dtype=np.int64)
                for own in connections
            ]
            return np.array(sums, np.int64)

        return Counters(
            time_s=float(clock["now_s"]),
            hops=int(clock["hops"]),
            delivered_packets=each("expected"),
            subflow_packets=[
                subflows["expected"][own["first"] : own["last"]].copy() for own in connections
            ],
            retransmitted=each("retransmitted"),
            recoveries=each("recoveries"),
            timeouts=each("timeouts"),
            limited=each("limited"),
            unsent_packets=connections["unsent"].copy(),
            done_s=connections["done_s"].copy(),
            link_packets=links["tail"].copy(),
            link_drops=links["dropped"].copy(),
            link_losses=links["lost"].copy(),
            source_packets=self._table("_sources", state.SOURCE)["received"].copy(),
        )

    def windows(self) -> NDArray[np.float64]:
        """Return the congestion window of every subflow, in packets."""
        w: NDArray[np.float64] = self._table("_windows", state.WINDOW)["w"].copy()
        return w

    def round_trips_s(self) -> NDArray[np.float64]:
        """Return the smoothed round-trip time of every subflow; 0 before the first."""
        rtt_s: NDArray[np.float64] = self._table("_windows", state.WINDOW)["rtt_s"].copy()
        return rtt_s

    def _table(self, name: str, dtype: np.dtype[Any]) -> Any:
        """Records as an array, whichever way they are kept."""
        kept = getattr(self, name)
        return kept if self._compiled else state.as_records(kept, dtype)


_RECORDS = (
    "_clock",
    "_heap",
    "_timers",
    "_link_records",
    "_ring",
    "_steps",
    "_subflows",
    "_windows",
    "_connections",
    "_sources",
)


class _Steps:
    """The paths of all packets, one after the other, each with an end."""

    def __init__(self, links: int) -> None:
        self._links = links
        self._rows: list[tuple[int, int, int, float]] = []
        self.bits: set[float] = set()

    def add(self, path: Sequence[int], bits: float, owner: int, kind: int) -> int:
        first = len(self._rows)
        for link in path:
            if not 0 <= link < self._links:
                raise ValueError(
                    f"a path names link {link}; there are links 0 to {self._links - 1}"
                )
            self._rows.append((link, owner, kind, bits))
        self._rows.append((-1, owner, kind, bits))
        self.bits.add(bits)
        return first

    def records(self) -> Any:
        records = state.zeros(state.STEP, len(self._rows))
        for name, column in zip(
            ("link", "owner", "kind", "bits"), zip(*self._rows, strict=True), strict=False
        ):
            records[name] = column
        return records
