"""No machine at all: runs are simulated by a process like any other, without root or a kernel."""

from __future__ import annotations

import platform

from tactical.host.native import NativeMachine


class SimulatedMachine(NativeMachine):
    """Runs the worker of simulated runs; the clock is the simulation's."""

    name = "sim"

    @property
    def description(self) -> str:
        return f"packet simulation, Python {platform.python_version()}"
