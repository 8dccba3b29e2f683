"""Where increase and decrease of the windows balance, without packets.

The worked examples of the paper are such balances: on every path, the increase per acknowledgment
times the acknowledgments equals the decrease per loss times the losses. Windows may be any fraction
of a packet here.
"""

import math
from collections.abc import Sequence
from types import SimpleNamespace

from simulation.congestion import ALGORITHMS, cut, increase

_BALANCED = ("uncoupled", "ewtcp", "coupled", "semicoupled", "mptcp", "lia", "balia")
_GAIN, _PRICE_GAIN = 0.2, 0.05
_LEAST_WINDOW, _LEAST_LOSS = 1e-9, 1e-15


def balance(
    algorithm: str,
    connections: Sequence[Sequence[Sequence[int]]],
    rtt_s: Sequence[Sequence[float]],
    losses: Sequence[float] = (),
    capacities: Sequence[float] = (),
    rounds: int = 20_000,
) -> list[list[float]]:
    """Return the rate of every path in packets per second.

    Parameters
    ----------
    algorithm : str
        One without memory: not ``olia``, ``cubic`` or ``wvegas``.
    connections : sequence
        For each connection its paths, each a sequence of link indices.
    rtt_s : sequence
        Round-trip times of these paths.
    losses : sequence of float
        Loss probability of each link; or else
    capacities : sequence of float
        rate of each link in packets per second, from which losses follow.
    rounds : int
        Steps of the iteration.

    Raises
    ------
    ValueError
        If the algorithm has a memory.
    """
    if algorithm not in _BALANCED:
        raise ValueError(f"algorithm is {algorithm!r}; expected one of {', '.join(_BALANCED)}")
    number = ALGORITHMS[algorithm]
    price = list(losses) or [1e-3] * len(capacities)
    windows = [
        [SimpleNamespace(w=10.0 / (1.0 + len(path)), rtt_s=rtt) for path, rtt in paths_of]
        for paths_of in (
            list(zip(paths, rtts, strict=True))
            for paths, rtts in zip(connections, rtt_s, strict=True)
        )
    ]
    for _ in range(rounds):
        for paths, own in zip(connections, windows, strict=True):
            n = len(paths)
            factors = []
            for r, path in enumerate(paths):
                lost = 1.0 - math.prod(1.0 - price[link] for link in path)
                up = (1.0 - lost) * increase(number, r, 0, n, own, 0.0)
                factors.append((up / (lost * cut(number, r, 0, n, own))) ** _GAIN)
            for window, factor in zip(own, factors, strict=True):
                window.w = max(window.w * factor, _LEAST_WINDOW)
        if capacities:
            load = [0.0] * len(price)
            for paths, own in zip(connections, windows, strict=True):
                for path, window in zip(paths, own, strict=True):
                    for link in path:
                        load[link] += window.w / window.rtt_s
            for link, capacity in enumerate(capacities):
                change = (load[link] / capacity) ** _PRICE_GAIN
                price[link] = min(max(price[link] * change, _LEAST_LOSS), 0.5)
    return [[window.w / window.rtt_s for window in own] for own in windows]
