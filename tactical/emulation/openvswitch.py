"""The Open vSwitch daemons: use those that run, else run a private pair and stop it again."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from ..host.process import CommandError, run
from .processes import COMMAND_TIMEOUT_S, Process

RUN_DIR = Path("/var/run/openvswitch")
SOCKET = RUN_DIR / "db.sock"
SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
AWAKE_S = 10.0
"""Since boot, at least, before ovs-vswitchd starts.

It counts the processors every ten seconds, beginning ten seconds after boot. Asked earlier, it has
found none, starts no thread for packets without an entry in the kernel, and they are lost for as
long as it runs. (Measured with 3.1.0: "Overriding n-handler-threads to 0" in its log.)
"""


class OpenVSwitch(NamedTuple):
    """A running Open vSwitch: its OVSDB connection method, and the daemons if they are ours."""

    ovsdb: str
    processes: tuple[Process, ...]


@contextmanager
def open_vswitch(log_dir: Path) -> Iterator[OpenVSwitch]:
    """Open vSwitch is running inside the block.

    Raises
    ------
    CommandError
        If the daemons cannot be started; their output is in `log_dir`.
    """
    remote = f"unix:{SOCKET}"
    if _answers():
        yield OpenVSwitch(remote, ())
        return
    with ExitStack() as stack:
        # In memory: /tmp of a virtual machine lies over that of the host, and is slow to answer.
        state = Path(tempfile.mkdtemp(prefix="tactical-ovs-", dir="/run"))
        stack.callback(shutil.rmtree, state, ignore_errors=True)
        RUN_DIR.mkdir(parents=True, exist_ok=True)
        create, *daemons = daemon_commands(state)
        run(create, timeout_s=COMMAND_TIMEOUT_S)
        time.sleep(max(0.0, AWAKE_S - time.monotonic()))
        processes = []
        for argv in daemons:
            process = Process(argv, log_dir / f"{argv[0]}.log")
            processes.append(process)
            stack.callback(process.stop)
            if argv[0] == "ovsdb-server":
                run(("ovs-vsctl", "--no-wait", "--retry", "init"), timeout_s=COMMAND_TIMEOUT_S)
            else:
                # Waits until ovs-vswitchd has taken up the (empty) configuration.
                run(("ovs-vsctl", "init"), timeout_s=COMMAND_TIMEOUT_S)
        yield OpenVSwitch(remote, tuple(processes))


def daemon_commands(state: Path) -> tuple[tuple[str, ...], ...]:
    """Make a database in the directory `state`, then the two daemons on it. Pure."""
    database = str(state / "conf.db")

    def own_files(name: str) -> tuple[str, ...]:
        control = RUN_DIR / f"{name}.{state.name}.ctl"
        return ("--no-chdir", f"--pidfile={state / name}.pid", f"--unixctl={control}")

    return (
        ("ovsdb-tool", "create", database, str(SCHEMA)),
        ("ovsdb-server", database, f"--remote=punix:{SOCKET}", *own_files("ovsdb-server")),
        ("ovs-vswitchd", f"unix:{SOCKET}", *own_files("ovs-vswitchd")),
    )


def _answers() -> bool:
    if not SOCKET.exists():
        return False
    try:
        run(("ovs-vsctl", "show"), timeout_s=10)
    except CommandError:
        return False
    return True
