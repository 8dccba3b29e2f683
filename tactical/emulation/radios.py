"""Radios: mac80211_hwsim devices, hostapd access points, association with iw."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..host.process import CommandError, run
from .plan import Radio
from .processes import COMMAND_TIMEOUT_S, EmulationError, Process

READY_TIMEOUT_S = 30.0
_SYSFS = Path("/sys/class/ieee80211")
_OWNER = Path("/run/tactical-radios.pid")
CONTROL = Path("/run/tactical-hostapd")
"""Where each hostapd has its control socket, by interface; a run directory may be too deep for one
(unix(7): 107 bytes)."""
_UNLOAD = ("modprobe", "--remove", "mac80211_hwsim")


@dataclass(frozen=True)
class Device:
    """A simulated radio: its wireless device and the network interface on it."""

    phy: str
    interface: str


@contextmanager
def simulated_radios(count: int) -> Iterator[None]:
    """`count` radios exist inside the block.

    Raises
    ------
    CommandError
        If the module cannot be loaded.
    EmulationError
        If it is loaded already, for somebody else.
    """
    if count == 0:
        yield
        return
    if Path("/sys/module/mac80211_hwsim").exists():
        if not _left_by_a_dead_worker():
            raise EmulationError(
                "mac80211_hwsim is loaded already, with radios that belong to somebody else: "
                "end what uses them, then `modprobe --remove mac80211_hwsim`"
            )
        run(_UNLOAD, timeout_s=COMMAND_TIMEOUT_S)
    _OWNER.write_text(str(os.getpid()))
    try:
        run(("modprobe", "mac80211_hwsim", f"radios={count}"), timeout_s=COMMAND_TIMEOUT_S)
        try:
            yield
        finally:
            run(_UNLOAD, timeout_s=COMMAND_TIMEOUT_S)
    finally:
        _OWNER.unlink(missing_ok=True)


def _left_by_a_dead_worker() -> bool:
    """Whether the radios that are there were made by a worker of ours that is no more."""
    try:
        owner = int(_OWNER.read_text())
    except (OSError, ValueError):
        return False
    return not Path(f"/proc/{owner}").exists()


def free_devices() -> list[Device]:
    """The simulated radios in the machine's own network namespace, in order of number."""
    found = []
    for phy in sorted(_SYSFS.iterdir(), key=lambda p: int(re.sub(r"\D", "", p.name))):
        device = (phy / "device").resolve()
        if "hwsim" in str(device):
            found += [Device(phy.name, net.name) for net in sorted((device / "net").iterdir())]
    return found


def start_access_point(radio: Radio, run_dir: Path) -> Process:
    """Run hostapd on the radio's interface until the returned process is stopped.

    The network is open: association is what the experiment is about, not authentication.
    """
    configuration = run_dir / "logs" / f"hostapd-{radio.access_point}.conf"
    configuration.write_text(
        f"interface={radio.interface}\n"
        "driver=nl80211\n"
        f"ctrl_interface={CONTROL}\n"
        f"ssid={radio.ssid}\n"
        "hw_mode=g\n"
        f"channel={radio.channel}\n"
        "ieee80211n=1\n"
        "wmm_enabled=1\n"
        "ap_isolate=1\n"
    )
    process = Process(
        ("hostapd", str(configuration)), run_dir / "logs" / f"hostapd-{radio.access_point}.log"
    )
    try:
        process.wait_for_text("AP-ENABLED", READY_TIMEOUT_S)
    except CommandError:
        process.stop()
        raise
    return process
