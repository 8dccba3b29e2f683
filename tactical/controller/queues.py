"""OVSDB: create, change, drop and read the queues of ports over one lasting connection.

The port's root (``linux-htb`` with the link's rate and default queue 0) is not made here: it
belongs to whoever owns the link.
"""

from __future__ import annotations

import contextlib
import queue
import select
import socket
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import ovs.db.idl
import ovs.poller

from fdm.queues import QueueRate

from .deployment import Queue

OWNER = "tactical"
MASTER_LOCK = "tactical_controller"
"""Lock of the database (RFC 7047, section 4.1.8) that the master holds."""
SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
_PAUSE_S = 0.2
_IDLE_S = 3600.0
_PATIENCE_S = 5.0
"""A database that is not there is told of after this; a server that is restarted takes less."""

Queues = Mapping[Queue, QueueRate]


class QueueError(RuntimeError):
    """Open vSwitch refused or did not carry out a change of queues."""


class _Replica(ovs.db.idl.Idl):
    """The client's copy of the database, which notes whether queues have changed."""

    def __init__(self, remote: str, helper: ovs.db.idl.SchemaHelper) -> None:
        self.changed = True
        super().__init__(remote, helper)

    def notify(self, event: str, row: Any, updates: Any = None) -> None:
        self.changed = self.changed or row._table.name != "Open_vSwitch"


class QueueTable:
    """The queues of an Open vSwitch instance that belong to this controller.

    The connection has a thread of its own, which makes it again when the database server was
    restarted.

    Parameters
    ----------
    remote
        OVSDB connection method, such as ``unix:/var/run/openvswitch/db.sock`` or
        ``tcp:127.0.0.1:6640`` (ovsdb-server(1)).
    on_change
        Called in that thread with the queues that are there, first when the connection is made,
        then whenever they change by other hands.
    on_problem
        Called in that thread with a sentence when the database is not there, once each time.
    on_lock
        If given, the lock :data:`MASTER_LOCK` is asked for, and this is called in that thread
        when it is won or lost.
    timeout_s
        Longest wait for the connection or for one transaction.

    Raises
    ------
    QueueError
        If Open vSwitch's schema is not installed.
    """

    def __init__(
        self,
        remote: str,
        on_change: Callable[[Queues], None],
        on_problem: Callable[[str], None],
        on_lock: Callable[[bool], None] | None = None,
        timeout_s: float = 15.0,
    ) -> None:
        if not SCHEMA.is_file():
            raise QueueError(f"{SCHEMA} is missing; it comes with Open vSwitch")
        helper = ovs.db.idl.SchemaHelper(location=str(SCHEMA))
        helper.register_columns("Port", ["name", "qos"])
        helper.register_columns("QoS", ["queues", "type", "other_config"])
        helper.register_columns("Queue", ["other_config", "external_ids"])
        helper.register_columns("Open_vSwitch", ["next_cfg", "cur_cfg"])
        self._remote = remote
        self._timeout_s = timeout_s
        self._on_change, self._on_problem, self._on_lock = on_change, on_problem, on_lock
        self._idl = _Replica(remote, helper)
        if on_lock is not None:
            self._idl.set_lock(MASTER_LOCK)
        self._known: dict[Queue, QueueRate] | None = None
        self._locked = False
        self._swept = False
        self._away_s: float | None = time.monotonic()
        self._told = False
        self._closing = False
        self._work: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = queue.SimpleQueue()
        self._waker, self._woken = socket.socketpair()
        self._woken.setblocking(False)
        self._thread = threading.Thread(target=self._run, daemon=True, name="ovsdb")
        self._thread.start()

    def set(self, rates: Queues) -> None:
        """Create or edit queues in one transaction, and wait until the switch has done it.

        Raises
        ------
        QueueError
            If that cannot be done, or not in time.
        """
        if rates:
            self._ask(lambda: self._transact(lambda txn: self._write(txn, rates), rates))

    def drop(self, queues: Sequence[Queue]) -> None:
        """Remove queues in one transaction, and wait until the switch has done it.

        Raises
        ------
        QueueError
            If that cannot be done, or not in time.
        """
        if queues:
            self._ask(lambda: self._transact(lambda txn: self._remove(queues), queues))

    def read(self, queues: Collection[Queue] | None = None) -> Queues:
        """The queues that the database holds: all, or those of some."""
        found: Queues = self._ask(lambda: self._read(queues))
        return found

    def close(self) -> None:
        """End the connection, and give up the lock with it."""
        self._closing = True
        self._wake()
        self._thread.join(2.0)

    # -- in any thread -------------------------------------------------------------------

    def _ask(self, work: Callable[[], Any]) -> Any:
        future: Future[Any] = Future()
        self._work.put((work, future))
        self._wake()
        return future.result()

    def _wake(self) -> None:
        with contextlib.suppress(OSError):
            self._waker.send(b".")

    # -- in the connection's thread ------------------------------------------------------

    def _run(self) -> None:
        while not self._closing:
            while not self._work.empty():
                work, future = self._work.get()
                try:
                    future.set_result(work())
                except Exception as error:  # noqa: BLE001 - whoever asked is told
                    future.set_exception(error)
            try:
                self._report()
                patience_s = self._watch()
                self._step(time.monotonic() + patience_s)
            except Exception as error:  # noqa: BLE001 - whoever asks later would wait for ever
                self._on_problem(f"OVSDB at {self._remote}: {error!r}")
                time.sleep(1.0)
        self._idl.close()

    def _watch(self) -> float:
        """Tell of a database that is not there; returns for how long nothing is due."""
        now_s = time.monotonic()
        if self._idl._session.is_connected():  # the client tells it nowhere else
            self._away_s, self._told = None, False
            return _IDLE_S
        if self._away_s is None:
            self._away_s = now_s
        if self._told:
            return _IDLE_S
        if (left_s := self._away_s + _PATIENCE_S - now_s) > 0:
            return left_s
        self._told = True
        self._on_problem(
            f"OVSDB at {self._remote} has not answered for {_PATIENCE_S:g} s; "
            "queues stay as they are until it does"
        )
        return _IDLE_S

    def _report(self) -> None:
        if self._idl.changed and self._idl.has_ever_connected():
            self._idl.changed = False
            if (queues := self._read()) != self._known:
                self._known = queues
                self._on_change(queues)
        if self._on_lock is not None and self._idl.has_lock != self._locked:
            self._locked = self._idl.has_lock
            self._on_lock(self._locked)

    def _read(self, some: Collection[Queue] | None = None) -> dict[Queue, QueueRate]:
        wanted = None if some is None else {(q.port, q.queue_id) for q in some}
        ports = None if some is None else {q.port for q in some}
        queues = {}
        for port in self._idl.tables["Port"].rows.values():
            name = port.name
            for qos in port.qos if ports is None or name in ports else ():
                for queue_id, row in qos.queues.items():
                    if wanted is not None and (name, queue_id) not in wanted:
                        continue
                    ids = row.external_ids
                    if ids.get("owner") == OWNER and "user" in ids:
                        key = Queue(ids["datapath"], name, queue_id, ids["user"], ids["via"])
                        queues[key] = _rate(row.other_config)
        return queues

    def _write(self, txn: Any, rates: Queues) -> None:
        places = {q.port: self._qos(q.port) for q in rates}
        rows = {port: dict(qos.queues) for port, qos in places.items()}
        for q, rate in rates.items():
            config = {"min-rate": str(rate.min_bps), "max-rate": str(rate.max_bps)}
            row = rows[q.port].get(q.queue_id)
            owner = {"owner": OWNER, "datapath": q.datapath, "user": q.user, "via": q.via}
            if row is None:
                row = txn.insert(self._idl.tables["Queue"])
                places[q.port].setkey("queues", q.queue_id, row.uuid)
                row.external_ids = owner
            elif row.external_ids != owner:
                row.external_ids = owner
            row.other_config = config

    def _remove(self, queues: Sequence[Queue]) -> None:
        rows: dict[str, tuple[Any, dict[int, Any]]] = {}
        for q in queues:
            if q.port not in rows:
                try:
                    qos = self._qos(q.port)
                except QueueError:
                    continue  # the port went, and its queues with it
                rows[q.port] = (qos, dict(qos.queues))
            qos, there = rows[q.port]
            if (row := there.get(q.queue_id)) is not None:
                qos.delkey("queues", q.queue_id)
                row.delete()

    def _sweep(self) -> None:
        """Remove rows of ours that no port uses: left by a port that went."""
        used = {
            row.uuid for qos in self._idl.tables["QoS"].rows.values() for row in qos.queues.values()
        }
        for row in list(self._idl.tables["Queue"].rows.values()):
            ours = row.external_ids.get("owner") == OWNER and "user" in row.external_ids
            if ours and row.uuid not in used:
                row.delete()

    def _qos(self, port: str) -> Any:
        for row in self._idl.tables["Port"].rows.values():
            if row.name == port:
                if row.qos:
                    return row.qos[0]
                raise QueueError(f"port {port} has no QoS row; its link is not shaped")
        raise QueueError(f"port {port} is not in the Open vSwitch database")

    def _transact(self, fill: Callable[[Any], None], queues: Collection[Queue]) -> None:
        deadline = time.monotonic() + self._timeout_s
        while not self._idl.has_ever_connected():
            if not self._step(deadline):
                raise QueueError(
                    f"OVSDB at {self._remote} did not answer within {self._timeout_s:g} s"
                )
        while (status := self._commit(fill, deadline)) == ovs.db.idl.Transaction.TRY_AGAIN:
            if not self._step(min(deadline, time.monotonic() + _PAUSE_S)) and (
                time.monotonic() >= deadline
            ):
                raise QueueError("OVSDB did not answer a change of queues in time")
        if status == ovs.db.idl.Transaction.NOT_LOCKED:
            raise QueueError("another controller is the master")
        if self._known is not None:  # what is changed here is no news
            for q in queues:
                self._known.pop(q, None)
            self._known.update(self._read(queues))
            self._idl.changed = False

    def _commit(self, fill: Callable[[Any], None], deadline: float) -> str:
        """Try once; returns the status that ended it well, or why to try again."""
        while self._idl.run():
            pass  # the copy is behind by what was not read yet, such as a port's root made just now
        transaction = ovs.db.idl.Transaction
        txn = transaction(self._idl)
        try:
            fill(txn)
            if not self._swept:
                self._sweep()
            for root in self._idl.tables["Open_vSwitch"].rows.values():
                root.increment("next_cfg")
        except Exception:
            txn.abort()
            raise
        status: str = txn.commit()
        while status == transaction.INCOMPLETE:
            if not self._step(deadline):
                txn.abort()
                raise QueueError("OVSDB did not answer a change of queues in time")
            status = txn.commit()
        if status == transaction.SUCCESS:
            self._swept = True
            self._wait_until_done(txn.get_increment_new_value(), deadline)
        elif status not in (
            transaction.UNCHANGED,
            transaction.TRY_AGAIN,
            transaction.NOT_LOCKED,
        ):
            problem = txn.get_error() or txn.status_to_string(status)
            raise QueueError(f"OVSDB refused a change of queues: {problem}")
        return status

    def _wait_until_done(self, wanted: int, deadline: float) -> None:
        while not any(
            root.cur_cfg >= wanted for root in self._idl.tables["Open_vSwitch"].rows.values()
        ):
            if not self._step(deadline):
                raise QueueError("ovs-vswitchd did not carry out a change of queues in time")

    def _step(self, deadline: float) -> bool:
        """Run the client once, waiting for input; False when `deadline` has passed."""
        if self._idl.run():
            return True
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        poller = ovs.poller.Poller()
        self._idl.wait(poller)
        poller.fd_wait(self._woken, select.POLLIN)
        poller.timer_wait(max(1, int(left * 1000)))
        poller.block()
        with contextlib.suppress(BlockingIOError):
            self._woken.recv(4096)
        self._idl.run()
        return time.monotonic() < deadline


def _rate(config: Mapping[str, str]) -> QueueRate:
    try:
        return QueueRate(int(config["min-rate"]), int(config["max-rate"]))
    except (KeyError, ValueError):
        return QueueRate(0, 1)  # not ours any more: whatever it is to be, it differs
