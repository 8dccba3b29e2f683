"""The choice between the machines that there are."""

from __future__ import annotations

from tactical.host import doctor
from tactical.host.hermetic import HermeticMachine
from tactical.host.machine import HostError, Machine
from tactical.host.native import NativeMachine
from tactical.host.simulated import SimulatedMachine
from tactical.host.virtual import VirtualMachine

EMULATING = ("auto", "native", "vm")

BACKENDS = (*EMULATING, "sim")

TIMES = ("auto", "real", "virtual")


def choose(backend: str = "auto", time: str = "auto") -> Machine:
    """The machine for a backend: `auto` takes `native` where it works, else `vm`, never `sim`.

    Parameters
    ----------
    backend : str
        One of `BACKENDS`.
    time : str
        ``virtual`` makes the clock of a virtual machine count instructions; ``auto`` does so where
        the processor has to be emulated anyway, and the clock of this machine would show how fast
        that goes.

    Raises
    ------
    HostError
        Not possible here; the sentence names what is missing and the command that helps.
    """
    if backend not in BACKENDS:
        raise HostError(f"backend is one of {', '.join(BACKENDS)}, not {backend!r}")
    if time not in TIMES:
        raise HostError(f"time is one of {', '.join(TIMES)}, not {time!r}")
    if backend == "sim":
        if time != "auto":
            raise HostError(
                f"a simulation has a clock of its own: --backend sim without --time {time}"
            )
        return SimulatedMachine()
    if backend == "native" and time == "virtual":
        raise HostError("virtual time needs a virtual machine: --backend vm")
    problems: dict[str, list[str]] = {}
    if backend in ("auto", "native") and time != "virtual":
        problems["native"] = doctor.native_problems()
        if not problems["native"]:
            return NativeMachine()
    if backend in ("auto", "vm"):
        problems["vm"] = doctor.virtual_problems()
        kernel = doctor.newest_suitable_kernel()
        if not problems["vm"] and kernel is not None:
            kvm = time != "virtual" and doctor.probe_kvm(kernel).works
            if time == "virtual" or (time == "auto" and not kvm):
                return HermeticMachine(kernel.release)
            return VirtualMachine(kernel.release, kvm=kvm)
    reasons = "; ".join(f"{name}: {', '.join(found)}" for name, found in problems.items())
    remedy = doctor.install_command()
    advice = f" Install with: {remedy}" if remedy else " See `tactical doctor`."
    raise HostError(f"no way to run an emulated network here ({reasons}).{advice}")
