"""Run directories for the tests: two short real runs between network namespaces.

Two users and a host, iperf3 at 1 Mbit/s over two links, kernel 6.18; in `sptcp` each user hands
over twice with its address, in `mptcp` the second path comes and goes. One transfer of each run was
cut off at its end: iperf3's server closed with data still on the way.
"""

import shutil
from pathlib import Path

import pytest

from analysis import RunResult, analyse

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="session")
def sptcp() -> RunResult:
    return analyse(DATA / "sptcp")


@pytest.fixture(scope="session")
def mptcp() -> RunResult:
    return analyse(DATA / "mptcp")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A run directory that a test may damage."""
    return Path(shutil.copytree(DATA / "mptcp", tmp_path / "run"))
