"""Duchi, Jordan and Wainwright's randomiser of a unit vector: a uniform vector of the right or wrong half-sphere."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, final

import attrs
import numpy as np

from cloister.core.reproducible_math import ESTIMATED, column_sums, few_bits, normals, quarter_sines, words_for
from cloister.plugin import AnyArray, BundleArrays, Floats, Ids, Ints, Proportion, PublicRng, ReportLaw
from cloister.plugins.oracles.local.coins import WORDS, coin_words
from cloister.plugins.oracles.local.vectors.unit_randomiser import STEP, ZERO, DrawWords, OnSphere, blocks, sent

PAIRS = 16
"""Pairs of neighbouring coordinates that are tested: all would slow ``absorb`` by a quarter at 100 coordinates."""


@final
@attrs.frozen
class Duchi(OnSphere):
    """Randomiser z = B v: v uniform on the unit sphere of R^D, D = d + 1, negated so that P(<v, u> > 0) = t.

    Guarantee (Local; replace one row, or have none; pure, no delta): v does not depend on her row. Given v, one of v
    and -v is sent with probability t, the other with 1 - t, t a number of words over 2^64, and her row decides which is
    which. So for any two rows the probabilities of v together with the side differ by a factor of at most t / (1 - t)
    <= ``odds``, in fractions, and what is sent is a function of these. Neither that v is uniform nor which side counts
    as that of u, where <v, u> is zero or rounded, matters: nothing depends on floating point.

    Unbiased: by symmetry E z = B (2 t - 1) E|v_1| u, and E|v_1| = Gamma(D/2) / (sqrt(pi) Gamma((D + 1)/2)). So

        B = (e^eps + 1) / (e^eps - 1) * sqrt(pi) Gamma((D + 1)/2) / Gamma(D/2).

    The paper's B, (e^eps + 1) / (e^eps - 1) * pi sqrt(d) Gamma((d - 1)/2 + 1) / Gamma(d/2 + 1), is too large by a
    factor that grows with d. Variance: E z z^T = B^2 / D I, which is about pi/2 ((e^eps + 1) / (e^eps - 1))^2 per
    coordinate.

    Args:
        coin: words (of 2^64) on which v is on the side of u.

    Source: Duchi, Jordan, Wainwright 2013, expression (19) and Lemma 1; Chang et al. 2021, Lemma 27 and footnote 10.
    """

    coin: int

    @classmethod
    def within(cls, odds: Fraction, dimension: int) -> Duchi:
        """Return the most truthful one whose probabilities differ by a factor of at most ``odds``."""
        return cls(dimension, coin_words(odds / (1 + odds)))

    @property
    def length(self) -> float:
        """Length B of z."""
        size, surplus = self.size, (2 * self.coin - WORDS) / WORDS
        mean = math.sqrt(math.pi) * math.exp(math.lgamma((size + 1) / 2) - math.lgamma(size / 2))
        return few_bits(mean, ESTIMATED) / surplus

    @property
    def secret_words(self) -> int:
        return 1 + words_for(self.size)

    @property
    def scale(self) -> float:
        return STEP * math.sqrt(self.moment)  # answers are steps of sqrt(D) v, whose coordinates have variance 1

    @property
    def moment(self) -> float:
        return self.length**2 / self.size

    def randomise(self, units: Floats, users: Ids, words: DrawWords, seed: PublicRng) -> AnyArray:
        drawn, answers = words(users, 0), np.empty((len(users), self.width), self.dtype)
        for block in blocks(len(users), self.size):
            v = normals(drawn[block, 1:], self.size)
            above = column_sums(v * units[:, block]) >= 0
            truthful = drawn[block, 0] < np.uint64(self.coin)
            length = np.sqrt(column_sums(v * v) / self.size)
            answers[block] = sent(v[: self.dimension] * (np.where(above == truthful, 1.0, -1.0) / length))
        return answers

    def counted(self, answers: AnyArray) -> Ints:
        """Count the reports with both coordinates of a pair of neighbours off zero, and those of them with two signs.

        Of the first min(d - 1, ``PAIRS``) pairs: (2 pairs,).
        """
        pairs = min(self.dimension - 1, PAIRS)
        counts = np.zeros((2, pairs), np.int64)
        for block in blocks(len(answers), 1):
            columns = np.ascontiguousarray(answers[block, : pairs + 1].T)
            below, off = columns < ZERO, columns != ZERO
            for j in range(pairs):
                both = off[j] & off[j + 1]
                counts[:, j] += np.count_nonzero(both), np.count_nonzero(both & (below[j] ^ below[j + 1]))
        return counts.ravel()

    def laws(self, counted: Ints, reports: int) -> tuple[ReportLaw, ...]:
        """Return the law that two neighbours have different signs with probability 1/2, whatever the row is.

        Proof: they come from two words (``normals``: coordinate j comes from word j modulo their number, which is at
        least 2 if there are two coordinates). Adding half a turn to the angle of one word changes the sign of its two
        variates, exactly, and no length. So given all that is sent but for signs, the product of the two signs is a
        fair coin; negating v changes both.
        """
        both, differ = counted.reshape(2, -1).tolist()
        proportions = (
            Proportion(f"coordinates {j} and {j + 1} with two signs", x, n, 0.5)
            for j, (n, x) in enumerate(zip(both, differ, strict=True))
        )
        return (ReportLaw(tuple(proportions), len(both)),) if both else ()

    def bundled(self, seed: PublicRng, arrays: BundleArrays) -> dict[str, Any]:
        return {"randomiser": "duchi", "coin": str(self.coin), "sines": arrays.add(quarter_sines())}
