"""Files of JSON lines that are read while they are written."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any


class Tail:
    """Reads lines of JSON as they are added to a file.

    Parameters
    ----------
    path : Path
        The file, which need not be there yet.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def read(self) -> Iterable[dict[str, Any]]:
        """Objects of all lines completed since the last call; damaged lines are left out.

        A file that has become shorter was written anew, and is read from its beginning.
        """
        try:
            with self._path.open("rb") as stream:
                if stream.seek(0, 2) < self._offset:
                    self._offset = 0
                stream.seek(self._offset)
                text = stream.read()
        except OSError:
            return
        complete = text[: text.rfind(b"\n") + 1]
        self._offset += len(complete)
        for line in complete.splitlines():
            try:
                found = json.loads(line)
            except ValueError:
                continue
            if isinstance(found, dict):
                yield found
