"""The choice between the machines that there are."""

from __future__ import annotations

from tactical.host import doctor
from tactical.host.machine import HostError, Machine
from tactical.host.native import NativeMachine
from tactical.host.virtual import VirtualMachine

BACKENDS = ("auto", "native", "vm")


def choose(backend: str = "auto") -> Machine:
    """The machine for a backend: `auto` takes `native` where it works, else `vm`.

    Raises
    ------
    HostError
        Not possible here; the sentence names what is missing and the command that helps.
    """
    if backend not in BACKENDS:
        raise HostError(f"backend is one of {', '.join(BACKENDS)}, not {backend!r}")
    problems: dict[str, list[str]] = {}
    if backend in ("auto", "native"):
        problems["native"] = doctor.native_problems()
        if not problems["native"]:
            return NativeMachine()
    if backend in ("auto", "vm"):
        problems["vm"] = doctor.virtual_problems()
        kernel = doctor.newest_suitable_kernel()
        if not problems["vm"] and kernel is not None:
            return VirtualMachine(kernel=kernel.release, kvm=doctor.probe_kvm(kernel).works)
    reasons = "; ".join(f"{name}: {', '.join(found)}" for name, found in problems.items())
    remedy = doctor.install_command()
    advice = f" Install with: {remedy}" if remedy else " See `tactical doctor`."
    raise HostError(f"no way to run an emulated network here ({reasons}).{advice}")
