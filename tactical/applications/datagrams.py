"""Datagrams, each at its moment and with its number."""

from __future__ import annotations

import asyncio
import socket
import struct

from .description import Clock, Description, Record

_NUMBER = struct.Struct("!I")


def open_datagrams(description: Description, *, at_host: bool) -> socket.socket:
    """A socket for datagrams at either end.

    Raises
    ------
    OSError
        If the address is not there or taken.
    """
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.setblocking(False)
    made.bind((description.host if at_host else description.station, description.port))
    return made


async def send_datagrams(
    made: socket.socket, description: Description, record: Record, clock: Clock
) -> None:
    """Send every datagram at its moment; one that cannot be sent then is not sent at all."""
    loop = asyncio.get_running_loop()
    other = (description.host if description.upwards else description.station, description.port)
    for number, (at_s, size) in enumerate(
        zip(description.at_s, description.size_bytes, strict=True)
    ):
        if (wait_s := at_s - clock.now_s) > 0:
            await asyncio.sleep(wait_s)
        begun_s = clock.now_s
        try:
            await loop.sock_sendto(made, _NUMBER.pack(number) + bytes(size - _NUMBER.size), other)
        except OSError as error:
            record.failed("send", error)
        else:
            record.begun_s[number] = begun_s


async def receive_datagrams(
    made: socket.socket, description: Description, record: Record, clock: Clock
) -> None:
    """Write down when each datagram arrives, until cancelled."""
    loop = asyncio.get_running_loop()
    while True:
        got = await loop.sock_recv(made, 1 << 16)
        if len(got) < _NUMBER.size:
            continue
        (number,) = _NUMBER.unpack_from(got)
        if number >= len(record.done_s) or len(got) != description.size_bytes[number]:
            continue
        if record.done_s[number] is not None:
            record.duplicates += 1
            continue
        record.done_s[number] = clock.now_s
        record.received_bytes += len(got)
