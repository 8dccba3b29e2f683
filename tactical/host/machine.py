"""The machine that a worker runs on, and the choice between the ways there are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol, get_args

from tactical.host.process import Child

Backend = Literal["auto", "native", "vm"]
BACKENDS: tuple[str, ...] = get_args(Backend)


class HostError(Exception):
    """What was asked for is impossible on this machine; the text says why and what helps."""


class Machine(Protocol):
    """Something that runs a command with the rights and kernel parts that the emulation needs."""

    @property
    def name(self) -> str:
        """`native` or `vm`."""
        ...

    @property
    def description(self) -> str:
        """One line for people: which kernel, and how it runs."""
        ...

    def command(self, argv: Sequence[str], writable: Sequence[Path] = ()) -> list[str]:
        """The argument vector that runs `argv` there, exactly as `start` would.

        Parameters
        ----------
        argv : sequence of str
            Command with absolute paths; the same file system is seen on every machine.
        writable : sequence of Path
            Existing directories whose contents the command changes for good. Elsewhere a virtual
            machine's writes are lost or refused. Give one parent rather than many children.
        """
        ...

    def start(self, argv: Sequence[str], writable: Sequence[Path], log_path: Path) -> Child:
        """Run `argv` there and return at once.

        The child's exit status is that of `argv` (255: the virtual machine itself failed, and
        `failure` or the log says how). `stop` reaches `argv` as SIGTERM; after the grace
        everything is killed. If this process dies, however, a virtual machine is killed with it
        and a native worker gets SIGTERM.

        Raises
        ------
        HostError
            Something it needs is missing.
        """
        ...


def choose(backend: str = "auto") -> Machine:
    """The machine for a backend: `auto` takes `native` where it works, else `vm`.

    Raises
    ------
    HostError
        Not possible here; the sentence names what is missing and the command that helps.
    """
    from tactical.host import doctor
    from tactical.host.native import NativeMachine
    from tactical.host.virtual import VirtualMachine

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
