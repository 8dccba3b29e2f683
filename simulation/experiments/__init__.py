"""The experiments of the paper, each with its values beside ours.

The paper: D. Wischik, C. Raiciu, A. Greenhalgh, M. Handley, "Design, implementation and evaluation
of congestion control for multipath TCP", NSDI 2011.
"""

from simulation.experiments import balancing, data_centre, examples, wireless
from simulation.experiments.experiment import Experiment, Progress, Row

EXPERIMENTS: dict[str, Experiment] = {
    each.name: each
    for each in (
        examples.SHARED_BOTTLENECK,
        examples.TRIANGLE,
        examples.FOUR_LINKS,
        examples.RTT_MISMATCH,
        examples.LOSSY_PATH,
        balancing.TORUS,
        balancing.BURSTS,
        balancing.SERVER,
        data_centre.FAT_TREE,
        data_centre.FAT_TREE_PATHS,
        data_centre.BCUBE,
        wireless.WIRELESS,
        wireless.WIRELESS_COMPETING,
    )
}
"""Experiments by name."""

__all__ = ["EXPERIMENTS", "Experiment", "Progress", "Row"]
