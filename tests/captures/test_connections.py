"""Connections, subflows and data sequence numbers against known truth."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from captures import Connection, connections, read, token_and_initial_sequence
from captures.packets import concatenate


def bulk(path: Path) -> Connection:
    """The connection with the most data."""
    return max(connections(read(path).packets), key=lambda each: each.forward.captured_bytes)


@pytest.mark.parametrize("side", ["client", "server"])
def test_checksummed_mappings(data: Path, side: str) -> None:
    found = bulk(data / f"csum_{side}.pcap.gz")
    assert (found.protocol, found.version, found.fallback) == ("mptcp", 1, False)
    assert found.forward.captured_bytes == found.forward.announced_bytes == 523_685
    assert found.forward.in_order_bytes == found.forward.acknowledged_bytes == 523_685
    assert found.forward.end_bytes == 523_685
    assert found.forward.complete
    assert found.closed == "orderly"
    assert [each.forward.fresh_bytes for each in found.subflows] == [412_072, 111_613]
    assert [each.forward.payload_bytes for each in found.subflows] == [412_072, 113_002]
    assert [each.forward.retransmissions for each in found.subflows] == [0, 1]
    assert [each.joined for each in found.subflows] == [False, True]


def test_fallback_after_a_failed_checksum(data: Path) -> None:
    found = bulk(data / "mpfail1sf_client.pcap.gz")
    assert found.protocol == "mptcp"
    assert found.fallback
    assert found.forward.announced_bytes == 65_160
    assert found.forward.captured_bytes == 190_021
    assert found.forward.unmapped_bytes == 0
    assert not found.forward.complete


def test_a_peer_without_mptcp(data: Path) -> None:
    found = bulk(data / "fallback_client.pcap.gz")
    assert (found.protocol, found.fallback) == ("tcp", True)
    assert found.forward.captured_bytes == 249_093
    assert found.client_token is None


@pytest.mark.parametrize("side", ["client", "server"])
def test_fast_close_over_ipv6(data: Path, side: str) -> None:
    found = bulk(data / f"v6_{side}.pcap.gz")
    assert found.closed == "fastclose"
    assert found.forward.announced_bytes == 260_989
    assert found.forward.captured_bytes == 202_525
    assert found.forward.gaps == 1
    assert found.forward.in_order_bytes < 202_525
    assert found.client.address == "fd00:1::1"
    assert found.subflows[1].client.address == "fd00:2::1"


@pytest.mark.parametrize("version", [0, 1])
def test_tokens_are_32_bits_of_the_hash(version: int) -> None:
    token, initial = token_and_initial_sequence(0x0123456789ABCDEF, version)
    other = token_and_initial_sequence(0x0123456789ABCDEF, 1 - version)
    assert 0 <= token < 1 << 32
    assert 0 <= initial < 1 << 64
    assert (token, initial) != other


def test_pieces_add_up(data: Path) -> None:
    """What is fresh adds up to what is covered, whatever the order."""
    for file in sorted(data.glob("*.gz")):
        for found in connections(read(file).packets):
            for flow in (found.forward, found.backward):
                assert int(flow.fresh.sum()) == flow.captured_bytes
                assert (np.diff(flow.time_ns) >= 0).all()
                assert (np.diff(flow.in_order) >= 0).all()
                assert flow.in_order_bytes <= flow.captured_bytes
                assert not (flow.retransmitted & flow.reinjected).any()


def test_port_reuse_opens_a_new_stream(data: Path) -> None:
    """The same packets again, an hour later and with other sequence numbers."""
    first = read(data / "fallback_client.pcap.gz").packets
    forward = first.source_port != 5300
    shifted = np.where(forward, first.sequence, first.acknowledgment) + 1_000_003
    again = replace(
        first,
        time_ns=first.time_ns + 3_600 * 10**9,
        sequence=np.where(forward, shifted & 0xFFFFFFFF, first.sequence),
        acknowledgment=np.where(forward, first.acknowledgment, shifted & 0xFFFFFFFF),
    )
    found = connections(concatenate([first, again]))
    assert len(found) == 4
    assert [each.forward.captured_bytes for each in found] == [458, 249_093, 458, 249_093]


def test_sequence_numbers_wrap(data: Path) -> None:
    """All numbers moved so that they pass 2**32 in the middle of the transfer."""
    packets = read(data / "fallback_client.pcap.gz").packets
    forward = packets.source_port != 5300
    sequence = packets.sequence.astype(np.int64)
    acknowledgment = packets.acknowledgment.astype(np.int64)
    bulk_port = packets.source_port[np.argmax(packets.payload_bytes)]
    here = (packets.source_port == bulk_port) | (packets.destination_port == bulk_port)
    start = sequence[here & forward][0]
    move = (1 << 32) - start - 100_000
    moved = connections(
        replace(
            packets,
            sequence=np.where(forward, sequence + move, sequence).astype(np.uint32),
            acknowledgment=np.where(~forward, acknowledgment + move, acknowledgment).astype(
                np.uint32
            ),
        )
    )
    assert max(each.forward.captured_bytes for each in moved) == 249_093


def test_a_capture_that_begins_in_the_middle(data: Path) -> None:
    """Without any opening: each subflow on its own, with the data that is left."""
    packets = read(data / "csum_client.pcap.gz").packets
    rest = packets.select(np.arange(len(packets)) >= 200)
    expected = {
        int(port): int(rest.payload_bytes[rest.source_port == port].sum())
        for port in np.unique(rest.source_port)
        if port != 5201
    }
    # Whoever is heard first counts as the client.
    found = {}
    for each in connections(rest):
        user = each.server if each.client.port == 5201 else each.client
        found[user.port] = (each, each.forward if each.client.port != 5201 else each.backward)
    bulky = {port: size for port, size in expected.items() if size > 10_000}
    assert len(bulky) == 2
    for port, size in bulky.items():
        connection, flow = found[port]
        assert (connection.protocol, connection.version) == ("mptcp", None)
        # A mapping that was announced before the capture began, and one retransmission.
        assert flow.unmapped_bytes < 1500
        assert size - 3000 < flow.captured_bytes <= size


@pytest.mark.parametrize("forward", [True, False])
def test_a_capture_of_one_direction(data: Path, forward: bool) -> None:
    packets = read(data / "csum_client.pcap.gz").packets
    half = packets.select((packets.destination_port == 5201) == forward)
    # With one direction, tokens of one side; enough for the joins that go to that side.
    found = [each for each in connections(half) if each.server.port == 5201]
    assert {each.protocol for each in found} == {"mptcp"}
    if forward:
        (bulky,) = [each for each in found if each.forward.captured_bytes == 523_685]
        assert [each.joined for each in bulky.subflows] == [False, True]
        assert bulky.forward.complete is False
