"""What the worker and the host side have to agree on."""

MEASUREMENTS = "measurements.json"
"""File with what the worker measured."""

TOLD_AS = "calibration"
"""Begins the worker's lines about its progress, behind the mark of events."""
