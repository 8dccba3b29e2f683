"""Running commands in nodes; without nodes, a command runs on this machine itself."""

from pathlib import Path

import pytest

import scenarios
from tactical.emulation.commands import Command
from tactical.emulation.mininet_network import MininetNetwork
from tactical.emulation.network import Network
from tactical.emulation.plan import make_plan
from tactical.host import CommandError


@pytest.fixture
def network(tmp_path: Path) -> Network:
    return MininetNetwork(make_plan(scenarios.load("direct-move").build(1), "fdm"), tmp_path)


def test_first_failing_step_is_named_and_the_rest_is_not_run(
    network: Network, tmp_path: Path
) -> None:
    mark = tmp_path / "ran"
    steps = [
        Command(("true",)),
        Command(("ls", "/no such directory")),
        Command(("touch", str(mark))),
    ]
    with pytest.raises(CommandError) as caught:
        network.run_all(steps)
    assert caught.value.argv == steps[1].argv
    assert caught.value.status == 2
    assert "No such file" in caught.value.stderr
    assert not mark.exists()


def test_missing_tool_in_a_batch(network: Network) -> None:
    with pytest.raises(CommandError, match="no-such-tool"):
        network.run_all([Command(("no-such-tool", "x"))])


def test_words_of_a_command_are_never_read_by_the_shell(network: Network, tmp_path: Path) -> None:
    odd = tmp_path / "a b; $(touch c) 'd'"
    network.run_all([Command(("touch", str(odd)))])
    assert odd.exists()


def test_more_steps_than_one_argument_holds_are_all_run_in_order(
    network: Network, tmp_path: Path
) -> None:
    said = tmp_path / "said"
    word = "x" * 400
    steps = [Command(("sh", "-c", f"echo {n} {word} >> {said}")) for n in range(500)]
    network.run_all(steps)
    assert [int(line.split()[0]) for line in said.read_text().splitlines()] == list(range(500))
