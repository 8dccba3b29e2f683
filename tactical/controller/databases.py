"""The queues of all datapaths, each in the database of its Open vSwitch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from fdm.queues import QueueRate

from .deployment import Queue
from .network import ControlledNetwork

if TYPE_CHECKING:
    from .queues import QueueTable


class Databases:
    """One :class:`~tactical.controller.queues.QueueTable` for each database.

    Parameters
    ----------
    network
        Names the databases of datapaths that have one of their own.
    remote
        Connection method of the database of all others.
    on_queues
        Told the queues of all databases, once each has answered and whenever they change.
    on_problem
        Told in a sentence why a database does not answer.
    on_lock
        Told whether this controller holds the lock of `remote`; without it no lock is asked for.
    """

    def __init__(
        self,
        network: ControlledNetwork,
        remote: str,
        on_queues: Callable[[Mapping[Queue, QueueRate]], None],
        on_problem: Callable[[str], None],
        on_lock: Callable[[bool], None] | None = None,
    ) -> None:
        self._remote = remote
        self._remotes = {d.name: d.ovsdb or remote for d in network.datapaths}
        self._on_queues, self._on_problem, self._on_lock = on_queues, on_problem, on_lock
        self._tables: dict[str, QueueTable] = {}
        self._rows: dict[str, Mapping[Queue, QueueRate]] = {}

    def open(self) -> None:
        """Connect, unless that was done before."""
        if self._tables:
            return
        from .queues import QueueTable  # its client takes long to import in a slow guest

        for remote in dict.fromkeys((self._remote, *self._remotes.values())):
            self._tables[remote] = QueueTable(
                remote,
                functools.partial(self._changed, remote),
                self._on_problem,
                self._on_lock if remote == self._remote else None,
            )

    def set(self, rates: Mapping[Queue, QueueRate]) -> None:
        """Make or change queues."""
        self.open()
        for remote, queues in self._by_remote(rates).items():
            self._tables[remote].set({q: rates[q] for q in queues})

    def drop(self, queues: Iterable[Queue]) -> None:
        """Remove queues."""
        self.open()
        for remote, its in self._by_remote(queues).items():
            self._tables[remote].drop(its)

    def read(self, some: Iterable[Queue] | None = None) -> dict[Queue, QueueRate]:
        """All queues of this controller, or those of some, as the databases hold them."""
        found: dict[Queue, QueueRate] = {}
        if some is None:
            for table in self._tables.values():
                found.update(table.read())
        else:
            for remote, queues in self._by_remote(some).items():
                found.update(self._tables[remote].read(queues))
        return found

    def close(self) -> None:
        """End the connections."""
        for table in self._tables.values():
            table.close()

    def _changed(self, remote: str, rows: Mapping[Queue, QueueRate]) -> None:
        self._rows[remote] = rows
        if len(self._rows) == len(self._tables):
            self._on_queues({q: rate for part in self._rows.values() for q, rate in part.items()})

    def _by_remote(self, queues: Iterable[Queue]) -> dict[str, list[Queue]]:
        found: dict[str, list[Queue]] = {}
        for q in queues:
            found.setdefault(self._remotes.get(q.datapath, self._remote), []).append(q)
        return found
