"""Networks built with either library: the choice, and what a user is told where one is missing."""

import pytest

from tactical import cli
from tactical.emulation.adapters import MININET, MININET_WIFI, adapter, problem


def test_without_mininet_wifi_a_run_is_refused_in_one_sentence_that_helps(capsys) -> None:
    if (reason := problem(MININET_WIFI)) is None:
        pytest.skip("Mininet-WiFi is installed")
    assert cli.main(["run", "direct-move", "--network", MININET_WIFI]) == 2
    said = capsys.readouterr().err
    assert reason in said
    assert said.count("\n") == 1
    assert "install it for this Python" in said
    with pytest.raises(ImportError):
        adapter(MININET_WIFI)


def test_the_default_needs_nothing_else() -> None:
    assert problem(MININET) is None
    assert adapter(MININET).__name__ == "MininetNetwork"


@pytest.mark.emulation
def test_a_network_of_mininet_wifi_carries_a_run(tmp_path, capsys) -> None:
    if (reason := problem(MININET_WIFI)) is not None:
        pytest.skip(reason)
    line = "run direct-move --protocol mptcp --set duration_s=15 --set entry_time_s=5"
    assert cli.main([*line.split(), "--network", MININET_WIFI, "--runs-dir", str(tmp_path)]) == 0
    assert "done" in capsys.readouterr().err
