"""Which path takes what an application writes at a rate."""

import math

import pytest

from simulation import Connection, Link, Path, Simulation

QUICK, SLOW = 0, 1


def shares(scheduler: str, mbps: float, quick: Link, slow: Link, **options) -> list[float]:
    """Mbit/s on a path of 10 ms and on one of 100 ms."""
    links = [quick, slow, Link(delay_s=0.01), Link(delay_s=0.1)]
    connection = Connection(
        [Path([SLOW], [3]), Path([QUICK], [2])],
        "lia",
        rate_bps=mbps * 1e6,
        scheduler=scheduler,
        **options,
    )
    simulation = Simulation(links, [connection], seed=5, compiled=False)
    simulation.run(5.0)
    before = simulation.counters().subflow_packets[0]
    simulation.run(25.0)
    slow_rate, quick_rate = (simulation.counters().subflow_packets[0] - before) * 0.012 / 20.0
    return [quick_rate, slow_rate]


WIDE = Link(10e6, 0.0, 40)


@pytest.mark.parametrize(
    ("scheduler", "mbps", "expected"),
    [
        ("lowest-rtt", 3.0, [3.0, 0.0]),
        ("round-robin", 3.0, [1.5, 1.5]),
    ],
)
def test_the_scheduler_decides(scheduler, mbps, expected):
    assert shares(scheduler, mbps, WIDE, WIDE) == pytest.approx(expected, abs=0.25)


def test_what_does_not_fit_the_quick_path_goes_the_slow_way():
    quick, slow = shares("lowest-rtt", 14.0, WIDE, WIDE)
    assert quick > 9.5
    assert 14.0 - quick - 0.1 < slow < 6.0  # more than comes in, while some waits from the start


def test_what_the_quick_path_loses_for_good_goes_the_other_way():
    # A path that is down keeps its window full, so that it is not chosen; its first packets wait.
    links = [Link(10e6, 0.0, 40), Link(10e6, 0.0, 40), Link(delay_s=0.01), Link(delay_s=0.1)]
    connection = Connection([Path([QUICK], [2]), Path([SLOW], [3])], rate_bps=3e6)
    simulation = Simulation(links, [connection], compiled=False)
    simulation.run(5.0)
    simulation.change(QUICK, loss=1.0)
    simulation.run(8.0)
    before = simulation.counters().subflow_packets[0]
    simulation.run(18.0)
    quick, slow = (simulation.counters().subflow_packets[0] - before) * 0.012 / 10.0
    assert quick == 0.0
    assert slow == pytest.approx(3.0, abs=0.1)


def test_an_application_writes_at_its_rate_and_no_more_than_it_has():
    connection = Connection([Path([0], [1])], rate_bps=1.2e6, packets=250, start_s=0.5)
    links = [Link(10e6, 0.0, 40), Link(delay_s=0.01)]
    simulation = Simulation(links, [connection], compiled=False)
    simulation.run(1.495)
    assert simulation.counters().delivered_packets[0] == 100
    simulation.run(10.0)
    counters = simulation.counters()
    assert counters.delivered_packets[0] == 250
    # The last is written after 249 intervals of 10 ms and takes 1.2 ms.
    assert counters.done_s[0] == pytest.approx(0.5 + 2.49 + 0.0012)
    assert simulation.windows()[0] <= 4.0  # it needs no more than one packet in a round trip


def test_what_does_not_fit_waits_with_the_application():
    connection = Connection([Path([0], [1])], rate_bps=20e6)
    links = [Link(10e6, 0.0, 40), Link(delay_s=0.01)]
    simulation = Simulation(links, [connection], compiled=False)
    simulation.run(12.0)
    counters = simulation.counters()
    assert counters.delivered_packets[0] * 0.012 / 12.0 == pytest.approx(10.0, rel=0.05)
    assert counters.unsent_packets[0] == pytest.approx(10e6 / 12e3 * 12.0, rel=0.05)
    assert math.isinf(counters.done_s[0])
