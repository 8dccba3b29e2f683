"""The first file system of a guest: a cpio archive in memory (newc format of cpio(5)).

See the kernel's Documentation/driver-api/early-userspace/buffer-format.rst.
"""

from __future__ import annotations

import gzip
import lzma
import stat
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Entry:
    """A file, directory or device: its name without a leading slash, and its mode with the kind."""

    name: str
    mode: int
    content: bytes = b""
    device: tuple[int, int] = (0, 0)


def directory(name: str) -> Entry:
    """A directory."""
    return Entry(name, stat.S_IFDIR | 0o755)


def program(name: str, content: bytes) -> Entry:
    """A file that can be executed."""
    return Entry(name, stat.S_IFREG | 0o755, content)


CONSOLE = Entry("dev/console", stat.S_IFCHR | 0o600, b"", (5, 1))


def archive(entries: Sequence[Entry]) -> bytes:
    """The archive of these entries; parents have to come before what they contain."""
    ended = (*entries, Entry("TRAILER!!!", 0))
    return b"".join(_packed(number, entry) for number, entry in enumerate(ended, 1))


def _packed(number: int, entry: Entry) -> bytes:
    name = entry.name.encode() + b"\0"
    size = len(entry.content)
    # ino, mode, uid, gid, nlink, mtime, filesize, dev (2), rdev (2), namesize, check
    fields = (number, entry.mode, 0, 0, 1, 0, size, 0, 0, *entry.device, len(name), 0)
    head = b"070701" + "".join(f"{field:08x}" for field in fields).encode() + name
    return head + bytes(-len(head) % 4) + entry.content + bytes(-size % 4)


def module(path: Path) -> bytes:
    """A kernel module as the kernel takes it, which some distributions keep compressed."""
    content = path.read_bytes()
    match path.suffix:
        case ".gz":
            return gzip.decompress(content)
        case ".xz":
            return lzma.decompress(content)
        case ".zst":
            return _unzstd(content)
    return content


def _unzstd(content: bytes) -> bytes:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return bytes(zstd.decompress(content))
