"""Fidelity of the emulated network: what it does, measured against what it was told to do.

``bench`` lays out the network, the worker (``python -m tactical.calibration``) builds and measures
it where experiments run, ``verdicts`` judges what was measured, ``record`` keeps it.
"""
