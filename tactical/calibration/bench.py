"""The network that is calibrated, laid out as every experiment's. Pure.

::

    station ──eth0── near  ══ 5 Mbit/s, 10 ms  ══╮
            ──eth1── twin  ══ 5 Mbit/s, 10 ms  ══╪═ shore ── host
            ──eth2── far   ══ 5 Mbit/s, 250 ms ══┤
            ──eth3── lossy ══ 50 Mbit/s, 1 %   ══┤
            ──wlan0  ))(( radio ══ 5 Mbit/s    ══╯

Nothing is decided here, so there is no controller: fixed flow entries take its place, and queues
are set by its own `QueueTable`.
"""

from __future__ import annotations

import mobility
from fdm.queues import QueueRate
from scenarios import AccessPoint, Link, Satellite, Scenario, Station

from ..controller.deployment import Queue
from ..emulation.plan import SHORE, Plan, make_plan

STATION, HOST = "station", "host"
NEAR, TWIN, FAR, LOSSY, RADIO = "near", "twin", "far", "lossy", "radio"

_NARROW = Link(rate_bps=5e6, delay_s=0.010, buffer_packets=100)
LINKS = {
    NEAR: _NARROW,
    TWIN: _NARROW,
    FAR: Link(rate_bps=5e6, delay_s=0.250, buffer_packets=100),
    LOSSY: Link(rate_bps=50e6, delay_s=0.010, loss=0.01, buffer_packets=100),
    RADIO: _NARROW,
}
QUEUE_RATES_BPS = {1: 3_000_000, 2: 1_000_000}
"""Queue to its rate, on the uplink of `NEAR`."""
QUEUE_PORTS = {1: 7001, 2: 7002}
"""Queue to the UDP port of what is sent through it."""

_ENTRY, _QUEUED_ENTRY = 100, 200


def make_bench() -> Plan:
    """The plan of the network."""
    here = mobility.Fixed((0.0, 0.0, 0.0))
    scenario = Scenario(
        name="calibration",
        duration_s=60.0,
        stations=(Station(STATION, here),),
        satellites=tuple(Satellite(name, LINKS[name]) for name in (NEAR, TWIN, FAR, LOSSY)),
        access_points=(AccessPoint(RADIO, here, 1000.0, LINKS[RADIO]),),
        host=HOST,
        traffic=(),
        mean_packet_bits=12_000.0,
        capacity_share=0.95,
        kappa=1.0,
        header_overhead=1.07,
        snap_length_bytes=128,
    )
    return make_plan(scenario, "mptcp")


def flow_entries(plan: Plan) -> dict[str, list[str]]:
    """Flow entries of every switch by its name, in the syntax of ovs-ofctl(8)."""
    host = plan.switch(SHORE).ports[0].number
    entries: dict[str, list[str]] = {SHORE: []}
    for uplink in plan.uplinks:
        relay = plan.switch(uplink.relay)
        station, up = relay.ports[0].number, relay.port(uplink.relay_port).number
        down = plan.switch(SHORE).port(uplink.shore_port).number
        address = plan.station_interface(STATION, uplink.relay).address
        entries[uplink.relay] = [
            f"priority={_ENTRY},in_port={station},ip,actions=output:{up}",
            f"priority={_ENTRY},in_port={up},ip,actions=output:{station}",
        ]
        entries[SHORE] += [
            f"priority={_ENTRY},in_port={host},ip,nw_dst={address},actions=output:{down}",
            f"priority={_ENTRY},in_port={down},ip,actions=output:{host}",
        ]
        if uplink.relay == NEAR:
            entries[NEAR] += [
                f"priority={_QUEUED_ENTRY},in_port={station},udp,tp_dst={port},"
                f"actions=set_queue:{queue_id},output:{up}"
                for queue_id, port in QUEUE_PORTS.items()
            ]
    return entries


def queues(plan: Plan) -> dict[Queue, QueueRate]:
    """Queues as the controller would set them."""
    port = next(uplink.relay_port for uplink in plan.uplinks if uplink.relay == NEAR)
    return {
        Queue(NEAR, port, queue_id, f"stream{queue_id}", NEAR): QueueRate(rate_bps, rate_bps)
        for queue_id, rate_bps in QUEUE_RATES_BPS.items()
    }
