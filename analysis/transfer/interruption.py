"""A time without progress."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Interruption:
    """A time in which a user was sending and nothing reached the host in order.

    Attributes
    ----------
    start_s : float
        Run time of the last progress before, seconds.
    length_s : float
        Until the next progress.
    cause : str
        "host stalled", "handover", "link", "start-up", "not recorded", "sender idle", "loss" or
        "queueing".
    event_s, event_error_s : float or None
        When the event that explains it happened: run time, and how far off that may be, from the
        stamps before and after the command that caused it. ``None`` if no event does.
    """

    start_s: float
    length_s: float
    cause: str
    event_s: float | None = None
    event_error_s: float | None = None
