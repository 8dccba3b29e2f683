"""From path flows to the rates of queues.

A demand on a path is one subflow and gets one queue on every link of that path. Each queue is
guaranteed the solved rate. What it may take beyond that follows one rule:

- On its **overflow path**, the one with the most free capacity at its bottleneck, a demand may
  take an equal share of the capacity that is left. Bursts, the catching up after a handover, and
  whatever the demand was estimated too low by go there.
- On its other paths it is held to the solved rate. A scarce path is scarce because it is good,
  and a greedy sender would fill it and with it everybody's delay.

That is the default, ``overflow``. ``strict`` holds every queue to its solved rate.
``work-conserving`` lets all of them take an equal share of what their link has left, up to its
whole capacity; it is the best where something else keeps queues short, see `fdm.active_queue`.

Guarantees never add up to more than a stated share of the capacity. Rates are whole bits per
second, because Open vSwitch reads nothing else.

What is deployed is changed as little as possible: `judge_deployed` and `redeploy` say whether to
change anything, `queue_ids` keeps the numbers of queues, and `changes` puts what lowers a rate
before what raises one, so that guarantees do not exceed the share on the way either.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Generic, NamedTuple, TypeVar

from fdm.certificate import certify
from fdm.delay import Delay
from fdm.network import Demand, Network
from fdm.routing import FITS, Routing, link_flows
from fdm.shortest import Path
from fdm.solution import Solution

MODES = ("overflow", "strict", "work-conserving")

QueueKey = tuple[int, Path, int]
"""Demand by position, path, link by position."""

LARGEST_QUEUE_ID = 61439
"""Open vSwitch's linux-htb takes queue numbers below 61440."""

_Key = TypeVar("_Key", bound=Hashable)


class QueueRate(NamedTuple):
    """Rates of one queue.

    Attributes
    ----------
    min_bps : int
        Guaranteed rate in bit/s.
    max_bps : int
        Rate in bit/s that it is held to, at least `min_bps` and at least 1.
    """

    min_bps: int
    max_bps: int


def queue_rates(
    network: Network,
    solution: Solution,
    *,
    capacity_share: float = 0.95,
    mode: str = "overflow",
) -> Mapping[QueueKey, QueueRate]:
    """Return the queue rates that carry out a solution.

    Parameters
    ----------
    network : Network
        The network that was solved.
    solution : Solution
        Its answer.
    capacity_share : float
        Share η of a link's capacity, above 0 and up to 1, that guaranteed rates may add up to and
        that is handed out as overflow.
    mode : str
        ``overflow``, ``strict`` or ``work-conserving``, see above.

    Returns
    -------
    mapping
        (demand, path, link) to rates, for every link of every path of every demand; demands and
        links by position, paths as in `Solution.path_flows`.

    Raises
    ------
    ValueError
        If `capacity_share` is out of bounds, there is no such mode, or the solution has not as
        many links as the network.

    Notes
    -----
    On a link with flow f, capacity C and n demands that overflow over it:

    - guaranteed: the solved rate, cut in proportion where f exceeds ηC, rounded down;
    - most: the solved rate, plus (ηC − f)/n for a demand that overflows here, or (C − f)/n for
      each where ``work-conserving``.
    """
    if not 0.0 < capacity_share <= 1.0:
        raise ValueError(f"capacity_share must be above 0 and at most 1, not {capacity_share!r}")
    if mode not in MODES:
        raise ValueError(f"mode must be one of {', '.join(MODES)}, not {mode!r}")
    if len(solution.link_flows_bps) != len(network.links):
        raise ValueError(
            f"the solution has {len(solution.link_flows_bps)} links, "
            f"the network {len(network.links)}"
        )
    usable = [capacity_share * link.capacity_bps for link in network.links]
    whole = [link.capacity_bps for link in network.links]
    free = [
        max(0.0, room - f)
        for room, f in zip(
            whole if mode == "work-conserving" else usable, solution.link_flows_bps, strict=True
        )
    ]
    taking: list[tuple[Path, ...]] = []  # of each demand, the paths that may take more
    for flows in solution.path_flows:
        paths = tuple(flow.path for flow in flows)
        if mode == "overflow" and paths:
            paths = (max(paths, key=lambda path: min(free[link] for link in path)),)
        taking.append(paths if mode != "strict" else ())
    crowd = [0] * len(network.links)
    for paths in taking:
        for path in paths:
            for link in path:
                crowd[link] += 1
    more = [room / takers if takers else 0.0 for room, takers in zip(free, crowd, strict=True)]
    cuts = [
        room / f if f > room else 1.0
        for room, f in zip(usable, solution.link_flows_bps, strict=True)
    ]

    rates: dict[QueueKey, QueueRate] = {}
    for demand, flows in enumerate(solution.path_flows):
        for path, rate_bps in flows:
            takes = path in taking[demand]
            for link in path:
                most = int(rate_bps + more[link]) if takes else int(rate_bps)
                least = int(rate_bps * cuts[link])
                rates[demand, path, link] = QueueRate(least, most if most > 1 else 1)
    return rates


def queue_ids(
    deployed: Mapping[_Key, int], wanted: Iterable[_Key], *, first: int = 1
) -> dict[_Key, int]:
    """Return queue numbers for one port: what is there keeps its number.

    Parameters
    ----------
    deployed : mapping
        Queues of the port, by any key, to their numbers.
    wanted : iterable
        Queues that there are to be.
    first : int
        Least number for a new queue.

    Raises
    ------
    ValueError
        If there are more queues than numbers.
    """
    wanted = list(dict.fromkeys(wanted))
    ids = {key: deployed[key] for key in wanted if key in deployed}
    # A number that was in use until now is not given to another queue at once: what is still
    # under way in it would be counted as the other's.
    taken = set(deployed.values())
    fallback = iter(sorted(taken - set(ids.values())))
    number = first
    for key in wanted:
        if key in ids:
            continue
        while number in taken:
            number += 1
        if number <= LARGEST_QUEUE_ID:
            ids[key] = number
            number += 1
        else:
            spare = next(fallback, None)
            if spare is None:
                raise ValueError(f"a port has at most {LARGEST_QUEUE_ID} queues")
            ids[key] = spare
    return ids


class Change(NamedTuple, Generic[_Key]):
    """One change of a queue: its new rates, or None to remove it."""

    key: _Key
    rate: QueueRate | None


def changes(
    deployed: Mapping[_Key, QueueRate],
    wanted: Mapping[_Key, QueueRate],
    *,
    tolerance: float = 0.05,
    link: Callable[[Any], Hashable] = itemgetter(2),
) -> tuple[Change[_Key], ...]:
    """Return what to change, in an order in which no guarantee is promised twice.

    Parameters
    ----------
    deployed, wanted : mapping
        Rates of queues as they are and as they are to be.
    tolerance : float
        Links on which no queue comes, goes, or changes by more than this part are left alone.
    link : callable
        From a key to the link of its queue; by default keys are those of `queue_rates`.

    Returns
    -------
    tuple of Change
        Removals first, then what lowers a guarantee, then the rest.
    """
    moving = {link(key) for key in wanted.keys() ^ deployed.keys()}
    for key in wanted.keys() & deployed.keys():
        was, to_be = deployed[key], wanted[key]
        if max(
            abs(to_be.min_bps - was.min_bps) / max(1, was.min_bps),
            abs(to_be.max_bps - was.max_bps) / max(1, was.max_bps),
        ) > max(0.0, tolerance):
            moving.add(link(key))
    removed = [Change(key, None) for key in deployed if key not in wanted]
    lowered, raised = [], []
    for key, rate in wanted.items():
        before = deployed.get(key)
        if link(key) not in moving or before == rate:
            continue
        if before is not None and rate.min_bps < before.min_bps:
            lowered.append(Change(key, rate))
        else:
            raised.append(Change(key, rate))
    return (*removed, *lowered, *raised)


class Verdict(NamedTuple):
    """What a deployed answer is worth in a new state.

    Attributes
    ----------
    fits : bool
        Whether its paths still exist and carry the demands.
    relative_gap : float
        Its relative gap there; infinite if it does not fit.
    """

    fits: bool
    relative_gap: float


def judge_deployed(
    network: Network, demands: Sequence[Demand], deployed: Solution, delay: Delay
) -> Verdict:
    """Return what a deployed answer is worth now, without solving anything.

    Parameters
    ----------
    network, demands, delay
        The state as it is now; demands in the order of `deployed`.
    deployed : Solution
        The answer in force. Its demands keep their split; their rates are those of now.
    """
    no = Verdict(False, math.inf)
    if len(deployed.path_flows) != len(demands):
        return no
    routing: Routing = []
    for demand, flows in zip(demands, deployed.path_flows, strict=True):
        carried = sum([flow.rate_bps for flow in flows])
        if demand.rate_bps > 0.0 and carried <= 0.0:
            return no
        share = demand.rate_bps / carried if carried > 0.0 else 0.0
        for path, _ in flows:
            if any(link >= len(network.links) for link in path):
                return no
            ends = (network.links[path[0]].tail, network.links[path[-1]].head)
            if ends != (demand.origin, demand.destination):
                return no
        routing.append({flow.path: flow.rate_bps * share for flow in flows})
    flow = link_flows(network, routing)
    for link, f in zip(network.links, flow, strict=True):
        if f > 0.0 and (
            link.capacity_bps <= 0.0 or (not delay.bounded and f >= FITS * link.capacity_bps)
        ):
            return no
    return Verdict(True, certify(network, demands, flow, delay).relative_gap)


def redeploy(
    verdict: Verdict,
    *,
    epsilon: float = 0.01,
    since_s: float = math.inf,
    dwell_s: float = 0.0,
) -> bool:
    """Return whether to replace the deployed answer.

    Parameters
    ----------
    verdict : Verdict
        What the deployed answer is worth.
    epsilon : float
        Relative gap up to which it is kept.
    since_s : float
        Seconds since the last change.
    dwell_s : float
        Seconds that an answer which fits is kept whatever its gap.
    """
    if not verdict.fits:
        return True
    return since_s >= dwell_s and verdict.relative_gap > epsilon
