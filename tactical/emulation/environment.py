"""What a run was made on: versions, settings and queues of the machine, and how busy it was."""

from __future__ import annotations

import json
import os
import platform
import threading
import time
from pathlib import Path

from ..host.process import CommandError, run
from .commands import Command
from .network import Network
from .processes import COMMAND_TIMEOUT_S

SAMPLE_PERIOD_S = 1.0

_VERSIONS = {
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
        "versions": {name: _first_line(argv) for name, argv in _VERSIONS.items()},
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


def _first_line(argv: tuple[str, ...]) -> str:
    try:
        return run(argv, timeout_s=COMMAND_TIMEOUT_S, check=False).stdout.splitlines()[0]
    except (CommandError, IndexError) as error:
        return f"not available: {error}"


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"


def sample_host(file: Path, over: threading.Event) -> None:
    """Write a line a second: share of CPU in use, load, lateness of the timer itself, memory."""
    due = time.monotonic()
    idle, total = _cpu_times()
    with file.open("a") as stream:
        while True:
            due += SAMPLE_PERIOD_S
            if over.wait(max(0.0, due - time.monotonic())):
                return
            now = time.monotonic()
            idle_before, total_before = idle, total
            idle, total = _cpu_times()
            busy = 1.0 - (idle - idle_before) / max(1, total - total_before)
            sample = {
                "t_mono_s": round(now, 6),
                "cpu_busy": round(busy, 4),
                "load": os.getloadavg()[0],
                "timer_late_s": round(now - due, 6),
                "memory_available_bytes": _memory_bytes("MemAvailable"),
            }
            stream.write(json.dumps(sample) + "\n")
            stream.flush()


def _memory_bytes(name: str) -> int:
    """A line of /proc/meminfo (proc(5))."""
    text = Path("/proc/meminfo").read_text()
    return next(
        1024 * int(line.split()[1]) for line in text.splitlines() if line.startswith(f"{name}:")
    )


def _cpu_times() -> tuple[int, int]:
    """Idle and total CPU time in ticks since boot (proc(5), ``/proc/stat``)."""
    fields = [int(x) for x in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return fields[3] + fields[4], sum(fields)
