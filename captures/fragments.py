"""Fragmented IP packets: how long the TCP packet is whose first fragment was decoded.

Only lengths are put together. The header is in the first fragment; what the others carry is data
that the analysis does not look into.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]

_MOST_PENDING = 4096
"""Packets that may wait for their fragments at the same time; the oldest is given up."""


@dataclass
class _Pending:
    row: int = -1
    first_bytes: int = 0
    whole_bytes: int = -1


class Fragments:
    """Puts together what `captures.headers.decode` finds.

    Attributes
    ----------
    later : int
        Fragments other than first ones.
    """

    def __init__(self) -> None:
        self.later = 0
        self._given_up = 0
        self._pending: dict[tuple[int, ...], _Pending] = {}
        self._rows: list[int] = []
        self._missing_bytes: list[int] = []

    def add(self, found: I64, first_row: int) -> None:
        """Take in some fragments.

        Parameters
        ----------
        found : int64 array (n, FRAGMENT_FIELDS)
            As `captures.headers.Fields` explains them.
        first_row : int
            What to add to their row numbers.
        """
        for row, *key, first_byte, size, more in found.tolist():
            packet = self._pending.setdefault(tuple(key), _Pending())
            if first_byte:
                self.later += 1
            elif row >= 0:
                packet.row, packet.first_bytes = row + first_row, size
            if not more:
                packet.whole_bytes = first_byte + size
            if packet.row >= 0 and packet.whole_bytes >= 0:
                self._rows.append(packet.row)
                self._missing_bytes.append(max(packet.whole_bytes - packet.first_bytes, 0))
                del self._pending[tuple(key)]
            elif len(self._pending) > _MOST_PENDING:
                del self._pending[next(iter(self._pending))]
                self._given_up += 1

    @property
    def incomplete(self) -> int:
        """Packets some fragments of which are not in the capture."""
        return len(self._pending) + self._given_up

    @property
    def completed(self) -> tuple[I64, I64]:
        """Rows of first fragments, and the payload bytes in the fragments after them."""
        return (
            np.array(self._rows, dtype=np.int64),
            np.array(self._missing_bytes, dtype=np.int64),
        )
