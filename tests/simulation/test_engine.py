"""The event loop against its own uncompiled code and against sums done by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulation import ALGORITHMS, Connection, Link, Path, Simulation, Source, compilation
from simulation.queueing import RING_FULL
from simulation.simulator import SimulationError

compiled_only = pytest.mark.skipif(not compilation.available(), reason="Numba is switched off")


def lossy(algorithm: str, compiled: bool, seed: int = 3) -> Simulation:
    """Everything there is, on a small network."""
    links = [
        Link(12e6, 0.01, 20, early_drop_packets=3),
        Link(6e6, 0.02, 20),
        Link(delay_s=0.01, loss=0.001),
        Link(1e6, 0.005, 50),
    ]
    connections = [
        Connection([Path([0], [2, 3]), Path([1]), Path([1, 0])], algorithm),
        Connection([Path([0, 1])], packets=300, start_s=0.5),
        Connection([Path([0]), Path([1])], rate_bps=2e6, packets=250),
    ]
    sources = [Source([1], 1e6, 0.1, 0.1), Source([0], 5e5, poisson=True, start_s=0.2)]
    return Simulation(links, connections, sources, seed, compiled)


def state_of(simulation: Simulation) -> list:
    """All counters, and the windows and times to the last bit."""
    counters = vars(simulation.counters()).values()
    flat = [np.concatenate(c) if isinstance(c, list) else np.atleast_1d(c) for c in counters]
    return [x.tolist() for x in (*flat, simulation.windows(), simulation.round_trips_s())]


@compiled_only
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_compiled_and_plain_code_agree_to_the_last_bit(algorithm):
    plain, compiled = lossy(algorithm, False), lossy(algorithm, True)
    for until_s in (0.7, 2.5):
        plain.run(until_s)
        compiled.run(until_s)
        assert state_of(plain) == state_of(compiled)
    assert plain.counters().recoveries.sum() > 0


def test_pieces_make_the_same_whole():
    whole, pieces = lossy("lia", False), lossy("lia", False)
    whole.run(1.0)
    for i in range(1, 51):
        pieces.run(i / 50)
    assert state_of(whole) == state_of(pieces)


def test_the_seed_decides():
    runs = [lossy("lia", False, seed) for seed in (3, 3, 4)]
    for run in runs:
        run.run(1.0)
    same, again, other = map(state_of, runs)
    assert same == again
    assert same != other


@pytest.mark.parametrize("packets", [1, 3])
def test_a_transfer_takes_as_long_as_its_packets_on_the_links(packets):
    # 12 ms a packet on the first link, 6 ms on the second; the second never waits.
    links = [Link(1e6, 0.02, 10), Link(2e6, 0.03, 10)]
    simulation = Simulation(
        links, [Connection([Path([0, 1])], packets=packets, start_s=0.1)], compiled=False
    )
    simulation.run(1.0)
    counters = simulation.counters()
    assert counters.done_s[0] == pytest.approx(0.1 + packets * 0.012 + 0.02 + 0.006 + 0.03)
    assert counters.hops == 2 * packets
    assert counters.delivered_packets.tolist() == [packets]


def test_acknowledgments_take_the_way_back():
    # 40 bytes at 32 kbit/s: 10 ms.
    links = [Link(1e6, 0.02, 10), Link(32e3, 0.05, 10)]
    simulation = Simulation(links, [Connection([Path([0], [1])], packets=1)], compiled=False)
    simulation.run(1.0)
    assert simulation.round_trips_s()[0] == pytest.approx(0.012 + 0.02 + 0.01 + 0.05)


def test_a_full_buffer_drops_and_counts_the_packet_being_sent():
    # Two packets every 12 ms, of which the link can send one.
    links = [Link(1e6, 0.0, 5)]
    simulation = Simulation(links, [], [Source([0], 2e6)], compiled=False)
    simulation.run(10.0)
    counters = simulation.counters()
    assert counters.source_packets[0] == 833
    offered = math.floor(10.0 / 0.006) + 1
    assert counters.link_packets[0] + counters.link_drops[0] == offered
    assert counters.link_packets[0] == 833 + 5


def test_a_link_without_a_rate_has_nobody_wait():
    simulation = Simulation(
        [Link(delay_s=0.1, buffer_packets=1), Link(buffer_packets=1)],
        [Connection([Path([0, 1])], packets=64)],
        compiled=False,
    )
    simulation.run(10.0)
    assert simulation.counters().link_drops.tolist() == [0, 0]
    assert simulation.counters().delivered_packets.tolist() == [64]


def test_random_losses_are_as_many_as_said():
    simulation = Simulation([Link(loss=0.2)], [], [Source([0], 12e6)], compiled=False)
    simulation.run(20.0)
    counters = simulation.counters()
    lost = counters.link_losses[0] / (counters.link_losses[0] + counters.link_packets[0])
    assert lost == pytest.approx(0.2, abs=4 * math.sqrt(0.2 * 0.8 / 20_000))


def test_bursts_and_poisson_packets_have_their_mean_rates():
    sources = [Source([0], 12e6, 0.01, 0.03), Source([0], 12e6, poisson=True)]
    simulation = Simulation([Link()], [], sources, compiled=False)
    simulation.run(40.0)
    bursts, poisson = simulation.counters().source_packets / 40.0
    # A burst of mean length m holds 1/(1 − exp(−interval/m)) packets at regular times.
    interval_s = 1e-3
    packets = 1.0 / (1.0 - math.exp(-interval_s / 0.01))
    assert bursts == pytest.approx(packets / (0.01 + 0.03), rel=0.1)
    assert poisson == pytest.approx(1000.0, rel=0.03)


def test_rings_grow_before_they_are_full():
    # 1200 packets are under way on a link that starts with room for 256.
    links = [Link(delay_s=1.0)]
    simulation = Simulation(links, [], [Source([0], 14.4e6)], compiled=False)
    simulation.run(3.0)
    assert simulation.counters().source_packets[0] == pytest.approx(2400, abs=1)


def test_a_ring_that_is_full_raises_and_names_the_link():
    # One event lets a whole window of 1000 packets go into a ring of 256.
    connection = Connection([Path([1])], initial_window_packets=1000)
    simulation = Simulation([Link(), Link(delay_s=1.0)], [connection], compiled=False)
    with pytest.raises(SimulationError, match="link 1 has more packets"):
        simulation.run(1.0)
    assert simulation._clock[0].fault == RING_FULL


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=compiled_only)])
def test_a_link_can_change_its_rate_and_go_down_and_up(compiled):
    links = [Link(12e6, 0.01, 20), Link(6e6, 0.01, 20)]
    simulation = Simulation(links, [Connection([Path([0]), Path([1])], "lia")], compiled=compiled)

    def rates(until_s: float) -> list[float]:
        before = simulation.counters()
        simulation.run(until_s)
        after = simulation.counters()
        packets = after.subflow_packets[0] - before.subflow_packets[0]
        return (packets / (after.time_s - before.time_s)).tolist()

    assert rates(20.0) == pytest.approx([1000, 500], rel=0.1)
    simulation.change(0, rate_bps=3e6)
    assert rates(40.0) == pytest.approx([250, 500], rel=0.1)
    simulation.change(1, loss=1.0)
    simulation.run(41.0)  # what was under way
    assert rates(45.0) == pytest.approx([250, 0], rel=0.1)
    simulation.change(1, loss=0.0)
    # The timer has doubled meanwhile, from 0.2 s to 6.4 s at most.
    simulation.run(55.0)
    assert rates(70.0) == pytest.approx([250, 500], rel=0.1)
    with pytest.raises(ValueError, match="there is no link 2; there are 0 to 1"):
        simulation.change(2, loss=0.5)
    with pytest.raises(ValueError, match="loss is 2"):
        simulation.change(0, loss=2.0)


@settings(max_examples=40)
@given(
    st.lists(
        st.builds(
            Link,
            rate_bps=st.floats(1e5, 1e8),
            delay_s=st.floats(0.0, 0.05),
            buffer_packets=st.integers(1, 30),
            loss=st.sampled_from([0.0, 0.02]),
        ),
        min_size=2,
        max_size=4,
    ),
    st.sampled_from(sorted(ALGORITHMS)),
    st.integers(1, 200),
    st.integers(0, 1000),
)
def test_every_packet_is_accounted_for(links, algorithm, packets, seed):
    """What a link takes it delivers, and every transfer ends with each packet once in order."""
    paths = [Path([i]) for i in range(len(links) - 1)] + [Path(range(len(links)))]
    simulation = Simulation(
        links, [Connection(paths, algorithm, packets=packets)], seed=seed, compiled=False
    )
    for until_s in (10, 100, 1000, 10_000):
        simulation.run(until_s)
        counters = simulation.counters()
        if counters.done_s[0] < math.inf:
            break
    assert counters.delivered_packets[0] == packets
    assert counters.done_s[0] <= until_s
    simulation.run(until_s + 1000)
    counters = simulation.counters()
    assert counters.hops == counters.link_packets.sum()
    sent = packets + counters.retransmitted[0]
    assert counters.link_packets[-1] <= sent


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Link(0.0), "rate_bps is 0.0; expected more than 0 bit/s"),
        (lambda: Link(1e6, math.inf), "delay_s is inf"),
        (lambda: Link(1e6, 0.0, 0), "buffer_packets is 0"),
        (lambda: Link(loss=1.5), "loss is 1.5; expected a probability"),
        (lambda: Link(early_drop_packets=1), "early_drop_packets is 1"),
        (lambda: Path([]), "links is"),
        (lambda: Connection([]), "paths is"),
        (lambda: Connection([Path([0])], "vegas"), "algorithm is 'vegas'; expected one of"),
        (lambda: Connection([Path([0])], receive_window_packets=1000), "power of two"),
        (lambda: Connection([Path([0])], packets=0), "packets is 0"),
        (lambda: Connection([Path([0])], rate_bps=0.0), "rate_bps is 0.0"),
        (lambda: Connection([Path([0])], scheduler="best"), "scheduler is 'best'; expected one"),
        (lambda: Source([0], 0.0), "rate_bps is 0.0"),
        (
            lambda: Simulation([Link()], [Connection([Path([1])])]),
            "a path names link 1; there are links 0 to 0",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()
