"""Congestion controls: loaded, and allowed in network namespaces, for as long as they are used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ..host.process import CommandError, run
from .processes import COMMAND_TIMEOUT_S, EmulationError

_AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
_ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")


@contextmanager
def congestion_controls(names: Iterable[str]) -> Iterator[None]:
    """The named congestion controls can be chosen inside the block.

    Raises
    ------
    EmulationError
        If this machine's kernel has none of that name.
    """
    before = _ALLOWED.read_text().split()
    missing = []
    for name in sorted(set(names)):
        if name not in _AVAILABLE.read_text().split():
            try:
                run(("modprobe", f"tcp_{name}"), timeout_s=COMMAND_TIMEOUT_S)
            except CommandError:
                missing.append(name)
    if missing:
        raise EmulationError(
            f"traffic.congestion_control: the kernel has no {missing[0]!r}; it has "
            f"{', '.join(_AVAILABLE.read_text().split())} and those of its modules tcp_*"
        )
    # Only what is allowed here may be chosen in other network namespaces.
    _ALLOWED.write_text(" ".join(dict.fromkeys([*before, *sorted(set(names))])))
    try:
        yield
    finally:
        _ALLOWED.write_text(" ".join(before))
