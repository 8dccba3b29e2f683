"""A virtual machine that boots an installed distribution kernel over this machine's own files.

`virtme-run` (from virtme-ng) starts QEMU with the root file system shared read-only through 9p, so
the guest sees the same Python, the same tools and the same paths. Only the directories named as
writable change on the host; everything else goes to a temporary overlay.
"""

from __future__ import annotations

import base64
import dataclasses
import os
import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tactical.host.environment import (
    PACKAGES,
    compile_packages,
    package_root,
    worker_environment,
)
from tactical.host.machine import HostError, enough
from tactical.host.process import (
    SYSTEM_DIRECTORIES,
    Child,
    CommandError,
    how_ended,
    run,
    search_path,
)
from tactical.host.temporary import TemporaryDirectory

HERE = Path(__file__).resolve().parent
UP_MARK = b"tactical: guest is up"
FAILURE_STATUS = 255  # of virtme-run when QEMU ends without a status of the command
BOOT_LIMIT_S = 300.0  # a loaded two-core machine needed 75 s in software

# Where the guest finds its command; see guest.sh.
COMMAND_ITEM = "opt/org.tactical/command"

# The command line that x86 kernels accept; a longer one is cut without a word.
KERNEL_COMMAND_LINE_BYTES = 2047
# What virtme-run itself puts there, without scripts and writable directories (570 bytes seen).
KERNEL_COMMAND_LINE_OWN_BYTES = 800

# virtme-run, QEMU, the kernel's command line and the guest's shell each give others a meaning.
SAFE_CHARACTERS = r"[A-Za-z0-9 /._+@~-]"

# Hardware of the emulated PC that no experiment uses: probing it takes 3 of 10 s of boot in
# software.
UNUSED_MODULES = (
    "kvm",
    "kvm_amd",
    "kvm_intel",
    "powernow_k8",
    "acpi_cpufreq",
    "ahci",
    "libata",
    "sr_mod",
    "sg",
    "iTCO_wdt",
    "lpc_ich",
    "i2c_i801",
    "aesni_intel",
    "ghash_clmulni_intel",
    "psmouse",
)


@dataclass(frozen=True)
class VirtualMachine:
    """A virtual machine for one command.

    Parameters
    ----------
    kernel : str
        Release of an installed kernel, as in /lib/modules.
    kvm : bool
        Use KVM (proven to work here) instead of emulating the processor.
    cpus : int
        Virtual processors.
    memory_mib : int
        Memory in MiB.
    """

    kernel: str
    kvm: bool
    cpus: int = 1
    memory_mib: int = 2048

    name = "vm"
    virtual_time = False

    @property
    def description(self) -> str:
        how = "KVM" if self.kvm else "software"
        return f"virtual machine in {how}, kernel {self.kernel}"

    def with_memory(self, memory_mib: int) -> VirtualMachine:
        """See `Machine.with_memory`."""
        return dataclasses.replace(self, memory_mib=enough(memory_mib, self.memory_mib))

    def command(self, argv: Sequence[str], writable: Sequence[Path] = ()) -> list[str]:
        """The `virtme-run` command; see `Machine.command`."""
        directories = _usable(writable)
        variables = worker_environment(os.pathsep.join(SYSTEM_DIRECTORIES))
        guest_command = shlex.join(
            [
                ":".join(_cached_directories(directories)),
                "env",
                *(f"{key}={value}" for key, value in variables.items()),
                *argv,
            ]
        )
        script = _script()
        command = [
            _virtme_run(),
            f"--qemu-bin={HERE / 'qemu-bound.sh'}",
            f"--kimg={self.kernel}",
            "--mods=auto",
            f"--cpus={self.cpus}",
            f"--memory={self.memory_mib}M",
            "--force-9p",
            "--cwd=/",
            # For the temporary files of tools that ignore TMPDIR, such as ovsdb-server.
            "--overlay-rwdir=/tmp",
            # Nobody attacks this guest, and the mitigations cost a sixth of its speed in software.
            "--kopt=mitigations=off",
            f"--kopt=module_blacklist={','.join(UNUSED_MODULES)}",
        ]
        if not self.kvm:
            command.append("--disable-kvm")
        command += [f"--rwdir={directory}" for directory in directories]
        command += [f"--script-sh={script}", "--qemu-opts"]
        share = "local,id=cached,path=/,security_model=none,readonly=on,multidevs=remap"
        command += ["-fsdev", share]
        command += ["-device", "virtio-9p-pci,fsdev=cached,mount_tag=tactical.cached"]
        # Not as part of the kernel's command line, which is too short for long paths.
        command += ["-fw_cfg", f"name={COMMAND_ITEM},string={guest_command.replace(',', ',,')}"]
        return command

    def check(self, writable: Sequence[Path] = ()) -> None:
        """See `Machine.check`."""
        _usable(writable)

    def rehearse(self, writable: Sequence[Path] = ()) -> str:
        """The QEMU command that a start would give, after all preparations but without a boot.

        Raises
        ------
        CommandError
            The preparations failed, say because a tool is missing.
        """
        command = self.command(["/bin/true"], writable)
        end = command.index("--qemu-opts")
        rehearsal = [*command[:end], "--show-command", "--dry-run", *command[end:]]
        return run(rehearsal, timeout_s=60, environment={"SHELL": "/bin/sh"}).stdout

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
        """Boot and run; see `Machine.start`."""
        compile_packages()
        temporary = None
        try:
            temporary = TemporaryDirectory()
            environment = {
                **os.environ,
                "PATH": search_path(),
                "SHELL": "/bin/sh",
                "TMPDIR": str(temporary.path),
            }
            begin = log_path.stat().st_size if log_path.exists() else 0
            child = Child(
                self.command(argv, writable),
                log_path,
                environment=environment,
                ask_to_stop=Child.close_stdin,
                on_end=lambda _: temporary.remove(),
                meaning=_own_failure,
            )
        except BaseException as error:
            if temporary is not None:
                temporary.remove()
            if isinstance(error, CommandError | OSError):
                raise HostError(f"the virtual machine cannot be started: {error}") from error
            raise

        def is_up() -> bool:
            with log_path.open("rb") as log:
                log.seek(begin)
                said = log.read(65536)
            return UP_MARK in said

        child.kill_unless(
            is_up,
            BOOT_LIMIT_S,
            f"the virtual machine (kernel {self.kernel}) did not boot within {BOOT_LIMIT_S:g} s",
        )
        return child


def _own_failure(status: int) -> str | None:
    """What a status means that is not the command's."""
    if status < 0:
        return f"the virtual machine ended (virtme-run ended {how_ended(status)})"
    if status == FAILURE_STATUS:
        return "the virtual machine ended (QEMU or its kernel failed or was killed)"
    return None


def _script() -> str:
    return shlex.join(["sh", str(HERE / "guest.sh")])


def _usable(writable: Sequence[Path]) -> list[str]:
    """The directories as the guest will know them, where it can."""
    directories = [str(path.resolve()) for path in writable]
    for directory in directories:
        _check_characters(directory)
    _check_length(_script(), directories)
    return directories


def _check_characters(directory: str) -> None:
    strange = "".join(dict.fromkeys(re.sub(SAFE_CHARACTERS, "", directory)))
    if strange:
        raise HostError(
            f"{directory!a} cannot be made writable in a virtual machine because of {strange!a}: "
            "use a runs directory with a path of ASCII letters, digits, spaces and / . _ + @ ~ -"
        )


def _check_length(script: str, directories: Sequence[str]) -> None:
    used = KERNEL_COMMAND_LINE_OWN_BYTES + len(base64.b64encode(script.encode()))
    used += len(",".join(UNUSED_MODULES)) + sum(len(path) + 75 for path in directories)
    if used > KERNEL_COMMAND_LINE_BYTES:
        raise HostError(
            f"the {len(directories)} writable directories need about {used} bytes of the kernel's "
            f"command line, which holds {KERNEL_COMMAND_LINE_BYTES}: use a shorter runs directory"
        )


def _virtme_run() -> str:
    beside = Path(sys.executable).parent / "virtme-run"
    return str(beside) if beside.exists() else (shutil.which("virtme-run") or "virtme-run")


def _cached_directories(writable: Sequence[str]) -> list[str]:
    """Directories of programs, outermost first, none of which hides a writable one."""
    wanted = [Path("/usr"), Path(sys.base_prefix).resolve(), Path(sys.prefix).resolve()]
    wanted += [package_root() / name for name in PACKAGES]
    chosen: list[Path] = []
    for directory in wanted:
        hides = any(Path(path).is_relative_to(directory) for path in writable)
        known = any(directory.is_relative_to(other) for other in chosen)
        if directory.is_dir() and not hides and not known:
            chosen.append(directory)
    return [str(directory) for directory in chosen]
