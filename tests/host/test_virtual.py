"""The virtual machine: its command, and the machine itself."""

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tactical.emulation.injection import descendants
from tactical.host import doctor, virtual
from tactical.host.machine import HostError
from tactical.host.virtual import VirtualMachine

from .guests import needs_virtual_machine, wait_for


def machine() -> VirtualMachine:
    suitable = doctor.newest_suitable_kernel()
    assert suitable is not None
    return VirtualMachine(suitable.release, kvm=doctor.probe_kvm(suitable).works)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_software_and_kvm_differ_in_one_option():
    software = VirtualMachine("6.1.0", kvm=False).command(["true"])
    kvm = VirtualMachine("6.1.0", kvm=True).command(["true"])
    assert set(software) - set(kvm) == {"--disable-kvm"}
    assert set(kvm) <= set(software)


def test_only_the_given_directories_are_writable(tmp_path):
    command = VirtualMachine("6.1.0", kvm=False).command(["true"], [tmp_path])
    assert [word for word in command if word.startswith("--rwdir=")] == [f"--rwdir={tmp_path}"]


def test_the_command_reaches_the_guest_word_by_word():
    argv = ["/bin/echo", "two words", "a,b", "it's", "$HOME"]
    command = VirtualMachine("6.1.0", kvm=False).command(argv)
    item = next(word for word in command if word.startswith(f"name={virtual.COMMAND_ITEM}"))
    words = shlex.split(item.partition("string=")[2].replace(",,", ","))
    assert words[1] == "env"
    assert words[-len(argv) :] == argv


def test_a_cached_directory_never_hides_a_writable_one(tmp_path):
    root = virtual.package_root()
    for writable in [root / "tactical", root / "fdm" / "runs"]:
        cached = virtual._cached_directories([str(writable)])
        assert not any(writable.is_relative_to(directory) for directory in cached)
        assert "/usr" in cached


def test_too_many_writable_directories_are_refused_before_the_kernel_cuts_them():
    directories = [Path("/tmp") / ("x" * 120) / str(number) for number in range(10)]
    with pytest.raises(HostError, match="10 writable directories need about"):
        VirtualMachine("6.1.0", kvm=False).command(["true"], directories)


@pytest.mark.parametrize("strange", [",", "=", "'", '"', ":", "$", "\\", "%", "\n", "ö", "*"])
def test_directories_that_the_guest_cannot_be_told_are_refused(tmp_path, monkeypatch, strange):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    guest = VirtualMachine("6.1.0", kvm=False)
    directory = tmp_path / f"a{strange}b"
    for refuse in (
        lambda: guest.check([directory]),
        lambda: guest.command(["true"], [directory]),
        lambda: guest.start(["true"], [directory], tmp_path / "log"),
    ):
        with pytest.raises(HostError, match="cannot be made writable in a virtual machine"):
            refuse()
    assert list(tmp_path.iterdir()) == []
    guest.check([tmp_path / "run 1"])


def test_a_start_without_a_log_is_refused_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    guest = VirtualMachine("6.1.0", kvm=False)
    with pytest.raises(HostError, match="No such file"):
        guest.start(["true"], [tmp_path], tmp_path / "absent" / "log")
    assert list(tmp_path.iterdir()) == []


def test_the_end_of_the_machine_is_not_taken_for_that_of_the_command():
    assert "the virtual machine ended" in str(virtual._own_failure(virtual.FAILURE_STATUS))
    assert "virtme-run ended by SIGKILL" in str(virtual._own_failure(-9))
    assert virtual._own_failure(1) is None


@needs_virtual_machine
def test_the_kernel_command_line_is_not_longer_than_was_reckoned(tmp_path):
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    words = shlex.split(machine().rehearse([deep]))
    used = len(words[words.index("-append") + 1].encode())
    own = used - len(",".join(virtual.UNUSED_MODULES)) - len(str(deep)) - 75
    assert own <= virtual.KERNEL_COMMAND_LINE_OWN_BYTES


@needs_virtual_machine
@pytest.mark.slow
@pytest.mark.emulation
def test_a_guest_runs_a_command_and_gives_back_files_and_status(tmp_path):
    """One boot: exit status, files, kernel modules, search path, speed of imports."""
    code = (
        "import json, os, platform, subprocess, sys, time\n"
        "begin = time.monotonic(); import numpy; took = time.monotonic() - begin\n"
        "import tactical.host\n"
        "modules = 'openvswitch sch_htb sch_netem veth mac80211_hwsim'.split()\n"
        "tried = [subprocess.run(['modprobe', name]).returncode for name in modules]\n"
        "facts = dict(release=platform.release(), uid=os.getuid(), modprobe=tried, took=took,\n"
        "    argv=sys.argv[1:], mptcp=open('/proc/sys/net/mptcp/enabled').read().strip())\n"
        "json.dump(facts, open(sys.argv[1] + '/facts.json', 'w'))\n"
        "print('to the log', flush=True)\n"
        "print('also to the log', file=sys.stderr, flush=True)\n"
        "sys.exit(42)\n"
    )
    log = tmp_path / "log"
    guest = machine()
    child = guest.start([sys.executable, "-c", code, str(tmp_path), "a, 'b' $c"], [tmp_path], log)
    try:
        assert child.wait(180) == 42, log.read_text()
    finally:
        child.stop(1)
    facts = json.loads((tmp_path / "facts.json").read_text())
    assert facts["release"] == guest.kernel
    assert facts["uid"] == 0
    assert facts["mptcp"] == "1"
    assert facts["modprobe"] == [0, 0, 0, 0, 0]
    assert facts["argv"] == [str(tmp_path), "a, 'b' $c"]
    said = log.read_text().splitlines()
    assert "to the log" in said
    assert "also to the log" in said


@needs_virtual_machine
@pytest.mark.slow
@pytest.mark.emulation
def test_stopping_lets_the_worker_in_the_guest_clean_up(tmp_path):
    log = tmp_path / "log"
    script = (
        f"trap 'echo cleaned > {tmp_path}/cleaned; exit 9' TERM; "
        "echo ready; while :; do sleep 0.2; done"
    )
    child = machine().start(["/bin/sh", "-c", script], [tmp_path], log)
    try:
        wait_for("ready", log)
        started = [child.pid, *descendants(child.pid)]
        assert len(started) == 2  # virtme-run and QEMU
        assert child.stop(grace_s=60) == 9
    finally:
        child.stop(1)
    assert (tmp_path / "cleaned").read_text() == "cleaned\n"
    assert not any(alive(pid) for pid in started)


@needs_virtual_machine
@pytest.mark.slow
@pytest.mark.emulation
def test_no_virtual_machine_outlives_a_killed_process(tmp_path):
    log = tmp_path / "log"
    guest = machine()
    code = (
        "import pathlib, time\n"
        "from tactical.host.virtual import VirtualMachine\n"
        f"machine = VirtualMachine({guest.kernel!r}, kvm={guest.kvm})\n"
        f"child = machine.start(['/bin/sleep', '600'], [], pathlib.Path({str(log)!r}))\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert parent.stdout is not None
    with parent.stdout:
        pid = int(parent.stdout.readline())
    try:
        wait_for("guest is up", log)
        started = [pid, *descendants(pid)]
        assert len(started) == 2
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait(10)
    limit = time.monotonic() + 10
    while any(alive(each) for each in started) and time.monotonic() < limit:
        time.sleep(0.05)
    assert not any(alive(each) for each in started)
