"""What a run was made on: versions, settings and queues of the machine, and how busy it was."""

from __future__ import annotations

import json
import os
import platform
import threading
import time
from contextlib import suppress
from pathlib import Path

from ..host.process import CommandError, run
from .commands import Command
from .network import Network
from .processes import COMMAND_TIMEOUT_S

SAMPLE_PERIOD_S = 1.0

VERSIONS = {
    "openvswitch": ("ovs-vsctl", "--version"),
    "iproute2": ("ip", "-V"),
    "iperf3": ("iperf3", "--version"),
    "dumpcap": ("dumpcap", "--version"),
    "hostapd": ("hostapd", "-v"),
    "iw": ("iw", "--version"),
}


def write_environment(network: Network, run_dir: Path) -> None:
    """Write ``environment.json``; what cannot be found out is recorded with the reason."""
    plan = network.plan
    station = next(iter(plan.stations))
    document = {
        "kernel": platform.release(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
        "cpu_model": _cpu_model(),
        "memory_bytes": _memory_bytes("MemTotal"),
        "versions": {name: version(argv) for name, argv in VERSIONS.items()},
        "mptcp": _ask(network, Command(("sysctl", "net.mptcp"), station)),
        "tcp": _ask(
            network,
            Command(
                (
                    "sysctl",
                    "net.ipv4.tcp_congestion_control",
                    "net.ipv4.tcp_rmem",
                    "net.ipv4.tcp_wmem",
                ),
                station,
            ),
        ),
        "qdiscs": _ask(network, Command(("tc", "-s", "qdisc", "show"))),
        "classes": {
            port.name: _ask(network, Command(("tc", "-s", "class", "show", "dev", port.name)))
            for switch in plan.switches
            for port in switch.ports
            if port.rate_bps is not None
        },
        "media": {
            medium.name: _ask(network, Command(("tc", "-s", "qdisc", "show"), medium.name))
            for medium in plan.media
        },
        "mptcp_counters": {
            node: _ask(network, Command(("nstat", "-asz", "MPTcp*"), node))
            for node in (*plan.stations, plan.host.node)
        },
        "offloads": {
            i.name: _ask(network, Command(("ethtool", "-k", i.name), i.node))
            for i in plan.host_interfaces
        },
    }
    (run_dir / "environment.json").write_text(json.dumps(document, indent=1) + "\n")


def _ask(network: Network, command: Command) -> list[str]:
    try:
        return network.run(command).splitlines()
    except CommandError as error:
        return [f"not available: {error}"]


def version(argv: tuple[str, ...]) -> str:
    """The first line that a tool tells of itself, or why there is none."""
    try:
        said = run(argv, timeout_s=COMMAND_TIMEOUT_S, check=False)
    except CommandError as error:
        return f"not available: {error}"
    # hostapd tells its version on standard error, with status 1.
    lines = (said.stdout or said.stderr).splitlines()
    return lines[0] if lines else "not available: it told none"


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"


def sample_host(file: Path, over: threading.Event) -> None:
    """Write a line a second: how busy the machine was, and what it could not do.

    ========================== ===============================================================
    ``cpu_busy``               share of CPU time in use
    ``cpu_stolen``             share that a hypervisor gave to others
    ``cpu_pressure``           share of time in which something that could run waited (PSI, some)
    ``timer_late_s``           lateness of this sampler's own timer
    ``memory_available_bytes`` memory that programs could still have
    ``softirq_dropped``        packets that the queue of received packets had no room for
    ``softirq_squeezed``       times that receiving packets was cut short by its time limit
    ========================== ===============================================================
    """
    due = time.monotonic()
    before = _machine_counters()
    with file.open("a") as stream:
        while True:
            due += SAMPLE_PERIOD_S
            if over.wait(max(0.0, due - time.monotonic())):
                return
            now = time.monotonic()
            after = _machine_counters()
            grown = {name: after[name] - value for name, value in before.items()}
            before = after
            ticks = max(1, grown["ticks"])
            sample = {
                "t_mono_s": round(now, 6),
                "cpu_busy": round(1.0 - grown["idle"] / ticks, 4),
                "cpu_stolen": round(grown["stolen"] / ticks, 4),
                "load": os.getloadavg()[0],
                "timer_late_s": round(now - due, 6),
                "memory_available_bytes": _memory_bytes("MemAvailable"),
                "softirq_dropped": grown["dropped"],
                "softirq_squeezed": grown["squeezed"],
            }
            if "waited_us" in grown:
                period_s = SAMPLE_PERIOD_S + now - due
                sample["cpu_pressure"] = round(grown["waited_us"] / 1e6 / period_s, 4)
            stream.write(json.dumps(sample) + "\n")
            stream.flush()


def _memory_bytes(name: str) -> int:
    """A line of /proc/meminfo (proc(5))."""
    text = Path("/proc/meminfo").read_text()
    return next(
        1024 * int(line.split()[1]) for line in text.splitlines() if line.startswith(f"{name}:")
    )


def _machine_counters() -> dict[str, int]:
    """Counters since boot: proc(5), Documentation/accounting/psi.rst, net/core/net-procfs.c."""
    fields = [int(x) for x in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    found = {"idle": fields[3] + fields[4], "stolen": fields[7], "ticks": sum(fields)}
    rows = [line.split() for line in Path("/proc/net/softnet_stat").read_text().splitlines()]
    found["dropped"] = sum(int(row[1], 16) for row in rows)
    found["squeezed"] = sum(int(row[2], 16) for row in rows)
    # Some kernels keep no record of pressure, or only if told to at boot.
    with suppress(OSError):
        some = Path("/proc/pressure/cpu").read_text().splitlines()[0]
        found["waited_us"] = int(some.rpartition("total=")[2])
    return found
