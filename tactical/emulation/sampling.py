"""Samplers: threads that measure something while a context lasts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_LONGEST_SAMPLE_S = 5.0


@contextmanager
def sampling(name: str, sample: Callable[[threading.Event], None]) -> Iterator[None]:
    """Run `sample` in a thread of that name; it ends soon after its argument is set."""
    over = threading.Event()
    thread = threading.Thread(target=sample, args=(over,), daemon=True, name=name)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(_LONGEST_SAMPLE_S)
