"""What went wrong, as one sentence for the user; of the program's own faults also the traceback."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from datetime import UTC, datetime

from tactical.cache import cache_directory

VARIABLE = "TACTICAL_TRACEBACK"
_LOG_LIMIT_BYTES = 1_000_000
_TEXT_LIMIT = 200


class Refused(Exception):
    """What was asked for cannot be done; the text is the one sentence for the user."""


def explained(error: BaseException) -> str:
    """Name an unexpected exception, and say where its traceback is.

    The traceback goes to ``traceback.log`` in `cache_directory`, and to standard error if the
    environment variable TACTICAL_TRACEBACK is set and not 0.
    """
    said = " ".join(str(error).split())
    if len(said) > _TEXT_LIMIT:
        said = f"{said[:_TEXT_LIMIT]}…"
    name = type(error).__name__ + (f" ({said})" if said else "")
    text = "".join(traceback.format_exception(error))
    if os.environ.get(VARIABLE, "0") not in ("", "0"):
        sys.stderr.write(text)
        return name
    with contextlib.suppress(OSError, RuntimeError, ValueError):
        path = cache_directory() / "traceback.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = not path.is_file() or path.stat().st_size > _LOG_LIMIT_BYTES
        now = datetime.now(UTC).isoformat(timespec="seconds")
        with path.open("w" if fresh else "a", encoding="utf-8", errors="backslashreplace") as log:
            log.write(f"{now}\n{text}\n")
        return f"{name}; the traceback is in {path}"
    return f"{name}; {VARIABLE}=1 shows the traceback"
