"""TCP by the RFCs, on links where every step can be foretold."""

import math

import pytest

from simulation import Connection, Link, Path, Simulation
from simulation.state import SUBFLOW, as_records


def one_flow(*links: Link, **options) -> Simulation:
    path = Path(range(len(links)))
    return Simulation(list(links), [Connection([path], **options)], compiled=False)


def subflow(simulation: Simulation):
    return as_records(simulation._subflows, SUBFLOW)[0]


def test_slow_start_doubles_every_round_trip():
    simulation = one_flow(Link(delay_s=1.0), initial_window_packets=2)
    for rounds in range(1, 7):
        simulation.run(rounds + 0.5)
        assert simulation.windows()[0] == 2 * 2**rounds


def test_congestion_avoidance_adds_one_packet_every_round_trip():
    simulation = one_flow(Link(delay_s=0.1))
    simulation._subflows[0].ssthresh = 20.0
    simulation.run(0.65)
    first = simulation.windows()[0]
    simulation.run(2.65)
    assert simulation.windows()[0] - first == pytest.approx(20.0, rel=0.04)  # w grows meanwhile


def test_timeouts_double_until_a_minute():
    # RFC 6298: first after 1 s without a measurement, then 2, 4, ... and never more than 60 s.
    simulation = one_flow(Link(loss=1.0))
    moments = [1, 3, 7, 15, 31, 63, 123, 183]
    for count, moment in enumerate(moments):
        simulation.run(moment - 0.01)
        assert subflow(simulation)["timeouts"] == count
        simulation.run(moment + 0.01)
        assert subflow(simulation)["timeouts"] == count + 1
    assert simulation.windows()[0] == 1.0


def test_the_timeout_follows_the_round_trip():
    # SRTT = R and RTTVAR = R/2 at first; RTTVAR shrinks with equal samples, RTO nears R.
    simulation = one_flow(Link(delay_s=2.0), packets=1)
    simulation.run(2.5)
    assert subflow(simulation)["rto_s"] == pytest.approx(2.0 + 4 * 1.0)
    simulation = one_flow(Link(delay_s=2.0))
    simulation._subflows[0].limit = 1
    simulation.run(60.0)
    assert subflow(simulation)["rto_s"] == pytest.approx(2.0, rel=0.01)


def test_a_single_overflow_halves_the_window_without_a_timeout():
    # 20 packets fit on the way and 10 in the buffer; in congestion avoidance one packet is lost
    # when the 31st is sent at once.
    simulation = one_flow(Link(12e6, 0.019, 11))
    simulation._subflows[0].ssthresh = 16.0
    widest = 0.0
    for step in range(1, 2000):
        simulation.run(step * 1e-3)
        if subflow(simulation)["recoveries"]:
            break
        widest = simulation.windows()[0]
    assert widest == pytest.approx(31.0, abs=1.0)
    assert simulation.windows()[0] == pytest.approx(widest / 2, abs=0.6)
    simulation.run(20.0)
    counters = simulation.counters()
    assert counters.timeouts[0] == 0
    assert counters.retransmitted[0] == counters.link_drops[0]
    # A buffer of half the bandwidth-delay product keeps the link busy nearly always.
    assert counters.delivered_packets[0] / 20_000 > 0.93


def test_many_losses_in_one_window_are_repaired_without_repeating_what_arrived():
    # Slow start overshoots: NewReno repairs one loss a round trip, or gives up after a timeout.
    simulation = one_flow(Link(12e6, 0.02, 10), packets=2000)
    simulation.run(60.0)
    counters = simulation.counters()
    assert counters.done_s[0] < math.inf
    assert counters.delivered_packets[0] == 2000
    assert counters.link_packets[0] >= 2000
    assert counters.recoveries[0] > 0


def test_the_receive_window_holds_the_sender_back():
    # 8 packets each 100 ms.
    simulation = one_flow(Link(delay_s=0.1), receive_window_packets=8)
    simulation.run(10.05)
    counters = simulation.counters()
    assert counters.delivered_packets[0] == pytest.approx(800, abs=16)
    assert counters.limited[0] > 0


def test_a_window_that_is_not_used_does_not_grow():
    simulation = one_flow(Link(delay_s=0.1), receive_window_packets=8)
    simulation.run(10.0)
    assert simulation.windows()[0] <= 9.0


def test_the_last_packets_of_a_transfer_are_repaired_by_timeout():
    # All is lost but what is sent again after the timer.
    simulation = one_flow(Link(12e6, 0.01, 2), packets=3, rto_min_s=0.3)
    simulation.run(5.0)
    counters = simulation.counters()
    assert counters.timeouts[0] == 1
    # The round trip measured: 11 ms and 12 ms; the timer: 300 ms after the last acknowledgment.
    assert counters.done_s[0] == pytest.approx(0.012 + 0.3 + 0.011)
