"""Flow deviation: path flows of least mean packet delay, and the queue rates that follow.

    network, demands  →  solve()  →  path flows, certificate  →  queue_rates()

`solve` is the entry point; `fdm.flow_deviation` is the method, to be read beside the paper of
Fratta, Gerla and Kleinrock (1973). Nothing here needs more than the standard library until a
network is large enough to call for NumPy and Numba.
"""

from fdm.calibration import Calibration, DelaySample, calibrate
from fdm.certificate import Certificate, certify
from fdm.delay import Bpr, Delay, Deterministic, Kleinrock
from fdm.instance import Instance, InstanceError, load
from fdm.limit import limit_paths
from fdm.network import Demand, Link, Network, Node
from fdm.paths import prepare
from fdm.progress import Progress
from fdm.queues import QueueRate, queue_rates
from fdm.shortest import Path
from fdm.solution import PathFlow, Solution
from fdm.solver import ADMISSIONS, METHODS, solve

__all__ = [
    "ADMISSIONS",
    "METHODS",
    "Bpr",
    "Calibration",
    "Certificate",
    "Delay",
    "DelaySample",
    "Demand",
    "Deterministic",
    "Instance",
    "InstanceError",
    "Kleinrock",
    "Link",
    "Network",
    "Node",
    "Path",
    "PathFlow",
    "Progress",
    "QueueRate",
    "Solution",
    "calibrate",
    "certify",
    "limit_paths",
    "load",
    "prepare",
    "queue_rates",
    "solve",
]
