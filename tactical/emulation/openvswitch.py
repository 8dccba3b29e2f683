"""The Open vSwitch daemons: use those that run, else run a private pair and stop it again."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from ..host.process import CommandError, run
from .processes import COMMAND_TIMEOUT_S, Process

RUN_DIR = Path("/var/run/openvswitch")
SOCKET = RUN_DIR / "db.sock"
SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")


@contextmanager
def open_vswitch(log_dir: Path) -> Iterator[str]:
    """Open vSwitch is running inside the block; yields its OVSDB connection method.

    Raises
    ------
    CommandError
        If the daemons cannot be started; their output is in `log_dir`.
    """
    remote = f"unix:{SOCKET}"
    if _answers():
        yield remote
        return
    with ExitStack() as stack:
        state = Path(tempfile.mkdtemp(prefix="tactical-ovs-"))
        stack.callback(shutil.rmtree, state, ignore_errors=True)
        RUN_DIR.mkdir(parents=True, exist_ok=True)
        database = state / "conf.db"
        run(("ovsdb-tool", "create", str(database), str(SCHEMA)), timeout_s=COMMAND_TIMEOUT_S)
        for argv, log in (
            (
                ("ovsdb-server", str(database), f"--remote=punix:{SOCKET}", "--no-chdir"),
                "ovsdb-server.log",
            ),
            (("ovs-vswitchd", remote, "--no-chdir"), "ovs-vswitchd.log"),
        ):
            pidfile = f"--pidfile={state / argv[0]}.pid"
            control = f"--unixctl={RUN_DIR / argv[0]}.{state.name}.ctl"
            process = Process((*argv, pidfile, control), log_dir / log)
            stack.callback(process.stop)
            if argv[0] == "ovsdb-server":
                run(("ovs-vsctl", "--no-wait", "--retry", "--timeout=30", "init"), timeout_s=40)
            else:
                # Waits until ovs-vswitchd has taken up the (empty) configuration.
                run(("ovs-vsctl", "--timeout=60", "init"), timeout_s=70)
        yield remote


def _answers() -> bool:
    if not SOCKET.exists():
        return False
    try:
        run(("ovs-vsctl", "--timeout=5", "show"), timeout_s=10)
    except CommandError:
        return False
    return True
