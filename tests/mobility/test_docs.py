"""The examples in docstrings and on the page run, and the page names what there is."""

import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import mobility
from mobility import traces

PAGE = Path(__file__).parents[2] / "docs" / "mobility.md"
MODULES = ["mobility"] + [
    module.name for module in pkgutil.walk_packages(mobility.__path__, "mobility.")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_give_what_they_show(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_the_examples_of_the_page_give_what_they_show():
    done = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert (done.failed, done.attempted) == (0, 6)


def test_the_page_lists_every_format_with_its_names():
    text = PAGE.read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([a-z0-9-]+)` \| ((?:`\.[^|]*)) \|", text, re.MULTILINE))
    assert rows == {
        name: ", ".join(f"`{suffix}`" for suffix in each.suffixes)
        for name, each in traces.FORMATS.items()
    }


def test_the_page_names_every_model():
    text = PAGE.read_text(encoding="utf-8")
    for name in mobility.__all__:
        member = getattr(mobility, name)
        is_model = inspect.isclass(member) and issubclass(member, mobility.Trajectory)
        if (is_model and name not in ("Trajectory", "Together")) or inspect.isfunction(member):
            assert f"`{name}" in text, name
