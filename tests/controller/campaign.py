"""Many handovers: ten stations at four access points. Without pytest, for benchmarks too."""

import dataclasses
import random

import scenarios
from tactical.controller.events import AssociationChanged, Event
from tactical.controller.network import ControlledNetwork, Datapath, Port, Trunk
from tactical.emulation.control import controlled_network
from tactical.emulation.plan import make_plan


def campaign() -> ControlledNetwork:
    """Ten stations with a satellite and a radio, and four access points."""
    scenario = scenarios.load("direct-move", ("ships.count=10",)).build(1)
    network = controlled_network(make_plan(scenario, "fdm"), scenario)
    shore = next(d for d in network.datapaths if d.name == "shore")
    points = [f"uav{n}" for n in range(2, 5)]
    radio = [a for a in network.attachments if a.wireless]
    return dataclasses.replace(
        network,
        datapaths=(
            *network.datapaths,
            *(Datapath(p, shore.dpid + n) for n, p in enumerate(points, 1)),
        ),
        ports=(
            *network.ports,
            *(Port(p, f"{p}-wlan1", 1) for p in points),
            *(Port(p, f"{p}-eth2", 2) for p in points),
            *(Port("shore", f"shore-eth{n}", n) for n in range(4, 7)),
        ),
        attachments=(
            *network.attachments,
            *(dataclasses.replace(a, datapath=p, port=f"{p}-wlan1") for p in points for a in radio),
        ),
        trunks=(
            *network.trunks,
            *(
                Trunk(p, f"{p}-eth2", "shore", f"shore-eth{n}", n * 1e6, 0.01)
                for n, p in enumerate(points, start=4)
            ),
        ),
    )


def moves(network: ControlledNetwork, count: int) -> list[Event]:
    """Random changes of association; a radio is at one access point at most."""
    chance, at = random.Random(1), dict[str, str]()
    users = sorted({a.user for a in network.attachments})
    points = sorted({a.datapath for a in network.attachments if a.wireless})
    events: list[Event] = []
    while len(events) < count:
        user = chance.choice(users)
        if user in at:
            events.append(AssociationChanged(user, at.pop(user), False))
        else:
            at[user] = chance.choice(points)
            events.append(AssociationChanged(user, at[user], True))
    events += [AssociationChanged(user, point, False) for user, point in at.items()]
    return events
