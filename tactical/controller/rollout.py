"""A change carried out: told to switches and databases in order, read back, or taken back."""

from __future__ import annotations

from .databases import Databases
from .deployment import COUNTED, Change, Deployment, change
from .network import ControlledNetwork
from .switches import Switches


class RolloutError(RuntimeError):
    """A switch or database does not hold what it confirmed."""


class Rollout:
    """Carries out changes.

    Parameters
    ----------
    network
        Names the switches.
    switches, databases
        Where flow entries and queues go.
    """

    def __init__(
        self, network: ControlledNetwork, switches: Switches, databases: Databases
    ) -> None:
        self._network, self._switches, self._databases = network, switches, databases

    def deploy(self, steps: Change) -> None:
        """Take the steps of a change, each confirmed before the next."""
        for rates in steps.transactions:
            if rates:
                self._databases.set(rates)
        self._switches.write(steps.added)
        self._switches.write(steps.removed, delete=True)
        if steps.dropped:
            self._databases.drop(steps.dropped)

    def verify(self, steps: Change, target: Deployment) -> None:
        """Read back what was changed and compare.

        Raises
        ------
        RolloutError
            If a switch or OVSDB does not hold what it should.
        """
        for dpid, cookies in steps.touched.items():
            held = self._switches.read(dpid, cookies)
            wanted = {f for f in target.flows if f.dpid == dpid and f.cookie & ~COUNTED in cookies}
            if held is not None and held != wanted:
                name = self._network.datapath_name(dpid)
                raise RolloutError(
                    f"datapath {name} lacks {len(wanted - held)} flow entries that it confirmed "
                    f"and holds {len(held - wanted)} others"
                )
        rates = {**steps.lowered, **steps.raised}
        for queue in steps.dropped:
            rates.pop(queue, None)
        if not rates and not steps.dropped:
            return
        rows = self._databases.read([*rates, *steps.dropped])
        wrong = [q for q, rate in rates.items() if rows.get(q) != rate]
        wrong += [q for q in steps.dropped if q in rows]
        if wrong:
            raise RolloutError(f"{len(wrong)} queues are not as they were set: {wrong[0]}")

    def restore(self, steps: Change, before: Deployment) -> tuple[Deployment, str]:
        """After a change that failed: bring back what was there before.

        Returns
        -------
        What is there now as far as it is known, and in words whether that is the state before.
        """
        held = before
        try:
            for dpid in steps.touched:
                if (entries := self._switches.read(dpid)) is not None:
                    held = held.holding(dpid, entries)
            if steps.lowered or steps.raised or steps.dropped:
                held = Deployment(held.flows, self._databases.read())
            self.deploy(change(held, before))
        except Exception as error:  # noqa: BLE001 - told with what failed first
            return held, f"the state before it cannot be restored: {error}"
        return before, "the state before it is in force"
