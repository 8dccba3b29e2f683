"""Capture files for the tests."""

import json
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).parent / "data"
SHARED = Path(__file__).parents[3] / "shared" / "captures"


@pytest.fixture(scope="session")
def shared() -> Path:
    """Public captures whose licences do not allow copies here."""
    if not SHARED.is_dir():
        pytest.skip(f"the shared captures are not on this machine ({SHARED})")
    return SHARED


@pytest.fixture(scope="session")
def truth(shared: Path) -> dict[str, Any]:
    """What tshark counts in the shared captures, by file name."""
    lines = (shared / "ground_truth.jsonl").read_text().splitlines()
    return {entry["file"]: entry for entry in map(json.loads, lines)}


@pytest.fixture(scope="session")
def data() -> Path:
    """Captures of a real kernel that are part of this repository."""
    return DATA
