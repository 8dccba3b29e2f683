"""Processes of a run that stay: daemons, recorders, traffic, the controller."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from ..host.process import CommandError, search_path

COMMAND_TIMEOUT_S = 60.0
"""For commands that take well under a second on an idle machine."""
STOP_GRACE_S = 5.0


class EmulationError(Exception):
    """The network cannot be run as planned; the message says why."""


class Process:
    """A process that stays, with its output in files; stopped by its own process id.

    The kernel ends it if the worker dies without doing so (more exactly, when the thread that
    started it ends: start it from the main thread).

    Parameters
    ----------
    argv
        The command.
    log
        File for standard error (and standard output, unless `stdout` is given).
    stdout
        File for standard output.
    piped
        Give the caller :attr:`stdin` and :attr:`stdout` as text streams instead.
    """

    def __init__(
        self,
        argv: Sequence[str],
        log: Path,
        stdout: Path | None = None,
        *,
        piped: bool = False,
        cwd: Path | None = None,
    ) -> None:
        self.argv = tuple(argv)
        self.log = log
        if shutil.which(argv[0], path=search_path()) is None:
            raise CommandError(argv, None, "", "", "cannot be started (not installed)")
        with log.open("ab") as errors, (stdout or log).open("ab") as output:
            try:
                self._popen = subprocess.Popen(
                    ("setpriv", "--pdeathsig", "TERM", *argv),
                    stdin=subprocess.PIPE if piped else subprocess.DEVNULL,
                    stdout=subprocess.PIPE if piped else output,
                    stderr=errors,
                    text=True,
                    cwd=cwd,
                )
            except OSError as error:
                problem = f"cannot be started ({error.strerror})"
                raise CommandError(argv, None, "", "", problem) from None
        self.stdin = self._popen.stdin
        self.stdout = self._popen.stdout

    @property
    def status(self) -> int | None:
        """Exit status, or None while it runs."""
        return self._popen.poll()

    def wait(self, timeout_s: float) -> int | None:
        """Its exit status, or None if it still runs after `timeout_s`."""
        try:
            return self._popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def wait_for_text(self, text: str, timeout_s: float) -> None:
        """Return when its log contains `text`.

        Raises
        ------
        CommandError
            If it ends, or `timeout_s` passes, without that.
        """
        deadline = time.monotonic() + timeout_s
        while text not in self.said():
            if self.status is not None:
                raise self.failure(f"ended with status {self.status} before it was ready")
            if time.monotonic() > deadline:
                raise self.failure(f"was not ready after {timeout_s:g} s")
            time.sleep(0.02)

    def said(self) -> str:
        """What its log contains."""
        return self.log.read_text(errors="replace")

    def failure(self, problem: str) -> CommandError:
        """An error about this process, with the end of its log."""
        return CommandError(self.argv, self.status, "", self.said(), problem)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End it, first politely by signal `number`, and return its exit status."""
        if self._popen.poll() is None:
            self._popen.send_signal(number)
            if self.wait(STOP_GRACE_S) is None:
                self._popen.kill()
        return self._popen.wait()
