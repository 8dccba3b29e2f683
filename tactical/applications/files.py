"""Files, each on a connection of its own that begins with the number of the file."""

from __future__ import annotations

import asyncio
import socket
import struct

from .connections import accepted, connected, receive, receive_all, send
from .description import Clock, Description, Record

_NUMBER = struct.Struct("!I")


async def open_files(description: Description, record: Record, clock: Clock) -> None:
    """At the station: open a connection for every file at its moment."""
    async with asyncio.TaskGroup() as group:
        for number in range(len(description.at_s)):
            group.create_task(_open(description, record, clock, number))


async def serve_files(
    listening: socket.socket, description: Description, record: Record, clock: Clock
) -> None:
    """At the host: take every connection, until cancelled."""
    async with asyncio.TaskGroup() as group:
        while True:
            connection = await accepted(listening, description)
            group.create_task(_serve(connection, description, record, clock))


async def _open(description: Description, record: Record, clock: Clock, number: int) -> None:
    if (wait_s := description.at_s[number] - clock.now_s) > 0:
        await asyncio.sleep(wait_s)
    record.begun_s[number] = clock.now_s
    with await connected(description, record) as connection:
        try:
            await asyncio.get_running_loop().sock_sendall(connection, _NUMBER.pack(number))
            if description.upwards:
                await _send_file(connection, description.size_bytes[number])
            else:
                await _receive_file(connection, description, record, clock, number)
        except OSError as error:
            record.failed("file", error)


async def _serve(
    connection: socket.socket, description: Description, record: Record, clock: Clock
) -> None:
    with connection:
        try:
            (number,) = _NUMBER.unpack(await receive_all(connection, _NUMBER.size))
            if number >= len(description.size_bytes):
                raise ConnectionError(None, f"no file {number}")
            if description.upwards:
                await _receive_file(connection, description, record, clock, number)
            else:
                record.begun_s[number] = clock.now_s
                await _send_file(connection, description.size_bytes[number])
        except OSError as error:
            record.failed("file", error)


async def _send_file(connection: socket.socket, size_bytes: int) -> None:
    """Send, and wait until the other end has it all and closes."""
    await send(connection, size_bytes)
    connection.shutdown(socket.SHUT_WR)
    while await receive(connection, 1):
        pass


async def _receive_file(
    connection: socket.socket, description: Description, record: Record, clock: Clock, number: int
) -> None:
    missing = description.size_bytes[number]
    while missing:
        got = len(await receive(connection, missing))
        if not got:
            raise ConnectionError(None, "ended early")
        missing -= got
        record.received_bytes += got
    record.done_s[number] = clock.now_s
