"""This machine itself: root, and a kernel with all the parts."""

from __future__ import annotations

import os
import platform
import signal
from collections.abc import Sequence
from pathlib import Path

from tactical.host.environment import worker_environment
from tactical.host.machine import HostError
from tactical.host.process import Child, CommandError, search_path


class NativeMachine:
    """Runs a command as it is, in a session of its own."""

    name = "native"
    virtual_time = False

    @property
    def description(self) -> str:
        return f"this machine, kernel {platform.release()}"

    def with_memory(self, memory_mib: int) -> NativeMachine:
        return self  # it has what it has

    def command(self, argv: Sequence[str], writable: Sequence[Path] = ()) -> list[str]:
        return list(argv)

    def check(self, writable: Sequence[Path] = ()) -> None:
        pass  # any directory will do

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
        # SIGTERM and not SIGKILL: the worker has namespaces and bridges to take down.
        try:
            return Child(
                self.command(argv, writable),
                log_path,
                death_signal=signal.SIGTERM,
                environment={**os.environ, **worker_environment(search_path())},
            )
        except (CommandError, OSError) as error:
            raise HostError(f"the worker cannot be started: {error}") from error
