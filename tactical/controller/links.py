"""Links as LLDP finds them, compared with the described trunks."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple

from .framework import NAME, App, cfg, handler
from .logic import Record
from .network import ControlledNetwork
from .records import RecordWriter

SETTLING_S = 15.0
"""LLDP has been seen to find a silent link dead only after 11 to 13 s; finding it takes less."""

topology = importlib.import_module(f"{NAME}.topology.event")
APP = importlib.import_module(f"{NAME}.topology.switches").__name__
"""The framework's application that sends LLDP; it declares options, which comes before
:func:`~tactical.controller.framework.configure`."""


class End(NamedTuple):
    """A port of a datapath."""

    datapath: str
    port: str


Link = frozenset[End]


def described_links(network: ControlledNetwork) -> frozenset[Link]:
    """The trunks of a description, without direction."""
    return frozenset(
        frozenset({End(t.a_datapath, t.a_port), End(t.b_datapath, t.b_port)})
        for t in network.trunks
    )


def differences(network: ControlledNetwork, found: Iterable[Link]) -> tuple[Record, ...]:
    """What LLDP found and the description lacks, and the other way round."""
    described, there = described_links(network), set(found)
    records = []
    for problem, links in (
        ("is not described", there - described),
        ("was not found", described - there),
    ):
        for link in sorted(sorted(link) for link in links):
            name = " to ".join(f"{end.datapath}:{end.port}" for end in link)
            ends = [list(end) for end in link]
            data = {"message": f"link {name} {problem}", "ends": ends}
            records.append(Record("link_difference", "controller", data))
    return tuple(records)


def observe() -> None:
    """Make the framework send LLDP; call before its applications are loaded."""
    cfg.CONF.set_override("observe_links", True)


class LinkWatcher(App):
    """Collects what the framework's topology application finds."""

    network: ClassVar[ControlledNetwork]
    write: ClassVar[RecordWriter]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._found: set[Link] = set()
        self._lock = threading.Lock()
        timer = threading.Timer(SETTLING_S, self._compare)
        timer.daemon = True
        timer.start()

    @handler.set_ev_cls(topology.EventLinkAdd)
    def _on_link(self, ev: Any) -> None:
        link = self._link(ev.link)
        with self._lock:
            new = link not in self._found
            self._found.add(link)
        if new:
            self.write(Record("link_found", "controller", {"ends": sorted(map(list, link))}))

    @handler.set_ev_cls(topology.EventLinkDelete)
    def _on_loss(self, ev: Any) -> None:
        link = self._link(ev.link)
        with self._lock:
            self._found.discard(link)
        self.write(Record("link_lost", "controller", {"ends": sorted(map(list, link))}))

    def _link(self, link: Any) -> Link:
        return frozenset(
            End(
                self.network.datapath_name(end.dpid) or str(end.dpid),
                end.name.decode(errors="replace"),
            )
            for end in (link.src, link.dst)
        )

    def _compare(self) -> None:
        with self._lock:
            found = set(self._found)
        for record in differences(self.network, found):
            self.write(record)
