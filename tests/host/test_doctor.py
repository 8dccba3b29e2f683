"""What doctor says of the machine that the tests run on."""

import json
import os
import stat
from pathlib import Path

import pytest

from tactical.host import choose, doctor, kernels, kvm
from tactical.host.kernels import Kernel
from tactical.host.kvm import KvmProbe
from tactical.host.machine import HostError


@pytest.fixture(scope="module")
def report() -> doctor.Report:
    return doctor.examine()


def test_the_report_is_json_and_names_what_it_saw(report):
    data = json.loads(json.dumps(report.to_json()))
    assert data["is_root"] == (os.geteuid() == 0)
    assert data["running_kernel"] == os.uname().release
    assert {backend["name"] for backend in data["backends"]} == {"native", "vm"}
    assert {"ovs-vswitchd", "hostapd", "dumpcap", "virtme-run", "mnexec"} <= {
        tool["name"] for tool in data["tools"]
    }


def test_what_is_there_has_a_version_where_the_tool_tells_it(report):
    # mnexec prints none.
    silent = {tool.name for tool in report.tools if tool.path and tool.version is None}
    assert silent <= {"mnexec"}


def test_a_problem_comes_with_its_remedy(report):
    text = doctor.render(report)
    for backend in report.backends:
        for problem in backend.problems:
            assert problem in text
    assert (report.install is None) == (not report.missing_packages)
    if report.install:
        assert report.install in text


def test_auto_takes_what_doctor_says(report):
    if report.chosen is None:
        with pytest.raises(HostError, match="no way to run an emulated network here"):
            choose("auto")
    else:
        assert choose("auto").name == report.chosen


def test_an_impossible_backend_is_refused_with_the_reason(report):
    impossible = [backend for backend in report.backends if backend.problems]
    if not impossible:
        pytest.skip("every backend works on this machine")
    for backend in impossible:
        with pytest.raises(HostError) as caught:
            choose(backend.name)
        assert backend.problems[0] in str(caught.value)


def test_virtual_time_needs_an_emulated_processor(report):
    with pytest.raises(HostError, match="virtual time needs a virtual machine: --backend vm"):
        choose("native", "virtual")
    with pytest.raises(HostError, match="one of auto, real, virtual, not 'slow'"):
        choose("auto", "slow")
    if any(backend.name == "vm" and not backend.problems for backend in report.backends):
        machine = choose("auto", "virtual")
        assert machine.virtual_time
        assert "software, virtual time" in machine.description
        assert not choose("vm", "real").virtual_time


def test_an_unknown_backend_is_refused():
    with pytest.raises(HostError, match="one of auto, native, vm, sim, not 'cloud'"):
        choose("cloud")


class TestKvm:
    """The probe boots a real QEMU, or a program in its place that behaves as one was seen to."""

    KERNEL = Kernel("6.1.0-test", Path("/boot/vmlinuz-test"), (), True)

    @pytest.fixture
    def qemu(self, tmp_path, monkeypatch):
        """Put a script in front of the real QEMU; the device is a file that may be opened."""
        device = tmp_path / "kvm"
        device.touch()
        monkeypatch.setattr(kvm, "DEVICE", device)
        monkeypatch.setattr(kvm, "TIME_LIMIT_S", 0.5)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

        def install(does: str) -> Path:
            script = tmp_path / "qemu-system-x86_64"
            script.write_text(
                "#!/bin/sh\n"
                '[ "$1" = --version ] && { echo QEMU emulator version 9; exit; }\n'
                f"echo x >> {tmp_path}/boots\n{does}\n"
            )
            script.chmod(script.stat().st_mode | stat.S_IXUSR)
            return tmp_path / "boots"

        return install

    def test_a_hanging_kernel_is_no_kvm_and_not_tried_again(self, qemu):
        boots = qemu("sleep 60")
        answer = kvm.probe(self.KERNEL)
        assert answer == KvmProbe(False, "kernel 6.1.0-test hung for 0.5 s and said nothing")
        assert kvm.probe(self.KERNEL) == answer
        assert boots.read_text() == "x\n"

    def test_another_kernel_is_probed_anew(self, qemu):
        boots = qemu("echo 'Kernel panic - not syncing'")
        assert kvm.probe(self.KERNEL).works
        other = Kernel("6.12.0-test", self.KERNEL.image, (), True)
        assert kvm.probe(other).works
        assert boots.read_text() == "x\nx\n"

    def test_a_qemu_that_gives_up_is_quoted(self, qemu):
        qemu("echo 'kvm_buf_set_msrs: Assertion failed' >&2; exit 134")
        answer = kvm.probe(self.KERNEL)
        assert not answer.works
        assert answer.reason.endswith("kvm_buf_set_msrs: Assertion failed")

    def test_a_damaged_cache_is_ignored(self, qemu, tmp_path):
        qemu("echo 'Kernel panic - not syncing'")
        (tmp_path / "cache/tactical").mkdir(parents=True)
        (tmp_path / "cache/tactical/kvm.json").write_text('{"key": 3')
        assert kvm.probe(self.KERNEL).works

    def test_no_device_means_no_kvm(self, qemu, tmp_path, monkeypatch):
        boots = qemu("exit 0")
        monkeypatch.setattr(kvm, "DEVICE", tmp_path / "absent")
        assert not kvm.probe(self.KERNEL).works
        assert not boots.exists()

    def test_the_real_one_answers_in_time(self, tmp_path, monkeypatch):
        found = [kernel for kernel in kernels.installed() if kernel.suitable]
        if not found or doctor.packages.find_command("qemu-system-x86_64") is None:
            pytest.skip("no QEMU, or no suitable kernel installed")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert kvm.probe(found[0]).reason
