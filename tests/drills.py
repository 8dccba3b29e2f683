"""Faults, tried on real runs: ``python -m tests.drills [NAME…]`` as root, in a checkout.

Each drill makes one short run of direct-move, breaks something, and looks at what is left: the exit
status, how long it took, what was said, which captures can be read, and whether anything stays
behind (processes, temporary directories). Prints a table, and what is not as it should be. A drill
takes about a minute.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from captures import read
from tactical.emulation.injection import descendants

OVERRIDES = ("duration_s=12", "entry_time_s=4")
PROCESSES = (
    *("tactical.controller", "ovs-vswitchd", "ovsdb-server", "hostapd", "iperf3", "dumpcap"),
)
INTERRUPTED_AT = ("boot", "configured", "running", "collecting", "analysis")
DRAWN = 10
"""Drills that interrupt a run at a drawn moment."""
PROCESSOR_S = 80.0
"""Of a whole run; a clock for drawn moments that stops while the machine does other work."""
INTERRUPTED_WITHIN_S = 90.0
"""The network has 60 s to be taken down; then what was recorded is brought back and analysed."""
LIMIT_S = 900.0


@dataclass
class Outcome:
    """What came of a drill."""

    name: str
    status: int = 0
    took_s: float = 0.0
    state: str = ""
    packets: int = 0
    left: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    said: str = ""


class Run:
    """`tactical run` in a process of its own."""

    def __init__(self, runs_dir: Path, *options: str, before: str = "") -> None:
        argv = [sys.executable, "-m", "tactical", "run", "direct-move", "--protocol", "fdm"]
        argv += ["--runs-dir", str(runs_dir), "--time", "virtual", *options]
        for override in OVERRIDES:
            argv += ["--set", override]
        if before:  # in a mount namespace of its own, where something is changed
            argv = ["unshare", "--mount", "sh", "-c", f"{before}; exec {shlex.join(argv)}"]
        self.runs_dir = runs_dir
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by `end`
        self._temporary = Path(tempfile.mkdtemp(prefix="drill-temporary-"))
        self.began_s = time.monotonic()
        self.process = subprocess.Popen(
            argv,
            stdout=self._log,
            stderr=self._log,
            env={**os.environ, "TMPDIR": str(self._temporary)},
        )

    def directory(self) -> Path | None:
        """The run's directory, once there is one."""
        found = [path.parent for path in self.runs_dir.glob("direct-move/*/run.toml")]
        return found[0] if found else None

    def wait_for(self, state: str) -> None:
        """Return when the run is in a state (or ``boot``, or ``analysis``), or is over."""
        while self.process.poll() is None:
            directory = self.directory()
            if directory is not None:
                text = (directory / "events.jsonl").read_text()
                worker = directory / "logs" / "worker.log"
                if state == "boot" and worker.exists():
                    time.sleep(2.0)
                    return
                if f'"state": "{"done" if state == "analysis" else state}"' in text:
                    time.sleep(1.0)
                    return
            time.sleep(0.05)

    def wait_for_processor_time(self, used_s: float) -> None:
        """Return when the run has used so much of processors, or is over."""
        while self.process.poll() is None and self._processor_s() < used_s:
            time.sleep(0.05)

    def _processor_s(self) -> float:
        ticks = 0
        for pid in (self.process.pid, *descendants(self.process.pid)):
            try:
                stat = Path(f"/proc/{pid}/stat").read_text()
            except OSError:
                continue
            # utime, stime, and those of children that have ended; see proc(5).
            ticks += sum(map(int, stat.rpartition(")")[2].split()[11:15]))
        return ticks / os.sysconf("SC_CLK_TCK")

    def qemu(self) -> int:
        """Process id of the guest."""
        for pid in descendants(self.process.pid):
            if "qemu" in Path(f"/proc/{pid}/comm").read_text():
                return pid
        raise LookupError("no guest runs")

    def end(self, outcome: Outcome) -> Outcome:
        """Wait for the end and look at what is left."""
        outcome.status = self.process.wait(LIMIT_S)
        outcome.took_s = time.monotonic() - self.began_s
        self._log.seek(0)
        lines = [line.strip() for line in self._log if line.strip()]
        told = [line for line in lines if line.startswith("tactical:")]
        outcome.said = (told or lines or [""])[-1]
        self._log.close()
        outcome.left += [path.name for path in self._temporary.iterdir()]
        shutil.rmtree(self._temporary)
        return outcome


def examine(run: Run, outcome: Outcome) -> Outcome:
    """State and captures of the run, and what it left elsewhere."""
    directory = run.directory()
    if directory is not None:
        for line in (directory / "events.jsonl").read_text().splitlines():
            event = json.loads(line)
            if event["kind"] == "state":
                state, reason = event["data"]["state"], event["data"].get("reason")
                outcome.state = f"{state}: {reason}" if reason == "interrupted" else state
        for capture in directory.glob("captures/*.pcapng*"):
            outcome.packets += read(capture).frames
        outcome.left += [path.name for path in directory.glob("*.img")]
        outcome.left += [path.name for path in directory.parent.glob(".*")]
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(run.runs_dir).encode() in process.read_bytes():
                outcome.left.append(f"process {process.parent.name}")
        except OSError:
            continue
    return outcome


def killed_inside(name: str, runs_dir: Path) -> Outcome:
    """A process of the run is killed in the guest."""
    run = Run(runs_dir, "--kill", f"{name}@6")
    return examine(run, run.end(Outcome(f"kill -9 {name}")))


def killed_guest(runs_dir: Path) -> Outcome:
    """The virtual machine is killed."""
    run = Run(runs_dir)
    run.wait_for("running")
    time.sleep(10.0)
    os.kill(run.qemu(), signal.SIGKILL)
    return examine(run, run.end(Outcome("kill -9 the virtual machine")))


def killed_command(runs_dir: Path) -> Outcome:
    """`tactical` itself is killed; a report brings the run back."""
    run = Run(runs_dir)
    run.wait_for("running")
    time.sleep(10.0)
    run.process.kill()
    outcome = run.end(Outcome("kill -9 tactical, then `tactical report`"))
    outcome.left.clear()  # temporary files, which the next start of a virtual machine removes
    return _reported(run, outcome)


def _reported(run: Run, outcome: Outcome) -> Outcome:
    directory = run.directory()
    again = subprocess.run(
        [sys.executable, "-m", "tactical", "report", str(directory)],
        capture_output=True,
        text=True,
        check=False,
    )
    outcome.said += f" | {again.stderr.strip().splitlines()[-1] if again.stderr else 'reported'}"
    return examine(run, outcome)


def interrupted(state: str, runs_dir: Path) -> Outcome:
    """Ctrl-C in a state of the run."""
    run = Run(runs_dir)
    run.wait_for(state)
    return _interrupted(run, Outcome(f"Ctrl-C: {state}"))


def interrupted_anywhere(seed: int, runs_dir: Path) -> Outcome:
    """Ctrl-C at a drawn moment; every other time a second one soon after it."""
    draw = random.Random(seed)
    used_s, later_s = draw.uniform(1.0, PROCESSOR_S), draw.uniform(0.0, 5.0)
    name = f"Ctrl-C after {used_s:.0f} s of a processor"
    run = Run(runs_dir)
    run.wait_for_processor_time(used_s)
    if seed % 2 == 0:
        return _interrupted(run, Outcome(name))
    return _interrupted(run, Outcome(f"{name}, and {later_s:.1f} s later"), later_s)


def _interrupted(run: Run, outcome: Outcome, later_s: float | None = None) -> Outcome:
    asked_s = time.monotonic()
    run.process.send_signal(signal.SIGINT)
    if later_s is not None:
        try:
            run.process.wait(later_s)
        except subprocess.TimeoutExpired:
            run.process.send_signal(signal.SIGINT)
    run.end(outcome)
    outcome.took_s = time.monotonic() - asked_s
    examine(run, outcome)
    if outcome.took_s > INTERRUPTED_WITHIN_S:
        outcome.wrong.append("took long to end")
    if outcome.status != 128 + signal.SIGINT:
        outcome.wrong.append("status")
    directory = run.directory()
    if directory is None:  # interrupted before there was anything
        return outcome
    if outcome.state not in ("done", "failed: interrupted"):
        outcome.wrong.append("state")
    if '"state": "running"' in (directory / "events.jsonl").read_text() and not outcome.packets:
        outcome.wrong.append("captures not kept")
    if any(read(capture).damaged for capture in directory.glob("captures/*.pcapng*")):
        outcome.wrong.append("captures damaged")
    if not (directory / "result.json").exists() and "tactical report" not in outcome.said:
        outcome.wrong.append("not analysed")
    return outcome


def without(name: str, before: str, runs_dir: Path) -> Outcome:
    """Something of this machine is missing."""
    run = Run(runs_dir, before=before)
    return examine(run, run.end(Outcome(f"without {name}")))


def full_at_start(runs_dir: Path) -> Outcome:
    """There is no room for the captures."""
    run = Run(runs_dir, before=f"mount -t tmpfs -o size=20m tmpfs {shlex.quote(str(runs_dir))}")
    return examine(run, run.end(Outcome("disk with 20 MB free")))


def full_at_end(runs_dir: Path) -> Outcome:
    """Somebody fills the disk while the run goes on; later there is room again."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300m", "tmpfs", runs_dir], check=True)
    try:
        run = Run(runs_dir)
        run.wait_for("running")
        filler = runs_dir / "filler"
        with filler.open("wb") as file:
            try:
                while True:
                    file.write(bytes(2**20))
                    file.flush()
            except OSError:
                pass
        outcome = run.end(Outcome("disk filled during the run, then `tactical report`"))
        filler.unlink(missing_ok=True)
        return _reported(run, outcome)
    finally:
        subprocess.run(["umount", runs_dir], check=True)


def two_at_once(runs_dir: Path) -> Outcome:
    """Two runs of one seed beside each other; they have to be the same."""
    first, second = Run(runs_dir / "first"), Run(runs_dir / "second")
    outcomes = [examine(run, run.end(Outcome("two runs at once"))) for run in (first, second)]
    logs = [(run.directory() or Path()) / "events.jsonl" for run in (first, second)]
    same = [_worker_events(log) for log in logs]
    outcomes[0].said = "equal events" if same[0] == same[1] else "events differ"
    outcomes[0].status |= outcomes[1].status
    outcomes[0].left += outcomes[1].left
    return outcomes[0]


def _worker_events(log: Path) -> list[dict[str, object]]:
    events = [json.loads(line) for line in log.read_text().splitlines()]
    return [event for event in events if event["t_mono_s"] is not None]


HIDE = "mount --bind /dev/null {}"
DRILLS: dict[str, Callable[[Path], Outcome]] = {
    **{f"kill-{name}": (lambda d, n=name: killed_inside(n, d)) for name in PROCESSES},
    "kill-guest": killed_guest,
    "kill-tactical": killed_command,
    **{f"stop-{state}": (lambda d, s=state: interrupted(s, d)) for state in INTERRUPTED_AT},
    **{f"stop-drawn-{n}": (lambda d, n=n: interrupted_anywhere(n, d)) for n in range(DRAWN)},
    "full-at-start": full_at_start,
    "full-at-end": full_at_end,
    **{
        f"no-{name}": (lambda d, n=name: without(n, f"mount --bind /dev/null $(command -v {n})", d))
        for name in ("dumpcap", "iperf3", "qemu-system-x86_64", "mke2fs", "busybox")
    },
    "no-kernel": lambda d: without(
        "a suitable kernel", "mount -t tmpfs tmpfs $(readlink -f /lib/modules)", d
    ),
    "no-tun": lambda d: without("/dev/net/tun", "mount -t tmpfs tmpfs /dev/net", d),
    "two-at-once": two_at_once,
}


def main(arguments: list[str]) -> int:
    """Make the drills and print the table; 1 if one left something behind or went wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.drills", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(DRILLS)}")
    chosen = parser.parse_args(arguments).names or list(DRILLS)
    if unknown := [name for name in chosen if name not in DRILLS]:
        parser.error(f"there is no drill {', '.join(unknown)}")
    # A shell makes its background commands ignore Ctrl-C, and a command hands that on.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    clean = True
    for name in chosen:
        with tempfile.TemporaryDirectory(prefix="drill-") as folder:
            outcome = DRILLS[name](Path(folder))
        clean = clean and not outcome.left and not outcome.wrong
        left, wrong = (", ".join(each) or "nothing" for each in (outcome.left, outcome.wrong))
        print(
            f"| {outcome.name} | {outcome.status} | {outcome.took_s:.0f} s | {outcome.state} | "
            f"{outcome.packets} | {left} | {wrong} | {outcome.said} |",
            flush=True,
        )
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
