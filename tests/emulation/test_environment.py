"""What a run was made on."""

import shutil

import pytest

from tactical.emulation.environment import VERSIONS, version


@pytest.mark.parametrize("name", VERSIONS)
def test_every_tool_that_is_here_tells_a_version(name: str) -> None:
    argv = VERSIONS[name]
    if shutil.which(argv[0]) is None:
        pytest.skip(f"{argv[0]} is not installed")
    assert any(c.isdigit() for c in version(argv)), version(argv)


@pytest.mark.parametrize("argv", [("true",), ("no-such-program",)])
def test_one_that_cannot_be_had_is_told_with_the_reason(argv: tuple[str, ...]) -> None:
    assert version(argv).startswith("not available: ")
