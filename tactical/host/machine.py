"""The machine that a worker runs on, as the rest of `tactical` sees it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from tactical.host.process import Child


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

    @property
    def virtual_time(self) -> bool:
        """Whether its clock counts instructions instead of seconds."""
        ...

    def with_memory(self, memory_mib: int) -> Machine:
        """The same machine with at least so much memory.

        Raises
        ------
        HostError
            There is not so much.
        """
        ...

    def command(self, argv: Sequence[str], writable: Sequence[Path] = ()) -> list[str]:
        """The argument vector that runs `argv` there, exactly as `start` would.

        Parameters
        ----------
        argv : sequence of str
            Command with absolute paths; the same file system is seen on every machine.
        writable : sequence of Path
            Existing directories whose contents the command changes for good. Elsewhere a virtual
            machine's writes are lost or refused. Give one parent rather than many children; in
            virtual time the one directory that the command needs, which is copied there and back.
        """
        ...

    def check(self, writable: Sequence[Path] = ()) -> None:
        """Find out without a start whether these directories can be given to `start`.

        Parameters
        ----------
        writable : sequence of Path
            As for `command`; they need not exist.

        Raises
        ------
        HostError
            They cannot; the sentence says what to change.
        """
        ...

    def start(
        self,
        argv: Sequence[str],
        writable: Sequence[Path],
        log_path: Path,
        *,
        told: Sequence[Path] = (),
        room_bytes: int = 0,
        seed: int = 0,
    ) -> Child:
        """Run `argv` there and return at once.

        Parameters
        ----------
        argv, writable
            As for `command`.
        log_path : Path
            Gets what the command and the machine say.
        told : sequence of Path
            Files that get, line by line, what a command in virtual time tells through the first
            port, the second and so on (`emulation.telling`); others write where they are seen.
        room_bytes : int
            What the command may write. A machine in virtual time has to reserve it beforehand.
        seed : int
            Of the random numbers of a machine in virtual time; others have their own.

        Lines said to the child (`Child.say`) are the command's standard input.

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


def enough(memory_mib: int, least_mib: int) -> int:
    """Memory of a virtual machine for which `memory_mib` were asked, at least `least_mib`.

    Raises
    ------
    HostError
        This machine has not so much.
    """
    has_mib = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
    if memory_mib > max(has_mib, least_mib):
        raise HostError(
            f"a virtual machine for a network of this size needs {memory_mib} MiB "
            f"of memory, and this machine has {has_mib} MiB; nothing was run"
        )
    return max(memory_mib, least_mib)
