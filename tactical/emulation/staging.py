"""Virtual time: how an experiment stays out of the way of a clock that counts instructions.

Such a clock skips the time in which the guest has nothing to do, and waiting for a file of the host
looks like that: a microsecond's wait would become seconds of run time. So while an experiment runs
its directory and its tools are in the guest's memory, and what happens is told through a port that
takes no time at all.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ..host.process import EVENT_MARK, SYSTEM_DIRECTORIES, CommandError, run
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
_LOAD_TIMEOUT_S = 1000.0
"""For each step of loading, times `PATIENCE`."""


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


_ROOT_SCRIPT = """
root=/run/root
mkdir $root
mount -t tmpfs tmpfs $root
for each in /*; do
    if [ -L "$each" ]; then cp -P "$each" "$root$each"
    elif [ "$each" = /etc ]; then cp -a /etc $root
    elif [ "$each" = /run ]; then mkdir "$root$each"; mount --bind /run "$root$each"
    elif [ -d "$each" ]; then mkdir "$root$each"; mount --rbind "$each" "$root$each"
    fi
done
mkdir $root/oldroot
cd $root
pivot_root . oldroot
umount --lazy /oldroot
"""
"""Every start of a program walks the root directory and asks for files of /etc, and the guest's
root keeps nothing in memory."""
_COMMANDS = Path("/run/tactical-commands")
_COPIES = Path("/run/tactical-copies")
_LOCALE = Path("/usr/lib/locale/C.utf8")
_HELPERS = ("bash", "cut", "env", "grep", "mnexec", "seq", "setpriv", "sleep", "true")
"""Programs that start the others, or that shell scripts use."""


def load_tools() -> None:
    """Keep in memory what starts of an experiment's tools ask for; each is run once.

    Raises
    ------
    CommandError
        If the root directory cannot be brought into memory.
    """
    run(("sh", "-e", "-c", _ROOT_SCRIPT), timeout_s=_LOAD_TIMEOUT_S)
    _link_commands()
    _copy_programs()
    for argv in _TOOLS:
        try:
            run(argv, timeout_s=_LOAD_TIMEOUT_S, check=False)
        except CommandError:
            continue  # what is missing is told where it is needed


def _link_commands() -> None:
    """One directory of all commands, first in the search path.

    The kernel forgets at once that a command was not found in a directory of the host, and would
    have to ask again at each start.
    """
    _COMMANDS.mkdir()
    for directory in SYSTEM_DIRECTORIES:
        for command in Path(directory).glob("*"):
            link = _COMMANDS / command.name
            # Python looks for its environment beside the name it was started by.
            if not command.name.startswith("python") and not link.is_symlink():
                link.symlink_to(command)
    os.environ["PATH"] = f"{_COMMANDS}:{os.environ['PATH']}"


def _copy_programs() -> None:
    """Programs with their libraries and locale, in memory at the places where they are.

    The kernel asks the host whenever a file of the host is opened, whatever it has cached of it.
    """
    names = {argv[0] for argv in _TOOLS} | set(_HELPERS)
    found = (shutil.which(name, path=os.pathsep.join(SYSTEM_DIRECTORIES)) for name in names)
    programs = [path for path in found if path is not None]
    listed = run(("ldd", *programs), timeout_s=_LOAD_TIMEOUT_S, check=False).stdout
    libraries = re.findall(r"(/\S+) \(0x", listed)
    files = sorted({os.path.realpath(path) for path in (*programs, *libraries)})
    _COPIES.mkdir()
    steps = []
    for number, file in enumerate(files):
        copy = _COPIES / str(number)
        shutil.copy(file, copy)
        steps.append(f"mount --bind {copy} {shlex.quote(file)}")
    if _LOCALE.is_dir():
        shutil.copytree(_LOCALE, _COPIES / "locale" / _LOCALE.name)
        steps.append(f"mount --bind {_COPIES / 'locale'} {_LOCALE.parent}")
    run(("sh", "-e", "-c", "\n".join(steps)), timeout_s=_LOAD_TIMEOUT_S)


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
