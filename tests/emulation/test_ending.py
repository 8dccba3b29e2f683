"""When control messages of transfers are held back, and what tells that all data have arrived."""

from dataclasses import replace

import pytest

import scenarios
from tactical.emulation.ending import CONTROL_BYTES, started_packets, waiting_bytes
from tactical.emulation.plan import make_plan

# ss -tnH state established, iproute2 6.1: a data connection, and a control connection that waits.
SENDING = """\
0      94640      10.0.1.1:40512    10.0.0.1:5201
0      1          10.0.1.1:40500    10.0.0.1:5201
"""


def test_data_count_as_waiting_and_a_held_control_message_does_not() -> None:
    assert waiting_bytes(SENDING) == 94640
    assert waiting_bytes(SENDING.splitlines()[1]) < CONTROL_BYTES
    assert waiting_bytes("") == 0


@pytest.mark.parametrize("rate_bps", [5e4, 1e5, 3e6])
def test_a_transfer_at_its_rate_has_begun_by_its_middle(rate_bps: float) -> None:
    transfer = make_plan(scenarios.load("direct-move", []).build(1), "mptcp").transfers[0]
    slow = replace(transfer, rate_bps=int(rate_bps), duration_s=10.0)
    in_half_bytes = rate_bps * 10.0 / 2 / 8
    assert 0 < started_packets(slow) <= in_half_bytes / 1500
