"""Data centre networks of any size: their hosts, switches and cables."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

from routing.graph import Graph, Link


class Cable(NamedTuple):
    """A link that carries its rate in both directions.

    Attributes
    ----------
    a, b : str
        What it joins.
    rate_bps : float
        Rate in each direction in bit/s.
    """

    a: str
    b: str
    rate_bps: float


@dataclass(frozen=True)
class Topology:
    """Hosts and switches, and what joins them.

    Attributes
    ----------
    hosts, switches : tuple of str
        Their names.
    cables : tuple of Cable
        In an order that depends on the parameters only.
    """

    hosts: tuple[str, ...]
    switches: tuple[str, ...]
    cables: tuple[Cable, ...]

    @cached_property
    def graph(self) -> Graph:
        """Its links: cable i from a to b is link 2i, and from b to a link 2i + 1."""
        return Graph(
            Link(*ends, cable.rate_bps)
            for cable in self.cables
            for ends in ((cable.a, cable.b), (cable.b, cable.a))
        )


def fat_tree(ports: int, rate_bps: float = 1e9) -> Topology:
    """Return a fat tree of switches with k ports (M. Al-Fares et al., SIGCOMM 2008).

    k pods of k/2 edge and k/2 aggregation switches, (k/2)² core switches, k³/4 hosts.

    Parameters
    ----------
    ports : int
        k, even.
    rate_bps : float
        Rate of every cable.

    Raises
    ------
    ValueError
        If k is not an even number of 2 or more.
    """
    if ports < 2 or ports % 2:
        raise ValueError(f"ports is {ports}; expected an even number of 2 or more")
    half = ports // 2
    hosts = [f"h{i}" for i in range(ports * half * half)]
    edge = [f"e{i}" for i in range(ports * half)]
    aggregation = [f"a{i}" for i in range(ports * half)]
    core = [f"c{i}" for i in range(half * half)]
    cables = [Cable(host, edge[i // half], rate_bps) for i, host in enumerate(hosts)]
    cables += [
        Cable(switch, aggregation[i // half * half + up], rate_bps)
        for i, switch in enumerate(edge)
        for up in range(half)
    ]
    cables += [
        Cable(switch, core[i % half * half + up], rate_bps)
        for i, switch in enumerate(aggregation)
        for up in range(half)
    ]
    return Topology(tuple(hosts), (*edge, *aggregation, *core), tuple(cables))


def leaf_spine(
    leaves: int, spines: int, hosts_each: int, host_bps: float = 10e9, spine_bps: float = 40e9
) -> Topology:
    """Return two layers of switches, each leaf joined to each spine.

    Parameters
    ----------
    leaves, spines, hosts_each : int
        Switches of either kind, and hosts of each leaf; 1 or more.
    host_bps, spine_bps : float
        Rates of cables from hosts and from spines to leaves.

    Raises
    ------
    ValueError
        If a number is less than 1.
    """
    _check(leaves=leaves, spines=spines, hosts_each=hosts_each)
    hosts = [f"h{i}" for i in range(leaves * hosts_each)]
    leaf, spine = [f"l{i}" for i in range(leaves)], [f"s{i}" for i in range(spines)]
    cables = [Cable(host, leaf[i // hosts_each], host_bps) for i, host in enumerate(hosts)]
    cables += [Cable(low, high, spine_bps) for low in leaf for high in spine]
    return Topology(tuple(hosts), (*leaf, *spine), tuple(cables))


def vl2(
    aggregation_ports: int,
    intermediate_ports: int,
    hosts_each: int = 20,
    host_bps: float = 1e9,
    switch_bps: float = 10e9,
) -> Topology:
    """Return a VL2 network (A. Greenberg et al., SIGCOMM 2009).

    With aggregation switches of D_A ports and intermediate switches of D_I ports: D_A/2
    intermediate switches, each joined to all D_I aggregation switches, and D_A·D_I/4 top-of-rack
    switches, each joined to two of the latter.

    Parameters
    ----------
    aggregation_ports, intermediate_ports : int
        D_A and D_I, both even.
    hosts_each : int
        Hosts of each top-of-rack switch, 1 or more.
    host_bps, switch_bps : float
        Rates of cables of hosts, and between switches.

    Raises
    ------
    ValueError
        If a number of ports is not even, or a number is too small.
    """
    _check(hosts_each=hosts_each)
    for name, ports in (
        ("aggregation_ports", aggregation_ports),
        ("intermediate_ports", intermediate_ports),
    ):
        if ports < 2 or ports % 2:
            raise ValueError(f"{name} is {ports}; expected an even number of 2 or more")
    half = aggregation_ports // 2
    racks = [f"t{i}" for i in range(half * intermediate_ports // 2)]
    aggregation = [f"a{i}" for i in range(intermediate_ports)]
    intermediate = [f"i{i}" for i in range(half)]
    hosts = [f"h{i}" for i in range(len(racks) * hosts_each)]
    cables = [Cable(host, racks[i // hosts_each], host_bps) for i, host in enumerate(hosts)]
    cables += [
        Cable(rack, aggregation[2 * (i // half) + which], switch_bps)
        for i, rack in enumerate(racks)
        for which in (0, 1)
    ]
    cables += [Cable(low, high, switch_bps) for low in aggregation for high in intermediate]
    return Topology(tuple(hosts), (*racks, *aggregation, *intermediate), tuple(cables))


def bcube(ports: int, level: int, rate_bps: float = 1e9) -> Topology:
    """Return BCube_k of servers that forward (C. Guo et al., SIGCOMM 2009).

    n^(k+1) hosts with one interface on each of k + 1 levels; on each, hosts whose addresses differ
    in that digit only share a switch of n ports.

    Parameters
    ----------
    ports : int
        n, 2 or more.
    level : int
        k, 0 or more.
    rate_bps : float
        Rate of every cable.

    Raises
    ------
    ValueError
        If a number is too small.
    """
    _check_recursive(ports, level)
    hosts = [f"h{i}" for i in range(ports ** (level + 1))]
    switches, cables = [], []
    for at in range(level + 1):
        switches += [f"s{at}.{i}" for i in range(ports**level)]
        for i, host in enumerate(hosts):
            below = ports**at  # the digit of this level is left out of the switch's number
            number = i // (below * ports) * below + i % below
            cables.append(Cable(host, f"s{at}.{number}", rate_bps))
    return Topology(tuple(hosts), tuple(switches), tuple(cables))


def dcell(ports: int, level: int, rate_bps: float = 1e9) -> Topology:
    """Return DCell_k of servers that forward (C. Guo et al., SIGCOMM 2008).

    DCell_0 is n hosts at one switch. DCell_k is as many DCell_(k-1) and one more as one of them
    has hosts; each two are joined by a cable between two hosts.

    Parameters
    ----------
    ports : int
        n, 2 or more.
    level : int
        k, 0 or more.
    rate_bps : float
        Rate of every cable.

    Raises
    ------
    ValueError
        If a number is too small.
    """
    _check_recursive(ports, level)
    total = ports
    for _ in range(level):
        total *= total + 1
    hosts = [f"h{i}" for i in range(total)]
    switches = [f"s{i}" for i in range(total // ports)]
    cables = [Cable(host, switches[i // ports], rate_bps) for i, host in enumerate(hosts)]
    cables += [Cable(hosts[a], hosts[b], rate_bps) for a, b in _cell(0, ports, level)]
    return Topology(tuple(hosts), tuple(switches), tuple(cables))


def _cell(first: int, ports: int, level: int) -> Iterator[tuple[int, int]]:
    """The cables between hosts of a DCell whose hosts are numbered from `first` on."""
    if level == 0:
        return
    size = ports
    for _ in range(level - 1):
        size *= size + 1
    for cell in range(size + 1):
        yield from _cell(first + cell * size, ports, level - 1)
    for i, j in combinations(range(size + 1), 2):
        yield first + i * size + j - 1, first + j * size + i


def _check(**numbers: int) -> None:
    for name, number in numbers.items():
        if number < 1:
            raise ValueError(f"{name} is {number}; expected 1 or more")


def _check_recursive(ports: int, level: int) -> None:
    if ports < 2:
        raise ValueError(f"ports is {ports}; expected 2 or more")
    if level < 0:
        raise ValueError(f"level is {level}; expected 0 or more")
