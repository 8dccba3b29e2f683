"""WiFi and 3G together (section 5)."""

from simulation.experiments.experiment import Experiment, Progress, Row, measure
from simulation.network import Connection, Link, Path

_PACKET_BITS = 12_000


def _links(*given: tuple[float, float, int]) -> list[Link]:
    """Links of rate, round-trip time and buffer, each followed by the way back."""
    links = []
    for rate_bps, rtt_s, buffer in given:
        links += [
            Link(rate_bps, buffer_packets=buffer, early_drop_packets=3),
            Link(delay_s=rtt_s),
        ]
    return links


_WIFI, _CELLULAR = Path([0], [1]), Path([2], [3])


def _wireless(seed: int, progress: Progress) -> list[Row]:
    # 3G has a buffer of two seconds, as its networks had; round-trip times are our choice.
    links = _links((14.4e6, 0.02, 50), (2.1e6, 0.15, 350))
    rows = []
    for name, paths, algorithm, paper, recalled in (
        ("TCP over WiFi", [_WIFI], "lia", 14.4, False),
        ("TCP over 3G", [_CELLULAR], "lia", 2.1, True),
        ("ewtcp over both", [_WIFI, _CELLULAR], "ewtcp", None, False),
        ("coupled over both", [_WIFI, _CELLULAR], "coupled", None, False),
        ("mptcp over both", [_WIFI, _CELLULAR], "mptcp", 17.3, True),
        ("olia over both", [_WIFI, _CELLULAR], "olia", None, False),
        ("balia over both", [_WIFI, _CELLULAR], "balia", None, False),
    ):
        measured = measure(
            links,
            [Connection(paths, algorithm)],
            warm_s=60.0,
            measured_s=300.0,
            seed=seed,
            what=name,
            progress=progress,
        )
        rate = float(measured.rates()[0]) * _PACKET_BITS / 1e6
        rows.append(Row(name, "Mbit/s", rate, paper, recalled=recalled))
    return rows


WIRELESS = Experiment(
    "wireless",
    "WiFi and 3G without competition: does multipath get the sum?",
    "5, idle",
    _wireless,
)


def _competing(seed: int, progress: Progress) -> list[Row]:
    # Buffers of one bandwidth-delay product.
    links = _links(
        (500 * _PACKET_BITS, 0.05, 25),
        (250 * _PACKET_BITS, 0.5, 125),
    )
    rows = []
    for algorithm, papers in (
        ("mptcp", (305.0, 315.0, 130.0)),
        ("ewtcp", (None, None, None)),
        ("coupled", (None, None, None)),
        ("olia", (None, None, None)),
    ):
        measured = measure(
            links,
            [
                Connection([_WIFI, _CELLULAR], algorithm),
                Connection([_WIFI], start_s=1.0),
                Connection([_CELLULAR], start_s=2.0),
            ],
            warm_s=200.0,
            measured_s=1000.0,
            seed=seed,
            what=algorithm,
            progress=progress,
        )
        rows += [
            Row(f"{algorithm}: {name}", "packets/s", float(rate), paper, recalled=True)
            for name, rate, paper in zip(
                ("over both", "TCP over the quick link", "TCP over the slow link"),
                measured.rates(),
                papers,
                strict=True,
            )
        ]
    return rows


WIRELESS_COMPETING = Experiment(
    "wireless-competing",
    "a quick link (500 packets/s, 50 ms) and a slow one (250, 500 ms), each with one TCP",
    "5, figures 14 and 15",
    _competing,
)
