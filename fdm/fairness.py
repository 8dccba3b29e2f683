"""Who gets what among equally good answers.

The link flows of least delay are unique, the shares of demands in them are not. The rule is
**proportional sharing**: of all splits of those link flows over shortest paths, the one of largest
entropy −Σ x·ln(x/d), with x the path flows and d the demand's rate. Demands that face the same
choice then choose in the same proportions (H. Bar-Gera, "Traffic assignment by paired alternative
segments", Transp. Res. B 44, 2010, calls that the condition of proportionality); demands that
nothing tells apart get the same, and neither the method nor its start nor the order of demands
matters. Where the delay leaves no choice nothing is moved.

`fdm.entropy` finds it where the compiled loops are in use, links and paths together are no more
than 700, and no demand has more than 32 shortest paths. Beyond that, and on networks so small
that they are solved without NumPy, the same rule is kept among demands that the network cannot
tell apart, which is what this module does:

- demands with the same ends use the same paths in the same proportions;
- demands of the same rate between *twins* do so too. Twins are nodes whose links lead to the same
  neighbours with the same capacity and delay, such as two ships in reach of the same access points.

Exchanging such demands changes nothing for the mean delay, and the delay is convex, so the mean of
all exchanges is at least as good as the answer that it replaces.
"""

from collections.abc import Hashable, Sequence

from fdm.network import Demand, Network
from fdm.routing import Routing
from fdm.shortest import Path


def shared(network: Network, demands: Sequence[Demand], routing: Routing) -> Routing:
    """Return the routing with demands that cannot be told apart sharing alike.

    Parameters
    ----------
    network, demands : Network, sequence of Demand
        The problem.
    routing : Routing
        An answer to it.

    Returns
    -------
    Routing
        With the same rates of the demands. It is the one given where there is nothing to share.
    """
    same_ends: dict[Hashable, list[int]] = {}
    for number, demand in enumerate(demands):
        if routing[number]:
            same_ends.setdefault((demand.origin, demand.destination), []).append(number)
    even: Routing | None = None
    for numbers in same_ends.values():
        if len(numbers) > 1:
            even = even or list(routing)
            _share(demands, even, numbers)

    ends = {end for pair in same_ends for end in pair}  # type: ignore[attr-defined]
    if len(ends) < 3 or len(demands) > _MOST_TWINS:
        return even or routing
    key = (_twins, frozenset(ends))
    if key not in network.known:
        network.known[key] = _twins(network, ends)
    twins: dict[Hashable, Hashable] = network.known[key]
    groups: dict[Hashable, list[int]] = {}
    for number, demand in enumerate(demands):
        if routing[number]:
            alike = (twins[demand.origin], twins[demand.destination], demand.rate_bps)
            groups.setdefault(alike, []).append(number)
    for numbers in groups.values():
        if len({(demands[number].origin, demands[number].destination) for number in numbers}) > 1:
            even = even or list(routing)
            _exchange(network, demands, even, numbers)
    return even or routing


_MOST_TWINS = 5000


def _share(demands: Sequence[Demand], routing: Routing, numbers: Sequence[int]) -> None:
    total: dict[Path, float] = {}
    for number in numbers:
        for path, rate in routing[number].items():
            total[path] = total.get(path, 0.0) + rate
    everything = sum(demands[number].rate_bps for number in numbers)
    for number in numbers:
        share = demands[number].rate_bps / everything
        routing[number] = {path: rate * share for path, rate in total.items() if rate * share > 0}


def _twins(network: Network, ends: set[Hashable]) -> dict[Hashable, Hashable]:
    """Return for each node a value that its twins have too."""
    leaving: dict[Hashable, list[tuple[int, float, float]]] = {end: [] for end in ends}
    entering: dict[Hashable, list[tuple[int, float, float]]] = {end: [] for end in ends}
    for (tail, head, capacity_bps, delay_s), (start, end) in zip(
        network.links, network.ends, strict=True
    ):
        if capacity_bps <= 0.0:
            continue
        if tail in ends:
            leaving[tail].append((end, capacity_bps, delay_s))
        if head in ends:
            entering[head].append((start, capacity_bps, delay_s))
    return {end: (tuple(sorted(leaving[end])), tuple(sorted(entering[end]))) for end in ends}


def _parallel(network: Network) -> tuple[dict[tuple[int, int], list[int]], dict[int, int]]:
    """Return the links between any two nodes in order of quality, and each link's place there."""
    outer: dict[tuple[int, int], list[int]] = {}
    if _parallel in network.known:
        outer, place = network.known[_parallel]
        return outer, place
    for number, ends in enumerate(network.ends):
        if network.links[number].capacity_bps > 0.0:
            outer.setdefault(ends, []).append(number)
    for same in outer.values():
        if len(same) > 1:
            same.sort(key=lambda one: network.links[one][2:])
    place = {link: order for same in outer.values() for order, link in enumerate(same)}
    network.known[_parallel] = outer, place
    return outer, place


def _exchange(
    network: Network, demands: Sequence[Demand], routing: Routing, numbers: Sequence[int]
) -> None:
    """Give every demand the mean of what all have, each path moved to the demand's own ends."""
    index, ends = network.index, network.ends
    outer, place = _parallel(network)
    places: dict[tuple[Path, Hashable, Hashable], Path | None]
    places = network.known.setdefault(_exchange, {})

    def moved(path: Path, demand: Demand) -> Path | None:
        key = (path, demand[0], demand[1])
        if key not in places:
            places[key] = place_of(path, index[demand.origin], index[demand.destination])
        return places[key]

    def place_of(path: Path, origin: int, destination: int) -> Path | None:
        between = [ends[link][1] for link in path[:-1]]
        if origin in between or destination in between:
            return None
        links = list(path)
        nodes = (origin, *between, destination)
        for at in {0, len(path) - 1}:
            same = outer.get((nodes[at], nodes[at + 1]), ())
            order = place[path[at]]
            if order >= len(same):
                return None
            links[at] = same[order]
        return tuple(links)

    # All are gathered at the ends of the first, and from there go back to everybody's own.
    first, *others = numbers
    total = dict(routing[first])
    even = True
    for number in others:
        gathered: dict[Path, float] = {}
        for path, rate in routing[number].items():
            there = moved(path, demands[first])
            if there is None:
                return
            gathered[there] = rate
        even = even and gathered == routing[first]
        for path, rate in gathered.items():
            total[path] = total.get(path, 0.0) + rate
    if even:
        return
    means: list[dict[Path, float]] = []
    for number in numbers:
        mean: dict[Path, float] = {}
        for path, rate in total.items():
            there = path if number == first else moved(path, demands[number])
            if there is None:
                return
            mean[there] = rate / len(numbers)
        means.append(mean)
    for number, mean in zip(numbers, means, strict=True):
        routing[number] = mean
