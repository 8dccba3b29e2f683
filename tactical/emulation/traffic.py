"""iperf3 on both sides of every bulk transfer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from .commands import transfer_command
from .network import Network
from .plan import Plan
from .processes import EmulationError, Process


@contextmanager
def iperf3(network: Network, run_dir: Path, side: str) -> Iterator[dict[str, Process]]:
    """The servers or the clients of all transfers, by name; those still running are stopped.

    Parameters
    ----------
    side
        ``server``: each serves one test and ends.  ``client``: starts sending.
    """
    with ExitStack() as stack:
        started: dict[str, Process] = {}
        for transfer in network.plan.transfers:
            name = transfer.name
            process = network.start(
                transfer_command(network.plan, transfer, server=side == "server"),
                run_dir / "logs" / f"iperf3-{name}-{side}.log",
                _output(run_dir, name, side),
            )
            stack.callback(process.stop)
            started[name] = process
        yield started


def check_transfers(
    plan: Plan,
    clients: dict[str, Process],
    servers: dict[str, Process],
    run_dir: Path,
    run_time_s: float,
) -> None:
    """Nothing is wrong with any transfer so far.

    Raises
    ------
    EmulationError
        If a side of one has ended before its time, or its client failed, with what iperf3 says
        about it.
    """
    for transfer in plan.transfers:
        client, server = clients[transfer.name].status, servers[transfer.name].status
        early = run_time_s < transfer.start_s + transfer.duration_s
        # A client hears of its server's end a trip later, and not at all where its path is down.
        side, status = ("server", server) if client is None and early else ("client", client)
        if status is None:
            continue
        reason = reported_error(run_dir, transfer.name)
        if early or status or reason:
            raise EmulationError(
                f"the traffic of {transfer.user} ended after {run_time_s:.1f} s: "
                f"{reason or f'the iperf3 {side} ended with status {status} and gave no reason'}"
            )


def reported_error(run_dir: Path, name: str) -> str | None:
    """The error in iperf3's own output; its exit status is 0 even then."""
    for side in ("client", "server"):
        try:
            document = json.loads(_output(run_dir, name, side).read_text())
        except (OSError, ValueError):
            continue
        if "error" in document:
            return f"iperf3 {side}: {document['error']}"
    return None


def _output(run_dir: Path, name: str, side: str) -> Path:
    return run_dir / "traffic" / f"{name}-{side}.json"
