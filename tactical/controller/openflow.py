"""Flow entries as OpenFlow 1.3 messages: the one place that knows the wire library."""

from __future__ import annotations

from typing import Any

from .deployment import FlowEntry


def flow_mod(datapath: Any, entry: FlowEntry, *, delete: bool = False) -> Any:
    """The OFPFlowMod that adds `entry` to `datapath`, or with `delete` removes exactly it."""
    parser, protocol = datapath.ofproto_parser, datapath.ofproto
    match = parser.OFPMatch(**dict(entry.match))
    if delete:
        return parser.OFPFlowMod(
            datapath=datapath,
            command=protocol.OFPFC_DELETE_STRICT,
            priority=entry.priority,
            match=match,
            out_port=protocol.OFPP_ANY,
            out_group=protocol.OFPG_ANY,
        )
    actions = [_action(parser, protocol, name, argument) for name, argument in entry.actions]
    apply = parser.OFPInstructionActions(protocol.OFPIT_APPLY_ACTIONS, actions)
    return parser.OFPFlowMod(
        datapath=datapath, priority=entry.priority, match=match, instructions=[apply]
    )


def _action(parser: Any, protocol: Any, name: str, argument: int | str) -> Any:
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
