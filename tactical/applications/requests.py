"""Requests and their responses on one connection, one after the other."""

from __future__ import annotations

import asyncio
import socket

from .connections import receive, receive_all, send
from .description import Clock, Description, Record


async def ask(
    connection: socket.socket, description: Description, record: Record, clock: Clock
) -> None:
    """Think, ask, wait for the response, and begin again, as long as something may begin.

    Raises
    ------
    OSError
        If the connection is lost.
    ConnectionError
        If it ends before a response is complete.
    """
    for number, (think_s, size) in enumerate(
        zip(description.at_s, description.size_bytes, strict=True)
    ):
        await asyncio.sleep(think_s)
        if clock.now_s >= description.end_s:
            break
        record.begun_s[number] = clock.now_s
        await send(connection, description.request_bytes)
        missing = size
        while missing:
            got = len(await receive(connection, missing))
            if not got:
                raise ConnectionError(None, "ended early")
            missing -= got
            record.received_bytes += got
        record.done_s[number] = clock.now_s


async def answer(
    connection: socket.socket, description: Description, record: Record, clock: Clock
) -> None:
    """Answer every request at once.

    Raises
    ------
    OSError
        If the connection is lost.
    ConnectionError
        If it ends in the middle of a request.
    """
    for number, size in enumerate(description.size_bytes):
        await receive_all(connection, description.request_bytes)
        record.begun_s[number] = clock.now_s
        await send(connection, size)
