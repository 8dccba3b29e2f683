"""The worked examples of section 2.

The paper computes them from the balance of the windows. We do the same, and simulate packets as
well, on links whose losses come near what the calculation assumes: independent of each other, and
rarer than every tenth packet of a window. Every connection is ten of a kind on ten times the rate,
so that no single one makes the losses of a link.
"""

import random
from collections.abc import Sequence

import numpy as np

from simulation.equilibrium import balance
from simulation.experiments.experiment import Experiment, Measured, Progress, Row, measure
from simulation.network import Connection, Link, Path

_BITS = 12_000
_OF_A_KIND = 10
_RTT_S = 0.1
_RED = 0.003
"""Drop probability of a full buffer, which is one bandwidth-delay product."""


def _on_links(
    algorithms: Sequence[str],
    kinds: Sequence[Sequence[Sequence[int]]],
    rates_bps: Sequence[float],
    seed: int,
    progress: Progress,
    measured_s: float = 300.0,
) -> Measured:
    """Simulate connections of several kinds, each with an algorithm and paths over links."""
    links = []
    for rate_bps in rates_bps:
        buffer = int(_OF_A_KIND * rate_bps / _BITS * _RTT_S)
        links.append(
            Link(
                _OF_A_KIND * rate_bps,
                buffer_packets=buffer,
                early_drop_packets=buffer,
                early_drop_probability=_RED,
            )
        )
    back = len(links)
    links.append(Link(delay_s=_RTT_S))
    draw = random.Random(seed)
    connections = [
        Connection(
            [Path(path, [back]) for path in paths], algorithm, start_s=draw.uniform(0.0, 2.0)
        )
        for algorithm, paths in zip(algorithms, kinds, strict=True)
        for _ in range(_OF_A_KIND)
    ]
    return measure(
        links,
        connections,
        warm_s=100.0,
        measured_s=measured_s,
        seed=seed,
        what=algorithms[0],
        progress=progress,
    )


def _of_kind(measured: Measured, kind: int) -> float:
    """Mean rate of a connection of a kind, in Mbit/s."""
    rates = measured.rates()[kind * _OF_A_KIND : (kind + 1) * _OF_A_KIND]
    return float(rates.mean() * _BITS / 1e6)


def _shared_bottleneck(seed: int, progress: Progress) -> list[Row]:
    rows = []
    for algorithm, paper in (
        ("uncoupled", 2.0),
        ("ewtcp", 1.0),
        ("coupled", 1.0),
        ("mptcp", 1.0),
        ("lia", None),
        ("olia", None),
        ("balia", None),
    ):
        kinds = [[[0], [0]], [[0]]]
        measured = _on_links([algorithm, "uncoupled"], kinds, [20e6], seed, progress)
        both, one = (_of_kind(measured, kind) for kind in (0, 1))
        expected = None
        if algorithm != "olia":
            (two, single) = balance(
                algorithm, kinds, [[_RTT_S, _RTT_S], [_RTT_S]], capacities=[20e6 / _BITS]
            )
            expected = sum(two) / single[0]
        rows.append(
            Row(f"{algorithm}: two subflows over one TCP", "ratio", both / one, paper, expected)
        )
    return rows


SHARED_BOTTLENECK = Experiment(
    "shared-bottleneck",
    "two subflows and one TCP on the same link: how much more do two get?",
    "2.1, figure 1",
    _shared_bottleneck,
)

_TRIANGLE = [[[0], [1, 2]], [[1], [2, 0]], [[2], [0, 1]]]


def _triangle(seed: int, progress: Progress) -> list[Row]:
    rows = []
    for algorithm, paper in (("ewtcp", 8.5), ("coupled", 12.0), ("mptcp", None), ("olia", None)):
        measured = _on_links([algorithm] * 3, _TRIANGLE, [12e6] * 3, seed, progress)
        simulated = np.mean([_of_kind(measured, kind) for kind in range(3)])
        rows.append(
            Row(
                f"{algorithm}: each connection",
                "Mbit/s",
                float(simulated),
                paper,
                None if algorithm == "olia" else _balanced(algorithm, _TRIANGLE, [12e6] * 3)[0],
            )
        )
    return rows


def _balanced(
    algorithm: str, kinds: Sequence[Sequence[Sequence[int]]], rates_bps: Sequence[float]
) -> list[float]:
    found = balance(
        algorithm,
        kinds,
        [[_RTT_S] * len(paths) for paths in kinds],
        capacities=[rate_bps / _BITS for rate_bps in rates_bps],
    )
    return [sum(paths) * _BITS / 1e6 for paths in found]


TRIANGLE = Experiment(
    "triangle",
    "three connections, each over one link or over the two others, of 12 Mbit/s",
    "2.2, figure 2",
    _triangle,
)

_FOUR_LINKS = [[[0], [1]], [[1], [2]], [[2], [3]]]
_FOUR_RATES = [5e6, 12e6, 10e6, 3e6]


def _four_links(seed: int, progress: Progress) -> list[Row]:
    rows = []
    for algorithm, papers in (
        ("ewtcp", (11.0, 11.0, 8.0)),
        ("coupled", (10.0, 10.0, 10.0)),
        ("mptcp", (None, None, None)),
    ):
        measured = _on_links([algorithm] * 3, _FOUR_LINKS, _FOUR_RATES, seed, progress)
        expected = _balanced(algorithm, _FOUR_LINKS, _FOUR_RATES)
        rows += [
            Row(f"{algorithm}: {name}", "Mbit/s", _of_kind(measured, kind), paper, expected[kind])
            for kind, (name, paper) in enumerate(zip("ABC", papers, strict=True))
        ]
    return rows


FOUR_LINKS = Experiment(
    "four-links",
    "three connections over links of 5, 12, 10 and 3 Mbit/s: is congestion balanced?",
    "2.2, figure 3",
    _four_links,
)

_RARER = 100.0
"""Losses are made so much rarer in packets, so that recovery and timeouts, which the calculation
knows nothing of, matter little; rates are then divided by the square root."""


def _on_losses(
    algorithm: str,
    losses: Sequence[float],
    rtts_s: Sequence[float],
    seed: int,
    progress: Progress,
    measured_s: float,
) -> tuple[list[float], list[float]]:
    """Return rates of the paths in packets per second, simulated and from the balance."""
    links = [
        Link(delay_s=rtt_s, loss=loss / _RARER) for rtt_s, loss in zip(rtts_s, losses, strict=True)
    ]
    connection = Connection([Path([i]) for i in range(len(links))], algorithm)
    measured = measure(
        links,
        [connection] * 5,
        warm_s=0.2 * measured_s,
        measured_s=measured_s,
        seed=seed,
        what=algorithm,
        progress=progress,
    )
    simulated = np.mean([measured.subflow_rates(c) for c in range(5)], axis=0) / _RARER**0.5
    paths = [[i] for i in range(len(links))]
    (expected,) = balance(algorithm, [paths], [rtts_s], losses)
    return simulated.tolist(), expected


def _rtt_mismatch(seed: int, progress: Progress) -> list[Row]:
    rows = []
    for name, algorithm, paths, paper in (
        ("TCP over WiFi", "uncoupled", [0], 707.0),
        ("TCP over 3G", "uncoupled", [1], 141.0),
        ("ewtcp over both", "ewtcp", [0, 1], 424.0),
        ("coupled over both", "coupled", [0, 1], 141.0),
        ("mptcp over both", "mptcp", [0, 1], 707.0),
        ("balia over both", "balia", [0, 1], None),
    ):
        simulated, expected = _on_losses(
            algorithm,
            [(0.04, 0.01)[i] for i in paths],
            [(0.01, 0.1)[i] for i in paths],
            seed,
            progress,
            200.0,
        )
        rows.append(Row(name, "packets/s", sum(simulated), paper, sum(expected)))
    return rows


RTT_MISMATCH = Experiment(
    "rtt-mismatch",
    "WiFi (10 ms, 4 % loss) and 3G (100 ms, 1 %): is multipath as good as the best path?",
    "2.3, figure 4",
    _rtt_mismatch,
)


def _lossy_path(seed: int, progress: Progress) -> list[Row]:
    rows = []
    for algorithm, papers in (
        ("ewtcp", (None, None)),
        ("semicoupled", (45.0, 10.0)),
        ("coupled", (None, 0.0)),
    ):
        found = _on_losses(algorithm, [0.01, 0.01, 0.05], [0.1] * 3, seed, progress, 1000.0)
        shares = [[100.0 * x / sum(rates) for x in rates] for rates in found]
        for name, papers_value, paths in (
            ("each path of 1 % loss", papers[0], (0, 1)),
            ("the path of 5 % loss", papers[1], (2, 2)),
        ):
            simulated, expected = (0.5 * (each[paths[0]] + each[paths[1]]) for each in shares)
            rows.append(
                Row(f"{algorithm}: share of {name}", "%", simulated, papers_value, expected)
            )
    return rows


LOSSY_PATH = Experiment(
    "lossy-path",
    "three paths with losses of 1, 1 and 5 %: how much stays on the bad one?",
    "2.4",
    _lossy_path,
)
