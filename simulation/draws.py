"""Random numbers that are the same with and without the compiler.

Combined multiplicative congruential generator of P. L'Ecuyer, "Efficient and portable combined
random number generators", Communications of the ACM 31 (6), 1988: period 2.3e18, and no product
exceeds 64 bits.
"""

import math
from typing import Any

M1, M2 = 2147483563, 2147483399
_A1, _A2 = 40014, 40692


def uniform(clock: Any) -> float:
    """Return a number between 0 and 1, both excluded."""
    clock.seed1 = clock.seed1 * _A1 % M1
    clock.seed2 = clock.seed2 * _A2 % M2
    z = clock.seed1 - clock.seed2
    if z < 1:
        z += M1 - 1
    return float(z / M1)


def exponential(clock: Any, mean: float) -> float:
    """Return an exponentially distributed number."""
    return -mean * math.log(uniform(clock))
