"""iperf3 on both sides of every user's connection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from .commands import transfer_command
from .network import Network
from .processes import Process

READY_TIMEOUT_S = 60.0


@contextmanager
def servers(network: Network, run_dir: Path) -> Iterator[dict[str, Process]]:
    """An iperf3 server for every transfer, listening; each serves one test and ends."""
    with ExitStack() as stack:
        started: dict[str, Process] = {}
        for transfer in network.plan.transfers:
            command = transfer_command(network.plan, transfer.user, server=True)
            process = network.start(
                command,
                run_dir / "logs" / f"iperf3-{transfer.user}-server.log",
                run_dir / "traffic" / f"{transfer.user}-server.json",
            )
            stack.callback(process.stop)
            started[transfer.user] = process
        yield started


@contextmanager
def clients(network: Network, run_dir: Path) -> Iterator[dict[str, Process]]:
    """An iperf3 client for every transfer; those still running are stopped at the end."""
    with ExitStack() as stack:
        started: dict[str, Process] = {}
        for transfer in network.plan.transfers:
            command = transfer_command(network.plan, transfer.user, server=False)
            process = network.start(
                command,
                run_dir / "logs" / f"iperf3-{transfer.user}-client.log",
                run_dir / "traffic" / f"{transfer.user}-client.json",
            )
            stack.callback(process.stop)
            started[transfer.user] = process
        yield started
