"""Which files of this machine a guest needs that sees nothing else of it.

The tools with their libraries, Python with the distributions that a worker may import, the kernel's
modules, and the settings that programs look for. Links are kept as links.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import re
import sys
import sysconfig
import tomllib
from collections.abc import Iterable, Iterator
from importlib.util import cache_from_source
from pathlib import Path

from tactical.host import kernels, memory_disk, packages
from tactical.host.environment import PACKAGES, package_root
from tactical.host.process import run

DISTRIBUTION = "tactical"

_NOT_IN_A_GUEST = frozenset(
    {
        # Analysis, pictures and checks, which happen outside, and large compilers.
        "cvxpy",
        "distributed",
        "duckdb",
        "matplotlib",
        "numba",
        "pandas",
        "pyarrow",
        "pyshark",
        "rich",
        "scipy",
        "virtme-ng",
    }
)
_SHELL_TOOLS = (
    "awk", "basename", "bash", "cat", "chmod", "chown", "cp", "cut", "date", "dd", "dirname",
    "echo", "env", "false", "grep", "head", "hostname", "id", "ifconfig", "insmod", "kill",
    "ldconfig", "ln", "ls", "lsmod", "mkdir", "mknod", "mount", "mv", "nstat", "od", "ps",
    "readlink", "rm", "rmdir", "rmmod", "sed", "seq", "setpriv", "sh", "sleep", "sort", "stty",
    "sync", "tail", "tar", "tee", "test", "touch", "tr", "true", "umount", "uname", "wc",
    "which", "xargs",
)  # fmt: skip
_SETTINGS = (
    "group", "host.conf", "hosts", "iproute2", "ld.so.cache", "localtime", "modprobe.d",
    "nsswitch.conf", "os-release", "passwd", "protocols", "services", "ssl",
)  # fmt: skip
_DATA = (
    "/sbin/modprobe",  # by this name the kernel starts it
    "/usr/share/openvswitch",
    "/usr/lib/locale/C.utf8",
    "/usr/share/iproute2",
    "/usr/lib/iproute2",
    "/usr/lib/tc",
)
_OPENED_BY_NAME = (
    "libgcc_s.so.1",  # when a thread is cancelled
    "mptcpize/*",  # by mptcpize, before the program that it starts
    "ossl-modules/*",
)
"""Libraries that no program is linked with, beside the C library."""
_OMITTED_DIRECTORIES = frozenset({"test", "tests", "idlelib", "tkinter", "turtledemo", "private"})
_MODULE_DIRECTORIES = ("kernel/net/", "kernel/crypto/", "kernel/lib/", "kernel/arch/x86/crypto/")
_MODULES = ("veth", "dummy", "ifb", "tun", "mac80211_hwsim")


def collect(kernel: str) -> list[Path]:
    """Every file and link, with the links that lead to it; sorted.

    Parameters
    ----------
    kernel : str
        Release of the kernel whose modules are meant.

    Raises
    ------
    CommandError
        If ``ldd`` cannot be run.
    """
    roots = [*_commands(), *_settings(), *map(Path, _DATA), *_python()]
    found: dict[Path, None] = {}
    for root in roots:
        for path in _tree(root):
            _add(path, found)
    binaries = [path for path in found if _is_binary(path)]
    for library in _libraries(binaries):
        _add(library, found)
    for path in _kernel_modules(kernel):
        _add(path, found)
    return sorted(found)


def state(kernel: str) -> str:
    """A digest that changes whenever what `collect` finds may have changed; quickly found."""
    digest = hashlib.sha256(f"{kernel} {sys.executable} {sys.version}".encode())
    # By content, so that two checkouts of the same have one image.
    makers = (Path(__file__), Path(memory_disk.__file__))
    for path in (*makers, packages.list_path(), package_root() / "pyproject.toml"):
        if path.exists():
            digest.update(path.read_bytes())
    witnesses = [
        Path("/etc/ld.so.cache"),
        Path("/var/lib/dpkg/status"),
        Path("/lib/modules", kernel, "modules.dep"),
        Path(sysconfig.get_path("stdlib")),
        Path(sys.prefix) / "pyvenv.cfg",
        *(Path(path) for path in sorted({*_sites()})),
    ]
    for path in witnesses:
        try:
            status = path.stat()
        except OSError:
            continue
        digest.update(f"{path} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]


def _sites() -> Iterator[str]:
    """Directories of installed distributions, and their metadata: installing changes both."""
    for name in ("purelib", "platlib"):
        site = sysconfig.get_path(name)
        yield site
        yield from (str(path) for path in Path(site).glob("*.dist-info/RECORD"))


def boot_modules(kernel: str, names: Iterable[str]) -> list[Path]:
    """Modules with all that they depend on, in the order in which they can be inserted."""
    directory = Path("/lib/modules", kernel)
    needs = _dependencies(directory)
    by_name = {_module_name(path): path for path in needs}
    ordered: dict[str, None] = {}

    def add(path: str) -> None:
        for needed in needs[path]:
            add(needed)
        ordered.setdefault(path)

    for name in names:
        if name in by_name:  # the others are built in
            add(by_name[name])
    return [directory / path for path in ordered]


def package_files() -> Iterator[Path]:
    """Source and byte code of our own packages, as far as a worker imports them."""
    for name in PACKAGES:
        for path in sorted((package_root() / name).rglob("*")):
            if not path.is_file() or path.parent.name == "__pycache__":
                continue  # of which others than Python write some, whenever they come to it
            yield path
            if path.suffix == ".py" and (code := Path(cache_from_source(path))).exists():
                yield code


def _commands() -> Iterator[Path]:
    names = {
        command
        for package in packages.read()
        if package.section != packages.VIRTUAL_MACHINE
        for command in package.commands
    }
    # Large, and for analysis.
    names -= {"tshark", "make"}
    for name in sorted(names | set(_SHELL_TOOLS)):
        if (path := packages.find_command(name)) is not None:
            yield path


def _settings() -> Iterator[Path]:
    return (Path("/etc", name) for name in _SETTINGS)


def _python() -> Iterator[Path]:
    yield Path(sys.executable)
    yield Path(sys.executable).resolve()
    yield Path(sys.executable).with_name("python3")
    yield Path(sys.prefix) / "pyvenv.cfg"
    for directory in {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}:
        yield from _standard_library(Path(directory))
    for distribution in _distributions():
        for file in distribution.files or ():
            path = Path(os.path.normpath(str(distribution.locate_file(file))))
            # Scripts, and what belongs to our own packages, are not among them.
            if "site-packages" in path.parts or "dist-packages" in path.parts:
                yield path


def _standard_library(directory: Path) -> Iterator[Path]:
    omitted = {"site-packages", "dist-packages", *_OMITTED_DIRECTORIES}
    for entry in sorted(directory.iterdir()):
        if entry.name not in omitted and not entry.name.startswith("config-"):
            yield entry


def _distributions() -> Iterator[importlib.metadata.Distribution]:
    """What our own distribution needs, and what that needs."""
    waiting, seen = [DISTRIBUTION], {DISTRIBUTION}
    while waiting:
        name = waiting.pop()
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # of another platform, or told where it is needed
        if name != DISTRIBUTION:
            yield distribution
        for requirement in _requirements(distribution):
            if "extra ==" in requirement:
                continue
            match = re.match(r"[A-Za-z0-9._-]+", requirement)
            needed = re.sub(r"[-_.]+", "-", match[0]).lower() if match else ""
            if needed and needed not in seen | _NOT_IN_A_GUEST:
                seen.add(needed)
                waiting.append(needed)


def _requirements(distribution: importlib.metadata.Distribution) -> list[str]:
    """What a distribution requires; our own may be a checkout that has changed since."""
    project = package_root() / "pyproject.toml"
    if distribution.metadata["Name"] == DISTRIBUTION and project.exists():
        table = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
        return [str(each) for each in table["dependencies"]]
    return list(distribution.requires or ())


def _tree(root: Path) -> Iterator[Path]:
    if root.is_symlink() or not root.is_dir():
        yield root
        return
    for directory, names, files in os.walk(root):
        names[:] = sorted(name for name in names if name not in _OMITTED_DIRECTORIES)
        yield from (Path(directory, name) for name in files)
        yield from (p for name in names if (p := Path(directory, name)).is_symlink())


def _add(path: Path, found: dict[Path, None]) -> None:
    """Add a file, and every link on the way to it."""
    path = Path(os.path.normpath(path))
    for _ in range(40):  # as many links as the kernel follows
        place = Path("/")
        for part in path.parts[1:]:
            place /= part
            if place.is_symlink():
                found.setdefault(place)
                target = place.parent / place.readlink()
                path = Path(os.path.normpath(target / path.relative_to(place)))
                break
        else:
            if path.is_file() and os.access(path, os.R_OK):
                found.setdefault(path)
            elif path.is_dir():
                for inner in _tree(path):
                    if inner not in found:
                        _add(inner, found)
            return


def _is_binary(path: Path) -> bool:
    if path.is_symlink() or not (".so" in path.name or os.access(path, os.X_OK)):
        return False
    try:
        with path.open("rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:
        return False


def _libraries(binaries: list[Path]) -> Iterator[Path]:
    if not binaries:
        return
    said = run(("ldd", *map(str, binaries)), timeout_s=120, check=False).stdout
    for found in dict.fromkeys(re.findall(r"(/\S+) \(0x", said)):
        yield Path(found)
    place = re.search(r"(/\S+/)libc\.so\.6 ", said)
    if place is not None:
        for name in _OPENED_BY_NAME:
            yield from Path(place[1]).glob(name)


def _kernel_modules(kernel: str) -> Iterator[Path]:
    directory = Path("/lib/modules", kernel)
    needs = _dependencies(directory)
    named = {*kernels.required_modules(), *_MODULES}
    wanted = [
        path
        for path in needs
        if path.startswith(_MODULE_DIRECTORIES) or _module_name(path) in named
    ]
    for path in {p for each in wanted for p in (each, *needs[each])}:
        yield directory / path
    yield from directory.glob("modules.*")


def _dependencies(directory: Path) -> dict[str, list[str]]:
    """modules.dep: each module's file, and those that it needs."""
    table = {}
    for line in (directory / "modules.dep").read_text(encoding="utf-8").splitlines():
        path, _, needed = line.partition(":")
        table[path] = needed.split()
    return table


def _module_name(path: str) -> str:
    return Path(path).name.partition(".")[0].replace("-", "_")
