"""Whether KVM really boots a kernel here.

The device file proves nothing: where this machine is itself a virtual machine, /dev/kvm may be
there and a stock kernel hang on it. So a kernel is booted, without a root file system: it prints
its banner, finds no root, panics and, being told to, resets, which ends QEMU.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from tactical.cache import cache_directory
from tactical.host import packages
from tactical.host.kernels import Kernel
from tactical.host.process import CommandError, run

DEVICE = Path("/dev/kvm")
TIME_LIMIT_S = 20.0  # with KVM the kernel is there after about one


@dataclass(frozen=True)
class KvmProbe:
    """The answer of a probe.

    Attributes
    ----------
    works : bool
        A kernel booted on it.
    reason : str
        What was seen.
    """

    works: bool
    reason: str


def probe(kernel: Kernel) -> KvmProbe:
    """Boot `kernel` with KVM, or recall what came of it since this machine was started."""
    if not DEVICE.exists():
        return KvmProbe(False, f"{DEVICE} does not exist")
    if not os.access(DEVICE, os.R_OK | os.W_OK):
        return KvmProbe(False, f"no permission for {DEVICE} (be root, or in group kvm)")
    qemu = packages.find_command("qemu-system-x86_64")
    if qemu is None:
        return KvmProbe(False, "qemu-system-x86_64 is not installed")
    key = "|".join(
        [
            Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip(),
            run([str(qemu), "--version"], timeout_s=10).stdout.partition("\n")[0],
            kernel.release,
        ]
    )
    answer = _recall(key)
    if answer is None:
        answer = _boot(str(qemu), kernel)
        _remember(key, answer)
    return answer


def _boot(qemu: str, kernel: Kernel) -> KvmProbe:
    command = [qemu, "-machine", "q35,accel=kvm", "-cpu", "host", "-m", "512M", "-nodefaults"]
    command += ["-display", "none", "-no-reboot", "-serial", "stdio", "-kernel", str(kernel.image)]
    command += ["-append", "console=ttyS0 panic=-1 quiet loglevel=4"]
    try:
        done = run(command, timeout_s=TIME_LIMIT_S, check=False)
    except CommandError as error:
        said = "and said nothing" if not error.stdout.strip() else "after its first lines"
        return KvmProbe(False, f"kernel {kernel.release} hung for {TIME_LIMIT_S:g} s {said}")
    if "Kernel panic" in done.stdout:
        return KvmProbe(True, f"kernel {kernel.release} booted on it")
    said = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
    return KvmProbe(False, f"kernel {kernel.release} did not boot on it: {said}")


def _cache_path() -> Path:
    return cache_directory() / "kvm.json"


def _recall(key: str) -> KvmProbe | None:
    try:
        stored = json.loads(_cache_path().read_text(encoding="utf-8"))
        if stored["key"] != key:
            return None
        return KvmProbe(works=bool(stored["works"]), reason=str(stored["reason"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _remember(key: str, answer: KvmProbe) -> None:
    path = _cache_path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=path.parent, delete=False
        ) as file:
            json.dump({"key": key, **asdict(answer)}, file)
        Path(file.name).replace(path)
    except OSError:
        return  # a home directory that cannot be written costs a probe each time, no more
