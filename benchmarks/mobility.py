"""How long positions, contacts, passes and traces take, beside other ways in the same run.

    python benchmarks/mobility.py [--repeat N] [--json]

Times are medians of process CPU time in seconds, with everybody on one thread.

fleet       positions of 10 000 random walks at 10 000 times in chunks, beside numpy.interp
contacts    1000 random walks and 50 access points that stand, walk or circle, over an hour,
            beside looking with NumPy every second (which sees events up to a second late) and,
            scaled up from a minute, every 10 ms
passes      a satellite above 10 degrees in a day, beside Skyfield's find_events
trace       fixes of a CSV table a second, beside the csv module and float()
"""

import argparse
import csv
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
# Python looks for modules beside the script first, where `mobility` is this file.
sys.path[:] = [
    entry for entry in sys.path if Path(entry).resolve() != Path(__file__).parent.resolve()
]

import numpy as np  # noqa: E402

import mobility  # noqa: E402
from mobility import (  # noqa: E402
    Area,
    Fixed,
    Fleet,
    Orbit,
    Trajectory,
    contact_schedule,
    random_walk,
    traces,
)

HOUR_S = 3600.0
ISS = (
    "1 25544U 98067A   08264.51782528 -.00002182  00000-0 -11606-4 0  2927",
    "2 25544  51.6416 247.4627 0006703 130.5360 325.0288 15.72125391563537",
)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="of each (3)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args(arguments)
    rows = [
        *fleet(options.repeat),
        *contacts(options.repeat),
        *passes(options.repeat),
        *trace(options.repeat),
    ]
    if options.json:
        print(json.dumps(rows))
        return 0
    for row in rows:
        print(f"{row['what']:<44} {row['ours_s']:9.3f} s   {row['peer']:<34}", end="")
        print(f" {row['peer_s']:9.3f} s   {row['peer_s'] / row['ours_s']:8.1f} times as long")
    return 0


def median_s(work: Callable[[], object], repeat: int) -> float:
    taken = []
    for _ in range(repeat):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return statistics.median(taken)


def row(what: str, ours_s: float, peer: str, peer_s: float) -> dict[str, str | float]:
    return {"what": what, "ours_s": ours_s, "peer": peer, "peer_s": peer_s}


def walks(count: int, seed: int) -> list[mobility.Path]:
    return [
        random_walk(
            Area.square(10_000.0),
            speed_mps=(5.0, 15.0),
            leg_s=(30.0, 90.0),
            duration_s=HOUR_S,
            seed=seed,
            stream=number,
        )
        for number in range(count)
    ]


def fleet(repeat: int) -> list[dict[str, str | float]]:
    nodes, times = walks(10_000, 1), np.linspace(0.0, HOUR_S, 10_000)
    waypoints = [(node.times_s, node.positions_m) for node in nodes]

    def ours() -> None:
        for _ in Fleet(nodes).in_chunks(times):
            pass

    def interpolated() -> None:
        for waypoints_s, places_m in waypoints:
            for axis in range(3):
                np.interp(times, waypoints_s, places_m[:, axis])

    peer_s = median_s(interpolated, repeat)
    return [row("10 000 nodes at 10 000 times", median_s(ours, repeat), "numpy.interp", peer_s)]


def contacts(repeat: int) -> list[dict[str, str | float]]:
    nodes = walks(1000, 1)
    grid = [(1000.0 * (n % 7) - 3000.0, 1000.0 * (n // 7) - 3500.0, 100.0) for n in range(50)]
    kinds: dict[str, Sequence[Trajectory]] = {
        "that stand": [Fixed(place) for place in grid],
        "that walk": walks(50, 2),
        "that circle": [Orbit(place, 500.0, 25.0) for place in grid],
    }
    rows = []
    for name, access_points in kinds.items():
        ours_s = median_s(
            lambda these=access_points: contact_schedule(nodes, these, 1500.0, HOUR_S), repeat
        )
        looked_s = median_s(lambda these=access_points: look(nodes, these, HOUR_S, 1.0), 1)
        few_s = median_s(lambda these=access_points: look(nodes[:20], these, 60.0, 0.01), 1)
        what = f"1000 nodes, 50 access points {name}, 1 h"
        rows.append(row(what, ours_s, "looking every 1 s", looked_s))
        scaled_s = few_s * 50.0 * 60.0
        rows.append(row(what, ours_s, "looking every 10 ms, scaled", scaled_s))
    return rows


def look(
    nodes: Sequence[Trajectory], access_points: Sequence[Trajectory], until_s: float, step_s: float
) -> int:
    """Count events as a polling loop sees them, one node at a time."""
    times = np.arange(0.0, until_s, step_s)
    others = Fleet(access_points).positions(times)
    events = 0
    for node in nodes:
        apart = others - node.position(times)
        near = np.einsum("ijk,ijk->ij", apart, apart) <= 1500.0**2
        events += int(np.count_nonzero(near[:, 1:] != near[:, :-1]))
    return events


def passes(repeat: int) -> list[dict[str, str | float]]:
    from skyfield.api import EarthSatellite, load, wgs84

    from mobility.satcom import Site
    from mobility.satellites import Satellite

    epoch = datetime(2008, 9, 20, 12, 30, tzinfo=UTC)
    satellite, site = Satellite("ISS", *ISS, epoch), Site(54.32, 10.14)
    scale = load.timescale(builtin=True)
    orbit, place = EarthSatellite(*ISS, "ISS", scale), wgs84.latlon(54.32, 10.14)
    ends = scale.from_datetime(epoch), scale.from_datetime(epoch + timedelta(days=1))
    ours_s = median_s(lambda: satellite.passes(site, 86_400.0, 10.0), repeat)
    theirs_s = median_s(lambda: orbit.find_events(place, *ends, altitude_degrees=10.0), repeat)
    return [row("passes of the ISS in a day", ours_s, "Skyfield's find_events", theirs_s)]


def trace(repeat: int) -> list[dict[str, str | float]]:
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "walks.csv"
        traces.save({str(number): each for number, each in enumerate(walks(2000, 3))}, file)

        def bare() -> None:
            with file.open(newline="") as stream:
                table = csv.reader(stream)
                next(table)
                for node, *numbers in table:
                    (node, *map(float, numbers))

        def ours() -> None:
            for _ in traces.fixes(file):
                pass

        count = sum(1 for _ in traces.fixes(file))
        return [
            row(f"{count} rows of CSV, checked", median_s(ours, repeat), "csv and float()",
                median_s(bare, repeat))
        ]  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
