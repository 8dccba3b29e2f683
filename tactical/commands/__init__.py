"""The subcommands of `tactical`, one module each.

A module has a one-line ``SUMMARY``, ``EXAMPLES`` for its help, ``add_arguments(parser)`` and
``run(options)``, which returns the exit status. What takes time to import is imported in ``run``.
"""
