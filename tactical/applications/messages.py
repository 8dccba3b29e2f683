"""Messages on one connection, each at its moment."""

from __future__ import annotations

import asyncio
import socket

from .connections import receive, send
from .description import Clock, Description, Record

_AT_ONCE = 64
"""Messages that are asked of the kernel together; what is left of them comes next time."""


async def send_messages(
    connection: socket.socket, description: Description, record: Record, clock: Clock
) -> None:
    """Send every message at its moment, or as soon after it as the connection takes it.

    Raises
    ------
    OSError
        If the connection is lost.
    """
    for number, (at_s, size) in enumerate(
        zip(description.at_s, description.size_bytes, strict=True)
    ):
        if (wait_s := at_s - clock.now_s) > 0:
            await asyncio.sleep(wait_s)
        record.begun_s[number] = clock.now_s
        await send(connection, size)


async def receive_messages(
    connection: socket.socket, description: Description, record: Record, clock: Clock
) -> None:
    """Write down when each message is complete.

    Raises
    ------
    OSError
        If the connection is lost.
    ConnectionError
        If it ends before the last message.
    """
    sizes, number = description.size_bytes, 0
    missing = sizes[0] if sizes else 0
    while number < len(sizes):
        got = len(await receive(connection, missing + sum(sizes[number + 1 : number + _AT_ONCE])))
        if not got:
            raise ConnectionError(None, "ended early")
        record.received_bytes += got
        now_s = clock.now_s
        while got >= missing and number < len(sizes):
            got -= missing
            record.done_s[number] = now_s
            number += 1
            missing = sizes[number] if number < len(sizes) else 0
        missing -= got
