"""Memory of a guest that is a file of this machine: ext4 images for persistent memory.

A guest reads and writes such memory without asking anybody, so its clock cannot tell how fast this
machine is; and what it has written is here, whatever becomes of it.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tactical.host.process import CommandError, run

ALIGNMENT_BYTES = 128 * 2**20
"""Guests map persistent memory in sections of this size (x86-64)."""

# The same for every image, so that the same content is the same image.
_IDENTITY = "7ac71ca1-0000-4000-8000-000000000001"
MOMENT_S = 946_684_800
"""1 January 2000, when time begins in a guest: times of files are content, too."""
_FIXED = {"E2FSPROGS_FAKE_TIME": str(MOMENT_S)}
_LIMIT_S = 600.0


def aligned(size_bytes: float) -> int:
    """The next size that a guest can map."""
    return -int(-size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


def make(image: Path, size_bytes: int, content: Path, *, dated: bool = False) -> None:
    """Make an image that contains what is in a directory.

    Its files were all made and modified at :data:`MOMENT_S`. With `dated` they keep the time of
    their last modification, by which Python knows whether compiled code is of its source: without
    it every process of a guest compiles all that it imports.

    Raises
    ------
    CommandError
        If mke2fs fails, say because the content is larger than the image.
    OSError
        If there is no room.
    """
    with image.open("wb") as file:
        file.truncate(size_bytes)
    if dated:
        _date_directories(content)
    options = f"hash_seed={_IDENTITY},lazy_itable_init=0,nodiscard,root_owner=0:0"
    argv = ["mke2fs", "-q", "-F", "-t", "ext4", "-b", "4096", "-m", "0", "-O", "^has_journal"]
    argv += ["-O", "^metadata_csum,^64bit", "-U", _IDENTITY, "-E", options]
    run((*argv, "-d", str(content), str(image)), timeout_s=_LIMIT_S, environment=_FIXED)
    _forget_times(image, ("atime", "ctime") if dated else ("atime", "ctime", "mtime"))


def _date_directories(content: Path) -> None:
    """Give directories and links, which are made anew for an image, the time that all have."""
    for parent, directories, files in os.walk(content, topdown=False):
        for path in (Path(parent, name) for name in (*directories, *files)):
            if path.is_symlink() or path.is_dir():
                os.utime(path, (MOMENT_S, MOMENT_S), follow_symlinks=False)


def _forget_times(image: Path, times: Collection[str]) -> None:
    """Give all files the same times.

    mke2fs copies those of the content, and hard links have new ones whenever they are made.
    """
    said = run(("dumpe2fs", "-h", str(image)), timeout_s=_LIMIT_S).stdout
    heading = dict(line.split(":", 1) for line in said.splitlines() if ":" in line)
    used = int(heading["Inode count"]) - int(heading["Free inodes"])
    with tempfile.NamedTemporaryFile("w", prefix="tactical-times-") as requests:
        for inode in range(1, used + 1):
            for time in times:
                print(f"set_inode_field <{inode}> {time} @{MOMENT_S}", file=requests)
        requests.flush()
        argv = ("debugfs", "-w", "-f", requests.name, str(image))
        run(argv, timeout_s=_LIMIT_S, environment=_FIXED)


def reserve(image: Path) -> None:
    """Take the room of a sparse image: a guest cannot be told later that there is none.

    Raises
    ------
    OSError
        If there is not enough.
    """
    with image.open("rb+") as file:
        os.posix_fallocate(file.fileno(), 0, image.stat().st_size)


def reserve_ahead(file: Path, size_bytes: int) -> None:
    """Take room for what will be appended to a file, which need not exist; its length stays.

    Raises
    ------
    CommandError
        If there is not enough, or the file system has no such reservation.
    """
    file.touch()
    argv = ("fallocate", "--keep-size", "--offset", str(file.stat().st_size))
    run((*argv, "--length", str(size_bytes), str(file)), timeout_s=_LIMIT_S)


def extract(image: Path, directory: str, target: Path) -> None:
    """Copy a directory of an image to `target`, which exists; files that are there stay.

    The image may be of a guest that was killed: its file system is mended first.

    Raises
    ------
    CommandError
        If the image cannot be read.
    OSError
        If what it contains cannot be written; then `target` is as it was.
    """
    # Status 1: something was mended, which is usual after a kill; 2: also, and "reboot".
    mended = run(("e2fsck", "-f", "-y", str(image)), timeout_s=_LIMIT_S, check=False)
    if mended.status > 2:
        problem = f"ended with status {mended.status}"
        raise CommandError(mended.argv, mended.status, mended.stdout, mended.stderr, problem)
    with tempfile.TemporaryDirectory(prefix=".bringing-", dir=target.parent) as folder:
        # debugfs has no way to quote a quotation mark, which the target's name may have.
        with tempfile.TemporaryDirectory(prefix="tactical-bringing-") as aside:
            link = Path(aside, "target")
            link.symlink_to(folder)
            request = f'rdump "{directory}" "{link}"'
            said = run(("debugfs", "-R", request, str(image)), timeout_s=_LIMIT_S)
        source = Path(folder, Path(directory).name)
        if not source.is_dir():
            raise CommandError(said.argv, said.status, said.stdout, said.stderr, "found nothing")
        problems = [
            line for line in said.stderr.splitlines()[1:] if "changing ownership" not in line
        ]
        # What is cut short must not stay: it would be taken for whole the next time.
        if problems:
            raise OSError(0, "; ".join(problems[:3]), str(target))
        _move_into(source, target)


def _move_into(source: Path, target: Path) -> None:
    for entry in sorted(source.iterdir()):
        place = target / entry.name
        if entry.is_dir() and not entry.is_symlink():
            place.mkdir(exist_ok=True)
            _move_into(entry, place)
        elif not place.exists():
            entry.replace(place)


@contextmanager
def tree_of(files: Iterable[Path], beside: Path) -> Iterator[Path]:
    """A directory with files of this machine at their own places below it, while the block lasts.

    Hard links where that is possible, and copies elsewhere.
    """
    with tempfile.TemporaryDirectory(prefix=".guest-", dir=beside) as folder:
        root = Path(folder)
        for file in files:
            place = root / file.relative_to("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            if file.is_symlink():
                place.symlink_to(file.readlink())
                continue
            try:
                os.link(file, place, follow_symlinks=False)
            except OSError:
                shutil.copy2(file, place)
                place.chmod(stat.S_IMODE(file.stat().st_mode) | stat.S_IWUSR)
        yield root
