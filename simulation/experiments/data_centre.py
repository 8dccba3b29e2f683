"""Data centres: fat tree and BCube (section 4).

Traffic patterns: TP1 is a random permutation, TP2 twelve destinations for each host, TP3 one
destination for three hosts in ten.
"""

import random
from collections.abc import Callable, Sequence

from simulation.experiments.experiment import (
    Experiment,
    Measured,
    Progress,
    Row,
    fairness,
    measure,
)
from simulation.network import Connection, Link, Path
from simulation.topologies import BCube, FatTree, permutation

_Paths = Callable[[int, int, random.Random], Sequence[Sequence[int]]]

_WINDOW = 1024
_WARM_S, _MEASURED_S = 1.0, 2.0
_ALGORITHMS = ("single path", "ewtcp", "mptcp")


def fat_tree(ports: int = 8) -> FatTree:
    """Return the paper's fat tree: links of 100 Mbit/s with buffers of 100 packets."""
    return FatTree(ports, Link(100e6, 1e-6, 100, early_drop_packets=3))


def pairs(pattern: str, hosts: int, draw: random.Random) -> list[tuple[int, int]]:
    """Return who sends to whom."""
    if pattern == "TP1":
        return list(enumerate(permutation(hosts, draw)))
    if pattern == "TP3":
        senders = draw.sample(range(hosts), 3 * hosts // 10)
        while True:  # nobody's destination is somebody else's
            receivers = draw.sample(range(hosts), len(senders))
            if all(a != b for a, b in zip(senders, receivers, strict=True)):
                return list(zip(senders, receivers, strict=True))
    return [
        (host, other)
        for host in range(hosts)
        for other in draw.sample([h for h in range(hosts) if h != host], 12)
    ]


def traffic(
    who: list[tuple[int, int]],
    paths: _Paths,
    algorithm: str,
    packet_bytes: int,
    draw: random.Random,
) -> list[Connection]:
    """Return connections that start within the first tenth of a second."""
    return [
        Connection(
            [Path(path) for path in paths(source, destination, draw)],
            algorithm,
            start_s=draw.uniform(0.0, 0.1),
            packet_bytes=packet_bytes,
            receive_window_packets=_WINDOW,
        )
        for source, destination in who
    ]


def _per_host(
    links: list[Link],
    who: list[tuple[int, int]],
    connections: list[Connection],
    seed: int,
    what: str,
    progress: Progress,
) -> tuple[float, Measured]:
    """Simulate; the mean rate of hosts that send, in Mbit/s, and all that was measured."""
    measured = measure(
        links,
        connections,
        warm_s=_WARM_S,
        measured_s=_MEASURED_S,
        seed=seed,
        what=what,
        progress=progress,
    )
    senders = len({source for source, _ in who})
    bits = 8.0 * connections[0].packet_bytes
    return float(measured.rates().sum() * bits / 1e6 / senders), measured


def _fat_tree(seed: int, progress: Progress) -> list[Row]:
    tree = fat_tree()
    rows = []
    for pattern, papers in (
        ("TP1", (51.0, 92.0, 95.0)),
        ("TP2", (94.0, 92.5, 97.0)),
        ("TP3", (60.0, 99.0, 99.0)),
    ):
        for name, paper in zip(_ALGORITHMS, papers, strict=True):
            draw = random.Random(seed)
            who = pairs(pattern, tree.hosts, draw)
            count = 1 if name == "single path" else 8
            connections = traffic(
                who,
                lambda a, b, draw, count=count: tree.choose(a, b, count, draw),  # type: ignore[misc]
                "lia" if count == 1 else name,
                1500,
                draw,
            )
            what = f"{pattern}, {name}"
            rate, _ = _per_host(tree.links, who, connections, seed, what, progress)
            rows.append(Row(what, "Mbit/s", rate, paper, recalled=True))
    return rows


FAT_TREE = Experiment(
    "fat-tree",
    "128 hosts and 80 switches: what a host gets, with one path and with eight",
    "4, FatTree",
    _fat_tree,
)


def _fat_tree_paths(seed: int, progress: Progress) -> list[Row]:
    tree = fat_tree()
    rows = []
    for count in (1, 2, 3, 4, 6, 8):
        draw = random.Random(seed)
        who = pairs("TP1", tree.hosts, draw)
        connections = traffic(
            who,
            lambda a, b, draw, count=count: tree.choose(a, b, count, draw),  # type: ignore[misc]
            "lia",
            1500,
            draw,
        )
        what = f"{count} path{'s' * (count > 1)}"
        rate, measured = _per_host(tree.links, who, connections, seed, what, progress)
        rows += [
            Row(what, "Mbit/s", rate, 90.0 if count == 8 else None),
            Row(f"{what}: fairness", "Jain's index", fairness(measured.rates())),
        ]
    return rows


FAT_TREE_PATHS = Experiment(
    "fat-tree-paths",
    "the same with LIA over 1 to 8 paths, TP1 (the paper: 8 are enough for some 90 %)",
    "4, figure 12",
    _fat_tree_paths,
)


def _bcube(seed: int, progress: Progress) -> list[Row]:
    cube = BCube(5, 3, Link(100e6, 1e-4, 102, early_drop_packets=3))
    rows = []
    for pattern, papers in (
        ("TP1", (64.5, 84.0, 86.5)),
        ("TP2", (297.0, 229.0, 272.0)),
        ("TP3", (78.0, 139.0, 135.0)),
    ):
        for name, paper in zip(_ALGORITHMS, papers, strict=True):
            draw = random.Random(seed)
            who = (
                [(host, other) for host in range(cube.hosts) for other in cube.neighbours(host)]
                if pattern == "TP2"
                else pairs(pattern, cube.hosts, draw)
            )
            single = name == "single path"
            connections = traffic(
                who,
                (lambda a, b, draw: [cube.shortest(a, b, draw)]) if single else cube.disjoint,
                "lia" if single else name,
                1000,
                draw,
            )
            what = f"{pattern}, {name}"
            rate, _ = _per_host(cube.links, who, connections, seed, what, progress)
            rows.append(Row(what, "Mbit/s", rate, paper, recalled=True))
    return rows


BCUBE = Experiment(
    "bcube",
    "125 hosts with three interfaces: what a host gets, with one path and with three",
    "4, BCube",
    _bcube,
)
