"""Subset selection over a public codebook, which every user rotates in her own way: one byte per vector."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import accumulate, count
from typing import Any, final

import attrs
import numpy as np

from cloister.core.reproducible_math import ESTIMATED, few_bits
from cloister.plugin import AnyArray, BundleArrays, Floats, Ids, Ints, InvalidInput, PublicRng, ReportLaw, hex_key
from cloister.plugins.oracles.local.coins import WORDS
from cloister.plugins.oracles.local.fast import run_kernel, states
from cloister.plugins.oracles.local.hadamard_transform import TILE, Rotations, rows_of_hadamard
from cloister.plugins.oracles.local.vectors.unit_randomiser import DrawWords


@cache
def mean_of_largest(size: int, power: int = 1) -> Floats:
    """Return M_k = E[sum of the k largest (sqrt(D) |w_j|)^power], w uniform on the sphere of R^D, for k = 1 .. D.

    A normal vector is |g| w with |g| independent of w, so that M_k is the same mean for D normal variates, times
    sqrt(D)^power / E |g|^power. A variate of absolute value x is among the k largest iff at most k - 1 others exceed x:

        E[sum of the k largest |g_j|^power]
            = D * integral over x > 0 of x^power 2 phi(x) P(Binomial(D - 1, 2 Phi(-x)) < k) dx,

    computed by the midpoint rule to 1e-6, and rounded to bits that are the same on every machine.
    """
    nodes = np.arange(0.5, 2400) * (9.6 / 2400)
    j, total = np.arange(size), np.zeros(size)
    ways = _log_binomials(size - 1)
    density = nodes**power * np.exp(-(nodes**2) / 2) * (math.sqrt(2 / math.pi) * 9.6 / 2400)
    for block in np.array_split(np.arange(len(nodes)), 24):
        above, below = (_logs_at(f, nodes[block])[:, None] for f in (math.erfc, math.erf))
        total += density[block] @ np.cumsum(np.exp(ways + j * above + (size - 1 - j) * below), axis=1)
    mean = 2 ** (power / 2) * math.exp(math.lgamma((size + power) / 2) - math.lgamma(size / 2))
    means = np.array([few_bits(x, ESTIMATED) for x in (total * (size * size ** (power / 2) / mean)).tolist()])
    means.flags.writeable = False
    return means


def _log_binomials(n: int) -> Floats:
    """Return the logarithms of n over j for j = 0 .. n, from exact integers: log-gamma would lose four digits."""
    ways = accumulate(range(n), lambda over, j: over * (n - j) // (j + 1), initial=1)
    return np.array([math.log(over) for over in ways])


def _logs_at(error_function: Callable[[float], float], nodes: Floats) -> Floats:
    """Return the logarithms of 2 Phi(-x) by ``math.erfc``, or of 1 - 2 Phi(-x) by ``math.erf``."""
    # without SciPy, which encoding on devices must not need
    return np.array([math.log(error_function(x / math.sqrt(2))) for x in nodes.tolist()])


MIN_CODES, MAX_CODES = 128, 4096
"""Range of a codebook's size D: below, three rounds are no random rotation; above, integers get large. Vectors are
padded with zeros."""


@final
@attrs.frozen
class Codebook:
    """Randomiser that sends one of the codewords +-R^T e_1 .. +-R^T e_D, likelier if it is among the k nearest to u.

    R is the user's public rotation and D >= 128. T is the set of the k <= D codewords c with the largest <c, u>: those
    of the k largest |w_j|, w = R u, each with the sign of its w_j, ties to the lowest j, exactly k.

    Guarantee (Local; replace one row, or have none): a codeword of T has probability near / 2^64 and any other far /
    2^64, whatever u is, with integers near <= odds * far, near k + far (2 D - k) = 2^64. The ratio of these two is at
    most e^eps in fractions: eps-DP, exactly. One word of 64 bits is one draw. Nothing depends on floating point: T is a
    function of integers, and for any other set of k codewords the two probabilities would be the same.

    Such integers exist: gcd(k, 2 D - k) divides the power of two 2 D, hence 2^64, and one of every k values of far will
    do.

    Unbiased: z = sqrt(D) / m * codeword. For a random rotation E[c | c in T] is parallel to u by symmetry, and the
    codewords outside T add up to minus those in T, since the codebook is antipodal. So E z = u with
    m = (near - far) / 2^64 * M_k (``mean_of_largest``), up to the error of ``Rotations``. Variance: |z|^2 = D / m^2,
    about 1 / m^2 per coordinate; k maximises m. At D = 128: m = 0.3976, 0.7858, 1.5088 with k = 89, 56, 17 at
    eps = 1, 2, 4, within 1% of PrivUnitG.

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

    secret_words, width = 1, 1

    @classmethod
    def within(cls, odds: Fraction, dimension: int) -> Codebook:
        """Return the one of least variance whose probabilities differ by a factor of at most ``odds``.

        Raises:
            InvalidInput: the vectors are too long, or the budget is too small.
        """
        size = max(MIN_CODES, 1 << dimension.bit_length())
        if size > MAX_CODES:
            raise InvalidInput(
                f"'one-byte' takes vectors of at most {MAX_CODES - 1} numbers, not {dimension}: use 'privunit'"
            )
        k = np.arange(1, size + 1)
        inside = int(np.argmax(mean_of_largest(size) / (float(odds) * k + 2 * size - k))) + 1
        near, far = _words(odds, inside, 2 * size - inside)
        if near <= far:
            raise InvalidInput("the budget of this question is too small for 'one-byte': every report would be noise")
        return cls(dimension, size, inside, near, far)

    @property
    def m(self) -> float:
        """Mean of sqrt(D) <c, u>."""
        return (self.near - self.far) / WORDS * float(mean_of_largest(self.size)[self.inside - 1])

    @property
    def dtype(self) -> str:
        return "u1" if self.size == MIN_CODES else "u2"

    @property
    def scale(self) -> float:
        return 1 / (self.size * self.m)  # estimates are D^1.5 times a codeword: exact integers

    @property
    def longest(self) -> float:
        # codewords are unit vectors, and dropping coordinates makes none longer
        return math.sqrt(self.size) / self.m

    @property
    def usual(self) -> float:
        # the codeword nearest to her direction: sqrt(D) <c, u> = M_1 on average over rotations, 2.8 at D = 128, a
        # quarter of ``longest``
        return float(mean_of_largest(self.size)[0]) / self.m

    @property
    def moment(self) -> float:
        # of |z|^2 = D / m^2 a share q / D lies along u, q = D E<c, u>^2, the rest evenly in D - 1 directions
        surplus, base = (self.near - self.far) / WORDS, self.far / WORDS * 2 * self.size
        q = surplus * float(mean_of_largest(self.size, 2)[self.inside - 1]) + base
        return (q + self.dimension * (self.size - q) / (self.size - 1)) / ((self.dimension + 1) * self.m**2)

    def randomise(self, units: Floats, users: Ids, words: DrawWords, seed: PublicRng) -> AnyArray:
        turned = Rotations(self.size).turn(units, users, seed)
        who, last = np.arange(len(users)), self.size - 1
        index = last - np.arange(self.size, dtype=turned.dtype)[:, None]
        keys = np.sort(np.ascontiguousarray(((np.abs(turned) & ~turned.dtype.type(last)) | index).T), axis=1)
        place, opposite = self.place_and_sign(words(users, 0)[:, 0])
        axis = last - (keys[who, last - place] & last)
        minus = (turned[axis, who] < 0) ^ opposite
        answers: AnyArray = (axis + self.size * minus).astype(self.dtype)
        return answers[:, None]

    def randomise_by_kernel(
        self, values: Ints, rows: Ints, signs: Floats, l2: int, users: Ids, words: Ids, seed: PublicRng
    ) -> AnyArray | None:
        """Return what ``randomise`` returns for ``lifted`` rows, by a kernel; None if it did not run.

        Args:
            values: vectors (N, d).
            rows: row (n,) of each user's vector, -1 if it is zero.
            signs: (n,).
            l2: norm bound.
            users: (n,).
            words: (n, 1).
            seed: public.
        """
        rotations, answers = Rotations(self.size), np.empty((len(users), 1), self.dtype)
        if not rotations.narrow:
            return None
        public = states(rotations.seeds(seed)), 2.0**rotations.bits
        drawn = *self.place_and_sign(words[:, 0]), self.size, answers[:, 0]
        done = run_kernel("choose", len(users), values, rows, signs, float(l2) ** 2, users, *public, *drawn)
        return answers if done else None

    def place_and_sign(self, words: Ids) -> tuple[Ints, AnyArray]:
        """Return each word's place (n,) in the order of |w_j|, largest first, and True (n,) where the sign is opposite.

        The first near * k words belong to T, in equal parts. The others are divided equally among the k antipodes of T
        and the 2 (D - k) codewords of which neither sign is in T.
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
            "signs": [hex_key(child) for child in rotations.seeds(seed)],
        }

    def possible(self, answers: AnyArray) -> bool:
        return bool((answers < 2 * self.size).all())

    def counted(self, answers: AnyArray) -> Ints:
        """Count the reports of each codeword (2 D,)."""
        return np.asarray(np.bincount(answers[:, 0].astype(np.int64), minlength=2 * self.size), np.int64)

    def laws(self, counted: Ints, reports: int) -> tuple[ReportLaw, ...]:
        """Return the law that a codeword has the probability of T's or of the others', whatever the row is.

        Over rotations all would be equally likely, but for ties; this is not used.
        """
        return (ReportLaw.alike("codeword {}".format, counted, reports, self.far / WORDS, self.near / WORDS),)

    def estimates(self, answers: AnyArray, users: Ids, seed: PublicRng) -> Ints:
        rotations, out = Rotations(self.size), np.empty((len(users), self.dimension), np.int64)
        tile = np.empty(TILE * self.size, rotations.exact)
        public = states(rotations.seeds(seed)), rows_of_hadamard(self.size)
        if not run_kernel("point", len(users), answers[:, 0], users, *public, tile, out):
            codewords = answers[:, 0].astype(np.int64)
            minus = (codewords >= self.size).astype(np.uint64)
            out[:] = rotations.axis(codewords & (self.size - 1), minus, users, seed)[: self.dimension].T
        return out


def _words(odds: Fraction, inside: int, outside: int) -> tuple[int, int]:
    """Return the integers near <= odds * far with the smallest far for which near * inside + far * outside = 2^64."""
    lowest = max(1, math.ceil(WORDS / (odds * inside + outside)))
    far = next(far for far in count(lowest) if (WORDS - far * outside) % inside == 0)
    return (WORDS - far * outside) // inside, far
