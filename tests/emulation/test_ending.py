"""When control messages of transfers are held back, and what tells that all data have arrived."""

import contextlib
import socket
from dataclasses import replace
from pathlib import Path

import pytest

import scenarios
from tactical.emulation.ending import CONTROL_BYTES, started_packets, waiting_bytes
from tactical.emulation.plan import make_plan

# /proc/net/tcp of Linux 6.1: a listener, a data connection, and a control connection that waits.
LISTENING = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100000A:1451 00000000:0000 0A 00000000:00000080 00:00000000 00000000     0        0 9155 1
"""
SENDING = """\
   1: 0101000A:9E40 0100000A:1451 01 000171B0:00000000 01:00000014 00000000     0        0 9161 4
"""
WAITING = """\
   2: 0101000A:9E34 0100000A:1451 01 00000001:00000000 01:00000064 00000003     0        0 9160 3
"""


def test_data_count_as_waiting_and_a_held_control_message_does_not() -> None:
    assert waiting_bytes(LISTENING + SENDING + WAITING) == 94640
    assert waiting_bytes(LISTENING + WAITING) < CONTROL_BYTES
    assert waiting_bytes(LISTENING) == 0
    assert waiting_bytes("") == 0


def test_what_a_peer_does_not_read_waits_at_the_sender() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as sender,
        server.accept()[0],
    ):
        sender.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                sender.send(bytes(65536))
        assert waiting_bytes(Path("/proc/self/net/tcp").read_text()) >= CONTROL_BYTES


@pytest.mark.parametrize("rate_bps", [5e4, 1e5, 3e6])
def test_a_transfer_at_its_rate_has_begun_by_its_middle(rate_bps: float) -> None:
    transfer = make_plan(scenarios.load("direct-move", []).build(1), "mptcp").transfers[0]
    slow = replace(transfer, rate_bps=int(rate_bps), duration_s=10.0)
    in_half_bytes = rate_bps * 10.0 / 2 / 8
    assert 0 < started_packets(slow) <= in_half_bytes / 1500
