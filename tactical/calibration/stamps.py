"""UDP packets between network namespaces, stamped when they are sent and when they arrive.

A socket stays in the namespace in which it was made. So one process has the sockets of both ends,
one clock stamps both, and no process starts while anything is measured. The kernel stamps arrivals;
what has arrived waits in the socket's buffer until the sending is over, so reading delays nothing.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from .estimates import Times

FRAME_OVERHEAD_BYTES = 14 + 20 + 8
"""Ethernet, IPv4 and UDP: what a queue counts of a packet besides its payload."""

_CLONE_NEWNET = 0x40000000  # include/uapi/linux/sched.h
_SO_TIMESTAMPNS = 35  # include/uapi/asm-generic/socket.h
_SO_RCVBUFFORCE = 33
_RECEIVE_BUFFER_BYTES = 1 << 26
_TIMESPEC = struct.Struct("=qq")
_NUMBER = struct.Struct("!I")
_LEAD_S = 0.01
_libc = ctypes.CDLL(None, use_errno=True)


class Stream(NamedTuple):
    """Packets from `source` to `sink` at `times_s`, of `frame_bytes` each on the wire."""

    source: socket.socket
    sink: socket.socket
    times_s: Times
    frame_bytes: int


class Stamps(NamedTuple):
    """When the packets of a stream were sent and received, on one clock; nan: they were not."""

    sent_s: Times
    received_s: Times

    @property
    def delays_s(self) -> Times:
        """One-way delay of each packet."""
        return self.received_s - self.sent_s


def in_namespace(pid: int, make: Callable[[], socket.socket]) -> socket.socket:
    """A socket that `make` makes in the network namespace of a process.

    Raises
    ------
    OSError
        If the namespace cannot be entered (it takes root), or `make` fails.
    """

    def enter() -> socket.socket:
        with open(f"/proc/{pid}/ns/net", "rb") as namespace:  # noqa: PTH123 - no file to speak of
            if _libc.setns(namespace.fileno(), _CLONE_NEWNET) != 0:
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number))
        return make()

    # The namespace is the thread's, and ends with it.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(enter).result()


def sender(pid: int, address: str, to: tuple[str, int]) -> socket.socket:
    """A UDP socket in the namespace of a process that sends from `address` to `to`."""

    def make() -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.bind((address, 0))
        made.connect(to)
        return made

    return in_namespace(pid, make)


def receiver(pid: int, at: tuple[str, int]) -> socket.socket:
    """A UDP socket in the namespace of a process that receives what is sent to `at`."""

    def make() -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _RECEIVE_BUFFER_BYTES)
        made.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        made.bind(at)
        made.setblocking(False)
        return made

    return in_namespace(pid, make)


def exchange(
    streams: Sequence[Stream], drain_s: float, stop: threading.Event | None = None
) -> list[Stamps]:
    """Send all streams at once, wait `drain_s` for the last packets, and return the stamps.

    Sending ends early when `stop` is set.
    """
    which = np.concatenate([np.full(s.times_s.size, n) for n, s in enumerate(streams)])
    number = np.concatenate([np.arange(s.times_s.size) for s in streams])
    times = np.concatenate([s.times_s for s in streams])
    order = np.argsort(times, kind="stable")
    schedule = zip(
        times[order].tolist(), which[order].tolist(), number[order].tolist(), strict=True
    )
    padding = [bytes(s.frame_bytes - FRAME_OVERHEAD_BYTES - _NUMBER.size) for s in streams]
    sent = [np.full(s.times_s.size, np.nan) for s in streams]
    begin = time.monotonic() + _LEAD_S
    for moment, stream, packet in schedule:
        early_s = begin + moment - time.monotonic()
        if early_s > 0:
            time.sleep(early_s)
        if stop is not None and stop.is_set():
            break
        message = _NUMBER.pack(packet) + padding[stream]
        now = time.time()
        try:
            streams[stream].source.send(message)
        except OSError:
            continue  # no carrier: as good as lost
        sent[stream][packet] = now
    time.sleep(drain_s)
    return [Stamps(sent[n], _received(s)) for n, s in enumerate(streams)]


def _received(stream: Stream) -> Times:
    received = np.full(stream.times_s.size, np.nan)
    while True:
        try:
            message, ancillary, _, _ = stream.sink.recvmsg(_NUMBER.size, 128)
        except BlockingIOError:
            return received
        (packet,) = _NUMBER.unpack(message)
        for level, kind, data in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS):
                seconds, nanoseconds = _TIMESPEC.unpack(data[: _TIMESPEC.size])
                received[packet] = seconds + nanoseconds * 1e-9
