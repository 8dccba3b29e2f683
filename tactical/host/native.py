"""This machine itself: root, and a kernel with all the parts."""

from __future__ import annotations

import os
import platform
import signal
from collections.abc import Sequence
from pathlib import Path

from tactical.host.environment import worker_environment
from tactical.host.process import Child, search_path


class NativeMachine:
    """Runs a command as it is, in a session of its own."""

    name = "native"

    @property
    def description(self) -> str:
        return f"this machine, kernel {platform.release()}"

    def command(self, argv: Sequence[str], writable: Sequence[Path] = ()) -> list[str]:
        return list(argv)

    def start(self, argv: Sequence[str], writable: Sequence[Path], log_path: Path) -> Child:
        # SIGTERM and not SIGKILL: the worker has namespaces and bridges to take down.
        return Child(
            self.command(argv, writable),
            log_path,
            death_signal=signal.SIGTERM,
            environment={**os.environ, **worker_environment(search_path())},
        )
