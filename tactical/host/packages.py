"""The list of system packages, and what of it is missing here."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tactical.host.process import search_path

LIST_NAME = "system-packages.txt"
VIRTUAL_MACHINE = "virtual machine"
STATIC = "static:"
_PT_INTERP = 3  # elf(5): the program header that names a loader of shared libraries


@dataclass(frozen=True)
class SystemPackage:
    """One line of the list.

    Attributes
    ----------
    names : tuple of str
        The package and its alternatives on other distributions, best first.
    provides : tuple of str
        Commands, `static:…`, `kernel:…` or `python:…`.
    section : str
        Heading that the line is under.
    reason : str
        Why it is needed; may be empty.
    """

    names: tuple[str, ...]
    provides: tuple[str, ...]
    section: str
    reason: str = ""

    @property
    def commands(self) -> tuple[str, ...]:
        """The provided commands, static ones among them."""
        items = (item.removeprefix(STATIC) for item in self.provides)
        return tuple(item for item in items if ":" not in item)

    def command_problem(self, command: str) -> str | None:
        """What is wrong with one of `commands` on this machine: None if nothing is."""
        path = find_command(command)
        if path is None:
            return command
        if STATIC + command in self.provides and not is_static(path):
            return f"{command} without shared libraries ({path} needs them)"
        return None


def list_path() -> Path:
    """The list: beside this file when installed, at the root of a checkout otherwise."""
    installed = Path(__file__).with_name(LIST_NAME)
    return installed if installed.exists() else Path(__file__).resolve().parents[2] / LIST_NAME


def parse(text: str) -> tuple[SystemPackage, ...]:
    """Read the list; see the comment at its top for the format."""
    section = ""
    packages = []
    for line in text.splitlines():
        content, _, reason = (part.strip() for part in line.partition("#"))
        if not content:
            continue
        if content.startswith("["):
            section = content.strip("[]")
            continue
        names, _, provides = content.partition(":")
        packages.append(
            SystemPackage(
                names=tuple(name.strip() for name in names.split("|")),
                provides=tuple(provides.split()),
                section=section,
                reason=reason,
            )
        )
    return tuple(packages)


def read() -> tuple[SystemPackage, ...]:
    """The packages of the shipped list."""
    return parse(list_path().read_text(encoding="utf-8"))


def find_command(name: str) -> Path | None:
    """Where a command is, looking also where only root usually looks."""
    found = shutil.which(name, path=search_path())
    return Path(found) if found else None


def is_static(path: Path) -> bool:
    """Whether a program starts where there are no libraries (a 64-bit ELF file, elf(5))."""
    with path.open("rb") as file:
        head = file.read(64)
        if len(head) < 64 or head[:5] != b"\x7fELF\x02":
            return False
        (offset,) = struct.unpack_from("<Q", head, 32)
        size, count = struct.unpack_from("<HH", head, 54)
        file.seek(offset)
        table = file.read(size * count)
    kinds = [struct.unpack_from("<I", table, size * number)[0] for number in range(count)]
    return bool(kinds) and _PT_INTERP not in kinds


def missing(
    packages: tuple[SystemPackage, ...], kernel_has: Callable[[tuple[str, ...]], bool]
) -> tuple[SystemPackage, ...]:
    """The packages that something is missing of.

    Parameters
    ----------
    kernel_has : callable
        Whether one installed kernel has all modules of a tuple.
    """

    def is_there(package: SystemPackage, provided: str) -> bool:
        kind, colon, value = provided.partition(":")
        if not colon or kind + colon == STATIC:
            return package.command_problem(value or provided) is None
        # A running `tactical` proves that its Python and virtual environment are there.
        return kind != "kernel" or kernel_has(tuple(value.split(",")))

    return tuple(
        package
        for package in packages
        if not all(is_there(package, item) for item in package.provides)
    )


def install_command(packages: tuple[SystemPackage, ...]) -> str | None:
    """The command that installs packages, or None when there is nothing to install."""
    if not packages:
        return None
    prefix = "" if os.geteuid() == 0 else "sudo "
    names = " ".join(package.names[0] for package in packages)
    return f"{prefix}apt-get install --no-install-recommends {names}"
