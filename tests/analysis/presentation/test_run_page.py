"""The table and the page."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from analysis import RunResult, report, table

VOID = {"meta", "br", "link", "img", "hr", "input"}


class Page(HTMLParser):
    """Checks nesting and gathers what matters."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.images: list[str | None] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag not in VOID:
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
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def page(path: Path) -> tuple[Page, str]:
    text = path.read_text()
    parsed = Page()
    parsed.feed(text)
    parsed.close()
    assert parsed.open == []
    return parsed, text


def test_the_page_stands_alone(sptcp: RunResult, mptcp: RunResult, tmp_path: Path) -> None:
    parsed, text = page(report([mptcp, sptcp], tmp_path / "report.html"))
    assert all(reference.startswith("#") for reference in parsed.references)
    assert {reference[1:] for reference in parsed.references} <= set(parsed.ids)
    assert set(re.findall(r"url\(#([^)]+)\)", text)) <= set(parsed.ids)
    assert len(parsed.ids) == len(set(parsed.ids))
    assert not re.search(r"<script|@import|url\((?!#)", text)
    # Names of XML vocabularies are no addresses anybody fetches.
    addresses = re.findall(r"https?://[^\"'\s<]+", text)
    assert {address for address in addresses if "www.w3.org" not in address} == set()
    assert len(parsed.images) == 13
    assert all(description for description in parsed.images)


def test_the_page_says_what_the_results_say(
    sptcp: RunResult, mptcp: RunResult, tmp_path: Path
) -> None:
    parsed, _ = page(report([sptcp, mptcp], tmp_path / "report.html"))
    words = " ".join(parsed.words)
    for said in ("753 701 data bytes", "handover", "ship2", "10.0.10.1", "0.487", "128"):
        assert said in words
    assert "did not complete" in words


def test_text_is_escaped(sptcp: RunResult, tmp_path: Path) -> None:
    nasty = replace(sptcp, state="failed", reason="<script>alert(1)</script> & more")
    _, text = page(report([nasty], tmp_path / "report.html"))
    assert "<script>" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; more" in text


def test_an_empty_failed_run_has_a_page(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "run.toml").write_text('[run]\nscenario = "direct-move"\nprotocol = "fdm"\nseed = 3\n')
    parsed, _ = page(report([run], tmp_path / "report.html"))
    assert "events.jsonl is missing" in " ".join(parsed.words)


def test_the_table_puts_protocols_side_by_side(sptcp: RunResult, mptcp: RunResult) -> None:
    fdm = replace(mptcp, protocol="fdm", solves=3, reference_goodput_bps=418_800.0)
    lines = table([fdm, sptcp, mptcp]).splitlines()
    assert lines[0].split() == ["direct-move", "sptcp", "mptcp", "fdm"]
    (reference,) = [line for line in lines if "own average" in line]
    assert reference.split()[-3:] == ["0.487", "0.373", "0.419"]
    (solves,) = [line for line in lines if line.startswith("solves")]
    assert solves.split() == ["solves", "0", "0", "3"]
    # Below the last rule are the notes.
    figures = lines[: max(index for index, line in enumerate(lines) if line.startswith("──"))]
    assert max(map(len, figures)) <= 100


def test_the_source_is_named(sptcp: RunResult, tmp_path: Path) -> None:
    named = replace(sptcp, reference="Somebody et al. 2018")
    assert "Somebody et al. 2018 average" in table([named])
    parsed, text = page(report([named], tmp_path / "report.html"))
    assert "Somebody et al. 2018: 0.487 Mbit/s" in " ".join(parsed.words)
    assert "own average" not in text


def test_a_table_of_nothing() -> None:
    assert table([]) == "no runs"


@pytest.mark.parametrize("count", [2, 3])
def test_runs_of_one_protocol_are_told_apart(sptcp: RunResult, count: int) -> None:
    runs = [replace(sptcp, seed=seed) for seed in range(count)]
    head = table(runs).splitlines()[0]
    assert all(f"sptcp #{seed}" in head for seed in range(count))


def test_runs_of_one_seed_are_told_apart_by_their_parameters(
    sptcp: RunResult, tmp_path: Path
) -> None:
    common = {"satcom.rate_bps": 5e7, "uav.channel": 1}
    runs = [
        replace(sptcp, run=f"run-{delay}", parameters={**common, "satcom.delay_s": delay})
        for delay in (0.1, 0.3)
    ]
    lines = table(runs).splitlines()
    assert lines[0].split() == ["direct-move", "sptcp", "sptcp"]
    assert lines[1].split() == ["satcom.delay_s=0.1", "satcom.delay_s=0.3"]
    parsed, _ = page(report(runs, tmp_path / "report.html"))
    words = " ".join(parsed.words)
    assert "sptcp satcom.delay_s=0.3" in words
    assert "The runs differ in satcom.delay_s (0.1, 0.3)." in words
    assert "uav.channel=1" in words


def test_runs_that_are_all_the_same_are_told_apart_by_their_time(sptcp: RunResult) -> None:
    made = [replace(sptcp, created=f"2026-11-30T21:4{minute}:00+00:00") for minute in (0, 1)]
    assert table(made).splitlines()[1].split() == [
        "2026-11-30",
        "21:40:00",
        "2026-11-30",
        "21:41:00",
    ]
    twice = table([sptcp, sptcp]).splitlines()
    assert ["(1)", "(2)"] in [line.split() for line in twice]


def test_the_card_says_what_is_wrong(mptcp: RunResult, tmp_path: Path) -> None:
    _, text = page(report([replace(mptcp, overloaded=True)], tmp_path / "report.html"))
    card = re.search(r'<ul class="cards">.*?</ul>', text, re.DOTALL)
    assert card is not None
    wrong = re.findall(r'<span class="bad wrong">(.*?)</span>', card[0])
    assert wrong[0] == "the machine could not keep up"
    (said,) = wrong[1:]
    assert "not closed in order (fastclose)" in said


def test_the_card_tells_a_start_up_from_what_comes_later(sptcp: RunResult, tmp_path: Path) -> None:
    users = {
        name: replace(
            user,
            longest_interruption_s=2.5,
            longest_interruption_cause="start-up",
        )
        for name, user in sptcp.users.items()
    }
    _, text = page(report([replace(sptcp, users=users)], tmp_path / "report.html"))
    assert re.search(
        r"longest interruption 2\.50 s \(start-up\); after the start-up \S+ s \(handover\)", text
    )


def test_what_is_written_in_a_figure_is_not_cut(mptcp: RunResult, tmp_path: Path) -> None:
    """Numbers of the drawing are shortened, those that people read are not."""
    _, text = page(report([mptcp], tmp_path / "report.html"))
    figures = re.findall(r"<figure>.*?</figure>", text, re.DOTALL)
    delays = next(each for each in figures if "Distribution of the one-way delay" in each)
    assert ">0.005<" in delays
    assert not re.search(r'x="\d+\.\d{3}', delays)


def test_the_page_of_a_run_has_its_packets(mptcp: RunResult, tmp_path: Path) -> None:
    parsed, _ = page(report([mptcp], tmp_path / "report.html"))
    words = " ".join(parsed.words)
    for user in mptcp.users:
        assert f"Sent by {user}" in words
    assert "resends (12)" in words
    many = [replace(mptcp, run=f"run-{number}", seed=number) for number in range(4)]
    parsed, _ = page(report(many, tmp_path / "many.html"))
    assert "Sent by" not in " ".join(parsed.words)
