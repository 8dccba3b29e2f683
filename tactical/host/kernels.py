"""Which kernels are installed, and what they can do."""

from __future__ import annotations

import gzip
import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

from tactical.host import packages

# Parts that only a guest of our virtual machine needs.
GUEST_MODULES = frozenset(
    {
        *("virtio_pci", "virtio_console", "9p", "9pnet_virtio", "overlay", "qemu_fw_cfg"),
        # In virtual time: its files are in persistent memory.
        *("nfit", "nd_pmem", "ext4"),
    }
)
MPTCP = "multipath TCP"

_OPTIONS = {
    "openvswitch": "CONFIG_OPENVSWITCH",
    "sch_htb": "CONFIG_NET_SCH_HTB",
    "sch_netem": "CONFIG_NET_SCH_NETEM",
    "sch_ingress": "CONFIG_NET_SCH_INGRESS",
    "cls_matchall": "CONFIG_NET_CLS_MATCHALL",
    "cls_flower": "CONFIG_NET_CLS_FLOWER",
    "act_mirred": "CONFIG_NET_ACT_MIRRED",
    "act_gact": "CONFIG_NET_ACT_GACT",
    "veth": "CONFIG_VETH",
    "mac80211_hwsim": "CONFIG_MAC80211_HWSIM",
}


@dataclass(frozen=True)
class Kernel:
    """An installed kernel.

    Attributes
    ----------
    release : str
        As `uname -r` prints it.
    image : Path
        What a virtual machine boots.
    missing : tuple of str
        Required modules and features that it lacks.
    readable : bool
        Whether this user may read the image.
    """

    release: str
    image: Path
    missing: tuple[str, ...]
    readable: bool

    @property
    def suitable(self) -> bool:
        """Whether a virtual machine can run an emulated network on it."""
        return not self.missing and self.readable


def required_modules() -> tuple[str, ...]:
    """Modules that a kernel needs for the virtual machine, from the list of system packages."""
    return tuple(
        module
        for package in packages.read()
        for provided in package.provides
        if provided.startswith("kernel:")
        for module in provided.removeprefix("kernel:").split(",")
    )


def network_modules() -> tuple[str, ...]:
    """Modules that a kernel needs for the emulated network itself."""
    return tuple(module for module in required_modules() if module not in GUEST_MODULES)


def installed(root: Path = Path("/")) -> tuple[Kernel, ...]:
    """The kernels with an image and a module directory, newest first."""
    required = required_modules()
    kernels = []
    for directory in (root / "lib/modules").glob("*"):
        image = root / "boot" / f"vmlinuz-{directory.name}"
        if image.exists():
            lacking = _lacking(directory, root / "boot" / f"config-{directory.name}", required)
            readable = os.access(image, os.R_OK)
            kernels.append(Kernel(directory.name, image, lacking, readable))
    return tuple(sorted(kernels, key=lambda kernel: _version_key(kernel.release), reverse=True))


def running_lacks() -> tuple[str, ...]:
    """Parts of the emulated network that the running kernel does not have."""
    release = platform.release()
    modules = _module_names(Path("/lib/modules") / release)
    options = _running_options()

    def has(module: str) -> bool:
        return (
            module in modules
            or Path("/sys/module", module).exists()
            or _OPTIONS.get(module) in options
        )

    lacking = [module for module in network_modules() if not has(module)]
    if not Path("/proc/sys/net/mptcp/enabled").exists():
        lacking.append(MPTCP)
    return tuple(lacking)


def _lacking(modules_directory: Path, config: Path, required: tuple[str, ...]) -> tuple[str, ...]:
    names = _module_names(modules_directory)
    lacking = [module for module in required if module not in names]
    if config.exists():
        options = config.read_text(encoding="utf-8", errors="replace").splitlines()
        if "CONFIG_MPTCP=y" not in options:
            lacking.append(MPTCP)
    return tuple(lacking)


def _module_names(directory: Path) -> frozenset[str]:
    """Loadable and built-in modules, named with underscores as the kernel does."""
    names: set[str] = set()
    for listing in ("modules.dep", "modules.builtin"):
        path = directory / listing
        if path.exists():
            text = path.read_text(encoding="utf-8", errors="replace")
            found = re.findall(r"^\S*/([^/\s:]+?)\.ko", text, flags=re.MULTILINE)
            names.update(name.replace("-", "_") for name in found)
    return frozenset(names)


def _running_options() -> frozenset[str]:
    config = Path("/proc/config.gz")
    if not config.exists():
        return frozenset()
    with gzip.open(config, "rt", encoding="utf-8", errors="replace") as lines:
        # A module of a kernel without a module directory cannot be loaded: only built-in counts.
        return frozenset(line.removesuffix("=y\n") for line in lines if line.endswith("=y\n"))


def _version_key(release: str) -> tuple[tuple[int, int, str], ...]:
    """Sorts 6.1.0-9 before 6.1.0-10 and both before 6.12.1."""
    parts = re.findall(r"\d+|[a-z]+", release.lower())
    return tuple((1, int(part), "") if part.isdigit() else (0, 0, part) for part in parts)
