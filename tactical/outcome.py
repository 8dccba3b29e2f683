"""Exit statuses of the command."""

FAILED = 1
"""A run or its analysis failed."""

REFUSED = 2
"""What was asked for cannot be done."""
