"""Flow entries as OpenFlow 1.3 messages and back: the one place that knows the wire library."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .deployment import COUNTED, OWNER, OWNER_MASK, Field, FlowEntry

_ALL_BITS = 2**64 - 1


def flow_mod(datapath: Any, entry: FlowEntry, *, delete: bool = False) -> Any:
    """The OFPFlowMod that adds `entry` to `datapath`, or with `delete` removes exactly it."""
    parser, protocol = datapath.ofproto_parser, datapath.ofproto
    match = parser.OFPMatch(**dict(entry.match))
    if delete:
        return parser.OFPFlowMod(
            datapath=datapath,
            cookie=entry.cookie,
            cookie_mask=_ALL_BITS,
            command=protocol.OFPFC_DELETE_STRICT,
            priority=entry.priority,
            match=match,
            out_port=protocol.OFPP_ANY,
            out_group=protocol.OFPG_ANY,
        )
    actions = [_action(parser, protocol, name, argument) for name, argument in entry.actions]
    apply = parser.OFPInstructionActions(protocol.OFPIT_APPLY_ACTIONS, actions)
    return parser.OFPFlowMod(
        datapath=datapath,
        cookie=entry.cookie,
        priority=entry.priority,
        match=match,
        instructions=[apply],
    )


def entries_request(datapath: Any, cookie: int, mask: int) -> Any:
    """The OFPFlowStatsRequest for the entries of table 0 whose cookie is `cookie` under `mask`."""
    parser, protocol = datapath.ofproto_parser, datapath.ofproto
    return parser.OFPFlowStatsRequest(
        datapath, 0, 0, protocol.OFPP_ANY, protocol.OFPG_ANY, cookie, mask, parser.OFPMatch()
    )


def counted_request(datapath: Any) -> Any:
    """The OFPFlowStatsRequest for the entries by which subflows enter the network."""
    return entries_request(datapath, OWNER | COUNTED, OWNER_MASK | COUNTED)


def packet_out(datapath: Any, in_port: int, frame: bytes) -> Any:
    """The OFPPacketOut that lets a frame go through the flow table as if it had just come."""
    parser, protocol = datapath.ofproto_parser, datapath.ofproto
    table = parser.OFPActionOutput(protocol.OFPP_TABLE)
    return parser.OFPPacketOut(datapath, protocol.OFP_NO_BUFFER, in_port, [table], frame)


def role_request(datapath: Any, master: bool | None, generation: int) -> Any:
    """The OFPRoleRequest to become master or slave; None only asks for the generation."""
    protocol = datapath.ofproto
    role = protocol.OFPCR_ROLE_NOCHANGE
    if master is not None:
        role = protocol.OFPCR_ROLE_MASTER if master else protocol.OFPCR_ROLE_SLAVE
    return datapath.ofproto_parser.OFPRoleRequest(datapath, role, generation)


def undisturbed_request(datapath: Any) -> Any:
    """The OFPSetAsync by which a slave hears of packets and ports as a master does."""
    protocol = datapath.ofproto
    packets = (1 << protocol.OFPR_NO_MATCH) | (1 << protocol.OFPR_ACTION)
    ports = (1 << protocol.OFPPR_ADD) | (1 << protocol.OFPPR_DELETE) | (1 << protocol.OFPPR_MODIFY)
    return datapath.ofproto_parser.OFPSetAsync(datapath, [packets, packets], [ports, ports], [0, 0])


SUBFLOW_MASK = _ALL_BITS & ~COUNTED
"""Under this, the cookies of all entries of a subflow are equal."""


def flow_entries(dpid: int, rows: Iterable[Any]) -> frozenset[FlowEntry]:
    """The flow entries of an OFPFlowStatsReply."""
    return frozenset(
        FlowEntry(
            dpid,
            row.priority,
            tuple(sorted((str(name), value) for name, value in row.match.items())),
            tuple(
                _field(action)
                for instruction in row.instructions
                for action in getattr(instruction, "actions", (instruction,))
            ),
            row.cookie,
        )
        for row in rows
    )


def _action(parser: Any, protocol: Any, name: str, argument: object) -> Any:
    match name:
        case "set_queue":
            return parser.OFPActionSetQueue(argument)
        case "set_eth_dst":
            return parser.OFPActionSetField(eth_dst=argument)
        case "output":
            return parser.OFPActionOutput(argument)
        case "controller":
            return parser.OFPActionOutput(protocol.OFPP_CONTROLLER, argument)
    raise ValueError(f"unknown action {name!r}")


def _field(action: Any) -> Field:
    """An action as :class:`FlowEntry` has it; one that we never send by its type's name."""
    match type(action).__name__:
        case "OFPActionSetQueue":
            return ("set_queue", action.queue_id)
        case "OFPActionSetField" if action.key == "eth_dst":
            return ("set_eth_dst", action.value)
        case "OFPActionOutput":
            if action.port == 0xFFFFFFFD:  # OFPP_CONTROLLER
                return ("controller", action.max_len)
            return ("output", action.port)
        case other:
            return (other, str(action))
