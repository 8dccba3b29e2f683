"""Run directories for the tests.

`sptcp` and `mptcp` are short real runs between network namespaces: two users and a host, iperf3 at
1 Mbit/s over two links, kernel 6.18; in `sptcp` each user hands over twice with its address, in
`mptcp` the second path comes and goes. One transfer of each run was cut off at its end: iperf3's
server closed with data still on the way.

`fdm` is a run of the testbed itself (direct-move in virtual time: 0.4 Mbit/s a ship for 16 s, in
the UAV's range from 5 to 11 s), with all its files but logs, environment, iperf3's intervals and
unused counters.
"""

import re
import shutil
from collections.abc import Callable
from html.parser import HTMLParser
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


@pytest.fixture(scope="session")
def fdm() -> RunResult:
    return analyse(DATA / "fdm")


@pytest.fixture
def fdm_copy(tmp_path: Path) -> Path:
    """A run of the testbed that a test may damage."""
    return Path(shutil.copytree(DATA / "fdm", tmp_path / "fdm"))


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A run directory that a test may damage."""
    return Path(shutil.copytree(DATA / "mptcp", tmp_path / "run"))


class Page(HTMLParser):
    """Checks nesting and gathers what matters."""

    VOID = frozenset({"meta", "br", "link", "img", "hr", "input"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.images: list[str | None] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag not in self.VOID:
            self.open.append(tag)
        if found.get("id"):
            self.ids.append(str(found["id"]))
        for name in ("href", "src", "xlink:href"):
            if name in found:
                self.references.append(str(found[name]))
        if tag == "svg":
            self.images.append(found.get("aria-label"))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.fixture
def check_page() -> Callable[[Path], Page]:
    """Reads a page, which must stand alone: well-formed, ids unique, nothing fetched."""

    def check(path: Path) -> Page:
        text = path.read_text()
        page = Page()
        page.feed(text)
        page.close()
        assert page.open == []
        assert len(page.ids) == len(set(page.ids))
        own = [each for each in page.references if not each.startswith("data:image/png;base64,")]
        assert all(reference.startswith("#") for reference in own)
        assert {reference[1:] for reference in own} <= set(page.ids)
        assert set(re.findall(r"url\(#([^)]+)\)", text)) <= set(page.ids)
        assert not re.search(r"<script|@import|url\((?!#)", text)
        # Names of XML vocabularies are no addresses anybody fetches.
        addresses = re.findall(r"https?://[^\"'\s<]+", text)
        assert all("www.w3.org" in address for address in addresses)
        return page

    return check
