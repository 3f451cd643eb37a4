"""Explicit histogram: one bit per user, for domains of any size; buckets are answered when they are asked for.

Guarantee (Local; replace one row, or have none; pure, no delta): a user whose bucket is x sends Z(x, i) of a public
matrix of signs, flipped with chance 1 / (e^eps + 1): ``Response`` on two symbols, eps-DP. A user in no bucket sends a
uniform bit, which lies between the two. Over several levels see ``levels``.

Unbiased: (e^eps + 1) / (e^eps - 1) * sum_i y_i Z(v, i) has mean n_v over the coins and the matrix, whose columns are
pairwise independent over buckets. Variance with n users: n ((e^eps + 1) / (e^eps - 1))^2 - n_v; with T levels sharing
users T n (...)^2 - n_v. A look costs n per bucket. The matrix is never stored: it is a hash (``hashing``).

Source: Bassily, Nissim, Stemmer, Thakurta 2020 (ExplicitHist), as in Chang, Ghazi, Kumar, Manurangsi 2021, Algorithms 5
and 6.
"""

from __future__ import annotations

from fractions import Fraction

from cloister.core.randomness import PublicRng
from cloister.core.registry.components import component
from cloister.plugins.oracles.local.counts.channel import KeptChannel, LocalCounts
from cloister.plugins.oracles.local.counts.hashed_response import Hashed


@component
class ExplicitHistogram(LocalCounts):
    """Counts from one randomised sign per user, of any bucket that is asked for."""

    mechanism, channel = "explicit-histogram", KeptChannel

    def level(self, size: int, odds: Fraction, seed: PublicRng) -> Hashed:
        return Hashed.into(2, size, odds, seed)
