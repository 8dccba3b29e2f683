"""What changes while it runs, on a real network: dense handovers, and links that change.

Random-walk for every protocol and leo-pass, some ten seconds each.
"""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import scenarios
from analysis import RunResult, analyse
from tactical.experiment import Request, execute
from tactical.host import HostError, choose

SEED = 33  # nine handovers in twelve seconds
WALK = scenarios.load(
    "random-walk",
    {
        "duration_s": 12,
        "ships.least_speed_mps": 60.0,
        "ships.greatest_speed_mps": 100.0,
        "ships.shortest_leg_s": 2.0,
        "ships.longest_leg_s": 5.0,
    },
)
# Satellite handovers, and rain that takes most of a narrow satellite's rate, within twelve seconds.
LEO = scenarios.load(
    "leo-pass",
    {
        "duration_s": 12,
        "leo.slot_s": 3.0,
        "satcom.rate_bps": 4_000_000,
        "satcom.rain.peak_db": 10.0,
        "satcom.rain.start_s": 3.0,
        "satcom.rain.rise_s": 2.0,
    },
)

pytestmark = pytest.mark.emulation


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, RunResult]]:
    """Directory and result by protocol; leo-pass is ``leo``."""
    try:
        choose("auto")
    except HostError as error:
        pytest.skip(str(error))
    runs_dir = tmp_path_factory.mktemp("runs")
    requests = [Request(WALK, protocol, SEED, "auto", runs_dir) for protocol in scenarios.PROTOCOLS]
    requests.append(Request(LEO, "fdm", 0, "auto", runs_dir))
    directories = execute(requests)
    return {
        name: (directory, analyse(directory))
        for name, directory in zip([*scenarios.PROTOCOLS, "leo"], directories, strict=True)
    }


def events(directory: Path, kind: str) -> Iterator[dict[str, Any]]:
    for line in (directory / "events.jsonl").read_text().splitlines():
        event = json.loads(line)
        if event["kind"] == kind:
            yield event


@pytest.mark.parametrize("name", [*scenarios.PROTOCOLS, "leo"])
def test_every_run_comes_to_its_end_without_a_fault(
    runs: dict[str, tuple[Path, RunResult]], name: str
) -> None:
    directory, result = runs[name]
    assert (result.state, result.reason) == ("done", None)
    errors = [e["data"]["message"] for e in events(directory, "error")]
    # A transfer over one path may be cut off; that is its result.
    assert not [message for message in errors if "iperf3" not in message]


@pytest.mark.parametrize("protocol", scenarios.PROTOCOLS)
def test_every_handover_of_the_schedule_happens_in_its_order(
    runs: dict[str, tuple[Path, RunResult]], protocol: str
) -> None:
    directory, _ = runs[protocol]
    expected = [(h.station, h.before, h.after) for h in WALK.build(SEED).handovers()]
    found = [
        (e["node"], e["data"]["from"], e["data"]["to"])
        for e in events(directory, "handover")
        if e["data"]["phase"] == "begin"
    ]
    for station in ("ship1", "ship2"):
        assert [e for e in found if e[0] == station] == [e for e in expected if e[0] == station]
    assert sum(e["data"]["phase"] == "end" for e in events(directory, "handover")) == len(expected)


@pytest.mark.parametrize("protocol", ["mptcp", "fdm"])
def test_with_several_paths_dense_handovers_lose_nothing(
    runs: dict[str, tuple[Path, RunResult]], protocol: str
) -> None:
    _, result = runs[protocol]
    if result.overloaded:
        pytest.skip(f"this machine could not keep up with the network: {result.machine}")
    for user in result.users.values():
        assert user.completed
        assert user.longest_interruption_after_start_s is not None
        assert user.longest_interruption_after_start_s < 2.0


def test_flow_deviation_is_solved_for_every_change_of_the_walk(
    runs: dict[str, tuple[Path, RunResult]],
) -> None:
    directory, _ = runs["fdm"]
    solved = [e["data"] for e in events(directory, "solve")]
    shares = [sorted(f["via"] for f in solve["path_flows"]) for solve in solved]
    assert len(solved) >= 1 + len(WALK.build(SEED).handovers())
    assert ["satcom", "satcom"] in shares
    assert ["satcom", "satcom", "uav", "uav"] in shares
    assert all(solve["relative_gap"] <= 1e-6 for solve in solved)


def test_links_follow_their_profiles(runs: dict[str, tuple[Path, RunResult]]) -> None:
    directory, _ = runs["leo"]
    for satellite in LEO.build(0).satellites:
        wanted = [
            (s.rate_bps, s.delay_s, s.loss)
            for s in satellite.backhaul.profile
            if 0 < s.time_s < LEO.duration_s
        ]
        found = [
            (e["data"]["rate_bps"], e["data"]["delay_s"], e["data"]["loss"])
            for e in events(directory, "link_change")
            if e["node"] == satellite.name
        ]
        assert wanted
        assert found[-len(wanted) :] == wanted


def test_no_packet_is_faster_than_light(runs: dict[str, tuple[Path, RunResult]]) -> None:
    directory, result = runs["leo"]
    delays_s = {
        e["data"]["delay_s"] for e in events(directory, "link_change") if e["node"] == "leo"
    }
    assert len(delays_s) >= 3
    for user in result.users.values():
        assert user.series is not None
        medians_s = [each for each in user.series.delay_s["leo"] if each is not None]
        assert len(medians_s) >= 5
        assert min(medians_s) >= min(delays_s)


def test_rain_takes_the_rate_and_the_controller_solves_for_what_is_left(
    runs: dict[str, tuple[Path, RunResult]],
) -> None:
    directory, result = runs["leo"]
    (rain,) = [s.backhaul for s in LEO.build(0).satellites if s.name == "satcom"]
    least_bps = min(state.rate_bps for state in rain.profile)
    solved = [e["data"] for e in events(directory, "solve")]
    assert any(solve["trigger"].startswith("capacity of satcom:") for solve in solved)

    def over_satcom_bps(solve: dict[str, Any]) -> float:
        return sum(f["rate_bps"] for f in solve["path_flows"] if f["via"] == "satcom")

    assert over_satcom_bps(solved[-1]) < least_bps < over_satcom_bps(solved[0])
    series = [user.series for user in result.users.values() if user.series is not None]
    assert len(series) == 2
    passed_bps = Counter[float]()
    for each in series:
        for step, rate_bps in enumerate(each.frames_bps["satcom"]):
            passed_bps[each.start_s + step * each.step_s] += rate_bps
    assert max(rate for at_s, rate in passed_bps.items() if at_s < 6) > 1.5 * least_bps
    # The shower has its peak from 5 s on; what was under way then has arrived a second later.
    late_bps = [rate for at_s, rate in passed_bps.items() if 7 <= at_s < 12]
    assert len(late_bps) == 5
    assert max(late_bps) <= 1.03 * least_bps
