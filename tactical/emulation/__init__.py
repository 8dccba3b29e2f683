"""The worker: the network of a run, built, set in motion, recorded and taken down."""
