"""`tactical live` on a real network: a ship is dragged, a link is cut, and the network follows.

One boot for everything; screenshots are in pytest's directory.
"""

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tactical.host import doctor

from .conftest import Served
from .test_page import expect
from .test_steering_page import centre

START_MS = 240_000
FOLLOWING_MS = 30_000

pytestmark = [
    pytest.mark.emulation,
    pytest.mark.skipif(
        bool(doctor.native_problems() and doctor.virtual_problems()),
        reason="no way to run an emulated network here",
    ),
]


def test_the_network_follows_who_steers_it(
    serve: Callable[..., Served], page: Any, tmp_path: Path
) -> None:
    live = serve("live", "direct-move", "--duration", "200", "--runs-dir", str(tmp_path / "runs"))
    run_dir = Path(live.document["run"])
    page.goto(live.document["url"])
    expect(page.locator("#move")).to_be_enabled(timeout=START_MS)
    satcom, uav = (page.locator(f'tr[data-subflow="ship1 {via}"]') for via in ("satcom", "uav"))
    measured = 2
    expect(satcom.locator("td").nth(measured)).to_have_text(
        re.compile(r"[2-4]\.\d\d"), timeout=FOLLOWING_MS
    )
    expect(uav).to_have_class("away")
    page.screenshot(path=tmp_path / "running.png")

    (x, y), (to_x, to_y) = centre(page, "ship1"), centre(page, "uav")
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move((x + to_x) / 2, (y + to_y) / 2, steps=4)
    page.mouse.move(to_x - 60, to_y - 50, steps=4)
    page.mouse.up()
    dropped_s = time.monotonic()
    story = page.locator("#stories li.handover", has_text="ship1 comes into range of uav")
    expect(story.locator(".part.deployed")).to_be_visible(timeout=FOLLOWING_MS)
    print(f"drag to visible allocation: {time.monotonic() - dropped_s:.2f} s")
    expect(uav).not_to_have_class("away")
    expect(uav.locator("td").nth(measured)).to_have_text(
        re.compile(r"0\.[1-9]\d"), timeout=FOLLOWING_MS
    )
    page.screenshot(path=tmp_path / "dragged.png")

    page.get_by_role("button", name="Cut satcom").click()
    expect(page.get_by_role("button", name="Heal satcom")).to_be_visible(timeout=FOLLOWING_MS)
    expect(satcom.locator("td").nth(measured + 1)).to_have_text("0.00", timeout=FOLLOWING_MS)
    expect(uav.locator("td").nth(measured)).to_have_text(
        re.compile(r"0\.[4-9]\d|1\.\d\d"), timeout=FOLLOWING_MS
    )
    page.wait_for_timeout(3000)
    state = httpx.get(f"{live.document['watch_url']}state").json()
    arriving_bps = state["sections"]["links"]["uav"]["rate_bps"]
    assert arriving_bps > 0.4e6, "what ship1 sends goes over the UAV now"
    page.screenshot(path=tmp_path / "cut.png")

    page.set_viewport_size({"width": 1920, "height": 1080})
    page.get_by_role("button", name="Heal satcom").click()
    expect(page.get_by_role("button", name="Cut satcom")).to_be_visible(timeout=FOLLOWING_MS)
    page.get_by_label("Policy").select_option("shortest")
    expect(page.locator("#policy")).to_contain_text("no allocation", timeout=FOLLOWING_MS)
    expect(uav.locator("td").nth(measured + 1)).to_have_text("–", timeout=FOLLOWING_MS)
    page.wait_for_timeout(2000)
    page.screenshot(path=tmp_path / "policy.png")
    assert page.complaints == []

    assert live.stop() == 130, "Ctrl-C ends it"
    events = [json.loads(line) for line in (run_dir / "events.jsonl").read_text().splitlines()]
    commanded = [e["data"] for e in events if e["kind"] == "command"]
    assert [each["do"] for each in commanded] == ["place", "link", "link", "policy"]
    assert all(e["t_s"] is not None for e in events)
    assert events[-1]["data"]["state"] == "failed" and "interrupted" in events[-1]["data"]["reason"]
    assert (run_dir / "samples.jsonl").stat().st_size > 0
    assert (run_dir / "captures" / "ship1-wlan0.pcapng").stat().st_size > 10_000
    assert not list(run_dir.glob("*.img"))

    page.goto(serve("replay", str(run_dir)).document["url"])
    page.get_by_role("button", name="Play").wait_for()
    page.locator("#slider").press("End")
    expect(page.locator("#stories")).to_contain_text("ship1 is moved by hand", timeout=FOLLOWING_MS)
    expect(page.locator("#stories")).to_contain_text("the link of satcom is cut by hand")
    page.screenshot(path=tmp_path / "replayed.png")
