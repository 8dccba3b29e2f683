"""OVSDB: create, change and drop the queues of a port over one lasting connection.

The port's root (``linux-htb`` with the link's rate and default queue 0) is not made here: it
belongs to whoever owns the link.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import ovs.db.idl
import ovs.poller

from fdm.queues import QueueRate

from .deployment import Queue


class QueueError(RuntimeError):
    """Open vSwitch refused or did not carry out a change of queues."""


class QueueTable:
    """The queues of an Open vSwitch instance.

    Parameters
    ----------
    remote
        OVSDB connection method, such as ``unix:/var/run/openvswitch/db.sock`` or
        ``tcp:127.0.0.1:6640`` (ovsdb-server(1)).
    timeout_s
        Longest wait for the connection or for one transaction.
    """

    def __init__(self, remote: str, timeout_s: float = 15.0) -> None:
        helper = ovs.db.idl.SchemaHelper(location=_schema_path())
        helper.register_columns("Port", ["name", "qos"])
        helper.register_columns("QoS", ["queues", "type", "other_config"])
        helper.register_columns("Queue", ["other_config", "external_ids"])
        helper.register_columns("Open_vSwitch", ["next_cfg", "cur_cfg"])
        self._idl = ovs.db.idl.Idl(remote, helper)
        self._timeout_s = timeout_s
        deadline = time.monotonic() + timeout_s
        while not self._idl.has_ever_connected():
            if not self._step(deadline):
                raise QueueError(f"OVSDB at {remote} did not answer within {timeout_s:g} s")

    def set(self, rates: Mapping[Queue, QueueRate]) -> None:
        """Create or edit queues in one transaction, and wait until the switch has done it."""
        if rates:
            self._transact(lambda txn: self._write(txn, rates))

    def drop(self, queues: Sequence[Queue]) -> None:
        """Remove queues in one transaction, and wait until the switch has done it."""
        if queues:
            self._transact(lambda txn: self._remove(queues))

    def close(self) -> None:
        """End the connection."""
        self._idl.close()

    def _write(self, txn: ovs.db.idl.Transaction, rates: Mapping[Queue, QueueRate]) -> None:
        for queue, rate in rates.items():
            config = {"min-rate": str(rate.min_bps), "max-rate": str(rate.max_bps)}
            qos = self._qos(queue.port)
            rows = dict(qos.queues)
            if (row := rows.get(queue.queue_id)) is not None:
                row.other_config = config
            else:
                row = txn.insert(self._idl.tables["Queue"])
                row.other_config = config
                row.external_ids = {"owner": "tactical"}
                qos.setkey("queues", queue.queue_id, row.uuid)

    def _remove(self, queues: Sequence[Queue]) -> None:
        for queue in queues:
            qos = self._qos(queue.port)
            row = dict(qos.queues).get(queue.queue_id)
            if row is not None:
                qos.delkey("queues", queue.queue_id)
                row.delete()

    def _qos(self, port: str) -> ovs.db.idl.Row:
        for row in self._idl.tables["Port"].rows.values():
            if row.name == port:
                if row.qos:
                    return row.qos[0]
                raise QueueError(f"port {port} has no QoS row; its link is not shaped")
        raise QueueError(f"port {port} is not in the Open vSwitch database")

    def _transact(self, fill: object) -> None:
        deadline = time.monotonic() + self._timeout_s
        while True:
            txn = ovs.db.idl.Transaction(self._idl)
            assert callable(fill)
            fill(txn)
            root = next(iter(self._idl.tables["Open_vSwitch"].rows.values()))
            root.increment("next_cfg")
            status = txn.commit()
            while status == ovs.db.idl.Transaction.INCOMPLETE:
                if not self._step(deadline):
                    txn.abort()
                    raise QueueError("OVSDB did not answer a change of queues in time")
                status = txn.commit()
            if status == ovs.db.idl.Transaction.TRY_AGAIN:
                continue
            break
        if status == ovs.db.idl.Transaction.UNCHANGED:
            return
        if status != ovs.db.idl.Transaction.SUCCESS:
            problem = txn.get_error() or txn.status_to_string(status)
            raise QueueError(f"OVSDB refused a change of queues: {problem}")
        wanted = txn.get_increment_new_value()
        while next(iter(self._idl.tables["Open_vSwitch"].rows.values())).cur_cfg < wanted:
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
        poller.timer_wait(max(1, int(left * 1000)))
        poller.block()
        self._idl.run()
        return time.monotonic() < deadline


def _schema_path() -> str:
    return "/usr/share/openvswitch/vswitch.ovsschema"
