"""What the simulator does not know, said before a run. Pure."""

from __future__ import annotations

from scenarios import Scenario

from ..emulation.plan import Plan

CONGESTION_CONTROLS = ("cubic", "reno")


def problem(scenario: Scenario, plan: Plan) -> str | None:
    """Why a run cannot be simulated; None if it can."""
    if plan.applications:
        kinds = sorted({each.application.kind for each in plan.applications})
        return f"bulk transfers are simulated, and no traffic of kind {', '.join(kinds)}"
    for transfer in plan.transfers:
        if transfer.reverse:
            return "transfers towards the host are simulated, and none from it (traffic.direction)"
        if transfer.connections > 1 or transfer.name != transfer.user:
            return "one transfer of each station is simulated, and not several"
        if transfer.congestion_control not in CONGESTION_CONTROLS:
            return (
                f"congestion control is one of {', '.join(CONGESTION_CONTROLS)} there, "
                f"not {transfer.congestion_control}"
            )
    if scenario.outage_s is not None:
        return "a controller that is killed (controller.killed_at_s) is not simulated"
    return None
