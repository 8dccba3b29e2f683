"""Run all applications of a node: ``python -m tactical.applications host|station DIRECTORY``.

The first line of standard input holds their descriptions (a JSON list). With all sockets open it
says ``ready`` on standard error; the second line is the monotonic clock at run time 0, upon which
it begins. It ends with its standard input, and writes ``NAME-server.json`` or ``NAME-client.json``
into the directory for each.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from dataclasses import asdict
from pathlib import Path

from .description import Clock, Description
from .program import End


def main() -> int:
    """Entry point; the status is 1 where a socket cannot be opened."""
    side, directory = sys.argv[1], Path(sys.argv[2])
    at_host = side == "host"
    try:
        ends = [
            End(Description(**each), at_host=at_host) for each in json.loads(sys.stdin.readline())
        ]
    except OSError as error:
        print(f"a socket cannot be opened: {error.strerror}", file=sys.stderr)
        return 1
    # What is there by now stays; a collection would only hold up what is sent.
    gc.freeze()
    print("ready", file=sys.stderr, flush=True)
    if zero := sys.stdin.readline():
        asyncio.run(_until_told(ends, Clock(float(zero))))
    for end in ends:
        name = f"{end.description.name}-{'server' if at_host else 'client'}.json"
        document = {"transport": end.description.transport, "sends": end.sends}
        document |= asdict(end.record)
        (directory / name).write_text(json.dumps(document) + "\n")
    return 0


async def _until_told(ends: list[End], clock: Clock) -> None:
    told = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), told.set)
    running = [asyncio.create_task(end.run(clock)) for end in ends]
    await told.wait()
    for task in running:
        task.cancel()
    for end, outcome in zip(
        ends, await asyncio.gather(*running, return_exceptions=True), strict=True
    ):
        if isinstance(outcome, Exception):  # a fault of ours, which must not pass for the network's
            end.record.errors[repr(outcome)] = 1


if __name__ == "__main__":
    sys.exit(main())
