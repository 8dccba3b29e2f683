"""What `pip install .` gives: the command and its data, without the checkout."""

import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = [
    "tactical",
    "analysis",
    "scenarios",
    "captures",
    "fdm",
    "mobility",
    "routing",
    "simulation",
]


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> tuple[Path, Path]:
    """A fresh environment with this project from its wheel; the wheel."""
    directory = tmp_path_factory.mktemp("installation")
    source = directory / "source"
    source.mkdir()
    for name in [*PACKAGES, "pyproject.toml", "README.md", "system-packages.txt"]:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, source / name)
    options = ["--no-deps", "--no-build-isolation", "-w", str(directory)]
    built = run_pip(sys.executable, "wheel", *options, str(source))
    wheels = list(directory.glob("*.whl"))
    assert len(wheels) == 1, built
    shutil.rmtree(source)
    environment = directory / "environment"
    # The dependencies come from the environment that the tests run in; the project does not.
    venv.create(environment, with_pip=True, symlinks=True)
    python = environment / "bin/python"
    run_pip(str(python), "install", "--no-deps", str(wheels[0]))
    dependencies = [path for path in sys.path if path.endswith("site-packages")]
    site = next((environment / "lib").glob("python3*/site-packages"))
    (site / "dependencies.pth").write_text(
        "".join(f"import sys; sys.path.append({path!r})\n" for path in dependencies)
    )
    return python, wheels[0]


def run_pip(python: str, *arguments: str) -> str:
    done = subprocess.run(
        [python, "-m", "pip", "--disable-pip-version-check", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_installed(python: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [str(python.with_name("tactical")), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=cwd, env=environment, timeout=120
    )


@pytest.mark.slow
def test_every_file_of_the_packages_is_in_the_wheel(installed):
    _, wheel = installed
    listed = subprocess.run(
        ["git", "ls-files", *PACKAGES], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split()
    if not listed:
        pytest.skip("not a git checkout, so there is no list of files")
    with zipfile.ZipFile(wheel) as archive:
        contained = set(archive.namelist())
    assert {name for name in listed if (ROOT / name).exists()} <= contained
    assert "tactical/host/system-packages.txt" in contained


@pytest.mark.slow
def test_the_installed_command_works_away_from_the_checkout(installed, tmp_path):
    python, _ = installed
    done = run_installed(python, "check", "direct-move", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["scenario"] == "direct-move"
    where = subprocess.run(
        [str(python), "-c", "import tactical, fdm; print(tactical.__file__, fdm.__file__)"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=True,
    )
    assert all(str(python.parents[1]) in path for path in where.stdout.split())


@pytest.mark.slow
def test_the_installed_doctor_reads_its_package_list(installed, tmp_path):
    python, _ = installed
    done = run_installed(python, "doctor", "--json", cwd=tmp_path)
    assert "ovs-vswitchd" in {tool["name"] for tool in json.loads(done.stdout)["tools"]}


@pytest.mark.slow
def test_the_installed_scripts_of_the_virtual_machine_can_be_executed(installed):
    python, _ = installed
    host = next(python.parents[1].glob("lib/python3*/site-packages/tactical/host"))
    assert os.access(host / "qemu-bound.sh", os.X_OK)
    assert (host / "guest.sh").is_file()
