"""Local hashing: one small number per user, decoded for every bucket or for those that are looked up.

Guarantee (Local; replace one row, or have none; pure, no delta): a user sends randomised response on a public hash of
her bucket into g = round(e^eps) + 1 values (``hashing``): eps-DP. A user in no bucket sends a uniform value. For
several levels see ``reports``.

Unbiased: (S_v - n / g) / (p - 1/g), where S_v users sent their hash of v. Variance with n users:
n (g - 1) / (g (p - 1/g))^2, which is n 4 e^eps / (e^eps - 1)^2 at the best real g and at most 1.05 times that at the
rounded one, and n_v (1 - p - 1/g) / (p - 1/g) more for a bucket with n_v users. Decoding K buckets costs n K.

Source: Wang, Blocki, Li, Jha 2017, section 4.4.
"""

from __future__ import annotations

from fractions import Fraction

from cloister.plugin import PublicRng, component
from cloister.plugins.oracles.local.counts.channel import KeptChannel, LocalCounts
from cloister.plugins.oracles.local.hashing import Hashed

MAX_BUCKETS = 2**16
"""Limit of buckets per level: decoding tests every one for every user."""


@component
class OptimisedLocalHashing(LocalCounts):
    """Counts from randomised response on a public hash of every user's bucket."""

    mechanism, max_buckets = "optimised-local-hashing", MAX_BUCKETS
    instead = "'hadamard-response', or 'explicit-histogram' if few buckets are looked up"

    def level(self, size: int, odds: Fraction, seed: PublicRng) -> Hashed:
        return Hashed.optimised(size, odds, seed)


@component
class AskedLocalHashing(LocalCounts):
    """Counts from the same reports, looked up bucket by bucket, in domains of up to 2^62 buckets.

    Reports are kept, and a look-up costs n per bucket. ``explicit-histogram`` is the same with two hash values: one bit
    per user, and fourteen times the variance at eps = 4.

    Source: Bassily, Nissim, Stemmer, Thakurta 2020 (ExplicitHist).
    """

    mechanism, channel = "asked-local-hashing", KeptChannel

    def level(self, size: int, odds: Fraction, seed: PublicRng) -> Hashed:
        return Hashed.optimised(size, odds, seed)


@component
class ExplicitHistogram(LocalCounts):
    """Counts from one randomised sign per user, looked up bucket by bucket.

    Guarantee (Local; replace one row, or have none; pure, no delta): a user whose bucket is x sends Z(x, i) of a public
    matrix of signs, flipped with probability 1 / (e^eps + 1): ``Response`` on two symbols, eps-DP. A user in no bucket
    sends a uniform bit, which lies between the two. For several levels see ``reports``.

    Unbiased: (e^eps + 1) / (e^eps - 1) * sum_i y_i Z(v, i) has mean n_v over the coins and the matrix, whose columns
    are pairwise independent over buckets. Variance with n users: n ((e^eps + 1) / (e^eps - 1))^2 - n_v; with T levels
    sharing users T n (...)^2 - n_v. A look-up costs n per bucket. The matrix is a hash (``hashing``) and never stored.

    Source: Bassily, Nissim, Stemmer, Thakurta 2020 (ExplicitHist), as in Chang, Ghazi, Kumar, Manurangsi 2021,
    Algorithms 5 and 6.
    """

    mechanism, channel = "explicit-histogram", KeptChannel

    def level(self, size: int, odds: Fraction, seed: PublicRng) -> Hashed:
        return Hashed.into(2, size, odds, seed)
