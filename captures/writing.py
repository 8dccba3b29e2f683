"""Captures that are written rather than recorded: pcapng (draft-ietf-opsawg-pcapng)."""

import struct
from pathlib import Path
from types import TracebackType
from typing import Self

_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
_ETHERNET = 1
_NAME, _RESOLUTION, _END = 2, 9, 0
_NANOSECONDS = 9

_PACKET_HEAD, _LENGTH = struct.Struct("<IIIIIII"), struct.Struct("<I")


class CaptureWriter:
    """Writes Ethernet frames, with times in nanoseconds; a context manager.

    Parameters
    ----------
    path : Path
        The file, which is made anew.
    interface : str
        Name of the interface.
    snap_length_bytes : int
        Bytes kept of every frame.

    Raises
    ------
    OSError
        If the file cannot be written.
    """

    def __init__(self, path: Path, interface: str, snap_length_bytes: int) -> None:
        self.packets = 0
        self._snap_length = snap_length_bytes
        self._file = path.open("wb", buffering=1 << 20)
        self._file.write(_block(_SECTION, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)))
        options = (
            _option(_NAME, interface.encode())
            + _option(_RESOLUTION, bytes([_NANOSECONDS]))
            + _option(_END, b"")
        )
        about = struct.pack("<HHI", _ETHERNET, 0, snap_length_bytes)
        self._file.write(_block(_INTERFACE, about + options))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def write(self, time_ns: int, frame: bytes, length_bytes: int) -> None:
        """Write a frame that was `length_bytes` long, of which `frame` are the first."""
        kept = min(len(frame), self._snap_length)
        padding = -kept % 4
        length = _PACKET_HEAD.size + kept + padding + _LENGTH.size
        head = _PACKET_HEAD.pack(
            _PACKET, length, 0, time_ns >> 32, time_ns & 0xFFFFFFFF, kept, length_bytes
        )
        self._file.write(head + frame[:kept] + bytes(padding) + _LENGTH.pack(length))
        self.packets += 1


def _block(kind: int, body: bytes) -> bytes:
    padding = -len(body) % 4
    length = 12 + len(body) + padding
    return struct.pack("<II", kind, length) + body + bytes(padding) + struct.pack("<I", length)


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)
