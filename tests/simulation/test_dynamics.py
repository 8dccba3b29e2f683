"""Algorithms at work, where theory says what comes out."""

import math

import pytest

from simulation import Connection, Link, Path, Simulation, compilation

compiled_only = pytest.mark.skipif(
    not compilation.available(), reason="takes minutes without Numba, which is switched off"
)


def mean_window(algorithm: str, loss: float, rtt_s: float, measured_s: float) -> float:
    """Packets, over time and five connections, with independent losses."""
    flow = Connection([Path([0])], algorithm)
    simulation = Simulation([Link(delay_s=rtt_s, loss=loss)], [flow] * 5, seed=2)
    simulation.run(40.0)
    before = simulation.counters()
    simulation.run(40.0 + measured_s)
    packets = simulation.counters().delivered_packets - before.delivered_packets
    return float(packets.mean()) / measured_s * rtt_s


@compiled_only
def test_newreno_has_the_known_mean_window():
    # 1.3098/√p over time (T. Ott, J. Kemperman, M. Mathis, "The stationary behavior of ideal TCP
    # congestion avoidance", 1996), less the round trips that recovery takes.
    window = mean_window("uncoupled", 5e-4, 0.1, 600.0)
    assert window == pytest.approx(1.3098 / math.sqrt(5e-4), rel=0.04)


@compiled_only
def test_cubic_has_its_window_on_long_paths_and_newrenos_on_short_ones():
    # RFC 9438, equation 6, which is for losses at equal distances.
    window = mean_window("cubic", 1e-4, 0.1, 200.0)
    assert window == pytest.approx(1.054 * 0.1**0.75 / 1e-4**0.75, rel=0.2)
    assert window > 1.3 * 1.3098 / math.sqrt(1e-4)
    window = mean_window("cubic", 1e-3, 0.02, 100.0)
    assert window == pytest.approx(1.3098 / math.sqrt(1e-3), rel=0.08)


def test_wvegas_leaves_buffers_empty_that_others_fill():
    links = [Link(12e6, buffer_packets=100), Link(6e6, buffer_packets=100), Link(delay_s=0.05)]
    longest_s = {}
    for algorithm in ("wvegas", "lia"):
        connection = Connection([Path([0], [2]), Path([1], [2])], algorithm)
        simulation = Simulation(links, [connection], compiled=False)
        simulation.run(2.0)
        longest_s[algorithm] = 0.0
        for moment_s in range(3, 21):
            simulation.run(moment_s)
            longest_s[algorithm] = max(longest_s[algorithm], *simulation.round_trips_s())
        # Of 1500: draining halves a window whenever its queue has doubled.
        assert simulation.counters().delivered_packets[0] / 20.0 > 1100
    assert longest_s["wvegas"] < 0.07
    assert longest_s["lia"] > 0.1
