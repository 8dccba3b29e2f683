"""Recording packets and reading them back: from a capture file to connections and subflows.

A capture becomes columns (one array a header field), the columns become connections. Single-path
TCP and multipath TCP (versions 0 and 1) give the same structure:

    from captures import connections, read

    capture = read("captures/host-eth0.pcapng")
    for connection in connections(capture.packets):
        print(connection.client, connection.protocol, connection.forward.captured_bytes)
        for subflow in connection.subflows:
            print("   ", subflow.client, subflow.forward.fresh_bytes)

Files that are cut off or damaged give everything up to the damage; `Capture.remarks` says what
was wrong. Nothing here starts a process, opens a socket or needs root: `recording` only says what
to run.

Four figures describe the data in one direction of a connection (see `DataFlow`):

- announced: bytes that mappings cover, sent or not;
- captured: bytes that captured packets cover, each counted once;
- in order: bytes complete from the start;
- acknowledged: bytes that the other side acknowledged.

Data that come again are of four kinds: *retransmissions* (by TCP, under the same sequence numbers),
*reinjections* (another subflow had carried the data), *resends* (the same subflow had, under other
sequence numbers), and, whichever of these, *redundant* ones (the receiver had everything already).

`each_connection` goes through large captures without keeping all; `summary` gives everything as
plain data; `Connection.signals` is what the two sides said about subflows and addresses.
"""

from captures.authentication import token_and_initial_sequence
from captures.connections import (
    Connection,
    Subflow,
    SubflowTraffic,
    connections,
    each_connection,
)
from captures.container import Interface
from captures.dataflow import DataFlow, Stall
from captures.delay import Delays, one_way_delays
from captures.packets import Flows, Options, Packets
from captures.preparation import prepare
from captures.reading import Capture, merge, read
from captures.recording import RecorderCounters, parse_counters, recorder_arguments
from captures.signalling import Signal
from captures.streams import Endpoint, Stream, streams
from captures.summary import summary

__all__ = [
    "Capture",
    "Connection",
    "DataFlow",
    "Delays",
    "Endpoint",
    "Flows",
    "Interface",
    "Options",
    "Packets",
    "RecorderCounters",
    "Signal",
    "Stall",
    "Stream",
    "Subflow",
    "SubflowTraffic",
    "connections",
    "each_connection",
    "merge",
    "one_way_delays",
    "parse_counters",
    "prepare",
    "read",
    "recorder_arguments",
    "streams",
    "summary",
    "token_and_initial_sequence",
]
