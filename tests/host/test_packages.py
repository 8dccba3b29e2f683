"""The list of system packages, read by Python and by the set-up script."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tactical.host import doctor, packages
from tactical.host.packages import SystemPackage

ROOT = Path(__file__).resolve().parents[2]


def test_a_line_gives_names_commands_and_reason():
    text = """
    # a comment
    [virtual machine]
    linux-image-amd64 | linux-image-generic : kernel:veth,sch_htb   # the guest
    tshark : tshark dumpcap
    """
    assert packages.parse(text) == (
        SystemPackage(
            ("linux-image-amd64", "linux-image-generic"),
            ("kernel:veth,sch_htb",),
            "virtual machine",
            "the guest",
        ),
        SystemPackage(("tshark",), ("tshark", "dumpcap"), "virtual machine"),
    )


def test_every_shipped_line_provides_something():
    listed = packages.read()
    assert len({package.names for package in listed}) == len(listed) > 10
    assert all(package.provides and package.section for package in listed)


def test_only_lines_that_something_is_missing_of_are_missing():
    listed = packages.parse("a : sh no-such-command-a\nb : sh\nc : kernel:veth\nd : kernel:x,y\n")
    found = packages.missing(listed, lambda modules: modules == ("veth",))
    assert [package.names[0] for package in found] == ["a", "d"]


def test_a_program_that_needs_libraries_is_no_static_one():
    """As of Debian's busybox, which has the same name as that of busybox-static."""
    (package,) = packages.parse("busybox-static : static:sh static:no-such-command")
    shell = packages.find_command("sh")
    assert package.commands == ("sh", "no-such-command")
    assert package.command_problem("sh") == f"sh without shared libraries ({shell} needs them)"
    assert package.command_problem("no-such-command") == "no-such-command"
    (shared,) = packages.parse("dash : sh")
    assert shared.command_problem("sh") is None


@pytest.mark.parametrize("content", [b"", b"#!/bin/sh\n", b"\x7fELF\x02" + bytes(59)])
def test_what_is_no_program_is_not_static(tmp_path, content):
    path = tmp_path / "program"
    path.write_bytes(content)
    assert not packages.is_static(path)


def test_nothing_missing_needs_no_command():
    assert packages.install_command(()) is None


def test_set_up_and_doctor_agree_on_what_is_missing_here():
    checked = subprocess.run(
        ["bash", str(ROOT / "setup.sh"), "--check"], capture_output=True, text=True, check=True
    )
    # What only set-up looks at: a running doctor has a Python.
    by_script = [
        line for line in checked.stdout.splitlines() if line not in ("python3", "python3-venv")
    ]
    by_doctor = [" | ".join(package.names) for package in doctor.missing_packages()]
    assert by_script == by_doctor


@pytest.mark.parametrize("removed", ["iperf3", "hostapd"])
def test_set_up_sees_a_missing_command(tmp_path, removed):
    """A PATH that has every command but one, on a copy that is not looking in /usr/sbin."""
    commands = tmp_path / "bin"
    commands.mkdir()
    needed = [name for package in packages.read() for name in package.commands if name != removed]
    for name in [*needed, "bash", "dirname", "basename", "cat", "grep", "sed", "python3"]:
        found = packages.find_command(name)
        if found is not None and not (commands / name).exists():
            (commands / name).symlink_to(found)
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    shutil.copy(ROOT / "system-packages.txt", checkout)
    script = (ROOT / "setup.sh").read_text()
    system = 'export PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"\n'
    assert system in script
    (checkout / "setup.sh").write_text(script.replace(system, ""))
    checked = subprocess.run(
        [str(commands / "bash"), str(checkout / "setup.sh"), "--check"],
        capture_output=True,
        text=True,
        env={"PATH": str(commands)},
        check=True,
    )
    assert removed in checked.stdout.splitlines()
