"""Random numbers that are the same on every machine and with every version of NumPy.

NumPy promises the stream of a bit generator and of its seeding, but not that of the
distributions made from it (NEP 19), and logarithms and sines may differ in their last bit from
one C library to the next. So everything here comes from the raw bits of PCG64 by ``+ - * /`` and
square roots, which IEEE 754 defines to the last bit; normal and exponential deviates need one
logarithm and are rounded far above where that may differ.
"""

import math
from collections.abc import Iterator

import numpy as np

_BLOCK = 256
_STEP = 2.0**-20


class Draws:
    """A stream of random numbers.

    Parameters
    ----------
    seed : int
        0 or more.
    stream : int
        Numbers that tell streams of one seed apart, such as the number of a node; streams that
        differ are independent.

    Raises
    ------
    ValueError
        If seed or stream are below 0.
    """

    def __init__(self, seed: int, *stream: int) -> None:
        if seed < 0 or any(number < 0 for number in stream):
            raise ValueError(f"a seed must be a whole number, 0 or more, not {seed!r}, {stream!r}")
        sequence = np.random.SeedSequence(entropy=seed, spawn_key=stream)
        self._bits = np.random.PCG64(sequence)
        self._units = self._endless()
        self._spare: float | None = None

    def unit(self) -> float:
        """Return a number from 0 to less than 1, a multiple of 2^-53."""
        return next(self._units)

    def between(self, low: float, high: float) -> float:
        """Return a number from `low` to `high`, evenly spread."""
        return low + (high - low) * self.unit()

    def disc(self) -> tuple[float, float]:
        """Return a point of the unit disc other than its centre, evenly spread."""
        while True:
            x, y = 2.0 * self.unit() - 1.0, 2.0 * self.unit() - 1.0
            if 0.0 < x * x + y * y <= 1.0:
                return x, y

    def direction(self) -> tuple[float, float]:
        """Return a horizontal unit vector, all directions alike."""
        x, y = self.disc()
        length = math.sqrt(x * x + y * y)
        return x / length, y / length

    def normal(self) -> float:
        """Return a normal deviate of mean 0 and variance 1, by the polar method of Marsaglia."""
        if self._spare is not None:
            spare, self._spare = self._spare, None
            return spare
        x, y = self.disc()
        square = x * x + y * y
        stretch = math.sqrt(-2.0 * math.log(square) / square)
        self._spare = round(y * stretch / _STEP) * _STEP
        return round(x * stretch / _STEP) * _STEP

    def exponential(self) -> float:
        """Return an exponential deviate of mean 1, above 0."""
        return max(_STEP, round(-math.log(1.0 - self.unit()) / _STEP) * _STEP)

    def _endless(self) -> Iterator[float]:
        while True:
            raw = self._bits.random_raw(_BLOCK)
            yield from ((raw >> np.uint64(11)).astype(np.float64) * 2.0**-53).tolist()
