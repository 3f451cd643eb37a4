"""One byte per vector: subset selection over a public codebook, which every user turns in her own way.

How large the largest coordinates of a random unit vector are: the one constant of subset selection, in closed
form.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import accumulate, count
from typing import Any, final

import attrs
import numpy as np

from cloister.core.buckets import BundleArrays, key
from cloister.core.errors import InvalidInput
from cloister.core.randomness import PublicRng
from cloister.core.reports import ReportLaw
from cloister.core.reproducible_math import ESTIMATED, few_bits
from cloister.core.types import AnyArray, Floats, Ids, Ints
from cloister.plugins.oracles.local.fast import ran, states
from cloister.plugins.oracles.local.hadamard_transform import Rotations, rows_of_hadamard
from cloister.plugins.oracles.local.randomised_response import TILE, WORDS
from cloister.plugins.oracles.local.vectors.unit_randomiser import DrawWords


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
    """Logarithms of 2 Phi(-x) by ``math.erfc``, of 1 - 2 Phi(-x) by ``math.erf``. Encoding needs no SciPy."""
    return np.array([math.log(error_function(x / math.sqrt(2))) for x in nodes.tolist()])


MIN_CODES, MAX_CODES = 128, 4096
"""Sizes D of a codebook: below, three rounds are no random rotation; above, integers get large. Vectors are filled up
with zeros."""


@final
@attrs.frozen
class Codebook:
    """Send a codeword of +-R^T e_1 .. +-R^T e_D, likelier if it is one of the k that are nearest to u.

    The codebook holds 2 D unit vectors, D = 128 and more, R the user's public rotation. T is the k codewords with the
    largest <c, u>, k <= D: those of the k largest |w_j|, w = R u, each with the sign of its w_j, ties to the lowest j:
    exactly k.

    Guarantee (Local; replace one row, or have none): a codeword of T has the chance near / 2^64 and any other far /
    2^64, whatever u is, with integers near <= odds * far, near k + far (2 D - k) = 2^64. Two probabilities, their ratio
    at most e^eps in fractions: eps-DP, exactly. One word of 64 bits is one draw. Nothing rests on floating point: T is
    a function of integers, and were it another set, the two probabilities would be the same.

    Such integers exist: gcd(k, 2 D - k) divides the power of two 2 D, hence 2^64, and one of every k values of far will
    do.

    Unbiased: z = sqrt(D) / m * codeword. For a random rotation E[c | c in T] is parallel to u by symmetry, and the
    codewords outside T add up to minus those in T, since the codebook is antipodal. So E z = u with
    m = (near - far) / 2^64 * M_k, M_k = E sum of the k largest sqrt(D) |w_j|, in closed form (``largest``). For how
    near the three rounds of ``Rotations`` come to a random one see there. Variance: |z|^2 = D / m^2, about 1 / m^2 per
    coordinate; k maximises m. At D = 128: m = 0.3976, 0.7858, 1.5088 with k = 89, 56, 17 at eps = 1, 2, 4, within 1% of
    PrivUnitG.

    Args:
        dimension: d.
        size: D.
        inside: k.
        near, far: words (of 2^64) of a codeword in T, and of any other.
    """

    dimension: int
    size: int
    inside: int
    near: int
    far: int

    each, width = 1, 1

    @classmethod
    def within(cls, odds: Fraction, dimension: int) -> Codebook:
        """The one of least variance whose probabilities differ by a factor of at most ``odds``."""
        size = max(MIN_CODES, 1 << dimension.bit_length())
        if size > MAX_CODES:
            raise InvalidInput(
                f"'one-byte' takes vectors of at most {MAX_CODES - 1} numbers, not {dimension}: take 'privunit'"
            )
        k = np.arange(1, size + 1)
        inside = int(np.argmax(largest(size) / (float(odds) * k + 2 * size - k))) + 1
        near, far = _words(odds, inside, 2 * size - inside)
        if near <= far:
            raise InvalidInput("the budget of this question is too small for 'one-byte': every report would be noise")
        return cls(dimension, size, inside, near, far)

    @property
    def m(self) -> float:
        """The mean of sqrt(D) <c, u>."""
        return (self.near - self.far) / WORDS * float(largest(self.size)[self.inside - 1])

    @property
    def dtype(self) -> str:
        return "u1" if self.size == MIN_CODES else "u2"

    @property
    def scale(self) -> float:
        """Estimates are D^1.5 times a codeword: exact integers."""
        return 1 / (self.size * self.m)

    @property
    def longest(self) -> float:
        """sqrt(D) / m: all codewords are unit vectors, and forgetting coordinates makes none longer."""
        return math.sqrt(self.size) / self.m

    @property
    def usual(self) -> float:
        """M_1 / m: she sends the codeword that is nearest to her direction, sqrt(D) <c, u> = M_1 on average over
        rotations: 2.8 where D = 128, a quarter of ``longest``."""
        return float(largest(self.size)[0]) / self.m

    @property
    def moment(self) -> float:
        """Of |z|^2 = D / m^2, a share q / D lies along u, q = D E<c, u>^2; the rest is spread evenly over D - 1
        directions."""
        near, every = (self.near - self.far) / WORDS, self.far / WORDS * 2 * self.size
        q = near * float(largest(self.size, 2)[self.inside - 1]) + every
        return (q + self.dimension * (self.size - q) / (self.size - 1)) / ((self.dimension + 1) * self.m**2)

    def randomise(self, units: Floats, users: Ids, words: DrawWords, seed: PublicRng) -> AnyArray:
        turned = Rotations(self.size).turn(units, users, seed)
        who, last = np.arange(len(users)), self.size - 1
        index = last - np.arange(self.size, dtype=turned.dtype)[:, None]
        keys = np.sort(np.ascontiguousarray(((np.abs(turned) & ~turned.dtype.type(last)) | index).T), axis=1)
        place, opposite = self.drawn(words(users, 0)[:, 0])
        axis = last - (keys[who, last - place] & last)
        minus = (turned[axis, who] < 0) ^ opposite
        answers: AnyArray = (axis + self.size * minus).astype(self.dtype)
        return answers[:, None]

    def swiftly(
        self, values: Ints, where: Ints, signs: Floats, l2: int, users: Ids, words: Ids, seed: PublicRng
    ) -> AnyArray | None:
        """What ``randomise`` makes of ``lifted`` rows, by a kernel; None if there is none.

        Args:
            values: (N, d).
            where: the row (n,) of each user's vector, -1 if it is zero.
            words: (n, 1).
        """
        rotations, answers = Rotations(self.size), np.empty((len(users), 1), self.dtype)
        if not rotations.narrow:
            return None
        public = states(rotations.seeds(seed)), 2.0**rotations.bits
        drawn = *self.drawn(words[:, 0]), self.size, answers[:, 0]
        done = ran("choose", len(users), values, where, signs, float(l2) ** 2, users, *public, *drawn)
        return answers if done else None

    def drawn(self, words: Ids) -> tuple[Ints, AnyArray]:
        """Words (n,) to a place (n,) in the order of |w_j|, largest first, and whether the sign is the other one (n,).

        The words of T are the first near * k, in equal parts. The others are dealt in equal parts to the k antipodes of
        T and to the 2 (D - k) codewords of which neither sign is in T.
        """
        edge = np.uint64(self.near * self.inside)
        inner = (words // np.uint64(self.near)).astype(np.int64)
        outer = ((words - edge) // np.uint64(self.far)).astype(np.int64)
        beyond = outer - self.inside
        place = np.where(beyond < 0, outer, self.inside + (beyond >> 1))
        return np.where(words < edge, inner, place), (words >= edge) & ((beyond < 0) | (beyond & 1 == 1))

    def bundled(self, seed: PublicRng, arrays: BundleArrays) -> dict[str, Any]:
        rotations = Rotations(self.size)
        return {
            "randomiser": "codebook",
            "size": self.size,
            "inside": self.inside,
            "near": str(self.near),
            "far": str(self.far),
            "bits": rotations.bits,
            "signs": [key(child) for child in rotations.seeds(seed)],
        }

    def possible(self, answers: AnyArray) -> bool:
        return bool((answers < 2 * self.size).all())

    def counted(self, answers: AnyArray) -> Ints:
        """How many reports send each codeword (2 D,)."""
        return np.asarray(np.bincount(answers[:, 0].astype(np.int64), minlength=2 * self.size), np.int64)

    def laws(self, counted: Ints, reports: int) -> tuple[ReportLaw, ...]:
        """A codeword has the chance of those of T or that of the others, whatever the row and the rotation are. (Over
        rotations all would be equally likely, but for ties: that is not used.)"""
        return (ReportLaw.alike("codeword {}".format, counted, reports, self.far / WORDS, self.near / WORDS),)

    def estimates(self, answers: AnyArray, users: Ids, seed: PublicRng) -> Ints:
        rotations, found = Rotations(self.size), np.empty((len(users), self.dimension), np.int64)
        tile = np.empty(TILE * self.size, rotations.exact)
        public = states(rotations.seeds(seed)), rows_of_hadamard(self.size)
        if not ran("point", len(users), answers[:, 0], users, *public, tile, found):
            codewords = answers[:, 0].astype(np.int64)
            minus = (codewords >= self.size).astype(np.uint64)
            found[:] = rotations.axis(codewords & (self.size - 1), minus, users, seed)[: self.dimension].T
        return found


def _words(odds: Fraction, inside: int, outside: int) -> tuple[int, int]:
    """Integers near <= odds * far, as large as they can be, with near * inside + far * outside = 2^64."""
    least = max(1, math.ceil(WORDS / (odds * inside + outside)))
    far = next(far for far in count(least) if (WORDS - far * outside) % inside == 0)
    return (WORDS - far * outside) // inside, far
