"""The guest that nothing enters: its command, its files, and the guest itself."""

import gzip
import json
import lzma
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tactical.host import doctor, guest_files, hermetic, initramfs
from tactical.host.hermetic import HermeticMachine
from tactical.host.machine import HostError

from .guests import kernel, needs_virtual_machine, wait_for


def machine() -> HermeticMachine:
    return HermeticMachine(kernel())


def test_no_device_of_the_guest_waits_for_this_machine(tmp_path):
    command = HermeticMachine("6.1.0").command(["true"], [tmp_path])
    devices = {
        command[at + 1].partition(",")[0] for at, word in enumerate(command) if word == "-device"
    }
    assert devices == {"nvdimm", "isa-serial", "isa-debugcon", "isa-debug-exit"}
    assert "-nodefaults" in command
    assert not {"-drive", "-netdev", "-nic", "-fsdev", "-virtfs"} & set(command)


@pytest.mark.parametrize(
    ("qemu", "command"), [(1, 0), (3, 1), (85, 42), (255, 127), (0, 0), (-9, -9)]
)
def test_the_status_of_the_command_is_read_from_that_of_qemu(qemu, command):
    assert hermetic._status(qemu) == command
    assert (hermetic._own_failure(qemu) is None) == (qemu > 0)


def test_a_second_directory_is_refused(tmp_path):
    with pytest.raises(HostError, match="has one directory"):
        HermeticMachine("6.1.0").start(["true"], [tmp_path, tmp_path], tmp_path / "log")


def test_an_archive_is_what_cpio_takes(tmp_path):
    """By the reader of busybox, which guests begin with, too."""
    busybox = doctor.packages.find_command("busybox")
    if busybox is None:
        pytest.skip("busybox is not installed")
    contents = {f"some/file{size}": bytes(range(size)) for size in range(9)}
    entries = [initramfs.directory("some")]
    entries += [initramfs.program(name, content) for name, content in contents.items()]
    packed = initramfs.archive(entries)
    subprocess.run([busybox, "cpio", "-i"], input=packed, cwd=tmp_path, check=True)
    for name, content in contents.items():
        assert (tmp_path / name).read_bytes() == content
        assert os.access(tmp_path / name, os.X_OK)


def compress_zstd(content: bytes) -> bytes:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd.compress(content)


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [
        (".ko", bytes),
        (".ko.gz", gzip.compress),
        (".ko.xz", lzma.compress),
        (".ko.zst", compress_zstd),
    ],
)
def test_modules_are_unpacked_however_a_distribution_packs_them(tmp_path, suffix, pack):
    path = tmp_path / f"module{suffix}"
    path.write_bytes(pack(b"\x7fELF module"))
    assert initramfs.module(path) == b"\x7fELF module"


@needs_virtual_machine
def test_modules_come_after_what_they_need():
    names = [path.name.partition(".")[0] for path in guest_files.boot_modules(kernel(), ["ext4"])]
    assert names[-1] == "ext4"
    assert names.index("mbcache") < names.index("ext4")


@needs_virtual_machine
def test_the_files_of_a_guest_hold_tools_libraries_python_and_the_links_to_them():
    found = {str(path) for path in guest_files.collect(kernel())}
    for command in ("ovs-vswitchd", "iperf3", "hostapd", "dumpcap", "mnexec", "ip"):
        path = doctor.packages.find_command(command)
        assert path is not None
        assert str(path.resolve()) in found
    assert sys.executable in found
    assert str(Path(sys.executable).resolve()) in found
    assert any(name.endswith("/numpy/__init__.py") for name in found)
    assert any(name.endswith("/os_ken/__init__.py") for name in found)
    assert any("/libc.so.6" in name for name in found)
    assert any("/libmptcpwrap.so" in name for name in found), "mptcpize opens it by name"
    assert not any("/matplotlib/" in name for name in found), "analysis happens outside"
    for name in found:
        assert os.path.lexists(name)


DRAWN = (
    "import json, os, socket, sys, time\n"
    "import numpy\n"
    "time.sleep(30.0)\n"
    "with socket.socket() as end:\n"
    "    end.bind(('127.0.0.1', 0))\n"
    "    port = end.getsockname()[1]\n"
    "drawn = dict(random=os.urandom(16).hex(), port=port, clock=time.monotonic_ns(),\n"
    "    wall=time.time_ns(), pid=os.getpid(), address=id(object()), hash=hash('a'))\n"
    "json.dump(drawn, open(sys.argv[1] + '/drawn.json', 'w'))\n"
    "sys.exit(42)\n"
)


@needs_virtual_machine
@pytest.mark.slow
@pytest.mark.emulation
def test_two_guests_of_one_seed_differ_in_nothing_and_of_another_in_what_is_random(tmp_path):
    """Three boots: random numbers, port numbers, and a clock to the nanosecond."""
    drawn = []
    for name, seed in (("first", 1), ("again, under 'another' name", 1), ("other", 2)):
        directory = tmp_path / name
        directory.mkdir()
        argv = [sys.executable, "-c", DRAWN, str(directory)]
        child = machine().start(argv, [directory], directory / "log", seed=seed)
        try:
            assert child.wait(180) == 42, (directory / "log").read_text()
        finally:
            child.stop(1)
        drawn.append(json.loads((directory / "drawn.json").read_text()))
        assert sorted(path.name for path in directory.iterdir()) == ["drawn.json", "log"]
    assert drawn[0] == drawn[1]
    assert drawn[0]["random"] != drawn[2]["random"]


@needs_virtual_machine
@pytest.mark.slow
@pytest.mark.emulation
def test_what_a_killed_guest_wrote_is_brought_back_even_if_nobody_was_left_to_do_it(tmp_path):
    directory = tmp_path / "run"
    directory.mkdir()
    log = directory / "log"
    code = (
        "import pathlib, time\n"
        "from tactical.host.hermetic import HermeticMachine\n"
        f"directory = pathlib.Path({str(directory)!r})\n"
        "script = 'echo kept > /experiment/run/kept; sleep 3; echo written; while :; do :; done'\n"
        f"machine = HermeticMachine({kernel()!r})\n"
        "child = machine.start(['/bin/sh', '-c', script], [directory], directory / 'log')\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    with parent.stdout:
        pid = int(parent.stdout.readline())
    try:
        wait_for("written", log)
        assert not hermetic.recover(directory), "it is in use"
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait(10)
    limit = time.monotonic() + 10
    while Path(f"/proc/{pid}").exists() and time.monotonic() < limit:
        time.sleep(0.05)
    assert hermetic.recover(directory)
    assert (directory / "kept").read_text() == "kept\n"
    assert sorted(path.name for path in directory.iterdir()) == ["kept", "log"]
