"""A scenario at one moment: what the controller would solve then, and where the nodes are. Pure.

Nothing is said twice here: the network is the emulation's plan, what is attached follows from the
scenario's handovers as in a run, and the problem is the controller's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import fdm
from scenarios import AccessPoint, Scenario, Station
from tactical.controller.events import AssociationChanged, CapacitySet, DatapathConnected
from tactical.controller.network import ControlledNetwork
from tactical.controller.policies.fdm import routing_problem
from tactical.controller.view import View
from tactical.emulation.control import controlled_network
from tactical.emulation.plan import SHORE, make_plan


@dataclass(frozen=True)
class Moment:
    """What the controller would solve at a moment.

    Attributes
    ----------
    instance : fdm.Instance
        Network and demands; a demand is the rate on the wire, headers included.
    delay : fdm.Kleinrock
        The controller's delay function.
    capacity_share : float
        Share of a link that guaranteed queue rates may add up to.
    queue_mode : str
        What a queue may take beyond its guarantee, one of `fdm.queues.MODES`.
    paths : int
        Most paths of a user that get queues.
    queued : frozenset of int
        Links, by position, on which subflows get queues.
    places : mapping of node to (x, y)
        Where nodes are on a page: stations and access points as on a chart with north upwards,
        satellites in a row above them, the shore and the host on the right.
    """

    instance: fdm.Instance
    delay: fdm.Kleinrock
    capacity_share: float
    queue_mode: str
    paths: int
    queued: frozenset[int]
    places: Mapping[fdm.Node, tuple[float, float]]


def moment(scenario: Scenario, time_s: float) -> Moment:
    """Return what the controller would solve `time_s` seconds into a run with flow deviation.

    Raises
    ------
    tactical.emulation.plan.PlanError
        The scenario cannot be laid out as a network.
    """
    network = controlled_network(make_plan(scenario, "fdm"), scenario)
    problem = routing_problem(_view(network, scenario, time_s).situation(network, time_s))
    links = problem.network.links
    # The plan's names are unique without the controller's prefixes.
    names: dict[fdm.Node, fdm.Node] = {node: node for node in problem.network.nodes}
    names |= {links[n].tail: a.user for n, a in enumerate(problem.attachments)}
    names[links[-1].head] = network.server.name
    # The controller's problem has what is not attached or down as links without capacity.
    present = [number for number, link in enumerate(links) if link.capacity_bps > 0.0]
    trunks = range(len(problem.attachments), len(links) - 1)
    instance = fdm.Instance(
        f"{scenario.name} at {time_s:g} s",
        fdm.Network(
            [names[node] for node in problem.network.nodes],
            [
                links[number]._replace(
                    tail=names[links[number].tail], head=names[links[number].head]
                )
                for number in present
            ],
        ),
        tuple(
            demand._replace(origin=names[demand.origin], destination=names[demand.destination])
            for demand in problem.demands
        ),
        network.mean_packet_bits,
    )
    return Moment(
        instance,
        fdm.Kleinrock(network.mean_packet_bits, network.delay_coefficient),
        network.capacity_share,
        network.settings.queue_mode,
        network.settings.paths_per_user,
        frozenset(position for position, number in enumerate(present) if number in trunks),
        _places(scenario, time_s),
    )


def _view(network: ControlledNetwork, scenario: Scenario, time_s: float) -> View:
    view = View()
    for datapath in network.datapaths:
        view = view.apply(DatapathConnected(datapath.dpid), network, time_s)
    trunks = {trunk.a_datapath: trunk.name for trunk in network.trunks}
    for access in scenario.accesses:
        if access.backhaul.profile:
            state = access.backhaul.at(time_s)
            told = CapacitySet(trunks[access.name], state.capacity_bps, state.delay_s)
            view = view.apply(told, network, time_s)
    radios = {access_point.name for access_point in scenario.access_points}
    for change in scenario.handovers():
        if change.time_s <= time_s:
            for place, joined in ((change.before, False), (change.after, True)):
                if place in radios:
                    event = AssociationChanged(change.station, place, joined)
                    view = view.apply(event, network, change.time_s)
    return view


def _places(scenario: Scenario, time_s: float) -> dict[fdm.Node, tuple[float, float]]:
    nodes: list[Station | AccessPoint] = [*scenario.stations, *scenario.access_points]
    moving = {node.name: node.trajectory.position(time_s)[0] for node in nodes}
    east = [float(place[0]) for place in moving.values()]
    north = [float(place[1]) for place in moving.values()]
    side = max(max(east) - min(east), max(north) - min(north)) or 1.0
    middle = (max(north) + min(north)) / 2.0
    places: dict[fdm.Node, tuple[float, float]] = {
        name: ((float(place[0]) - min(east)) / side, (float(place[1]) - middle) / side)
        for name, place in moving.items()
    }
    top = (max(north) - middle) / side + 0.45
    right = (max(east) - min(east)) / side
    for number, satellite in enumerate(scenario.satellites):
        share = (number + 1) / (len(scenario.satellites) + 1)
        places[satellite.name] = (share * (right + 0.5), top)
    places[SHORE] = (right + 0.5, 0.15)
    places[scenario.host] = (right + 0.9, 0.15)
    return places
