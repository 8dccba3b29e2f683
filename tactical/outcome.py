"""Exit statuses of the command."""

FAILED = 1
"""A run or its analysis failed."""

OVERLOADED = 3
"""All runs are done, but on a machine that could not keep up, and that was to be an error."""

REFUSED = 2
"""What was asked for cannot be done."""
