"""Runs that are simulated: the plan of an emulation, in the packet simulator, with the same files.

A run of ``--backend sim`` has the same stations, links, queues, handovers and the same controller's
decisions as an emulated one, and leaves the same run directory; what is simulated in place of the
kernel is said in docs/simulation.md.
"""
