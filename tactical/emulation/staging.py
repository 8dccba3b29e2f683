"""Virtual time: how an experiment stays out of the way of a clock that counts instructions.

Such a clock skips the time in which the guest has nothing to do, and waiting for a file of the host
looks like that: a microsecond's wait would become seconds of run time. So while an experiment runs
its directory is in the guest's memory, its tools are in the page cache, and what happens is told
through a port that takes no time at all.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ..host.process import EVENT_MARK, CommandError, run
from .openvswitch import SCHEMA

_STAGE = Path("/run/tactical-runs")
_DEBUG_PORT = 0xE9
"""QEMU's isa-debugcon: a byte that is written there has left the guest."""
_HOST_OWNED = "worker.log"
_TOOLS: tuple[tuple[str, ...], ...] = (
    ("ovsdb-tool", "--version"),
    ("ovsdb-server", "--version"),
    ("ovs-vswitchd", "--version"),
    ("ovs-vsctl", "--version"),
    ("ovs-ofctl", "--version"),
    ("cat", str(SCHEMA)),
    ("hostapd", "-v"),
    ("ethtool", "--version"),
    ("ip", "-V"),
    ("iw", "--version"),
    ("tc", "-V"),
    ("ss", "-V"),
    ("sysctl", "-V"),
    ("iperf3", "--version"),
    ("dumpcap", "--version"),
    ("mptcpize", "--help"),
    ("sh", "-c", "seq 1 | grep -q 1"),
)
_PATIENCE_S = 1e5
"""Run time that loading a tool may seem to take."""


@contextmanager
def staged(run_dirs: Sequence[Path]) -> Iterator[dict[Path, Path]]:
    """Copies of run directories in memory while the block lasts.

    Yields
    ------
    dict
        Each run directory to its copy. `bring_back` writes one back; at the end of the block that
        happens with all.
    """
    copies = {run_dir: _STAGE / run_dir.name for run_dir in run_dirs}
    for run_dir, copy in copies.items():
        shutil.copytree(run_dir, copy, ignore=shutil.ignore_patterns(_HOST_OWNED))
    try:
        yield copies
    finally:
        for run_dir, copy in copies.items():
            bring_back(copy, run_dir)
            shutil.rmtree(copy)


def bring_back(copy: Path, run_dir: Path) -> None:
    """Write what is in a copy back to its run directory."""
    shutil.copytree(copy, run_dir, dirs_exist_ok=True)


def load_tools() -> None:
    """Run every tool of an experiment once, so that its files are in memory afterwards."""
    for argv in _TOOLS:
        try:
            run(argv, timeout_s=_PATIENCE_S, check=False)
        except CommandError:
            continue  # what is missing is told where it is needed


def told_at_once(name: str) -> Callable[[str], None]:
    """A function that takes an event of the run called `name` out of the guest in no time.

    Raises
    ------
    OSError
        If the port cannot be opened: this is no virtual machine of ours.
    """
    port = os.open("/dev/port", os.O_WRONLY)

    def tell(line: str) -> None:
        # Byte by byte: /dev/port counts the port up with every byte of a longer write.
        for byte in f"{EVENT_MARK}{name} {line}\n".encode():
            os.pwrite(port, bytes((byte,)), _DEBUG_PORT)

    return tell
