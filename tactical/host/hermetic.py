"""A virtual machine that nothing enters and nothing leaves while its command runs.

Its clock counts instructions (QEMU's ``-icount``) and skips the time in which it has nothing to
do. Whatever came from outside would come after a number of instructions that depends on how busy
this machine is. So there is no device to wait for: programs and the command's directory are in
persistent memory (`memory_disk`), which are files of this machine; what the command tells goes
through ports that take no time. Random numbers follow from a seed. How near this brings two guests
with the same content and the same seed to each other is in docs/fidelity.md.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import io
import os
import shlex
import shutil
import stat
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tactical.cache import cache_directory
from tactical.host import guest_files, initramfs, memory_disk, packages
from tactical.host.environment import compile_packages, package_root, worker_environment
from tactical.host.machine import HostError, enough
from tactical.host.process import SYSTEM_DIRECTORIES, Child, CommandError, how_ended
from tactical.host.temporary import TemporaryDirectory

HERE = Path(__file__).resolve().parent
DIRECTORY = Path("/experiment/run")
"""Where a guest has the command's directory, whatever its name outside: names are content, too."""

IMAGE_NAME = "guest-memory.img"
BOOT_LIMIT_S = 300.0
_UP_MARK = b"tactical: guest is up"
_STOP = b".\n"

# For programs and what they write elsewhere than in the command's directory.
_SYSTEM_ROOM_BYTES = 512 * 2**20
_LOG_ROOM_BYTES = 100 * 2**20
_TOLD_ROOM_BYTES = 4 * 2**20
"""For a file that a guest tells into; events of a long run take a tenth of that."""
_KEPT_IMAGES = 3

_BOOT_MODULES = ("libnvdimm", "nfit", "nd_pmem", "crc32c_generic", "ext4")


@dataclass(frozen=True)
class HermeticMachine:
    """A virtual machine for one command, in virtual time.

    Parameters
    ----------
    kernel : str
        Release of an installed kernel, as in /lib/modules.
    memory_mib : int
        Memory for programs at work, in MiB; files have their own.
    """

    kernel: str
    memory_mib: int = 2048

    name = "vm"
    virtual_time = True

    @property
    def description(self) -> str:
        return f"virtual machine in software, virtual time, kernel {self.kernel}"

    def with_memory(self, memory_mib: int) -> HermeticMachine:
        """See `Machine.with_memory`."""
        return dataclasses.replace(self, memory_mib=enough(memory_mib, self.memory_mib))

    def command(self, argv: Sequence[str], writable: Sequence[Path] = ()) -> list[str]:
        """The QEMU command; see `Machine.command`.

        Names in capitals stand for files that a start makes.
        """
        return self._command(
            Path("INITRAMFS"), Path("SYSTEM"), 0, Path("MEMORY"), 0, [Path("TOLD")]
        )

    def _command(
        self,
        first: Path,
        system: Path,
        system_bytes: int,
        memory: Path,
        memory_bytes: int,
        told: Sequence[Path],
        seed: int = 0,
    ) -> list[str]:
        most = self.memory_mib * 2**20 + system_bytes + memory_bytes
        line = "console=ttyS0 loglevel=1 panic=-1 mitigations=off nokaslr random.trust_cpu=off"
        qemu = str(HERE / "qemu-bound.sh")
        return [
            *(qemu, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
            *("-machine", "q35,accel=tcg,nvdimm=on", "-cpu", "max,rdrand=off,rdseed=off"),
            *("-m", f"{self.memory_mib}M,slots=2,maxmem={-(-most // 2**20) + 1024}M"),
            # An instruction takes 1 ns (2 to the power of `shift`); time without any is skipped.
            # Recording, whose file nobody reads, makes QEMU skip it at an exact instruction.
            *("-icount", "shift=0,sleep=off,rr=record,rrfile=/dev/null"),
            *("-rtc", "base=2000-01-01T00:00:00,clock=vm"),
            *("-seed", str(seed)),
            *("-kernel", f"/boot/vmlinuz-{self.kernel}", "-initrd", str(first)),
            *("-append", f"{line} seed={seed}"),
            *_memory("system", system, system_bytes, shared=False),
            *_memory("experiment", memory, memory_bytes, shared=True),
            *("-chardev", "stdio,id=console,signal=off", "-device", "isa-serial,chardev=console"),
            *(word for number, file in enumerate(told) for word in _debug_console(number, file)),
            *("-device", "isa-debug-exit,iobase=0xf4"),
        ]

    def check(self, writable: Sequence[Path] = ()) -> None:
        """See `Machine.check`: any directory will do."""

    def start(
        self,
        argv: Sequence[str],
        writable: Sequence[Path],
        log_path: Path,
        *,
        told: Sequence[Path] = (),
        room_bytes: int = 0,
        seed: int = 0,
    ) -> Child:
        """Boot and run; see `Machine.start`. The command has one directory at most."""
        if len(writable) > 1:
            raise HostError("a guest in virtual time has one directory")
        own = TemporaryDirectory()
        home = writable[0] if writable else own.path
        image = home / IMAGE_NAME
        undo: list[Callable[[], object]] = [own.remove]
        try:
            compile_packages()
            system = _system_image(self.kernel)
            room = memory_disk.aligned(room_bytes + _LOG_ROOM_BYTES)
            for file in told:
                # Some file systems cannot; where there is no room there is less for the memory.
                with contextlib.suppress(CommandError):
                    memory_disk.reserve_ahead(file, _TOLD_ROOM_BYTES)
            _check_room(home, room)
            undo.append(lambda: image.unlink(missing_ok=True))
            lock = _new_memory(
                image, room, writable, {path.resolve() for path in (log_path, *told)}
            )
            undo.append(lambda: os.close(lock))
            first = own.path / "initramfs"
            words = [str(DIRECTORY) if Path(w) in writable else w for w in argv]
            first.write_bytes(_first_files(self.kernel, words))
            command = self._command(
                first, system, system.stat().st_size, image, room, told, seed % 2**31
            )
            child = Child(
                command,
                log_path,
                ask_to_stop=_ask_to_stop,
                decode=_status,
                meaning=_own_failure,
                on_end=lambda ended: _on_end(ended, writable, own, lock),
            )
        except BaseException as error:
            for step in reversed(undo):
                step()
            if isinstance(error, CommandError | OSError):
                raise HostError(f"the virtual machine cannot be started: {error}") from error
            raise

        reason = f"the virtual machine (kernel {self.kernel}) did not boot"
        child.kill_unless(
            lambda: _is_up(log_path), BOOT_LIMIT_S, f"{reason} within {BOOT_LIMIT_S:g} s"
        )
        return child


def recover(directory: Path) -> bool:
    """Bring back what a guest wrote that was never closed, as `tactical` itself was killed.

    Returns
    -------
    bool
        Whether there was something, and nobody uses it any more.

    Raises
    ------
    CommandError, OSError
        If it cannot be brought back; the image stays where it is.
    """
    image = directory / IMAGE_NAME
    try:
        lock = _lock(image)
    except (FileNotFoundError, BlockingIOError):
        return False
    try:
        memory_disk.extract(image, f"/{DIRECTORY.name}", directory)
        image.unlink()
    finally:
        os.close(lock)
    return True


def _check_room(directory: Path, room_bytes: int) -> None:
    free_bytes = shutil.disk_usage(directory).free
    if free_bytes < room_bytes:
        raise HostError(
            f"{directory}: a run in virtual time reserves {room_bytes / 1e6:.0f} MB there for what "
            f"it records, but only {free_bytes / 1e6:.0f} MB are free; nothing was run: make room, "
            "or name another directory with --runs-dir"
        )


def _on_end(child: Child, writable: Sequence[Path], own: TemporaryDirectory, lock: int) -> None:
    os.close(lock)
    own.remove()
    for directory in writable:
        try:
            recover(directory)
        except (CommandError, OSError) as error:
            child.failure = (
                f"what the virtual machine recorded is in {directory / IMAGE_NAME} and could not "
                f"be brought back: {error}; make room and `tactical report {directory}` tries again"
            )


def _ask_to_stop(child: Child) -> None:
    if _is_up(child.log_path):
        child.say(_STOP)
    else:
        # A kernel that still boots forgets what its serial line had. Nothing is recorded yet.
        child.kill("stopped before the virtual machine was up")


def _is_up(log_path: Path) -> bool:
    return _UP_MARK in log_path.read_bytes()


def _status(qemu: int) -> int:
    """The command's exit status from QEMU's, which isa-debug-exit makes odd."""
    return qemu >> 1 if qemu > 0 and qemu % 2 else qemu


_ENDED_ITSELF = 0  # a command without a fault makes QEMU end with 1


def _own_failure(status: int) -> str | None:
    """What a status of QEMU means that is not the command's."""
    if status < 0:
        return f"the virtual machine ended ({how_ended(status)})"
    if status == _ENDED_ITSELF:
        return "the virtual machine ended by itself (its kernel failed; the console is in the log)"
    return None


def _debug_console(number: int, file: Path) -> list[str]:
    """The port number `number` through which lines leave (`emulation.telling`), into a file."""
    return [
        *("-chardev", f"file,id=told{number},append=on,path={_escaped(file)}"),
        *("-device", f"isa-debugcon,iobase={0xE9 + number:#x},chardev=told{number}"),
    ]


def _memory(name: str, file: Path, size_bytes: int, *, shared: bool) -> list[str]:
    share = "on" if shared else "off"
    backend = f"memory-backend-file,id={name},share={share},size={size_bytes}"
    return [
        *("-object", f"{backend},mem-path={_escaped(file)}"),
        *("-device", f"nvdimm,memdev={name}"),
    ]


def _escaped(path: Path) -> str:
    return str(path).replace(",", ",,")


def _lock(image: Path) -> int:
    """Take an image for this process; the lock goes when the descriptor is closed."""
    descriptor = os.open(image, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _new_memory(image: Path, size_bytes: int, writable: Sequence[Path], outside: set[Path]) -> int:
    """Make the memory that a directory is in, and lock it; files `outside` stay there."""
    with tempfile.TemporaryDirectory(prefix=".guest-", dir=image.parent) as folder:
        inside = Path(folder, DIRECTORY.name)
        inside.mkdir()
        hidden = {*outside, image.resolve(), Path(folder).resolve()}

        def ignore(parent: str, names: list[str]) -> list[str]:
            return [name for name in names if Path(parent, name).resolve() in hidden]

        for directory in writable:
            shutil.copytree(directory, inside, ignore=ignore, dirs_exist_ok=True)
        memory_disk.make(image, size_bytes, Path(folder))
    memory_disk.reserve(image)
    return _lock(image)


def _system_image(kernel: str) -> Path:
    """The image of programs, made when something about them has changed."""
    home = cache_directory() / "guests"
    image = home / f"{guest_files.state(kernel)}.img"
    if image.exists():
        image.touch()  # the last to be thrown away
        return image
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    files = guest_files.collect(kernel)
    # Every file takes whole blocks of 4 KiB, and an inode.
    size = sum(path.lstat().st_size + 4096 for path in files)
    with memory_disk.tree_of(files, home) as root:
        for name in (
            "dev",
            "experiment",
            "proc",
            "root",
            "run",
            "sys",
            "tmp",
            "var/log",
            "var/run",
        ):
            (root / name).mkdir(parents=True, exist_ok=True)
        fresh = home / f".{image.name}.{os.getpid()}"
        try:
            room = memory_disk.aligned(1.1 * size + _SYSTEM_ROOM_BYTES)
            memory_disk.make(fresh, room, root, dated=True)
            fresh.replace(image)
        finally:
            fresh.unlink(missing_ok=True)
    others = sorted(home.glob("*.img"), key=lambda path: path.stat().st_mtime)
    for old in others[:-_KEPT_IMAGES]:
        old.unlink(missing_ok=True)  # a guest that still uses it keeps it
    return image


def _first_files(kernel: str, argv: Sequence[str]) -> bytes:
    """The archive that a guest begins with: busybox, modules, our packages, the command."""
    busybox = packages.find_command("busybox")
    if busybox is None:
        raise CommandError(["busybox"], None, "", "", "cannot be started (not installed)")
    modules = guest_files.boot_modules(kernel, _BOOT_MODULES)
    directories = ("bin", "dev", "modules", "proc", "sys", "system")
    return initramfs.archive(
        [
            *map(initramfs.directory, directories),
            initramfs.CONSOLE,
            initramfs.program("init", (HERE / "hermetic-init.sh").read_bytes()),
            initramfs.program("bin/busybox", busybox.read_bytes()),
            *(
                initramfs.program(f"modules/{number:02}", initramfs.module(path))
                for number, path in enumerate(modules)
            ),
            initramfs.program("payload.tar", _payload(argv)),
        ]
    )


def _payload(argv: Sequence[str]) -> bytes:
    """Our packages at their place, and what to do."""
    variables = worker_environment(os.pathsep.join(SYSTEM_DIRECTORIES))
    variables |= {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}
    words = ["env", *(f"{key}={value}" for key, value in variables.items()), *argv]
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        main = (HERE / "hermetic-main.sh").read_bytes()
        for name, content in (
            ("experiment-main", main),
            ("experiment-command", shlex.join(words).encode()),
        ):
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), stat.S_IRWXU
            archive.addfile(member, io.BytesIO(content))
        root = package_root()
        for path in guest_files.package_files():
            archive.add(path, arcname=str(root / path.relative_to(root))[1:], recursive=False)
    return stream.getvalue()
