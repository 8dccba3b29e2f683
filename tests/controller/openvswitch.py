"""Open vSwitch for tests: daemons of our own in a directory of their own.

The userspace datapath with dummy ports (``--enable-dummy``) speaks OpenFlow and OVSDB as any
other and forwards packets that are put in by hand, and needs neither the kernel's datapath nor
network namespaces.  It does not shape: queues are rows of the database.  With `kernel` it is the
kernel's datapath, whose ports are of this machine: for a machine that has no others.
"""

import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tactical.controller.network import ControlledNetwork, save

SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
LIMIT_S = 30.0


def missing() -> str | None:
    """Why there can be no Open vSwitch here."""
    for program in ("ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl", "ovs-ofctl"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    return None if SCHEMA.is_file() else f"{SCHEMA} is missing"


def free_port() -> int:
    """A TCP port of the loopback interface that nobody listens on."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def wait_for(condition: Callable[[], Any], what: str, limit_s: float = LIMIT_S) -> Any:
    """What `condition` returns as soon as that is true."""
    deadline = time.monotonic() + limit_s
    while not (found := condition()):
        assert time.monotonic() < deadline, f"waited {limit_s:g} s for {what}"
        time.sleep(0.01)
    return found


class OpenVSwitch:
    """A private ovsdb-server and ovs-vswitchd."""

    def __init__(self, directory: Path, *, kernel: bool = False) -> None:
        self.directory = directory
        self.kernel = kernel
        self.environment = {**os.environ, "OVS_RUNDIR": str(directory)}
        self.ovsdb = f"unix:{directory / 'db.sock'}"
        self._command("ovsdb-tool", "create", str(directory / "conf.db"), str(SCHEMA))
        self._switch: subprocess.Popen[bytes] | None = None
        self._database = self._start_database()
        try:
            self.vsctl("--no-wait", "init")
            self._switch = self._start_switch()
            self.vsctl("show")
        except BaseException:
            self.stop()
            raise

    def _start_database(self) -> subprocess.Popen[bytes]:
        path = self.directory / "db.sock"
        path.unlink(missing_ok=True)
        database = str(self.directory / "conf.db")
        process = self._start("ovsdb-server", database, f"--remote=punix:{path}")
        wait_for(lambda: _listens(path), "ovsdb-server")
        return process

    def _start_switch(self) -> subprocess.Popen[bytes]:
        datapath = () if self.kernel else ("--enable-dummy=override", "--disable-system")
        return self._start("ovs-vswitchd", self.ovsdb, *datapath)

    def _start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        control = str(self.directory / f"{name}.ctl")
        Path(control).unlink(missing_ok=True)
        with (self.directory / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                (name, *arguments, f"--unixctl={control}", "-vconsole:warn"),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.environment,
                cwd=self.directory,
            )

    def stop(self) -> None:
        """End both."""
        for process in (self._switch, self._database):
            if process is not None:
                process.terminate()
                process.wait(10)

    def restart_database(self, away_s: float = 0.0) -> None:
        """End ovsdb-server at once, and start another on the same file."""
        self._database.kill()
        self._database.wait(10)
        time.sleep(away_s)
        self._database = self._start_database()

    def restart_switch(self, away_s: float = 0.0) -> None:
        """End ovs-vswitchd at once, and its flow entries with it, and start another."""
        assert self._switch is not None
        self._switch.kill()
        self._switch.wait(10)
        time.sleep(away_s)
        self._switch = self._start_switch()
        bridges = list(self.directory.glob("*.mgmt"))
        wait_for(lambda: all(_listens(path) for path in bridges), "the bridges")

    def vsctl(self, *arguments: str) -> str:
        """Run ovs-vsctl."""
        return self._command("ovs-vsctl", f"--db={self.ovsdb}", "--timeout=30", *arguments)

    def _command(self, *argv: str) -> str:
        done = subprocess.run(
            argv, capture_output=True, text=True, env=self.environment, timeout=60, check=False
        )
        assert done.returncode == 0, f"{' '.join(argv)[:300]}: {done.stderr[-2000:]}"
        return done.stdout

    def build(self, network: ControlledNetwork, ports: Sequence[int]) -> None:
        """Make the described network, with controllers at these TCP ports of the loopback.

        Trunks are patch ports, and pairs of virtual interfaces of the kernel; both their ends have
        a QoS row with default queue 0, as a link's owner makes it.
        """
        if self.kernel:
            for t in network.trunks:
                ends = ("name", t.a_port, "type", "veth", "peer", "name", t.b_port)
                self._command("ip", "link", "add", *ends)
        peers = {}
        for t in network.trunks:
            peers[t.a_datapath, t.a_port] = (t.b_port, t.rate_bps)
            peers[t.b_datapath, t.b_port] = (t.a_port, t.rate_bps)
        argv: list[str] = []
        for d in network.datapaths:
            argv += ["--", "add-br", d.name, "--", "set", "bridge", d.name]
            argv += ["datapath_type=" + ("system" if self.kernel else "dummy")]
            argv += ["protocols=OpenFlow13", "fail_mode=secure"]
            argv += [f"other-config:datapath-id={d.dpid:016x}"]
            argv += ["other-config:disable-in-band=true"]
        for number, p in enumerate(network.ports):
            kind = ["type=internal" if self.kernel else "type=dummy"]
            argv += ["--", "add-port", p.datapath, p.name]
            if (p.datapath, p.name) in peers:
                peer, rate_bps = peers[p.datapath, p.name]
                kind = [] if self.kernel else ["type=patch", f"options:peer={peer}"]
                rate = f"other-config:max-rate={int(rate_bps)}"
                argv += ["--", f"--id=@u{number}", "create", "queue", rate]
                argv += ["--", f"--id=@q{number}", "create", "qos", "type=linux-htb", rate]
                argv += [f"queues:0=@u{number}", "--", "set", "port", p.name, f"qos=@q{number}"]
            argv += ["--", "set", "interface", p.name, *kind, f"ofport_request={p.number}"]
        self.vsctl(*argv[1:])
        for p in network.ports if self.kernel else ():
            self._command("ip", "link", "set", p.name, "up")
        targets = [f"tcp:127.0.0.1:{port}" for port in ports]
        argv = []
        for d in network.datapaths:
            argv += ["--", "set-controller", d.name, *targets]
        self.vsctl(*argv[1:])
        uuids = self.vsctl("--bare", "--columns=_uuid", "list", "controller").split()
        argv = []
        for uuid in uuids:
            # Found again quickly: as if the network were a busy one.
            argv += ["--", "set", "controller", uuid, "max_backoff=1000"]
        self.vsctl(*argv[1:])

    def classes(self, port: str) -> int:
        """How many classes the kernel has at a port: its root, and one for each queue."""
        return self._command("tc", "class", "show", "dev", port).count("class htb")

    def entries(self, bridge: str) -> list[str]:
        """Flow entries, without figures that change by themselves."""
        text = self.ofctl("dump-flows", bridge)
        lines = [line.strip() for line in text.splitlines() if "cookie=" in line]
        changing = r" (duration|n_packets|n_bytes|idle_age|hard_age)=[^,]*,"
        return sorted(re.sub(changing, "", line) for line in lines)

    def ages_s(self, bridge: str) -> dict[str, float]:
        """How old each flow entry is."""
        text = self.ofctl("dump-flows", bridge)
        ages = {}
        for line in text.splitlines():
            if found := re.search(r"duration=([\d.]+)s", line):
                ages[re.sub(r".*n_bytes=\d+, ", "", line)] = float(found[1])
        return ages

    def ofctl(self, command: str, bridge: str, *arguments: str) -> str:
        """Run ovs-ofctl on a bridge."""
        target = f"unix:{self.directory / bridge}.mgmt"
        return self._command("ovs-ofctl", "-O", "OpenFlow13", command, target, *arguments)

    def queues(self) -> dict[tuple[str, int], dict[str, str]]:
        """(port, queue id) → rates and owner, of all queues but the default ones."""
        columns = ("Port", "name,qos"), ("QoS", "_uuid,queues"), ("Queue", "")
        ports, qos, rows = (self._table(table, names) for table, names in columns)
        by_uuid = {row["_uuid"]: row for row in rows}
        queues = {row["_uuid"]: row["queues"] for row in qos}
        return {
            (port["name"], queue_id): {
                **by_uuid[uuid]["other_config"],
                **by_uuid[uuid]["external_ids"],
            }
            for port in ports
            if port["qos"]
            for queue_id, uuid in queues[port["qos"]].items()
            if queue_id != 0
        }

    def row_counts(self) -> tuple[int, int]:
        """How many QoS and Queue rows there are."""
        return len(self._table("QoS", "_uuid")), len(self._table("Queue", "_uuid"))

    def _table(self, table: str, columns: str) -> list[dict[str, Any]]:
        chosen = [f"--columns={columns}"] if columns else []
        answer = json.loads(self.vsctl("--format=json", *chosen, "list", table))
        return [
            {h: _plain(v) for h, v in zip(answer["headings"], row, strict=True)}
            for row in answer["data"]
        ]

    def receive(self, port: str, frame: bytes) -> None:
        """Let a frame come in at a dummy port."""
        control = str(self.directory / "ovs-vswitchd.ctl")
        self._command("ovs-appctl", "-t", control, "netdev-dummy/receive", port, frame.hex())


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as trial:
        return trial.connect_ex(str(path)) == 0


def _plain(value: Any) -> Any:
    match value:
        case ["map", pairs]:
            return {key: _plain(item) for key, item in pairs}
        case ["set", items]:
            return [_plain(item) for item in items]
        case ["uuid", text]:
            return text
    return value


class RunningController:
    """A controller in a process of its own, with what it has written so far."""

    def __init__(self, argv: Sequence[str], directory: Path) -> None:
        self.records: list[dict[str, Any]] = []
        self._log = (directory / f"controller-{time.monotonic_ns()}.log").open("w+b")
        self.process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=directory,
        )
        self._rest = b""

    def tell(self, **report: Any) -> None:
        """Write a line to its standard input."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(report).encode() + b"\n")
        self.process.stdin.flush()

    def read(self) -> None:
        """Take what it has written meanwhile."""
        assert self.process.stdout is not None
        while select.select([self.process.stdout], [], [], 0)[0]:
            piece = os.read(self.process.stdout.fileno(), 65536)
            if not piece:
                return
            *lines, self._rest = (self._rest + piece).split(b"\n")
            self.records += [json.loads(line) for line in lines]

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        """All records of a kind so far."""
        self.read()
        return [record for record in self.records if record["kind"] == kind]

    def wait_for(
        self, kind: str, count: int = 1, limit_s: float = LIMIT_S, **data: Any
    ) -> dict[str, Any]:
        """The `count`-th record of a kind whose data contain `data`."""

        def found() -> list[dict[str, Any]]:
            rows = [r for r in self.of_kind(kind) if data.items() <= r["data"].items()]
            ended = self.process.poll() is not None
            assert rows[count - 1 :] or not ended, f"ended: {self.said()}"
            return rows[count - 1 : count]

        try:
            return wait_for(found, f"{kind} {data}", limit_s)[0]
        except AssertionError as error:
            tail = [r for r in self.records if r["kind"] != "sample"][-8:]
            raise AssertionError(f"{error}\nrecords: {tail}\nlog: {self.said()}") from None

    def said(self) -> str:
        """Its standard error."""
        self._log.seek(0)
        return self._log.read().decode(errors="replace")[-3000:]

    def kill(self) -> None:
        """End it as a crash would."""
        self.process.kill()
        self.process.wait(10)

    def stop(self) -> int:
        """Ask it to end; its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self._log.close()
        return self.process.wait(10)


def worker_controller(
    network: ControlledNetwork, directory: Path, ovsdb: str, port: int
) -> RunningController:
    """The controller as the testbed's worker starts it."""
    file = directory / "network.json"
    save(network, file)
    argv = (sys.executable, "-W", "ignore::DeprecationWarning", "-m", "tactical.controller")
    arguments = ("--network", str(file), "--port", str(port), "--ovsdb", ovsdb)
    return RunningController((*argv, *arguments), directory)


def served(
    network: ControlledNetwork, directory: Path, ovsdb: str, port: int, *options: str
) -> RunningController:
    """`tactical controller` for the described network, at a TCP port of the loopback."""
    file = directory / "network.json"
    save(network, file)
    argv = [sys.executable, "-W", "ignore::DeprecationWarning", "-m", "tactical", "controller"]
    argv += ["--network", str(file), "--listen", f"127.0.0.1:{port}", "--ovsdb", ovsdb]
    return RunningController((*argv, *options), directory)
