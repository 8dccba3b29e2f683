from tactical.emulation.ending import CONTROL_BYTES, waiting_bytes

# ss -tnH state established, iproute2 6.1: a data connection, and a control connection that waits.
SENDING = """\
0      94640      10.0.1.1:40512    10.0.0.1:5201
0      1          10.0.1.1:40500    10.0.0.1:5201
"""


def test_data_count_as_waiting_and_a_held_control_message_does_not() -> None:
    assert waiting_bytes(SENDING) == 94640
    assert waiting_bytes(SENDING.splitlines()[1]) < CONTROL_BYTES
    assert waiting_bytes("") == 0
