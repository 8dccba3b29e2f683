"""A run directory: its files and captures, joined into the figures of a run."""
