"""Transfers over TCP and multipath TCP: what is sent arrives, and queues keep their rates."""

import random
from collections.abc import Hashable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulation.transfers import CoDel, Loop, Medium, Packet, Port, Transfer
from simulation.transfers.subflow import Subflow


class Network:
    """Pairs of ports by name, with the same rate, delay, buffer and loss both ways."""

    def __init__(self, loop: Loop, seed: int = 1, **links: tuple[float, float, int, float]) -> None:
        draws = random.Random(seed)
        self.ports: dict[str, tuple[Port, Port]] = {}
        for name, (rate_bps, delay_s, buffer_packets, loss) in links.items():
            there = Medium(loop, delay_s, loss, draws, self.arrive)
            back = Medium(loop, delay_s, loss, draws, self.arrive)
            self.ports[name] = (
                Port(loop, rate_bps, buffer_packets, there.send),
                Port(loop, rate_bps, buffer_packets, back.send),
            )
        self.arrived: list[tuple[float, Packet]] = []
        self._loop = loop

    def send(self, packet: Packet) -> None:
        self.ports[str(packet.subflow.name)][0 if packet.forward else 1].send(packet)

    def arrive(self, packet: Packet) -> None:
        self.arrived.append((self._loop.now_s, packet))
        packet.subflow.arrive(packet)


def transfer(loop: Loop, network: Network, **options: object) -> Transfer:
    return Transfer(loop, "ship1", network.send, **{"multipath": True, **options})  # type: ignore[arg-type]


SATCOM, UAV = (50e6, 0.25, 500, 0.0), (1e6, 0.01, 8, 0.0)


@pytest.mark.parametrize("multipath", [True, False])
def test_a_transfer_that_fits_arrives_at_its_rate_without_a_loss(multipath):
    loop = Loop()
    network = Network(loop, satcom=SATCOM)
    one = transfer(loop, network, multipath=multipath, rate_bps=3e6, duration_s=20.0)
    one.add("satcom", 0)
    loop.run(10.0)
    half = one.receiver.next
    loop.run(20.0)
    assert (one.receiver.next - half) * 8 / 10.0 == pytest.approx(3e6, rel=0.01)
    loop.run(25.0)
    assert one.ended
    assert one.receiver.next == one.sender.written
    assert [s.state for s in one.subflows] == ["closed"]
    assert one.subflows[0].sender.retransmitted_packets == 0


links = st.tuples(
    st.floats(3e5, 1e7), st.floats(0.001, 0.3), st.integers(4, 200), st.sampled_from([0.0, 0.03])
)


@settings(max_examples=40, deadline=None)
@given(
    first=links,
    second=links,
    multipath=st.booleans(),
    comes_s=st.floats(0.1, 4.0),
    stays_s=st.floats(0.0, 4.0),
    cubic=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_every_byte_arrives_in_order_whatever_is_lost_or_leaves(
    first, second, multipath, comes_s, stays_s, cubic, seed
):
    loop = Loop()
    network = Network(loop, seed, satcom=first, uav=second)
    one = transfer(
        loop,
        network,
        multipath=multipath,
        cubic=cubic,
        rate_bps=1e6,
        duration_s=5.0,
        first_bytes=37,
    )
    one.add("satcom", 0)

    def come() -> None:
        if one.usable and not one.ended:
            joined = one.add("uav", 1)
            loop.after(stays_s, lambda: joined.state == "open" and one.remove(joined))

    if multipath:
        loop.at(comes_s, come)
    seen = [0]
    for step in range(1, 2000):
        loop.run(0.1 * step)
        seen.append(one.receiver.next)
        assert one.receiver.next >= one.sender.acknowledged, "nothing is acknowledged before"
        if one.ended:
            break
    assert seen == sorted(seen)
    assert one.ended
    assert one.receiver.next == one.sender.written >= 1e6 * 5.0 / 8


def test_the_same_seed_gives_the_same_packets():
    runs = []
    for _ in range(2):
        loop = Loop()
        network = Network(loop, 5, satcom=(50e6, 0.25, 500, 0.01), uav=UAV)
        one = transfer(loop, network, rate_bps=2e6, duration_s=4.0)
        one.add("satcom", 0)
        loop.at(1.0, one.add, "uav", 1)
        loop.run(10.0)
        runs.append([(t, p.forward, p.sequence, p.acknowledgment) for t, p in network.arrived])
    assert runs[0] == runs[1]
    assert len(runs[0]) > 500


def packets(loop: Loop, deliver: object, length: int = 1400) -> Packet:
    one = Transfer(loop, "x", deliver, multipath=False, rate_bps=1e6, duration_s=1.0)  # type: ignore[arg-type]
    return Packet(Subflow(loop, one, "x", 0, True, one._send), True, "A", 1, 1, 0.0, length=length)


@pytest.mark.parametrize(
    ("offered", "expected"),
    [
        ({"a": 4e6, "b": 2e6}, {"a": 3e6, "b": 1e6}),  # guarantees, both asked for more
        ({"a": 1e6, "b": 5e6}, {"a": 1e6, "b": 3e6}),  # what one leaves the other takes
    ],
)
def test_queues_of_a_port_get_what_they_are_guaranteed_and_what_is_left(offered, expected):
    loop = Loop()
    got = dict.fromkeys(offered, 0)
    port = Port(loop, 4e6, 50, lambda packet: got.update({packet.tag: got[packet.tag] + 1}))
    port.set_queue("a", 3e6, 4e6)
    port.set_queue("b", 1e6, 4e6)

    def feed(key: str) -> None:
        packet = packets(loop, port.send)
        packet.tag = key
        port.send(packet, key)
        loop.after(8 * packet.size_bytes / offered[key], feed, key)

    for key in offered:
        loop.at(0.0, feed, key)
    loop.run(1.0)
    before = dict(got)
    loop.run(21.0)
    size_bits = 8 * packets(loop, port.send).size_bytes
    for key, rate_bps in expected.items():
        assert (got[key] - before[key]) * size_bits / 20.0 == pytest.approx(rate_bps, rel=0.02)


@pytest.mark.parametrize("marking", [True, False])
def test_controlled_delay_keeps_the_queue_of_a_sender_that_would_fill_it_short(
    marking: bool,
) -> None:
    waits, lost = {}, {}
    for name, codel in (("fifo", None), ("codel", CoDel(0.03, 0.1, 200))):
        loop = Loop()
        network = Network(loop, satcom=(1e6, 0.02, 200, 0.0))
        one = transfer(loop, network, multipath=False, rate_bps=5e6, duration_s=20.0)
        for port in network.ports["satcom"]:
            port.set_queue(None, 1e6, 1e6)
            if codel is not None:
                port.set_discipline(None, codel)
            if not marking:
                without_marks(port)
        one.add("satcom", 0)
        loop.run(18.0)
        late = [t - p.sent_s for t, p in network.arrived if p.forward and t > 5.0]
        waits[name] = sum(late) / len(late)
        lost[name] = sum(port.counted.dropped for port in network.ports["satcom"])
        assert len(late) * 1448 * 8 / 13.0 > 0.9e6, "the link is in use"
    assert waits["codel"] < 0.1
    assert waits["fifo"] > 5 * waits["codel"]
    assert (lost["codel"] == 0) is marking, "what may be marked is not dropped"


def without_marks(port: Port) -> None:
    """Let the port's packets be of ends that know no marks."""
    send = port.send

    def plain(packet: Packet, key: Hashable = None) -> None:
        packet.capable = False
        send(packet, key)

    port.send = plain  # type: ignore[method-assign]


def test_a_backup_carries_nothing_while_another_subflow_works():
    loop = Loop()
    network = Network(loop, satcom=SATCOM, uav=UAV)
    one = transfer(loop, network, rate_bps=1e6, duration_s=6.0)
    one.add("satcom", 0)
    loop.at(1.0, lambda: one.add("uav", 1, backup=True))
    loop.run(3.0)
    assert one.subflows[1].state == "open"
    assert one.subflows[1].sender.next == 1
    one.remove(one.subflows[0])
    loop.run(20.0)
    assert one.subflows[1].sender.next > 1
    assert one.ended
    assert one.receiver.next == one.sender.written
