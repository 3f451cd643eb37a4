"""Optimised local hashing: one small number per user; every bucket is decoded, or those that are asked for.

Guarantee (Local; replace one row, or have none; pure, no delta): a user sends randomised response on a public hash of
her bucket into g = round(e^eps) + 1 values (``hashed_response``): eps-DP. A user in no bucket sends a uniform value.
Over several levels see ``levels``.

Unbiased: (S_v - n / g) / (p - 1/g), where S_v users sent their hash of v. Variance with n users: n c, c = 4 e^eps /
(e^eps - 1)^2 at the best (real) g and never under 1.01 of it by rounding, n (g - 1) / (g^2 t^2) exactly, and n_v (1 - p
- 1/g) / (p - 1/g) more for a bucket with n_v users. Decoding K buckets costs n K.

Source: Wang, Blocki, Li, Jha 2017, section 4.4.
"""

from __future__ import annotations

from fractions import Fraction

from cloister.core.randomness import PublicRng
from cloister.core.registry.components import component
from cloister.plugins.oracles.local.counts.channel import KeptChannel, LocalCounts
from cloister.plugins.oracles.local.counts.hashed_response import Hashed

MAX_BUCKETS = 2**16
"""Buckets per level: decoding looks at every one for every user."""


@component
class OptimisedLocalHashing(LocalCounts):
    """Counts from randomised response on a public hash of every user's bucket."""

    mechanism, most = "optimised-local-hashing", MAX_BUCKETS
    instead = "'hadamard-response', or 'explicit-histogram' where few buckets are looked at"

    def level(self, size: int, odds: Fraction, seed: PublicRng) -> Hashed:
        return Hashed.optimised(size, odds, seed)


@component
class AskedLocalHashing(LocalCounts):
    """Counts from the same reports, of any bucket that is asked for, in domains of up to 2^62 buckets.

    Reports are kept, and looked through for every bucket that is asked for: a look costs n per bucket.
    ``explicit-histogram`` is the same with two hash values: simpler, one bit per user, and at eps = 4 fourteen times
    the variance.

    Source: Bassily, Nissim, Stemmer, Thakurta 2020 (ExplicitHist).
    """

    mechanism, channel = "asked-local-hashing", KeptChannel

    def level(self, size: int, odds: Fraction, seed: PublicRng) -> Hashed:
        return Hashed.optimised(size, odds, seed)
