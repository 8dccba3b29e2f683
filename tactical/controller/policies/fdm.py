"""Flow deviation: the split of demands over attachments and trunks of least mean delay."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import fdm

# Only a demand that does not fit needs it, and numpy with it, which takes seconds to load in a
# guest: before the first event rather than in the middle of a change.
import fdm.interior_point
from fdm.queues import QueueRate, judge_deployed, queue_rates, redeploy

from ..allocation import TRICKLE_BPS, Allocation, Hop, Path, Situation, Subflow
from ..network import Attachment
from ..policy import Policy

_GAP = 1e-9
_GAP_OF_MANY = 1e-6
"""Relative gap asked for with more than `_MANY` demands: far below any hysteresis."""
_MANY = 100


@dataclass(frozen=True)
class RoutingProblem:
    """The network to solve.

    Its links are those of the description, whatever is attached or up, so that an earlier
    answer can be judged by link number: first the attachments, then each trunk in both
    directions, last the server's.  What is not there has capacity 0.
    """

    network: fdm.Network
    demands: tuple[fdm.Demand, ...]
    attachments: tuple[Attachment, ...]
    hops: tuple[Hop, ...]
    delay: fdm.Delay

    def hop(self, link: int) -> Hop:
        """What a link by number stands for, unless it is an attachment."""
        return self.hops[link - len(self.attachments)]


class FlowDeviation(Policy):
    """Each subflow gets its solved rate in a queue on every trunk; see docs/flow-deviation.md."""

    uses_queues = True

    def allocate(self, situation: Situation) -> Allocation:
        """Solve, then read each subflow's path and rate from the path flows.

        Both directions of a trunk have the same rate and delay, and no link is shared by both. So
        what the server sends is a problem of its own, with the same network seen backwards.
        """
        before = situation.before or Allocation(())
        optimal = _solved(situation, before.solution)
        used = {subflow.attachment for subflow in optimal.subflows}
        # A sender that does not know of backups goes on using a path that it has, and what waits
        # there keeps all that came after it waiting at the receiver.
        conserving = situation.network.settings.queue_mode == "work-conserving"
        unused = [
            _leftover(a, p) if conserving or a in situation.fading else _trickle(a, p)
            for a in situation.attached
            if a not in used and (p := situation.shortest_paths.get(a)) is not None
        ]
        subflows = (*optimal.subflows, *unused)
        if not situation.down_demands:
            return Allocation(subflows, optimal.solution)
        down = _solved(_backwards(situation), before.down)
        rates = {subflow.attachment: subflow for subflow in down.subflows}
        return Allocation(
            tuple(_both_ways(subflow, rates.get(subflow.attachment)) for subflow in subflows),
            optimal.solution,
            down.solution,
        )

    def keeps(self, situation: Situation, allocation: Allocation, since_s: float) -> bool:
        """Whether it still fits, and is within the relative gap or young."""
        return _keeps(situation, allocation.solution, since_s) and _keeps(
            _backwards(situation), allocation.down, since_s
        )


def _backwards(situation: Situation) -> Situation:
    """The same for what comes from the server, as if it went there."""
    return replace(situation, demands=situation.down_demands, down_demands={})


def _solved(situation: Situation, before: fdm.Solution | None) -> Allocation:
    """The subflows that the optimum uses; the search for it begins at an earlier one."""
    problem = routing_problem(situation)
    if not problem.demands:
        return Allocation(())
    solution = fdm.solve(
        problem.network,
        problem.demands,
        delay=problem.delay,
        start=before,
        gap=_GAP if len(problem.demands) <= _MANY else _GAP_OF_MANY,
    )
    solution = fdm.limit_paths(
        problem.network,
        problem.demands,
        solution,
        problem.delay,
        most=situation.network.settings.paths_per_user,
    )
    return _read(situation, problem, _one_path_each(problem, solution))


def _both_ways(subflow: Subflow, down: Subflow | None) -> Subflow:
    """A subflow with queues for what comes back: at the other ends of its trunks.

    What is not in the optimum (`down` is None, or goes by another path) takes what others leave.
    """
    queues = dict(subflow.queues)
    for hop in subflow.path:
        if hop.trunk is not None:
            leftover = QueueRate(0, max(TRICKLE_BPS, math.floor(hop.trunk.rate_bps)))
            rates = {} if down is None else down.queues
            queues[hop.head] = rates.get((hop.datapath, hop.port), leftover)
    return replace(subflow, queues=queues, down_bps=0.0 if down is None else down.rate_bps)


def _keeps(situation: Situation, solution: fdm.Solution | None, since_s: float) -> bool:
    if solution is None:
        return not any(situation.demands.values())
    problem, settings = routing_problem(situation), situation.network.settings
    verdict = judge_deployed(problem.network, problem.demands, solution, problem.delay)
    if verdict.fits and _moved(problem, solution, settings.demand_threshold):
        verdict = verdict._replace(relative_gap=math.inf)
    return not redeploy(
        verdict, epsilon=settings.relative_gap, since_s=since_s, dwell_s=settings.dwell_s
    )


def _moved(problem: RoutingProblem, solution: fdm.Solution, threshold: float) -> bool:
    """Whether a demand differs from the one that was solved by more than `threshold`."""
    return any(
        abs(demand.rate_bps - was_bps) > threshold * was_bps
        for demand, was_bps in zip(problem.demands, solution.offered_bps, strict=True)
    )


def routing_problem(situation: Situation) -> RoutingProblem:
    """What is to be solved in a situation."""
    network = situation.network
    here = set(situation.attached) - situation.fading
    server = f"server {network.server.name}"
    links = [
        fdm.Link(_user(a.user), a.datapath, a.rate_bps if a in here else 0.0)
        for a in network.attachments
    ]
    hops = []
    for t in network.trunks:
        capacity_bps, delay_s = situation.capacity_bps(t), situation.delay_s(t)
        hops += [Hop(t.a_datapath, t.a_port, t), Hop(t.b_datapath, t.b_port, t)]
        links.append(fdm.Link(t.a_datapath, t.b_datapath, capacity_bps, delay_s))
        links.append(fdm.Link(t.b_datapath, t.a_datapath, capacity_bps, delay_s))
    links.append(fdm.Link(network.server.datapath, server, network.server.rate_bps))
    users = {a.user for a in here}
    demands = [
        fdm.Demand(_user(user), server, rate_bps)
        for user, rate_bps in situation.demands.items()
        if user in users
    ]
    return RoutingProblem(
        _network(tuple(links)),
        tuple(demands),
        network.attachments,
        (*hops, situation.last_hop),
        _delay(network.mean_packet_bits, network.delay_coefficient),
    )


# Stations come and go in few combinations: what a network knows of itself is kept for the next
# time.
@lru_cache(maxsize=16)
def _network(links: tuple[fdm.Link, ...]) -> fdm.Network:
    nodes = dict.fromkeys(end for link in links for end in (link.tail, link.head))
    return fdm.Network(nodes, links)


_delay = lru_cache(maxsize=1)(fdm.Kleinrock)


def _one_path_each(problem: RoutingProblem, solution: fdm.Solution) -> fdm.Solution:
    """The same with one path behind each attachment, as a subflow has only one."""
    behind: dict[tuple[int, int], list[fdm.PathFlow]] = {}
    for number, flows in enumerate(solution.path_flows):
        for flow in flows:
            behind.setdefault((number, flow.path[0]), []).append(flow)
    if all(len(flows) == 1 for flows in behind.values()):
        return solution
    parts = [
        fdm.Demand(
            problem.network.links[first].head,
            problem.demands[number].destination,
            sum(flow.rate_bps for flow in flows),
        )
        for (number, first), flows in behind.items()
    ]
    split = replace(
        solution,
        path_flows=tuple(
            tuple(fdm.PathFlow(flow.path[1:], flow.rate_bps) for flow in flows)
            for flows in behind.values()
        ),
        admitted_bps=tuple(part.rate_bps for part in parts),
    )
    single = fdm.limit_paths(problem.network, parts, split, problem.delay, most=1)
    together: list[list[fdm.PathFlow]] = [[] for _ in problem.demands]
    link_flows_bps = [0.0] * len(problem.network.links)
    for (number, first), flows in zip(behind, single.path_flows, strict=True):
        for path, rate_bps in flows:
            together[number].append(fdm.PathFlow((first, *path), rate_bps))
            for link in (first, *path):
                link_flows_bps[link] += rate_bps
    return replace(
        single,
        path_flows=tuple(
            tuple(sorted(flows, key=lambda flow: -flow.rate_bps)) for flows in together
        ),
        link_flows_bps=tuple(link_flows_bps),
        admitted_bps=tuple(sum(flow.rate_bps for flow in flows) for flows in together),
        offered_bps=solution.offered_bps,
        lower_bound=solution.lower_bound,
    )


def _read(situation: Situation, problem: RoutingProblem, solution: fdm.Solution) -> Allocation:
    network = situation.network
    rates = queue_rates(
        problem.network,
        solution,
        capacity_share=network.capacity_share,
        mode=network.settings.queue_mode,
    )
    subflows = []
    for number, flows in enumerate(solution.path_flows):
        for path, rate_bps in flows:
            hops = {link: problem.hop(link) for link in path[1:]}
            queues = {
                (hop.datapath, hop.port): rates[number, path, link]
                for link, hop in hops.items()
                if hop.trunk is not None
            }
            attachment = problem.attachments[path[0]]
            subflows.append(Subflow(attachment, tuple(hops.values()), rate_bps, queues))
    return Allocation(tuple(subflows), solution)


def _trickle(attachment: Attachment, path: Path) -> Subflow:
    """A subflow that the optimum does not use: kept alive, at a rate that does no harm.

    Without a flow entry, what its sender has under way would be lost and stall the connection.
    """
    rate = QueueRate(0, TRICKLE_BPS)
    queues = {(hop.datapath, hop.port): rate for hop in path if hop.trunk is not None}
    return Subflow(attachment, path, 0.0, queues)


def _leftover(attachment: Attachment, path: Path) -> Subflow:
    """A subflow that the optimum does not use, and that takes what the others leave.

    Where its path is about to go, its sender has been told to send nothing new (a backup), or soon
    loses what it sends: to hold it back would only make what is under way late.
    """
    queues = {
        (hop.datapath, hop.port): QueueRate(0, max(TRICKLE_BPS, math.floor(hop.trunk.rate_bps)))
        for hop in path
        if hop.trunk is not None
    }
    return Subflow(attachment, path, 0.0, queues)


def _user(name: str) -> str:
    return f"user {name}"


POLICY = FlowDeviation()
