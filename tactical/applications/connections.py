"""TCP and multipath TCP connections for coroutines."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from contextlib import suppress

from .description import Description, Record

IPPROTO_MPTCP = getattr(socket, "IPPROTO_MPTCP", 262)
"""From linux/in.h; Python has a name for it since 3.10, where its C library does."""
RETRY_S = 0.25
"""A connection that cannot be opened, as between two networks, is tried again after this."""
_BACKLOG = 128
_CHUNK_BYTES = 1 << 16


def _socket(description: Description) -> socket.socket:
    protocol = IPPROTO_MPTCP if description.transport == "mptcp" else socket.IPPROTO_TCP
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
    made.setblocking(False)
    return made


def _configure(connection: socket.socket, description: Description) -> None:
    connection.setblocking(False)
    name = description.congestion_control.encode()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name)
    with suppress(OSError):  # multipath TCP before Linux 5.16 has no such option
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def listener(description: Description) -> socket.socket:
    """A socket that listens at the host.

    Raises
    ------
    OSError
        If the kernel has no such protocol, or the address is not there or taken.
    """
    made = _socket(description)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind((description.host, description.port))
    made.listen(_BACKLOG)
    return made


async def accepted(listening: socket.socket, description: Description) -> socket.socket:
    """The next connection."""
    connection, _ = await asyncio.get_running_loop().sock_accept(listening)
    _configure(connection, description)
    return connection


async def connected(description: Description, record: Record) -> socket.socket:
    """A connection to the host, however often it has to be tried; `record` gets why."""
    while True:
        connection = _socket(description)
        try:
            _configure(connection, description)
            await _connect(connection, (description.host, description.port))
        except OSError as error:
            connection.close()
            record.failed("connect", error)
            await asyncio.sleep(RETRY_S)
        except BaseException:
            connection.close()
            raise
        else:
            return connection


async def _connect(connection: socket.socket, address: tuple[str, int]) -> None:
    """As ``loop.sock_connect``, which looks the address up and knows no multipath TCP there."""
    error = connection.connect_ex(address)
    if error == errno.EINPROGRESS:
        loop, writable = asyncio.get_running_loop(), asyncio.Event()
        loop.add_writer(connection, writable.set)
        try:
            await writable.wait()
        finally:
            loop.remove_writer(connection)
        error = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if error:
        raise OSError(error, os.strerror(error))


async def send(connection: socket.socket, size_bytes: int) -> None:
    """Send so many bytes; ends when the kernel has taken them all.

    Raises
    ------
    OSError
        If the connection is lost.
    """
    loop = asyncio.get_running_loop()
    chunk = bytes(min(size_bytes, _CHUNK_BYTES))
    while size_bytes > 0:
        part = chunk[:size_bytes]
        await loop.sock_sendall(connection, part)
        size_bytes -= len(part)


async def receive(connection: socket.socket, most_bytes: int) -> bytes:
    """Some of the bytes that came, at most so many; none when the other end has finished.

    Raises
    ------
    OSError
        If the connection is lost.
    """
    loop = asyncio.get_running_loop()
    return await loop.sock_recv(connection, min(most_bytes, _CHUNK_BYTES))


async def receive_all(connection: socket.socket, size_bytes: int) -> bytes:
    """Exactly so many bytes.

    Raises
    ------
    OSError
        If the connection is lost.
    ConnectionError
        If it ends before.
    """
    got = b""
    while len(got) < size_bytes:
        part = await receive(connection, size_bytes - len(got))
        if not part:
            raise ConnectionError(None, "ended early")
        got += part
    return got
