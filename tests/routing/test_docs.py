"""What docs/routing.md shows."""

import inspect
import re
from pathlib import Path

import pytest

import routing

PAGE = (Path(__file__).parents[2] / "docs" / "routing.md").read_text(encoding="utf-8")


def test_the_example_prints_what_stands_beside_it(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    exec(example, {})  # our own page
    printed = capsys.readouterr().out.splitlines()
    beside = re.findall(r"# (.*?)(?: …)?$", example, re.M)
    assert printed[: len(beside)] == beside


def test_every_function_is_explained() -> None:
    functions = {name for name in routing.__all__ if inspect.isfunction(getattr(routing, name))}
    assert functions <= set(re.findall(r"\w+", PAGE))
