"""Discrete Laplace and discrete Gaussian integers in bulk from uniform 64-bit words: exactly, at the speed of arrays.

Law. With s the exact rational value of a float, over all integers x: P(x) ~ e^(-|x| / s), Laplace's, or P(x) ~
e^(-x^2 / 2 s^2), Gauss's.

Algorithm. Rejection, as of Canonne, Kamath and Steinke (2020, Algorithms 2 and 3), with one coin per candidate. Let t =
s for Laplace, floor(s) + 1 for Gauss, and M = 2^j the largest power of two up to t / 2^8, at least 1. A candidate uses
three independent words:

1. a: the first bits of a real U, uniform in (0, 1). H = floor(-(t / M) ln U) is geometric: P(H >= k) = P(U <= e^(-k M
   / t)) = e^(-k M / t).
2. b: a sign, and L uniform in [0, M). Put y = M H + L, whose probability is ~ e^(-(y - L) / t).
3. c: the first bits of a real C, uniform in (0, 1). The candidate is accepted if C <= e^-x, where for Laplace x = L /
   t, and for Gauss x = L / t + (y - s^2 / t)^2 / 2 s^2 = y^2 / 2 s^2 - (y - L) / t + s^2 / 2 t^2. Both are >= 0, and
   what is accepted has probability ~ e^(-y / t), or ~ e^(-y^2 / 2 s^2).
4. Minus zero is rejected, so that zero counts once.

Accepted are nearly all of Laplace's candidates but minus zeros, and 3/4 of Gauss's, for wide noise.

Filter. H and the coin depend on real numbers of which a word says 64 bits. The array code computes both in float64 and
answers where no error within a proved bound changes the answer. The few others (below 2^-20 of all candidates) are
decided in integers by ``exact_coins``, with as many more bits of U and C as that takes. So what is drawn is a function
of the words and those bits: neither the filter's width nor the platform's log and exp change it, as long as these are
within ``TRUSTED``. Proof of the bounds, where u = 2^-53 and d(v) is the error of what is computed for v:

* NumPy promises no bound for log and exp; its kernels and the usual C libraries are within 4 units in the last place,
  2^-50. What is relied on is ``TRUSTED`` = 2^-41: relative for exp, and for log relative to max(1, |log|). A test
  measures it.
* H. Words a below 2^40 are left to integers (chance 2^-24). Otherwise U is in [a, a + 1] / 2^64, a is rounded to 53
  bits, and -ln U <= 24 ln 2 < 17: d(ln U) <= 2^-40 + 2 u + 17 TRUSTED < 2^-36, and two products add 17 * 3 u. So d of
  the number whose floor is H is below 2^-35 t / M. The filter answers if all numbers within ``AROUND_FLOOR`` t / M =
  2^-34 t / M have one floor; the factor 2 pays for rounding the ends of that range (17 * 2 u t / M). As t / M is at
  most 2^9, it does not answer with a chance of about 2 * 2^-34 * 2^9 = 2^-24.
* x up to 44. L / t and y are within 4 u, relatively. z = y / s - s / t is at most sqrt(88) < 9.4, so y / s < 10.5 (s /
  t <= 1): d(z) <= 11.5 * 8 u < 2^-46 and d(z^2 / 2) <= 9.5 * 2^-46 + 88 u < 2^-42. So d(x) < 2^-41.9, and e^-x is known
  within a factor of 1 +- (2^-41.8 + TRUSTED), inside 1 +- 2^-40. ``AROUND_EXP`` = 2^-38 pays for rounding C (2 u) and
  the ends of the range too.
* x above 44. That bound holds if either x or its computed value is up to 44. Otherwise e^-x and its computed value are
  below 2^-63, and a rejection is right if C >= ``AROUND_ZERO`` = 2^-60, which all ranges are widened by; below that,
  integers decide. It also covers that C is in [c, c + 1] / 2^64. Overflow gives x = infinity.
* Numbers of 2^62 and more are left to integers, so that int64 does not wrap.

Order of words, for whoever draws one number after the other and would draw the same (``NoiseRng.replayed``). A
candidate takes a, b, c. Then, as long as its bits do not decide H, it takes the words that follow the one of a; then,
as long as those of the coin do not decide it, the words that follow the one of c (minus zero needs no coin). Then comes
the next candidate, until enough are accepted. How many words that takes does not depend on the arithmetic: "decided" is
what ``exact_coins.Uniform.below_exp`` says of the thresholds e^(-H M / t), if H > 0, and e^(-(H + 1) M / t), H being
what comes out. Where the filter answers, 64 bits decide them. Wherever one begins to look for H, a third threshold that
the bits leave open leaves one of these two open, which lies between it and U.

Range. A number outside (-2^63, 2^63) raises ``InvalidInput``: none is cut or wrapped. Its chance is e^(-2^63 / s) for
Laplace, below 2^-184 up to s = 2^56; it is below e^(-2^125 / s^2) for Gauss, below 2^-700 up to s = 2^58. That it is
raised depends on the noise alone, but is outside *pure* differential privacy: keep to these scales.

Time depends on the noise, as with every sampler by rejection: no promise is made to who can measure it. Memory beside
the result is that of ``CHUNK`` candidates. There are no compiled kernels: with three words of the system's entropy per
candidate (half of the time, or more), they would gain little.

Source: Canonne, Kamath, Steinke, "The Discrete Gaussian for Differential Privacy", NeurIPS 2020; uniform numbers that
are extended when needed: von Neumann 1951; Devroye 1986, chapter XV.

Coins of probability e^-x, thrown in integers: what ``exact_noise`` falls back on where floating point cannot decide.

A uniform number is as many of its bits as somebody asked for; e^-x is an interval as narrow as somebody asked for. Both
are refined until they part.
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
from cloister.core.types import Bools, Ids, Ints

GUARD = 24
"""Bits beyond the uniform's to which e^-x is computed first: 1 in 2^24 comparisons needs more of the uniform."""


@final
class Uniform:
    """A uniform real number in [0, 1), of which ``bits`` are known: it lies in [number, number + 1] / 2^bits.

    Args:
        word: its first 64 bits.
        more: the next 64, whenever it is called.
    """

    def __init__(self, word: int, next_word: Callable[[], int]) -> None:
        self.number, self.bits, self._more = word, 64, next_word

    def extend(self) -> None:
        """Know another word of it."""
        self.number, self.bits = self.number << 64 | self._more(), self.bits + 64

    def below_exp(self, x: Fraction) -> bool:
        """Whether it is at most e^-x, exactly, for x >= 0: true with probability e^-x.

        It ends: e^-x is rational for x = 0 only (Lindemann), where one comparison decides. Otherwise each word that is
        added leaves a chance below 2^(1 - bits) that it is not decided.
        """
        while True:
            precision = self.bits + GUARD
            low, high = exp_bounds(x, precision)
            if (self.number + 1) << GUARD <= low:
                return True
            if self.number << GUARD >= high:
                return False
            self.extend()


def exp_bounds(x: Fraction, precision: int) -> tuple[int, int]:
    """Integers (low, high) with low <= 2^precision e^-x <= high and high - low at most 2, for rational x >= 0.

    e^-x = (e^-f)^(2^r) with f = x / 2^r at most 1/2, in fixed point with q bits. The series of e^-f alternates and
    falls. Terms T_k = floor(T_(k-1) f / k) are at most 2 too small each (an error is halved, then at most 1 is added),
    so that the sum of the N terms before T_N = 0 is within 2 N of its exact value, and that within the next term, below
    3, of e^-f. Rounding f down to q bits changes e^-f by at most 1. Squares are rounded outwards, and double a relative
    error each: q has r bits for that, and the others for the few units above.
    """
    if x == 0:
        return 1 << precision, 1 << precision
    if x >= precision:
        return 0, 1  # e^-x < 2^-x
    halvings = max(0, x.numerator.bit_length() - x.denominator.bit_length() + 2)
    q = precision + 2 * halvings + 2 * precision.bit_length() + 16
    f = (x.numerator << q) // (x.denominator << halvings)
    term, terms, total = 1 << q, 0, 0
    while term:
        total += -term if terms & 1 else term
        terms += 1
        term = (term * f >> q) // terms
    low, high = total - 2 * terms - 4, total + 2 * terms + 4
    for _ in range(halvings):
        low, high = low * low >> q, -(-high * high >> q)
    shift = q - precision
    return low >> shift, -(-high >> shift)


WORDS = 3
"""Words per candidate."""

CHUNK = 2**14
"""Most candidates at once: they and what is computed of them stay in the second-level cache."""

TRUSTED = 2.0**-41
AROUND_FLOOR = 2.0**-34
AROUND_EXP = 2.0**-38
AROUND_ZERO = 2.0**-60
FEWEST = 2**40
"""The least word a of which the filter takes a logarithm."""

FINE = 8
"""Bits of t / M, for wide noise."""

LARGEST = 2.0**62
"""From here on numbers are left to integers."""


class WordSource(Protocol):
    """Uniform words, each independent of all others, and each given once."""

    def words(self, size: int) -> Ids:
        """Words (many, ``WORDS``) of the next candidates."""
        ...

    def beyond(self, candidate: int, column: int) -> Callable[[], int]:
        """The words that follow the one of a candidate (numbered from 0) in a column, one per call."""
        ...


@final
@attrs.frozen
class Law:
    """One law of the two, with what the filter needs of it.

    Args:
        scale: s, as a float.
        squared: whether it is Gauss's.
        widened: a factor on the filter's bounds: more is left to integers, and the same is drawn. For tests.
    """

    scale: float
    squared: bool
    widened: float = 1.0

    @property
    def around(self) -> int:
        """t, for Gauss; else 0."""
        return math.floor(self.scale) + 1 if self.squared else 0

    @property
    def shift(self) -> int:
        """j, where M = 2^j."""
        return max(0, math.frexp(self.around or self.scale)[1] - 1 - FINE)

    def filtered(self, words: Ids) -> tuple[Ints, Bools, Bools]:
        """What candidates (n, 3) are, which are accepted, and which are undecided: neither of the former is known of
        them."""
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
        """What one candidate is, in integers and fractions alone; None if it is rejected.

        Args:
            beyond: the words that follow the one of a column.
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
        """So many independent integers: the first candidates that are accepted.

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
    """floor(-ln u / step): the largest k with u <= e^(-k step). Floats say only where to begin to look."""
    k = max(0, math.floor((u.bits * math.log(2) - math.log(u.number + 0.5)) / step)) if step < 2**60 else 0
    while u.below_exp((k + 1) * step):
        k += 1
    while k and not u.below_exp(k * step):
        k -= 1
    return k
