"""docs/analysis.md says what the package does."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from analysis.capture.frames import PACKET_COLUMNS
from analysis.transfer import stalls

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "analysis.md").read_text(encoding="utf-8")


def test_every_column_of_a_packet_is_there_with_its_meaning() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", PAGE, re.MULTILINE)
    found = {name: said for name, said in rows if name in PACKET_COLUMNS}
    assert found == PACKET_COLUMNS


def test_every_cause_of_a_stall_is_there() -> None:
    causes = [
        stalls.RECEIVER_WINDOW,
        stalls.SENDER_IDLE,
        stalls.LOSS_RECOVERY,
        stalls.SLOW_PATH,
        stalls.PATH_SILENT,
        stalls.NOTHING_ARRIVED,
    ]
    section = PAGE.split("## Stalls and interruptions")[1].split("\n## ")[0]
    assert re.findall(r"^\d\. `([a-z ]+)`", section, re.MULTILINE) == causes


def test_the_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    section = PAGE.split("## In a notebook or a script")[1]
    example = section.split("```python\n")[1].split("```")[0]
    for side in ("client", "server"):
        data = ROOT / "tests" / "captures" / "data" / f"csum_{side}.pcap.gz"
        shutil.copy(data, tmp_path / f"{side}.pcap.gz")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(compile(example, "docs/analysis.md", "exec"), names)
    assert names["data"].in_order_bytes.max() == 523_685
    assert names["delays"].one_way_delay_median_s.notna().all()
    assert "412072" in capsys.readouterr().out
    assert (tmp_path / "report.html").is_file()
