"""What the page about the emulation says of a fleet's size is so."""

from pathlib import Path

import scenarios
from tactical.emulation.memory import guest_memory_mib
from tactical.emulation.plan import make_plan

PAGE = (Path(__file__).parents[2] / "docs" / "emulation.md").read_text(encoding="utf-8")


def test_the_fleet_shown_has_the_size_that_is_told(tmp_path: Path) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text(PAGE.partition("```toml\n")[2].partition("```")[0])
    plan = make_plan(scenarios.load("convoy", [], file).build(1), "fdm")
    assert (len(plan.stations), len(plan.radios), len(plan.uplinks)) == (50, 10, 14)
    namespaces = len(plan.stations) + len(plan.media) + 1
    assert (
        f"{namespaces} network namespaces, {len(plan.switches)} bridges, {len(plan.wires)} wires, "
        f"{plan.radio_count} radios, {len(plan.capture_points)} recorders and "
        f"{2 * len(plan.transfers)} iperf3"
    ) in PAGE
    gibibytes = guest_memory_mib([plan]) / 1024
    assert f"{gibibytes:g} for the fleet above" in PAGE
