"""The links of a user: what its interfaces lead to.

A link is called after the relay behind an interface. The one radio of a user may lead to several
access points, one after the other, and its link is called after all of them: ``uav+coast``.
"""

from collections.abc import Iterable


def link_to(relay: str, links: Iterable[str]) -> str | None:
    """Return the link that leads to a relay, or None where none does."""
    return next((link for link in links if relay in link.split("+")), None)
