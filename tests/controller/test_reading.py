"""What is read from the wire and from standard input."""

import ipaddress
import json
import struct
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tactical.controller.addresses import Address, check_method, read_address
from tactical.controller.events import (
    AssociationChanged,
    AssociationExpected,
    DemandSet,
    DistanceMeasured,
    PolicySet,
    SignalMeasured,
)
from tactical.controller.network import (
    Attachment,
    ControlledNetwork,
    Datapath,
    Demand,
    Port,
    Server,
    Trunk,
)
from tactical.controller.prediction import time_of_crossing
from tactical.controller.reports import LONGEST_LINE, read_report
from tactical.controller.subflows import Subflows, read_handshake, token_of

SHIP, SHIP_BY_RADIO, HOST = "10.0.1.1", "10.0.2.1", "10.0.0.1"
KEY = bytes.fromhex("0706050403020100")
SYN, SYN_ACK = 0x02, 0x12


NETWORK = ControlledNetwork(
    policy="fdm",
    datapaths=(Datapath("uav", 1), Datapath("satcom", 2)),
    ports=(Port("uav", "wlan1", 1), Port("uav", "eth2", 2), Port("satcom", "eth3", 1)),
    attachments=(
        Attachment("s", "wlan0", SHIP, "02:00:00:00:00:01", "uav", "wlan1", 1e8, wireless=True),
    ),
    trunks=(Trunk("satcom", "eth3", "uav", "eth2", 1e6, 0.1),),
    server=Server("host", HOST, "02:00:00:00:00:02", "satcom", "eth3", 1e8),
    demands=(Demand("s", 1e6),),
    mean_packet_bits=12_000.0,
    delay_coefficient=1.0,
    capacity_share=0.95,
)


def segment(
    source: str, destination: str, ports: tuple[int, int], flags: int, option: bytes
) -> bytes:
    options = b"\x02\x04\x05\xb4" + b"\x01" + option
    options += b"\0" * (-len(options) % 4)
    tcp = struct.pack("!HHIIBBHHH", *ports, 1, 0, (20 + len(options)) << 2, flags, 65535, 0, 0)
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp) + len(options), 0, 0, 64, 6, 0)
    addresses = ipaddress.ip_address(source).packed + ipaddress.ip_address(destination).packed
    return b"\xff" * 12 + b"\x08\x00" + ip + addresses + tcp + options


CAPABLE = b"\x1e\x04\x01\x01"
CAPABLE_ANSWER = b"\x1e\x0c\x01\x01" + KEY
JOIN = b"\x1e\x0c\x10\x02" + struct.pack("!II", token_of(KEY), 99)
JOIN_ANSWER = b"\x1e\x10\x10\x02" + b"\xab" * 12


def test_second_subflow_is_tied_to_its_connection_by_the_token() -> None:
    first, second = (5001, 5201), (5002, 5201)
    frames = [
        segment(SHIP, HOST, first, SYN, CAPABLE),
        segment(HOST, SHIP, first[::-1], SYN_ACK, CAPABLE_ANSWER),
        segment(SHIP_BY_RADIO, HOST, second, SYN, JOIN),
        segment(HOST, SHIP_BY_RADIO, second[::-1], SYN_ACK, JOIN_ANSWER),
        segment(SHIP, HOST, first, SYN, CAPABLE),  # once more: it was late
    ]
    seen = Subflows()
    for frame in frames:
        handshake = read_handshake(frame)
        assert handshake is not None
        assert handshake.multipath
        seen = seen.after(handshake)
    assert seen.connection == {
        (SHIP, 5001, HOST, 5201): token_of(KEY),
        (SHIP_BY_RADIO, 5002, HOST, 5201): token_of(KEY),
    }


def test_token_is_that_of_the_standard() -> None:
    # The first 32 bits of SHA-256; the digest is that of sha256sum(1) on these eight bytes.
    assert token_of(bytes(8)) == 0xAF5570F5


@given(st.binary(max_size=120) | st.tuples(st.integers(12, 90), st.binary(max_size=4)))
def test_damaged_frames_are_no_handshakes_or_are_read(damage: Any) -> None:
    frame = damage
    if isinstance(damage, tuple):
        at, put = damage
        whole = segment(SHIP, HOST, (5001, 5201), SYN, JOIN)
        frame = (whole[:at] + put + whole[at + len(put) :])[: 30 + at]
    read_handshake(frame)


def test_no_handshake_without_syn() -> None:
    assert read_handshake(segment(SHIP, HOST, (1, 2), 0x10, CAPABLE_ANSWER)) is None


@pytest.mark.parametrize(
    ("report", "event"),
    [
        ({"access_point": "uav", "associated": True}, AssociationChanged("s", "uav", True)),
        (
            {"access_point": "uav", "associated": False, "source": "hostapd"},
            AssociationChanged("s", "uav", False, "hostapd"),
        ),
        (
            {"access_point": "uav", "associated": False, "in_s": 2},
            AssociationExpected("s", "uav", False, 102.0),
        ),
        ({"access_point": "uav", "signal_dbm": -70}, SignalMeasured("s", "uav", -70.0)),
        (
            {"access_point": "uav", "distance_m": 5, "range_m": 9.0},
            DistanceMeasured("s", "uav", 5.0, 9.0),
        ),
        ({"rate_bps": 3e6}, DemandSet("s", 3e6)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_reports(report: dict[str, Any], event: object) -> None:
    assert read_report(json.dumps({"user": "s", **report}), 100.0, NETWORK) == event
    with pytest.raises(ValueError, match="expected an object with a user"):
        read_report(json.dumps(report), 100.0, NETWORK)
    with pytest.raises(ValueError, match=r"expected|unknown"):
        read_report(json.dumps({"user": "s", **report, "more": 1}), 100.0, NETWORK)
    with pytest.raises(ValueError, match=r"user 't' "):
        read_report(json.dumps({"user": "t", **report}), 100.0, NETWORK)


ODD = st.sampled_from([10**400, -(10**400), 1e300, 5e-324, 2**63, "s", "uav", "satcom:eth3"])
FIELDS = ["user", "access_point", "associated", "in_s", "rate_bps", "trunk", "delay_s"]
FIELDS += ["signal_dbm", "distance_m", "range_m", "source"]


def test_a_policy_is_reported_by_a_name_that_there_is() -> None:
    assert read_report('{"policy": "shortest"}', 0.0, NETWORK) == PolicySet("shortest")
    for line in ('{"policy": "best"}', '{"policy": []}', '{"policy": "fdm", "user": "s"}'):
        with pytest.raises(ValueError, match="one of ecmp, fdm"):
            read_report(line, 0.0, NETWORK)


@given(
    st.text(max_size=40)
    | st.recursive(
        st.none() | st.booleans() | st.floats() | ODD | st.text(max_size=5),
        lambda inner: st.dictionaries(st.sampled_from(FIELDS), inner),
        max_leaves=6,
    ).map(json.dumps)
)
@example("[" * 60_000)
@example('{"user": "s", "rate_bps": 1' + "0" * 5000 + "}")
@example('{"user": "s", "rate_bps": ' + " " * LONGEST_LINE + "1}")
@example('{"user": "s", "access_point": "uav", "associated": false, "in_s": 1e300}')
@example('{"user": "s", "rate_bps": 1' + "0" * 400 + "}")
def test_what_is_no_report_is_a_value_error_in_a_short_sentence(line: str) -> None:
    try:
        event = read_report(line, 0.0, NETWORK)
    except ValueError as error:
        assert 0 < len(str(error)) < 200
        assert "\n" not in str(error)
    else:
        assert all(abs(value) <= 1e15 for value in numbers(event))


def numbers(event: object) -> list[float]:
    """Every number in an event: Python can wait for so long, and solve with so much."""
    values = vars(event).values()
    return [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]


@given(st.floats(-1e3, 1e3), st.floats(0.01, 100.0), st.floats(0.1, 50.0), st.integers(3, 5))
def test_straight_line_crosses_where_it_does(
    start: float, slope: float, margin: float, count: int
) -> None:
    samples = [(start + n, margin - slope * n) for n in range(count)]
    expected = max(start + count - 1, start + margin / slope)
    assert time_of_crossing(samples, 0.0) == pytest.approx(expected, abs=1e-3, rel=1e-6)
    assert time_of_crossing([(t, -v) for t, v in samples], 0.0) is None
    assert time_of_crossing(samples[:2], 0.0) is None


@pytest.mark.parametrize(
    ("text", "address", "loopback"),
    [
        ("127.0.0.1:80", Address("127.0.0.1", 80), True),
        ("[::1]:8080", Address("::1", 8080), True),
        ("localhost:1", Address("localhost", 1), True),
        ("0.0.0.0:65535", Address("0.0.0.0", 65535), False),
        ("[::]:6653", Address("::", 6653), False),
        ("example:6653", Address("example", 6653), False),
    ],
)
def test_addresses(text: str, address: Address, loopback: bool) -> None:
    assert read_address(text) == address
    assert address.loopback is loopback


@pytest.mark.parametrize(
    "text", ["", "80", ":80", "host:", "host:0", "host:65536", "host:-1", "h:x"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected ADDRESS:PORT"):
        read_address(text)


@pytest.mark.parametrize(
    "text", ["", "nonsense", "tcp:", "tcp:h", "tcp:h:0", "unix:", "ssl:h:6640"]
)
def test_what_is_no_method_of_ovsdb_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected tcp:ADDRESS:PORT or unix:FILE"):
        check_method(text)


@pytest.mark.parametrize("text", ["tcp:[::1]:6640", "unix:/run/db.sock", "tcp:a:1,tcp:b:2"])
def test_methods_of_ovsdb(text: str) -> None:
    check_method(text)
