"""What the worker and the host side have to agree on."""

MEASUREMENTS = "measurements.json"
"""File with what the worker measured."""
