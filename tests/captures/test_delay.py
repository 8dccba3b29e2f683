"""The same packets found in two captures."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from captures import Packets, one_way_delays, read


def later(packets: Packets, nanoseconds: int) -> Packets:
    """The same packets as they arrive elsewhere."""
    return replace(packets, time_ns=packets.time_ns + nanoseconds)


@pytest.mark.parametrize("name", ["csum", "v6"])
def test_both_sides_of_a_real_run(data: Path, name: str) -> None:
    client = read(data / f"{name}_client.pcap.gz").packets
    server = read(data / f"{name}_server.pcap.gz").packets
    outwards = client.select(client.destination_port == 5201)
    found = one_way_delays(outwards, server)
    data_packets = int((outwards.payload_bytes > 0).sum())
    assert len(found.delay_s) + len(found.lost_row) + len(found.ambiguous_row) == data_packets
    assert len(found.delay_s) > 0.95 * data_packets
    assert (found.delay_s > 0).all()
    assert np.array_equal(outwards.sequence[found.sent_row], server.sequence[found.received_row])
    backwards = one_way_delays(server, outwards)
    assert len(backwards.delay_s) == len(found.delay_s)
    assert (backwards.delay_s < 0).all()


def test_loss_is_counted_and_matches_stay_right(data: Path) -> None:
    sent = read(data / "csum_client.pcap.gz").packets
    sent = sent.select((sent.payload_bytes > 0) & (sent.destination_port == 5201))
    keep = np.arange(len(sent)) % 7 != 3
    found = one_way_delays(sent, later(sent, 12_000_000).select(keep))
    assert len(found.lost_row) == int((~keep).sum())
    assert found.delay_s == pytest.approx(0.012)


def test_reordering_makes_no_difference(data: Path) -> None:
    sent = read(data / "v6_client.pcap.gz").packets
    received = later(sent, 5_000_000)
    mixed = received.select(np.random.default_rng(7).permutation(len(received)))
    found = one_way_delays(sent, mixed)
    assert found.delay_s == pytest.approx(0.005)
    assert len(found.lost_row) == 0


def test_nothing_matches_nothing(data: Path) -> None:
    some = read(data / "v6_client.pcap.gz").packets
    none = some.select(np.zeros(len(some), dtype=np.bool_))
    assert len(one_way_delays(none, some).delay_s) == 0
    # Packets of connections that the other capture never saw are not lost.
    assert len(one_way_delays(some, none).lost_row) == 0
