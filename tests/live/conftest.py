import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

RUNS = Path(__file__).resolve().parents[1] / "analysis" / "data"
"""Short runs of a real network, one for each protocol."""


class Told:
    """What a steered run's worker was told, in place of a worker that does it."""

    def __init__(self) -> None:
        self.commands: list[dict[str, Any]] = []
        self.halted = False

    def say(self, text: bytes) -> None:
        assert text.endswith(b"\n")
        self.commands.append(json.loads(text))

    def halt(self) -> None:
        self.halted = True

    def go_on(self) -> None:
        self.halted = False


class Served:
    """A command that serves a page until it is stopped."""

    def __init__(self, *arguments: str) -> None:
        argv = [sys.executable, "-m", "tactical", *arguments, "--json"]
        self.process = subprocess.Popen(
            argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        text = ""
        for line in self.process.stdout:
            text += line
            if line == "}\n":
                break
        assert text.endswith("}\n"), self.process.communicate()
        self.document: dict[str, Any] = json.loads(text)

    def stop(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        self.process.communicate(timeout=120)
        return self.process.returncode


@pytest.fixture(scope="module")
def serve() -> Iterator[Callable[..., Served]]:
    """Starts commands that serve pages; those still running are stopped."""
    started: list[Served] = []

    def start(*arguments: str) -> Served:
        started.append(Served(*arguments))
        return started[-1]

    yield start
    for each in started:
        if each.process.poll() is None:
            each.stop(signal.SIGKILL)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """The system's Chromium, without a window."""
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("there is no Chromium here (apt-get install chromium)")
    with api.sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        started = playwright.chromium.launch(executable_path=chromium, args=arguments)
        yield started
        started.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page; whatever it asks for and complains about is kept."""
    opened = browser.new_page(viewport={"width": 1280, "height": 720})
    opened.asked, opened.complaints = [], []
    opened.on("request", lambda request: opened.asked.append(request.url))
    opened.on("pageerror", lambda error: opened.complaints.append(str(error)))
    yield opened
    opened.close()
