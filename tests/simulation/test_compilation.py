"""What is compiled is kept as long as it is right, and never longer."""

import pytest

from simulation import Connection, Link, Path, Simulation, compilation


def test_code_compiled_from_other_sources_is_thrown_away(monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    (tmp_path / "source").mkdir()
    names = ("engine.advance-1.nbi", "engine.advance-1.1.nbc", "else-1.nbi")
    kept, code, others = (tmp_path / "source" / name for name in names)
    for file in (kept, code, others):
        file.touch()
    assert compilation._keep()
    assert not kept.exists()  # nothing said what it was compiled from
    assert not code.exists()
    assert others.exists()
    kept.touch()
    assert compilation._keep()
    assert kept.exists()
    (tmp_path / compilation._MARKER).write_text("other sources")
    assert compilation._keep()
    assert not kept.exists()


def test_without_a_compiler_the_plain_code_runs(monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    links, connections = [Link(1e6, 0.01, 10)], [Connection([Path([0])], packets=5)]
    simulation = Simulation(links, connections)
    simulation.run(1.0)
    assert simulation.counters().delivered_packets.tolist() == [5]
    with pytest.raises(ValueError, match="Numba is not installed, or switched off"):
        Simulation(links, connections, compiled=True)
