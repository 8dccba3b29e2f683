"""The benchmark measures what it says: the same flow as its peers', and a transfer's entries."""

from benchmarks import routing as benchmark


def test_flows_of_a_small_fat_tree_beside_its_peers():
    row = benchmark.flows(8, repeat=1)
    assert (row["hosts"], row["switches"], row["links"], row["paths"]) == (128, 80, 768, 4)
    assert min(row["graph_ms"], row["flow_ms"], row["scipy_ms"]) > 0.0


def test_a_transfer_through_a_large_fat_tree():
    row = benchmark.decision(everyone=False, repeat=1)
    assert (row["switches"], row["users"]) == (320, 1)
    assert row["entries"] == 8 * 5 * 2, "eight paths of five switches, both ways"
