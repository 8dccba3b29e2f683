"""What a policy is, and which there are.

A policy is a module of :mod:`tactical.controller.policies` whose ``POLICY`` is an instance of
:class:`Policy`; the name of the module is the name of the policy.  Nothing else is to be done to
add one.
"""

from __future__ import annotations

import importlib
import pkgutil
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from . import policies

if TYPE_CHECKING:
    from .allocation import Allocation, Situation

NAMES = tuple(sorted(module.name for module in pkgutil.iter_modules(policies.__path__)))


class Policy(ABC):
    """Decides which path every subflow takes, and at what rate. Without state."""

    uses_queues: ClassVar[bool] = False
    """Whether subflows get queues of their own."""

    @abstractmethod
    def allocate(self, situation: Situation) -> Allocation:
        """A decision for every attachment that has a path to the server."""

    def keeps(self, situation: Situation, allocation: Allocation, since_s: float) -> bool:
        """Whether `allocation` is still good enough when demands or capacities have changed.

        What is attached and which trunks there are has not changed since it was made,
        `since_s` seconds ago.
        """
        return True


def named(name: str) -> Policy:
    """The policy called `name`, one of :data:`NAMES`."""
    found = importlib.import_module(f"{policies.__name__}.{name}").POLICY
    assert isinstance(found, Policy)
    return found
