"""Columns that grow batch by batch: in memory while they are small, in temporary files after that.

The files have no name any more when they are written to, so they vanish with the last use of their
arrays, whatever happens to the program.
"""

import mmap
import os
import tempfile
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

MOST_ROWS_IN_MEMORY = 1_000_000
"""Some 100 MB."""


def _temporary_file() -> BinaryIO:
    # Unlike /tmp, /var/tmp is never kept in memory (file-hierarchy(7)).
    roomy = "/var/tmp" if "TMPDIR" not in os.environ and Path("/var/tmp").is_dir() else None
    try:
        return cast(BinaryIO, tempfile.TemporaryFile(dir=roomy))
    except OSError:
        return cast(BinaryIO, tempfile.TemporaryFile())


class Column:
    """One of them.

    Parameters
    ----------
    dtype : numpy type
        Of its entries.
    """

    def __init__(self, dtype: Any) -> None:
        self._dtype = np.dtype(dtype)
        self._parts: list[NDArray[Any]] = []
        self._file: BinaryIO | None = None

    def add(self, values: NDArray[Any]) -> None:
        """Append a copy of these; what does not fit into the type keeps its lower bits."""
        part = values.astype(self._dtype)
        if self._file is not None:
            self._file.write(part.tobytes())
        else:
            self._parts.append(part)

    def spill(self) -> None:
        """Go on in a file."""
        if self._file is None:
            self._file = _temporary_file()
            for part in self._parts:
                self._file.write(part.tobytes())
            self._parts.clear()

    def finish(self) -> tuple[NDArray[Any], mmap.mmap | None]:
        """The whole column, and the file's pages in memory if it is in one."""
        if self._file is None:
            parts, self._parts = self._parts, []
            whole = np.concatenate([np.zeros(0, dtype=self._dtype), *parts])
            return whole, None
        self._file.flush()
        pages = mmap.mmap(self._file.fileno(), 0)
        self._file.close()
        return np.frombuffer(pages, dtype=self._dtype), pages
