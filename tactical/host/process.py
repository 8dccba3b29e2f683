"""External commands: run one to its end, or supervise one that stays.

Both take an argument vector (never a shell line). A supervised child lives in a session of its
own, is stopped by its own process group and never by name, and gets a signal from the kernel when
this process dies, whatever kills it.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

PROGRESS_MARK = "@"
"""Begins a line of a worker's output that says how far it is; what follows is for programs."""

SYSTEM_DIRECTORIES = ("/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/bin", "/bin")

# Of a command's output in a message, and of a log in a reason; the rest is where it was written.
_TOLD_LINES = 10
_TOLD_CHARACTERS = 300


class CommandError(Exception):
    """A command that could not be started, ran out of time or ended with another status than 0.

    Attributes
    ----------
    argv : tuple of str
        The command.
    status : int or None
        Exit status, negative for a signal; None when it never started or was out of time.
    stdout, stderr : str
        What it had printed.
    """

    def __init__(
        self, argv: Sequence[str], status: int | None, stdout: str, stderr: str, problem: str
    ) -> None:
        self.argv = tuple(argv)
        self.status = status
        self.stdout = stdout
        self.stderr = stderr
        said = [line.strip() for line in (stderr.strip() or stdout.strip()).splitlines()]
        if len(said) > _TOLD_LINES:
            # The first lines name the fault, the last what became of it.
            half = _TOLD_LINES // 2
            said[half:-half] = ["…"]
        told = " / ".join(filter(None, said))
        super().__init__(f"`{shlex.join(argv)}` {problem}" + (f": {told}" if told else ""))


@dataclass(frozen=True)
class Completed:
    """A command that has ended: what was run, its exit status and what it printed."""

    argv: tuple[str, ...]
    status: int
    stdout: str
    stderr: str


def how_ended(status: int) -> str:
    """An exit status in words, to follow "ended": ``with status 3``, ``by SIGKILL``."""
    if status >= 0:
        return f"with status {status}"
    try:
        return f"by {signal.Signals(-status).name}"
    except ValueError:
        return f"by signal {-status}"


def search_path() -> str:
    """PATH with the directories of system tools, which ordinary users often lack."""
    entries = [entry for entry in os.environ.get("PATH", "").split(os.pathsep) if entry]
    entries += [entry for entry in SYSTEM_DIRECTORIES if entry not in entries]
    return os.pathsep.join(entries)


def run(
    argv: Sequence[str],
    *,
    timeout_s: float,
    check: bool = True,
    stdin: str = "",
    environment: Mapping[str, str] | None = None,
) -> Completed:
    """Run a command to its end.

    Parameters
    ----------
    argv : sequence of str
        Command and arguments; the command is looked up in `search_path`.
    timeout_s : float
        Seconds after which the command and its process group are killed.
    check : bool
        Whether an exit status other than 0 is an error.
    stdin : str
        Text for its standard input.
    environment : mapping, optional
        Variables to add to this process's own.

    Raises
    ------
    CommandError
        It could not be started, was out of time, or (with `check`) failed.
    """
    full = {**os.environ, "PATH": search_path(), **(environment or {})}
    try:
        process = subprocess.Popen(
            list(argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env=full,
            start_new_session=True,
        )
    except OSError as error:
        raise CommandError(argv, None, "", "", f"cannot be started ({error.strerror})") from error
    try:
        stdout, stderr = process.communicate(stdin, timeout=timeout_s)
    except subprocess.TimeoutExpired as error:
        _signal_group(process.pid, signal.SIGKILL)
        stdout, stderr = process.communicate()
        problem = f"did not end within {timeout_s:g} s"
        raise CommandError(argv, None, stdout, stderr, problem) from error
    except BaseException:
        _signal_group(process.pid, signal.SIGKILL)
        process.wait()
        raise
    if check and process.returncode != 0:
        problem = f"ended {how_ended(process.returncode)}"
        raise CommandError(argv, process.returncode, stdout, stderr, problem)
    return Completed(tuple(argv), process.returncode, stdout, stderr)


def _signal_group(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)


class Child:
    """A supervised process whose output is copied to a log file.

    Start it from a thread that lives as long as the child should: the kernel sends
    `death_signal` when the starting *thread* ends.

    Parameters
    ----------
    argv : sequence of str
        The command.
    log_path : Path
        File that receives its standard output and error, as they come.
    death_signal : signal.Signals
        Sent to the child by the kernel when this process dies.
    environment : mapping, optional
        The whole environment of the child; this process's own when left out.
    ask_to_stop : callable, optional
        How to ask for an orderly end; SIGTERM to the child when left out.
    on_end : callable, optional
        Called once when the end of the child has been seen by `wait` or `stop`.
    decode : callable, optional
        The command's exit status from that of the process, where they differ.
    meaning : callable, optional
        What an exit status of the process means, where it is not that of the command; None where
        it is.
    """

    def __init__(
        self,
        argv: Sequence[str],
        log_path: Path,
        *,
        death_signal: signal.Signals = signal.SIGKILL,
        environment: Mapping[str, str] | None = None,
        ask_to_stop: Callable[[Child], None] | None = None,
        on_end: Callable[[Child], None] | None = None,
        decode: Callable[[int], int] | None = None,
        meaning: Callable[[int], str | None] | None = None,
    ) -> None:
        self.argv = tuple(argv)
        self.log_path = log_path
        self.failure: str | None = None
        self._ask_to_stop = ask_to_stop
        self._on_end = on_end
        self._decode = decode
        self._meaning = meaning
        self._ended = False
        self._log: IO[bytes] = log_path.open("ab")
        bound = ["setpriv", "--pdeathsig", death_signal.name.removeprefix("SIG"), *argv]
        try:
            # A pipe and not the file itself: QEMU opens its output once per device, each with an
            # offset of its own, and would overwrite what the others wrote.
            self._process = subprocess.Popen(
                bound,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=dict(environment) if environment is not None else None,
                start_new_session=True,
            )
        except OSError as error:
            self._log.close()
            problem = f"cannot be started ({error.strerror})"
            raise CommandError(bound, None, "", "", problem) from error
        self._copier = threading.Thread(target=self._copy_output, daemon=True)
        self._copier.start()

    @property
    def pid(self) -> int:
        """Process id, which is also the id of its process group and session."""
        return self._process.pid

    def poll(self) -> int | None:
        """Exit status (negative for a signal), or None while it runs."""
        return self._decoded(self._process.poll())

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Wait for the end; the exit status, or None when `timeout_s` passes first."""
        try:
            status = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None
        if not self._ended:
            self._ended = True
            # What it left in its group must not outlive it; later its id may be another's.
            _signal_group(self.pid, signal.SIGKILL)
            self._copier.join(timeout=5.0)
            self.close_stdin()
            if self._on_end is not None:
                self._on_end(self)
        return self._decoded(status)

    def _decoded(self, status: int | None) -> int | None:
        return status if status is None or self._decode is None else self._decode(status)

    def say(self, text: bytes) -> None:
        """Write to its standard input."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.write(text)
                self._process.stdin.flush()

    def close_stdin(self) -> None:
        """Close its standard input, which the child sees as the end of that file."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            self._process.stdin.close()

    def halt(self) -> None:
        """Let nothing in the process group happen until `go_on`."""
        _signal_group(self.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """Go on after `halt`."""
        _signal_group(self.pid, signal.SIGCONT)

    def stop(self, grace_s: float = 15.0) -> int:
        """Ask for an orderly end, then kill the process group; returns the exit status."""
        if self.poll() is None:
            self.go_on()
            if self._ask_to_stop is not None:
                self._ask_to_stop(self)
            else:
                self._process.terminate()
        status = self.wait(grace_s)
        if status is None:
            _signal_group(self.pid, signal.SIGKILL)
            status = self.wait()
        assert status is not None
        return status

    def kill(self, reason: str) -> None:
        """Kill the process group at once, and keep the reason in `failure`."""
        self.failure = reason
        _signal_group(self.pid, signal.SIGKILL)

    def last_lines(self, count: int = 10) -> list[str]:
        """The last non-empty lines of the log that are no progress (`PROGRESS_MARK`)."""
        with self.log_path.open("rb") as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(0, log.tell() - 16384))
            text = log.read().decode(errors="replace")
        said = [line for line in text.splitlines() if line.strip()]
        return [line for line in said if not line.startswith(PROGRESS_MARK)][-count:]

    def ending(self, name: str) -> str:
        """How it ended, with the last that it said; `name` is what to call it."""
        if self.failure:
            return self.failure
        status = self.poll()
        if status is None:
            return f"{name} still runs"
        how = self._meaning(self._process.returncode) if self._meaning is not None else None
        lines = ("".join(filter(str.isprintable, text)).strip() for text in self.last_lines(3))
        # Python underlines the place in a traceback; on one line that points at nothing.
        said = " / ".join(line for line in lines if line.strip("^~ "))
        if len(said) > _TOLD_CHARACTERS:
            said = f"…{said[-_TOLD_CHARACTERS:]}"
        return (how or f"{name} ended {how_ended(status)}") + (f": {said}" if said else "")

    def kill_unless(self, happened: Callable[[], bool], within_s: float, reason: str) -> None:
        """Kill the child for `reason` if `happened()` is not true within the time limit."""

        def watch() -> None:
            limit = time.monotonic() + within_s
            while self.poll() is None:
                if happened():
                    return
                if time.monotonic() > limit:
                    self.kill(reason)
                    return
                time.sleep(0.2)

        threading.Thread(target=watch, daemon=True).start()

    def _copy_output(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None
        with stdout:
            while block := os.read(stdout.fileno(), 65536):
                try:
                    self._log.write(block)
                    self._log.flush()
                except OSError as error:
                    # Go on reading: a child that cannot get rid of its output would stop.
                    self.failure = self.failure or f"{self.log_path}: {error.strerror}"
        with contextlib.suppress(OSError):
            self._log.close()
