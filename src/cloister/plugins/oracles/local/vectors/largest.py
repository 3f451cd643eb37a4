"""How large the largest coordinates of a random unit vector are: the one constant of subset selection, in closed
form."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from itertools import accumulate

import numpy as np

from cloister.core.fixed_order import ESTIMATED, few_bits
from cloister.core.types import Floats


@cache
def largest(size: int, power: int = 1) -> Floats:
    """M_k = E[sum of the k largest of (sqrt(D) |w_j|)^power], w uniform on the sphere of R^D, for all k = 1 .. D: (D,).

    A normal vector is |g| w with |g| independent of w, so that M_k is the same mean for D normal variates, times
    sqrt(D)^power / E |g|^power. A variate of absolute value x is among the k largest iff at most k - 1 others exceed x:

        E[sum of the k largest |g_j|^power]
            = D * integral over x > 0 of x^power 2 phi(x) P(Binomial(D - 1, 2 Phi(-x)) < k) dx,

    here by the midpoint rule, to 1e-6, and to bits that are the same on every machine.
    """
    nodes = np.arange(0.5, 2400) * (9.6 / 2400)
    j, total = np.arange(size), np.zeros(size)
    ways = _log_binomials(size - 1)
    density = nodes**power * np.exp(-(nodes**2) / 2) * (math.sqrt(2 / math.pi) * 9.6 / 2400)
    for some in np.array_split(np.arange(len(nodes)), 24):
        above, below = (_logs_at(f, nodes[some])[:, None] for f in (math.erfc, math.erf))
        total += density[some] @ np.cumsum(np.exp(ways + j * above + (size - 1 - j) * below), axis=1)
    mean = 2 ** (power / 2) * math.exp(math.lgamma((size + power) / 2) - math.lgamma(size / 2))
    found = np.array([few_bits(x, ESTIMATED) for x in (total * (size * size ** (power / 2) / mean)).tolist()])
    found.flags.writeable = False
    return found


def _log_binomials(n: int) -> Floats:
    """Logarithms of n over j for j = 0 .. n, of exact integers: log-gamma would lose four digits."""
    ways = accumulate(range(n), lambda over, j: over * (n - j) // (j + 1), initial=1)
    return np.array([math.log(over) for over in ways])


def _logs_at(error_function: Callable[[float], float], nodes: Floats) -> Floats:
    """Of 2 Phi(-x) by ``math.erfc``, of 1 - 2 Phi(-x) by ``math.erf``. Encoding needs no SciPy."""
    return np.array([math.log(error_function(x / math.sqrt(2))) for x in nodes.tolist()])
