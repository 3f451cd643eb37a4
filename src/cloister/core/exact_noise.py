"""Exact samplers of discrete Laplace and discrete Gaussian integers from uniform 64-bit words, on whole arrays.

Law. With s the exact rational value of a float, over all integers x: P(x) ~ e^(-|x| / s), Laplace's, or P(x) ~
e^(-x^2 / 2 s^2), Gauss's.

Algorithm. Rejection, after Canonne, Kamath and Steinke (2020, Algorithms 2 and 3), with one coin per candidate. Let t =
s for Laplace, floor(s) + 1 for Gauss, and M = 2^j the largest power of two up to t / 2^8, at least 1. A candidate uses
three independent words:

1. a: the first bits of a real U, uniform in (0, 1). H = floor(-(t / M) ln U) is geometric: P(H >= k) = P(U <= e^(-k M
   / t)) = e^(-k M / t).
2. b: a sign, and L uniform in [0, M). Put y = M H + L, whose probability is ~ e^(-(y - L) / t).
3. c: the first bits of a real C, uniform in (0, 1). The candidate is accepted if C <= e^-x, where for Laplace x = L /
   t, and for Gauss x = L / t + (y - s^2 / t)^2 / 2 s^2 = y^2 / 2 s^2 - (y - L) / t + s^2 / 2 t^2. Both are >= 0, and
   accepted candidates have probability ~ e^(-y / t), or ~ e^(-y^2 / 2 s^2).
4. Minus zero is rejected, so that zero counts once.

For wide noise nearly all of Laplace's candidates but minus zeros are accepted, and 3/4 of Gauss's.

Filter. H and the coin depend on real numbers, of which a word gives 64 bits. The array code computes both in float64
and answers where no error within a proved bound changes the answer. The few others (below 2^-20 of all candidates) are
decided in integers by ``exact_coins``, with as many more bits of U and C as that takes. So the number drawn is a
function of the words and those bits: neither the filter's width nor the platform's log and exp change it, as long as
these are within ``TRUSTED``. Proof of the bounds, where u = 2^-53 and d(v) is the error of the computed v:

* NumPy promises no bound for log and exp; its kernels and the usual C libraries are within 4 units in the last place,
  2^-50. The proof assumes ``TRUSTED`` = 2^-41: relative for exp, and for log relative to max(1, |log|). A test measures
  it.
* H. Words a below 2^40 are left to integers (probability 2^-24). Otherwise U is in [a, a + 1] / 2^64, a is rounded to
  53 bits, and -ln U <= 24 ln 2 < 17: d(ln U) <= 2^-40 + 2 u + 17 TRUSTED < 2^-36, and two products add 17 * 3 u. So d
  of the number whose floor is H is below 2^-35 t / M. The filter answers if all numbers within ``AROUND_FLOOR`` t / M =
  2^-34 t / M have one floor; the factor 2 pays for rounding the ends of that range (17 * 2 u t / M). As t / M is at
  most 2^9, it does not answer with a probability of about 2 * 2^-34 * 2^9 = 2^-24.
* x up to 44. L / t and y are within 4 u, relatively. z = y / s - s / t is at most sqrt(88) < 9.4, so y / s < 10.5 (s /
  t <= 1): d(z) <= 11.5 * 8 u < 2^-46 and d(z^2 / 2) <= 9.5 * 2^-46 + 88 u < 2^-42. So d(x) < 2^-41.9, and e^-x is known
  within a factor of 1 +- (2^-41.8 + TRUSTED), inside 1 +- 2^-40. ``AROUND_EXP`` = 2^-38 pays for rounding C (2 u) and
  the ends of the range too.
* x above 44. The bound above holds if either x or its computed value is up to 44. Otherwise e^-x and its computed value
  are below 2^-63, and a rejection is right if C >= ``AROUND_ZERO`` = 2^-60, by which all ranges are widened; below
  that, integers decide. It also covers that C is in [c, c + 1] / 2^64. Overflow gives x = infinity.
* Numbers of 2^62 and more are left to integers, so that int64 does not wrap.

Order of words, for another implementation that draws the same numbers one by one (``NoiseRng.replayed``). A candidate
takes a, b, c. Then, until its bits decide H, it takes the words that follow a; then, until the coin's bits decide it,
the words that follow c (minus zero needs no coin). Then comes the next candidate, until enough are accepted. The number
of words does not depend on the arithmetic: H is decided once ``exact_coins.Uniform.below_exp`` decides the thresholds
e^(-H M / t), if H > 0, and e^(-(H + 1) M / t), for the resulting H. Where the filter answers, 64 bits decide them.
Wherever the search for H begins, a third threshold that the bits leave open leaves one of these two open, which lies
between it and U.

Range. A number outside (-2^63, 2^63) raises ``InvalidInput``: none is cut or wrapped. Its probability is e^(-2^63 / s)
for Laplace, below 2^-184 up to s = 2^56, and below e^(-2^125 / s^2) for Gauss, below 2^-700 up to s = 2^58. The error
depends on the noise alone, but is outside *pure* differential privacy: keep to these scales.

The time depends on the noise, as with every sampler by rejection, so that nothing is promised against timing attacks.
Memory beside the result is that of ``CHUNK`` candidates. There are no compiled kernels: half of the time, or more, is
spent on the system's entropy, three words per candidate.

Source: Canonne, Kamath, Steinke, "The Discrete Gaussian for Differential Privacy", NeurIPS 2020.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Protocol, final

import attrs
import numpy as np

from cloister.core.errors import InvalidInput
from cloister.core.exact_coins import Uniform
from cloister.core.types import Bools, Ids, Ints

WORDS = 3
"""Words per candidate."""

CHUNK = 2**14
"""Largest number of candidates at once: they and their intermediate arrays stay in the second-level cache."""

TRUSTED = 2.0**-41
AROUND_FLOOR = 2.0**-34
AROUND_EXP = 2.0**-38
AROUND_ZERO = 2.0**-60
FEWEST = 2**40
"""Least word a whose logarithm the filter takes."""

FINE = 8
"""Bits of t / M, for wide noise."""

LARGEST = 2.0**62
"""Bound from which numbers are left to integers."""


class WordSource(Protocol):
    """Source of uniform words, each independent of all others and given once."""

    def words(self, size: int) -> Ids:
        """Return the words (size, ``WORDS``) of the next candidates."""
        ...

    def beyond(self, candidate: int, column: int) -> Callable[[], int]:
        """Return a function that draws the words that follow the one of a candidate (from 0) in a column."""
        ...


@final
@attrs.frozen
class Law:
    """Discrete Laplace or discrete Gaussian law, and its sampler.

    Args:
        scale: s, as a float.
        squared: whether it is Gauss's.
        widened: factor on the filter's bounds, for tests: more is left to integers, and the same numbers are drawn.
    """

    scale: float
    squared: bool
    widened: float = 1.0

    @property
    def around(self) -> int:
        """Integer t for Gauss, else 0."""
        return math.floor(self.scale) + 1 if self.squared else 0

    @property
    def shift(self) -> int:
        """Exponent j of M = 2^j."""
        return max(0, math.frexp(self.around or self.scale)[1] - 1 - FINE)

    def filtered(self, words: Ids) -> tuple[Ints, Bools, Bools]:
        """Return the candidates' values (n,), a mask of the accepted ones, and one of the undecided ones.

        Of an undecided candidate neither its value nor its acceptance is known.
        """
        a, b, c = words[:, 0], words[:, 1], words[:, 2]
        t, s = float(self.around or self.scale), self.scale
        steps = math.ldexp(t, -self.shift)
        margin = steps * AROUND_FLOOR * self.widened
        real = np.log(np.maximum(a, np.uint64(FEWEST)).astype(np.float64) * 2.0**-64) * -steps
        high = np.floor(real + margin)
        sure = (high == np.floor(np.maximum(real - margin, 0.0))) & (a >= np.uint64(FEWEST))
        low = b & np.uint64((1 << self.shift) - 1)
        part = low.astype(np.float64)
        y = np.ldexp(high, self.shift) + part
        sure &= y < LARGEST
        values = (np.where(sure, high, 0.0).astype(np.int64) << np.int64(self.shift)) | low.astype(np.int64)
        with np.errstate(over="ignore"):
            x = part / t
            if self.squared:
                x += np.square(y / s - s / t) * 0.5
        chance = np.exp(-x)
        coin = c.astype(np.float64) * 2.0**-64
        narrow, zero = AROUND_EXP * self.widened, AROUND_ZERO * self.widened
        heads = coin <= chance * (1 - narrow) - zero
        minus = b >= np.uint64(2**63)
        nothing = minus & (values == 0) & sure
        decided = nothing | (sure & (heads | (coin >= chance * (1 + narrow) + zero)))
        return np.where(minus, -values, values), heads & decided & ~nothing, ~decided

    def exactly(self, words: tuple[int, int, int], beyond: Callable[[int], Callable[[], int]]) -> int | None:
        """Return one candidate's value, computed in integers and fractions alone; None if it is rejected.

        Args:
            words: a, b, c.
            beyond: gives the source of the words that follow the one of a column.
        """
        s, (a, b, c) = Fraction(self.scale), words
        t = Fraction(self.around) if self.squared else s
        low = b & ((1 << self.shift) - 1)
        y = (_geometric(Uniform(a, beyond(0)), Fraction(1 << self.shift) / t) << self.shift) + low
        minus = bool(b >> 63)
        if minus and not y:
            return None
        x = low / t
        if self.squared:
            x += (y - s**2 / t) ** 2 / (2 * s**2)
        if not Uniform(c, beyond(2)).below_exp(x):
            return None
        if y >= 2**63:
            raise InvalidInput(f"noise of scale {self.scale} does not fit in 64 bits: use a smaller scale")
        return -y if minus else y

    def draw(self, size: int, source: WordSource) -> Ints:
        """Draw independent integers (size,): the first candidates that are accepted.

        Raises:
            InvalidInput: a number does not fit in 64 bits.
        """
        out, have, tried = np.empty(size, np.int64), 0, 0
        while have < size:
            words = source.words(min(CHUNK, (size - have) * 3 // 2 + 8))
            values, accepted, undecided = self.filtered(words)
            for i in np.flatnonzero(undecided).tolist():
                a, b, c = words[i].tolist()
                value = self.exactly((a, b, c), partial(source.beyond, tried + i))
                values[i], accepted[i] = value or 0, value is not None
            batch = values[accepted][: size - have]
            out[have : have + len(batch)] = batch
            have, tried = have + len(batch), tried + len(words)
        return out


def _geometric(u: Uniform, step: Fraction) -> int:
    """Return floor(-ln u / step), the largest k with u <= e^(-k step)."""
    # floats only say where the search begins
    k = max(0, math.floor((u.bits * math.log(2) - math.log(u.number + 0.5)) / step)) if step < 2**60 else 0
    while u.below_exp((k + 1) * step):
        k += 1
    while k and not u.below_exp(k * step):
        k -= 1
    return k
