"""Which installed kernels can run the network."""

import os
from pathlib import Path

import pytest

from tactical.host import kernels


def install(root: Path, release: str, modules: list[str], *, mptcp: bool = True) -> None:
    directory = root / "lib/modules" / release
    directory.mkdir(parents=True)
    half = len(modules) // 2
    (directory / "modules.dep").write_text(
        "".join(f"kernel/net/{name}.ko.xz: kernel/a.ko.xz\n" for name in modules[:half])
    )
    (directory / "modules.builtin").write_text(
        "".join(f"kernel/net/{name.replace('_', '-')}.ko\n" for name in modules[half:])
    )
    boot = root / "boot"
    boot.mkdir(exist_ok=True)
    (boot / f"vmlinuz-{release}").write_bytes(b"")
    (boot / f"config-{release}").write_text(f"CONFIG_A=m\nCONFIG_MPTCP={'y' if mptcp else 'n'}\n")


def test_the_newest_comes_first_and_numbers_count_as_numbers(tmp_path):
    every = list(kernels.required_modules())
    for release in ["6.1.0-9-amd64", "6.12.1-1-amd64", "6.1.0-57-amd64", "5.15.0-100-generic"]:
        install(tmp_path, release, every)
    found = [kernel.release for kernel in kernels.installed(tmp_path)]
    assert found == ["6.12.1-1-amd64", "6.1.0-57-amd64", "6.1.0-9-amd64", "5.15.0-100-generic"]


def test_a_complete_kernel_is_suitable(tmp_path):
    install(tmp_path, "6.1.0", list(kernels.required_modules()))
    (kernel,) = kernels.installed(tmp_path)
    assert kernel.suitable
    assert kernel.missing == ()


@pytest.mark.parametrize("lost", ["openvswitch", "sch_netem", "9pnet_virtio"])
def test_a_missing_module_is_named(tmp_path, lost):
    install(tmp_path, "6.1.0", [name for name in kernels.required_modules() if name != lost])
    (kernel,) = kernels.installed(tmp_path)
    assert kernel.missing == (lost,)
    assert not kernel.suitable


def test_a_kernel_without_multipath_tcp_is_named(tmp_path):
    install(tmp_path, "6.1.0", list(kernels.required_modules()), mptcp=False)
    (kernel,) = kernels.installed(tmp_path)
    assert kernel.missing == (kernels.MPTCP,)


def test_modules_without_an_image_are_no_kernel(tmp_path):
    install(tmp_path, "6.1.0", [])
    (tmp_path / "boot/vmlinuz-6.1.0").unlink()
    assert kernels.installed(tmp_path) == ()


def test_the_running_kernel_is_judged_by_what_it_can_do():
    lacking = kernels.running_lacks()
    assert set(lacking) <= {*kernels.network_modules(), kernels.MPTCP}
    assert (kernels.MPTCP in lacking) == (not os.path.exists("/proc/sys/net/mptcp"))  # noqa: PTH110
