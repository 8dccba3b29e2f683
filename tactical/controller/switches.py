"""Conversations with the switches that are connected: what they are asked, told, and answer."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from .deployment import COUNTED, OWNER, OWNER_MASK, FlowEntry
from .network import ControlledNetwork
from .openflow import (
    SUBFLOW_MASK,
    counted_request,
    entries_request,
    flow_entries,
    flow_mod,
    packet_out,
    role_request,
    undisturbed_request,
)

ANSWER_TIMEOUT_S = 10.0
SINGLE_READS = 16
"""Up to so many subflows of a datapath are read back one by one, else all at once."""
_UNDEFINED_GENERATION = 2**64 - 1


class SwitchError(RuntimeError):
    """A switch refused a message, or did not answer it in time."""


@dataclass
class _Question:
    """Waits for all parts of the answer to one OpenFlow message."""

    rows: list[Any] = field(default_factory=list)
    error: str | None = None
    done: threading.Event = field(default_factory=threading.Event)


class Switches:
    """Those that are connected.

    What arrives is handed in by the framework's threads; whoever asks waits in a thread of its own.
    A switch that is gone is asked nothing and answers None: it gets everything when it is back.

    Parameters
    ----------
    network
        Names the switches.
    """

    def __init__(self, network: ControlledNetwork) -> None:
        self._network = network
        self._datapaths: dict[int, Any] = {}
        self._questions: dict[tuple[int, int], _Question] = {}
        self._counting: dict[tuple[int, int], list[Any]] = {}
        self._sending = threading.Lock()

    @property
    def connected(self) -> list[int]:
        """Those that are there now, by datapath id."""
        return list(self._datapaths)

    # -- in ------------------------------------------------------------------------------

    def join(self, datapath: Any) -> None:
        """A switch has connected."""
        self._datapaths[datapath.id] = datapath

    def leave(self, datapath: Any) -> bool:
        """A connection has ended; False if the switch has a newer one by now."""
        dpid: int = datapath.id
        if self._datapaths.get(dpid) is not datapath:
            return False
        del self._datapaths[dpid]
        for (of, _), question in list(self._questions.items()):
            if of == dpid:
                question.done.set()
        return True

    def answered(self, message: Any) -> None:
        """Take in an answer of one part."""
        question = self._questions.get((message.datapath.id, message.xid))
        if question is not None:
            question.rows.append(message)
            question.done.set()

    def refused(self, message: Any, reason: str) -> None:
        """Take in an error message."""
        question = self._questions.get((message.datapath.id, message.xid))
        if question is not None:
            question.error = reason
            question.done.set()

    def counted(self, message: Any) -> list[Any]:
        """Take in a part of flow statistics; all rows, once those of a count are complete."""
        key = (message.datapath.id, message.xid)
        more = message.flags & message.datapath.ofproto.OFPMPF_REPLY_MORE
        if (question := self._questions.get(key)) is not None:
            question.rows.extend(message.body)
            if not more:
                question.done.set()
        elif (rows := self._counting.get(key)) is not None:
            rows.extend(message.body)
            if not more:
                del self._counting[key]
                return rows
        return []

    # -- out -----------------------------------------------------------------------------

    def read(self, dpid: int, cookies: frozenset[int] | None = None) -> frozenset[FlowEntry] | None:
        """This controller's entries on a switch, all or of some subflows; None if it is gone."""
        wanted = [(OWNER, OWNER_MASK)]
        if cookies is not None and len(cookies) <= SINGLE_READS:
            wanted = [(cookie, SUBFLOW_MASK) for cookie in cookies]
        found: set[FlowEntry] = set()
        for cookie, mask in wanted:
            datapath = self._datapaths.get(dpid)
            if datapath is None:
                return None
            answers = self._ask(dpid, [entries_request(datapath, cookie, mask)])
            if answers is None:
                return None
            found |= flow_entries(dpid, answers[-1].rows)
        if cookies is not None:
            found = {entry for entry in found if entry.cookie & ~COUNTED in cookies}
        return frozenset(found)

    def write(self, entries: Iterable[FlowEntry], *, delete: bool = False) -> None:
        """Send flow entries and wait until every switch concerned has confirmed them."""
        of: dict[int, list[FlowEntry]] = {}
        for entry in entries:
            of.setdefault(entry.dpid, []).append(entry)
        for dpid, its in of.items():
            datapath = self._datapaths.get(dpid)
            if datapath is None:
                continue
            messages = [flow_mod(datapath, entry, delete=delete) for entry in its]
            messages.append(datapath.ofproto_parser.OFPBarrierRequest(datapath))
            self._ask(dpid, messages)

    def assume_role(self, dpid: int, *, master: bool) -> None:
        """Tell a switch whether this controller is the master, or a slave (OpenFlow 1.3, 6.3.6)."""
        datapath = self._datapaths.get(dpid)
        if datapath is None:
            return
        answers = self._ask(dpid, [role_request(datapath, None, 0)])
        if answers is None:
            return
        generation = answers[-1].rows[-1].generation_id
        if generation == _UNDEFINED_GENERATION:
            generation = 0
        if master:
            generation = (generation + 1) % 2**64
        self._ask(dpid, [undisturbed_request(datapath), role_request(datapath, master, generation)])

    def send_frame(self, dpid: int, in_port: int, frame: bytes) -> None:
        """Let a frame go through a switch's table."""
        if (datapath := self._datapaths.get(dpid)) is not None:
            datapath.send_msg(packet_out(datapath, in_port, frame))

    def forget_counts(self) -> None:
        """What was not answered by now will not be."""
        self._counting.clear()

    def ask_for_counters(self, dpid: int, *, subflows: bool) -> None:
        """Ask for counters of ports, queues and subflows; what comes is not waited for."""
        if (datapath := self._datapaths.get(dpid)) is None:
            return
        parser, protocol = datapath.ofproto_parser, datapath.ofproto
        datapath.send_msg(parser.OFPPortStatsRequest(datapath, 0, protocol.OFPP_ANY))
        datapath.send_msg(
            parser.OFPQueueStatsRequest(datapath, 0, protocol.OFPP_ANY, protocol.OFPQ_ALL)
        )
        if subflows:
            request = counted_request(datapath)
            with self._sending:
                datapath.set_xid(request)
                self._counting[dpid, request.xid] = []
            datapath.send_msg(request)

    def _ask(self, dpid: int, messages: Iterable[Any]) -> list[_Question] | None:
        """The answers to messages of which the last has one; None if the switch is gone.

        Raises
        ------
        SwitchError
            If a message is refused, or the last is not answered in time.
        """
        datapath = self._datapaths.get(dpid)
        if datapath is None:
            return None
        questions = self._send(datapath, messages)
        try:
            answered = all(q.done.wait(ANSWER_TIMEOUT_S) for q in questions[-1:])
            if self._datapaths.get(dpid) is not datapath:
                return None
            name = self._network.datapath_name(dpid)
            for question in questions:
                if question.error is not None:
                    raise SwitchError(f"datapath {name} refused: {question.error}")
            if not answered:
                raise SwitchError(f"datapath {name} did not answer in time")
            return questions
        finally:
            self._forget(questions)

    def _send(self, datapath: Any, messages: Iterable[Any]) -> list[_Question]:
        """Send messages as one piece; what is answered to each can be waited for."""
        questions, piece = [], bytearray()
        with self._sending:
            for message in messages:
                datapath.set_xid(message)
                message.serialize()
                piece += message.buf
                question = _Question()
                self._questions[datapath.id, message.xid] = question
                questions.append(question)
        datapath.send(bytes(piece))
        return questions

    def _forget(self, questions: Iterable[_Question]) -> None:
        known = {id(question) for question in questions}
        for key, question in list(self._questions.items()):
            if id(question) in known:
                self._questions.pop(key, None)
