"""What this machine can do, and how to run a worker process on it or in a virtual machine.

The same worker runs in three ways: directly on this machine (root and the kernel modules are
there), in a virtual machine with KVM, or in a virtual machine emulated in software. `choose`
picks one; the rest of `tactical` only sees `Machine`.
"""

from tactical.host.choice import choose
from tactical.host.machine import HostError, Machine
from tactical.host.process import Child, CommandError, Completed, run

__all__ = ["Child", "CommandError", "Completed", "HostError", "Machine", "choose", "run"]
