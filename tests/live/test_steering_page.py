"""The page of a run that is steered, in a real browser; what it commands is read as a worker would.

What a network makes of that is in `test_live.py`.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tactical.live.server import serving
from tactical.live.sources import Steered
from tactical.live.viewers import Viewers

from .conftest import RUNS, Told
from .test_page import TIMEOUT_MS, expect

TOKEN = "secret"


class SteeredRun:
    """A run directory that somebody steers, and what was said to its worker."""

    def __init__(self, run_dir: Path) -> None:
        self.run_dir = run_dir
        self.worker = Told()
        for name in ("run.toml", "plan.json"):
            shutil.copy(RUNS / "fdm" / name, run_dir / name)
        self.tell("state", "run", None, state="defined")
        self.source = Steered(run_dir, self.worker)

    def tell(self, kind: str, node: str, t_s: float | None, **data: Any) -> None:
        event = {"seq": 0, "t_s": t_s, "t_mono_s": 1.0, "kind": kind, "node": node, "data": data}
        with (self.run_dir / "events.jsonl").open("a") as stream:
            stream.write(json.dumps(event) + "\n")

    def place(self, node: str, t_s: float, east_m: float, north_m: float) -> None:
        self.tell("position", node, t_s, east_m=east_m, north_m=north_m, up_m=0.0)


@pytest.fixture
def run(tmp_path: Path) -> SteeredRun:
    steered = SteeredRun(tmp_path)
    for node, east_m in (("ship1", -2000.0), ("ship2", -1000.0), ("uav", 0.0)):
        steered.place(node, 0.0, east_m, 0.0)
    steered.tell("state", "run", 0.0, state="running")
    return steered


@pytest.fixture
def show(run: SteeredRun, page: Any) -> Iterator[Callable[[str], None]]:
    with serving(Viewers(run.source, TOKEN), "127.0.0.1", 0) as address:

        def open_it(token: str) -> None:
            page.goto(f"{address}#token={token}")
            page.wait_for_selector('[data-node="ship1"] svg', timeout=TIMEOUT_MS)

        yield open_it
    assert page.complaints == []


def centre(page: Any, node: str) -> tuple[float, float]:
    box = page.locator(f'[data-node="{node}"] svg').bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_a_ship_is_dragged_to_where_the_mouse_lets_it_go(
    run: SteeredRun, show: Callable[[str], None], page: Any
) -> None:
    show(TOKEN)
    expect(page.locator('[data-node="ship1"].movable')).to_be_visible(timeout=TIMEOUT_MS)
    (x1, y), (x2, _) = centre(page, "ship1"), centre(page, "ship2")
    metres = 1000.0 / (x2 - x1)
    page.mouse.move(x1, y)
    page.mouse.down()
    page.mouse.move(x1 + 30, y - 20, steps=3)
    page.mouse.move(x1 + 60, y - 90, steps=3)
    assert run.worker.commands == [], "nothing before it is let go"
    page.mouse.up()
    page.wait_for_timeout(300)
    (said,) = run.worker.commands
    assert (said["do"], said["node"]) == ("place", "ship1")
    assert said["east_m"] == pytest.approx(-2000 + 60 * metres, abs=6 * metres)
    assert said["north_m"] == pytest.approx(90 * metres, abs=6 * metres)
    # It stays where it was put while the network has not told, and then is where that says.
    assert centre(page, "ship1") == pytest.approx((x1 + 60, y - 90), abs=6)
    run.place("ship1", 1.0, said["east_m"], said["north_m"])
    page.wait_for_timeout(300)
    run.place("ship1", 2.0, -1500.0, 300.0)
    page.wait_for_timeout(300)
    assert centre(page, "ship1") == pytest.approx((x1 + 500 / metres, y - 300 / metres), abs=3)


def test_everything_is_steered_with_the_keyboard(
    run: SteeredRun, show: Callable[[str], None], page: Any
) -> None:
    show(TOKEN)
    expect(page.locator("#move")).to_be_enabled(timeout=TIMEOUT_MS)
    page.locator('[data-node="uav"]').focus()
    for _ in range(3):
        page.keyboard.press("ArrowUp")
    page.wait_for_timeout(800)
    page.keyboard.press("Space")
    page.get_by_role("button", name="Cut satcom").press("Enter")
    page.get_by_label("Policy").select_option("shortest")
    page.get_by_label("Speed").locator("visible=true").select_option("5")
    page.get_by_label("User").select_option("ship2")
    page.get_by_label("Planned rate").fill("1.5")
    page.get_by_label("Planned rate").press("Enter")
    page.wait_for_timeout(300)
    placed, *others = run.worker.commands
    assert (placed["do"], placed["node"]) == ("place", "uav")
    assert placed["east_m"] == pytest.approx(0.0, abs=1) and placed["north_m"] > 100
    assert others == [
        {"do": "play", "playing": False},
        {"do": "link", "relay": "satcom", "up": False},
        {"do": "policy", "policy": "shortest"},
        {"do": "speed", "speed": 5.0},
        {"do": "demand", "user": "ship2", "rate_bps": 1.5e6},
    ]


def test_a_link_that_is_cut_can_be_healed(
    run: SteeredRun, show: Callable[[str], None], page: Any
) -> None:
    show(TOKEN)
    cut = {"rate_bps": 4e6, "delay_s": 0.25, "loss": 1.0, "cause": "cut by hand"}
    run.tell("link_change", "satcom", 1.0, **cut)
    button = page.get_by_role("button", name="Heal satcom")
    expect(button).to_have_attribute("aria-pressed", "true", timeout=TIMEOUT_MS)
    button.click()
    page.wait_for_timeout(300)
    assert run.worker.commands == [{"do": "link", "relay": "satcom", "up": True}]


def test_who_has_no_token_watches_only(
    run: SteeredRun, show: Callable[[str], None], page: Any
) -> None:
    show("")
    expect(page.locator("#hint")).to_contain_text("only watches", timeout=TIMEOUT_MS)
    expect(page.locator("#move")).to_be_disabled()
    x, y = centre(page, "ship1")
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 80, y - 80, steps=4)
    page.mouse.up()
    page.wait_for_timeout(500)
    assert run.worker.commands == []


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (1920, 1080)])
def test_what_steers_fits_the_page(
    run: SteeredRun,
    show: Callable[[str], None],
    page: Any,
    tmp_path: Path,
    width: int,
    height: int,
) -> None:
    page.set_viewport_size({"width": width, "height": height})
    show(TOKEN)
    expect(page.locator("#plan")).to_be_enabled(timeout=TIMEOUT_MS)
    page.screenshot(path=tmp_path / f"{width}.png")
    for part in ("#map", "#plots", "#stories", *(f"#{each}" for each in ("move", "cuts", "plan"))):
        box = page.locator(part).bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= width, part
        assert box["y"] >= 0 and box["y"] + box["height"] <= height, part
