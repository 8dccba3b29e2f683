"""Programs that send and receive an application's messages, files and requests over real sockets.

``python -m tactical.applications`` runs in the network namespace of a node, for all applications
of that node; `tactical.emulation.applications` starts it and says what it shall do. Nothing here
imports more than the standard library, as an emulated processor takes seconds for anything else.

What is sent when is data (`description.Description`); every program knows all of it, so that
nothing but the items themselves goes over the network. Both ends write down when each item began or
was complete there. All nodes share one kernel and its monotonic clock, so the two can be compared.
"""
