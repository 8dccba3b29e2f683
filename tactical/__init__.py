"""A testbed for multipath TCP and software-defined networking in moving tactical networks."""
