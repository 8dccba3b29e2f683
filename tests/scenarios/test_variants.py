"""The experiments that are direct move with other figures."""

import math

import pytest

import scenarios
from scenarios import Contended, DirectMove, LossySatcom


def test_contended_fits_only_over_both_paths():
    scenario = Contended().build(seed=0)
    (satcom,), (uav,) = scenario.satellites, scenario.access_points
    wanted_bps = sum(t.rate_bps for t in scenario.traffic) * scenario.header_overhead
    widest_bps = max(satcom.backhaul.rate_bps, uav.backhaul.rate_bps)
    both_bps = satcom.backhaul.rate_bps + uav.backhaul.rate_bps
    assert widest_bps < wanted_bps < scenario.capacity_share * both_bps


def test_contended_has_buffers_of_a_second_and_more():
    scenario = Contended().build(seed=0)
    for node in (*scenario.satellites, *scenario.access_points):
        link = node.backhaul
        assert link.buffer_packets * scenario.mean_packet_bits > link.rate_bps


def test_the_loss_of_lossy_satcom_limits_tcp_to_what_its_docstring_says():
    scenario = LossySatcom().build(seed=0)
    link = scenario.satellites[0].backhaul
    segment_bits = 8 * 1420
    limit_bps = segment_bits / (2 * link.delay_s) * math.sqrt(1.5 / link.loss)
    assert f"{limit_bps / 1e6:.2f} Mbit/s" in (LossySatcom.__doc__ or "")
    assert limit_bps < 0.2 * scenario.traffic[0].rate_bps


@pytest.mark.parametrize("variant", [Contended, LossySatcom])
def test_variants_sail_like_direct_move(variant):
    name = variant.name
    moved = scenarios.load(name, {"entry_time_s": DirectMove().entry_time_s}).build(seed=0)
    assert moved.coverage() == DirectMove().build(seed=0).coverage()
    assert moved.name == name
