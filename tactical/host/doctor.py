"""What this machine can do, what it lacks, and the command that helps."""

from __future__ import annotations

import os
import platform
import re
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tactical.host import kernels, kvm, libraries, packages
from tactical.host.kernels import Kernel
from tactical.host.kvm import KvmProbe
from tactical.host.packages import SystemPackage
from tactical.host.process import CommandError, run
from tactical.host.virtual import VirtualMachine


@dataclass(frozen=True)
class Tool:
    """A command that an emulated network needs; `path` and `version` are None when missing.

    `problem` is what is wrong with one that is there.
    """

    name: str
    path: Path | None
    version: str | None
    package: str
    problem: str | None = None


@dataclass(frozen=True)
class Backend:
    """One way to run: usable when `problems` is empty."""

    name: str
    problems: tuple[str, ...]
    detail: str


@dataclass(frozen=True)
class Report:
    """Everything `tactical doctor` shows."""

    is_root: bool
    running_kernel: str
    running_kernel_lacks: tuple[str, ...]
    kernels: tuple[Kernel, ...]
    kvm: KvmProbe
    tools: tuple[Tool, ...]
    backends: tuple[Backend, ...]
    chosen: str | None
    missing_packages: tuple[str, ...]
    install: str | None
    mininet_wifi_problem: str | None

    def to_json(self) -> dict[str, Any]:
        """The report as data for `--json`."""
        data = asdict(self)
        for kernel, entry in zip(self.kernels, data["kernels"], strict=True):
            entry["image"] = str(kernel.image)
            entry["suitable"] = kernel.suitable
        for tool in data["tools"]:
            tool["path"] = str(tool["path"]) if tool["path"] else None
        for backend in data["backends"]:
            backend["usable"] = not backend["problems"]
        return data


def newest_suitable_kernel() -> Kernel | None:
    """The kernel that a virtual machine would boot."""
    return next((kernel for kernel in kernels.installed() if kernel.suitable), None)


def probe_kvm(kernel: Kernel) -> KvmProbe:
    """Whether `kernel` boots with KVM; see `tactical.host.kvm`."""
    return kvm.probe(kernel)


def native_problems() -> list[str]:
    """Why a network cannot run on this machine itself; empty when it can."""
    problems = []
    if os.geteuid() != 0:
        problems.append("not root")
    lacking = kernels.running_lacks()
    if lacking:
        problems.append(f"kernel {platform.release()} lacks {', '.join(lacking)}")
    commands = _missing_commands(virtual=False)
    if commands:
        problems.append(f"commands missing: {', '.join(commands)}")
    return problems


def virtual_problems() -> list[str]:
    """Why a virtual machine cannot be started; empty when it can."""
    problems = []
    if platform.machine() != "x86_64":
        problems.append(f"only x86_64 is supported, not {platform.machine()}")
    found = kernels.installed()
    if newest_suitable_kernel() is None:
        unreadable = [kernel for kernel in found if not kernel.missing and not kernel.readable]
        if unreadable:
            image = unreadable[0].image
            problems.append(f"{image} is not readable (`sudo chmod a+r {image}`)")
        elif found:
            best = found[0]
            problems.append(f"kernel {best.release} lacks {', '.join(best.missing)}")
        else:
            problems.append("no kernel is installed in /boot with modules in /lib/modules")
    commands = _missing_commands(virtual=True)
    if commands:
        problems.append(f"commands missing: {', '.join(commands)}")
    if not _has_virtme_run():
        problems.append("virtme-run (PyPI's virtme-ng) is not installed")
    return problems


def missing_packages() -> tuple[SystemPackage, ...]:
    """Lines of the package list that something is missing of."""
    found = kernels.installed()

    def kernel_has(modules: tuple[str, ...]) -> bool:
        return any(not set(modules) & set(kernel.missing) for kernel in found)

    return packages.missing(packages.read(), kernel_has)


def install_command() -> str | None:
    """The one command that installs what is missing, or None."""
    return packages.install_command(missing_packages())


def examine() -> Report:
    """Look at everything; probes KVM if that was not done since this machine was started."""
    found = kernels.installed()
    kernel = newest_suitable_kernel()
    kvm_answer = probe_kvm(kernel) if kernel else KvmProbe(False, "no kernel to boot")
    native = Backend("native", tuple(native_problems()), f"kernel {platform.release()}")
    how = "KVM" if kvm_answer.works else "software emulation"
    detail = f"kernel {kernel.release}, {how}" if kernel else how
    virtual = Backend("vm", tuple(virtual_problems() or _rehearsal_problems(kernel)), detail)
    usable = [backend.name for backend in (native, virtual) if not backend.problems]
    lacking = missing_packages()
    return Report(
        is_root=os.geteuid() == 0,
        running_kernel=platform.release(),
        running_kernel_lacks=kernels.running_lacks(),
        kernels=found,
        kvm=kvm_answer,
        tools=_tools(),
        backends=(native, virtual),
        chosen=usable[0] if usable else None,
        missing_packages=tuple(package.names[0] for package in lacking),
        install=packages.install_command(lacking),
        mininet_wifi_problem=libraries.mininet_wifi_problem(),
    )


def render(report: Report) -> str:
    """The report for people."""
    lines = ["Ways to run a network:"]
    for backend in report.backends:
        mark = "yes" if not backend.problems else "no "
        chosen = "  <- `--backend auto`" if backend.name == report.chosen else ""
        lines.append(f"  {mark}  {backend.name:<7} {backend.detail}{chosen}")
        lines += [f"                - {problem}" for problem in backend.problems]
    lines.append("  yes  sim     packets are simulated, without a kernel and without root")
    lines.append(f"KVM: {'works' if report.kvm.works else 'not used'} ({report.kvm.reason})")
    lines.append("Kernels for the virtual machine:")
    for kernel in report.kernels:
        state = "suitable" if kernel.suitable else "not readable"
        if kernel.missing:
            state = f"lacks {', '.join(kernel.missing)}"
        lines.append(f"  {kernel.release:<24} {state}")
    if not report.kernels:
        lines.append("  none installed")
    lines.append("Tools:")
    for tool in report.tools:
        if tool.path is None:
            lines.append(f"  {tool.name:<20} MISSING (package {tool.package})")
        elif tool.problem is not None:
            lines.append(f"  {tool.name:<20} UNSUITABLE (package {tool.package}): {tool.problem}")
        else:
            lines.append(f"  {tool.name:<20} {tool.version or 'version unknown'}")
    without = report.mininet_wifi_problem
    lines.append("Networks, besides Mininet's:")
    lines.append(f"  {'yes' if without is None else 'no '}  --network mininet-wifi")
    lines += [f"       - {without}"] if without else []
    if report.install:
        lines += ["", "To install what is missing:", f"  {report.install}"]
    elif report.chosen is None:
        lines += ["", "No way to run here; what stands in the way is listed above."]
    return "\n".join(lines)


def _rehearsal_problems(kernel: Kernel | None) -> list[str]:
    if kernel is None:
        return []
    try:
        VirtualMachine(kernel.release, kvm=False).rehearse()
    except CommandError as error:
        said = (error.stderr.strip() or error.stdout.strip() or str(error)).splitlines()[-1]
        return [f"virtme-run fails: {said}"]
    return []


def _missing_commands(*, virtual: bool) -> list[str]:
    return [
        problem
        for package in packages.read()
        if virtual or package.section != packages.VIRTUAL_MACHINE
        for command in package.commands
        if (problem := package.command_problem(command)) is not None
    ]


def _has_virtme_run() -> bool:
    beside = Path(sys.executable).parent / "virtme-run"
    return beside.exists() or packages.find_command("virtme-run") is not None


def _tools() -> tuple[Tool, ...]:
    tools = []
    for package in packages.read():
        for command in package.commands:
            path = packages.find_command(command)
            version = _version(path) if path else None
            problem = package.command_problem(command) if path else None
            tools.append(Tool(command, path, version, package.names[0], problem))
    beside = Path(sys.executable).parent / "virtme-run"
    path = beside if beside.exists() else packages.find_command("virtme-run")
    version = _version(path.with_name("vng")) if path else None
    tools.append(Tool("virtme-run", path, version, "virtme-ng, from PyPI"))
    return tuple(tools)


_VERSION_OPTIONS = {
    "ip": "-V",
    "tc": "-V",
    "hostapd": "-v",
    "ping": "-V",
    "busybox": "",
    "mke2fs": "-V",
    "e2fsck": "-V",
    "debugfs": "-V",
}
_VERSION = re.compile(r"\d+(?:\.\d+)+(?:[-+~.\w]*)?|(?<=version )\d+|\b(?:\d{3}|20\d{6})\b")


def _version(path: Path) -> str | None:
    option = _VERSION_OPTIONS.get(path.name, "--version")
    try:
        said = run([str(path), *([option] if option else [])], timeout_s=10, check=False)
    except CommandError:
        return None
    match = _VERSION.search(said.stdout + said.stderr)
    return match.group() if match else None
