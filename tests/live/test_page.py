"""The page in a real browser, fed with a recorded run. Screenshots are in pytest's directory."""

import json
import shutil
import signal
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from .conftest import RUNS, Served

RUN = str(RUNS / "fdm")
TIMEOUT_MS = 20_000

Serve = Callable[..., Served]


def expect(locator: Any) -> Any:
    from playwright.sync_api import expect as expectation

    return expectation(locator)


def overlap(a: Any, b: Any) -> bool:
    across = a["x"] < b["x"] + b["width"] and b["x"] < a["x"] + a["width"]
    return across and a["y"] < b["y"] + b["height"] and b["y"] < a["y"] + a["height"]


def show(page: Any, url: str) -> None:
    page.goto(url)
    page.wait_for_selector("#subflows tr", timeout=TIMEOUT_MS)


@pytest.fixture(scope="module")
def recording(serve: Serve) -> Served:
    return serve("replay", RUN)


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (1920, 1080)])
def test_a_recording_is_searched_with_the_slider(
    recording: Served, page: Any, tmp_path: Path, width: int, height: int
) -> None:
    page.set_viewport_size({"width": width, "height": height})
    show(page, recording.document["url"])
    uav = page.locator('tr[data-subflow="ship1 uav"]')
    page.locator("#slider").fill("8")
    expect(page.locator("#time")).to_have_text("8.0 s", timeout=TIMEOUT_MS)
    expect(uav.locator("td").nth(3)).to_have_text("0.39")
    expect(page.locator("#stories")).to_contain_text("ship1 comes into range of uav")
    expect(page.locator("#stories")).not_to_contain_text("leaves")
    page.screenshot(path=tmp_path / f"{width}.png")
    page.locator("#slider").fill("14")
    expect(uav).to_have_class("away", timeout=TIMEOUT_MS)
    expect(page.locator("#stories")).to_contain_text("ship1 leaves uav")
    page.locator("#slider").fill("2")
    expect(page.locator("#stories")).not_to_contain_text("comes into range")
    for part in ("header", "#map", "#figures", "#plots", "#stories", "footer"):
        box = page.locator(part).bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= width, part
        assert box["y"] >= 0 and box["y"] + box["height"] <= height, part
        assert box["height"] > 30, part
    assert page.complaints == []
    own = recording.document["watch_url"]
    assert [url for url in page.asked if not url.startswith((own, "data:"))] == []


def test_nodes_too_near_for_the_map_are_side_by_side(
    recording: Served, page: Any, tmp_path: Path
) -> None:
    show(page, recording.document["url"])
    page.wait_for_selector(".node svg", timeout=TIMEOUT_MS)
    for _ in range(8):
        page.get_by_role("button", name="Zoom out").click()
    page.wait_for_selector(".node.aside", timeout=TIMEOUT_MS)
    page.screenshot(path=tmp_path / "near.png")
    icons = [icon.bounding_box() for icon in page.locator(".node svg").all()]
    assert len(icons) == 5 and not any(overlap(a, b) for a, b in combinations(icons, 2))


def test_keys_play_search_and_reach_everything(recording: Served, page: Any) -> None:
    show(page, recording.document["url"])
    page.keyboard.press("Home")
    page.keyboard.press("Space")
    expect(page.locator("#play")).to_have_text("Pause", timeout=TIMEOUT_MS)
    page.keyboard.press("Space")
    expect(page.locator("#play")).to_have_text("Play", timeout=TIMEOUT_MS)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#stories")).to_contain_text("comes into range", timeout=TIMEOUT_MS)
    reached = set()
    for _ in range(25):
        page.keyboard.press("Tab")
        focused = page.locator(":focus")
        if focused.count():
            reached.add(focused.get_attribute("id") or focused.get_attribute("data-node"))
    assert {"ship1", "uav", "play", "speed", "slider", "stories", "window"} <= reached


def test_who_has_no_token_watches(recording: Served, page: Any) -> None:
    show(page, recording.document["watch_url"])
    expect(page.locator("#hint")).to_contain_text("only watches")
    expect(page.locator("#play")).to_be_disabled()


def test_a_run_that_ends_while_it_is_followed_is_a_recording_on_the_same_page(
    serve: Serve, page: Any, tmp_path: Path
) -> None:
    run_dir = tmp_path / "run"
    shutil.copytree(RUNS / "fdm", run_dir)
    events = run_dir / "events.jsonl"
    *before, end = events.read_text().splitlines(keepends=True)
    events.write_text("".join(before))
    show(page, serve("replay", str(run_dir)).document["url"])
    expect(page.locator("#hint")).to_contain_text("goes on")
    expect(page.locator("#replay")).to_be_hidden()
    with events.open("a") as stream:
        stream.write(end)
    expect(page.locator("#phase")).to_have_text("done", timeout=TIMEOUT_MS)
    expect(page.locator("#play")).to_be_enabled(timeout=TIMEOUT_MS)
    page.locator("#slider").fill("8")
    expect(page.locator("#time")).to_have_text("8.0 s", timeout=TIMEOUT_MS)
    page.screenshot(path=tmp_path / "ended.png")
    assert page.complaints == []


def test_searching_back_to_before_nodes_are_placed_is_no_fault(
    serve: Serve, page: Any, tmp_path: Path
) -> None:
    run_dir = tmp_path / "run"
    shutil.copytree(RUNS / "fdm", run_dir)
    events = run_dir / "events.jsonl"
    lines = [json.loads(line) for line in events.read_text().splitlines()]
    kept = [e for e in lines if e["kind"] != "position" or e["t_s"] > 3]
    events.write_text("".join(json.dumps(e) + "\n" for e in kept))
    show(page, serve("replay", str(run_dir)).document["url"])
    for moment in ("8", "1"):
        page.locator("#slider").fill(moment)
        expect(page.locator("#time")).to_have_text(f"{moment}.0 s", timeout=TIMEOUT_MS)
        page.wait_for_selector(".node svg", timeout=TIMEOUT_MS)
    assert page.complaints == []


def test_the_page_comes_back_after_its_server_did(serve: Serve, page: Any) -> None:
    first = serve("replay", RUN)
    port = first.document["watch_url"].rstrip("/").rpartition(":")[2]
    show(page, first.document["url"])
    expect(page.locator("#connection")).to_have_text("connected")
    assert first.stop(signal.SIGINT) == 130, "Ctrl-C ends it while a page is open"
    expect(page.locator("#connection")).to_contain_text("trying again", timeout=TIMEOUT_MS)
    serve("replay", RUN, "--port", port)
    expect(page.locator("#connection")).to_have_text("connected", timeout=TIMEOUT_MS)
    expect(page.locator("#title")).to_contain_text("direct-move")
