"""The network of a calibration on paper, and how what tc says of it is read."""

import pytest

from tactical.calibration import bench
from tactical.calibration.measuring import FULL, QUICK, bucket_bytes
from tactical.emulation.commands import medium_commands, shaping_command

PLAN = bench.make_bench()

# As printed by iproute2 6.1 for a port of a linux-htb QoS of Open vSwitch 3.1.
CLASSES = """\
class htb 1:1 parent 1:fffe prio 0 rate 12Kbit ceil 5Mbit burst 1563b cburst 1500b
class htb 1:fffe root rate 5Mbit ceil 5Mbit burst {burst} cburst 1500b
class htb 1:2 parent 1:fffe prio 0 rate 3Mbit ceil 3Mbit burst 1599b cburst 1599b
"""


def port_names(name: str) -> dict[int, str]:
    return {port.number: port.name for port in PLAN.switch(name).ports}


def test_links_are_shaped_by_the_commands_of_experiments():
    ports = [port for switch in PLAN.switches for port in switch.ports]
    command = shaping_command(ports)
    assert command is not None
    assert command.argv.count("other-config:max-rate=5000000") == 2 * 2 * 4
    (far,) = [medium for medium in PLAN.media if medium.name == "far-air"]
    assert any("250000us" in step.argv for step in medium_commands(far))
    (lossy,) = [medium for medium in PLAN.media if medium.name == "lossy-air"]
    assert any("1.000000%" in step.argv for step in medium_commands(lossy))


@pytest.mark.parametrize("relay", bench.LINKS)
def test_flow_entries_lead_through_the_relay_and_back(relay):
    entries = bench.flow_entries(PLAN)
    (uplink,) = [each for each in PLAN.uplinks if each.relay == relay]
    up, back = entries[relay][:2]
    ports = port_names(relay)
    assert ports[int(up.rpartition(":")[2])] == uplink.relay_port
    assert ports[int(back.rpartition(":")[2])] == PLAN.switch(relay).ports[0].name
    address = PLAN.station_interface(bench.STATION, relay).address
    (down,) = [entry for entry in entries["shore"] if f"nw_dst={address}," in entry]
    assert port_names("shore")[int(down.rpartition(":")[2])] == uplink.shore_port


def test_queues_are_those_that_flow_entries_use():
    used = [entry for entry in bench.flow_entries(PLAN)[bench.NEAR] if "set_queue" in entry]
    ids = {int(entry.partition("set_queue:")[2].partition(",")[0]) for entry in used}
    assert ids == {queue.queue_id for queue in bench.queues(PLAN)} == {1, 2}
    assert sum(bench.QUEUE_RATES_BPS.values()) <= bench.LINKS[bench.NEAR].rate_bps


@pytest.mark.parametrize(("burst", "depth"), [("1400b", 1400), ("2Kb", 1500), ("1Mb", 1500)])
def test_depth_of_the_bucket_is_that_of_the_smaller_one(burst, depth):
    assert bucket_bytes(CLASSES.format(burst=burst)) == depth


@pytest.mark.parametrize("text", ["", "class htb 1:1 root rate 5Mbit ceil 5Mbit burst 15b\n"])
def test_a_port_that_open_vswitch_does_not_shape_is_refused(text):
    with pytest.raises(ValueError, match="no classes of Open vSwitch"):
        bucket_bytes(text)


def test_quick_is_quicker_everywhere():
    for name in ("rate_s", "delay_s", "loss_s", "queues_s", "multipath_s", "handovers"):
        assert getattr(QUICK, name) < getattr(FULL, name)
    assert sum(QUICK.poisson_s.values()) < sum(FULL.poisson_s.values())
