"""Local hashing for domains of any size: one small number per user; buckets are answered when they are asked for.

Guarantee (Local; replace one row, or have none; pure, no delta), estimate and variance: those of ``local_hashing``, whose reports these
are. Reports are kept, and looked through for every bucket that is asked for, so that a look costs n per bucket, and a domain may have
2^62 of them. ``explicit-histogram`` is the same with two hash values: simpler, one bit per user, and at eps = 4 fourteen times the
variance.

Source: Wang, Blocki, Li, Jha 2017, section 4.4; Bassily, Nissim, Stemmer, Thakurta 2020 (ExplicitHist).
"""

from __future__ import annotations

from fractions import Fraction

from cloister.core.randomness import PublicRng
from cloister.core.registry.components import component
from cloister.plugins.oracles.local.counts.channel import KeptChannel
from cloister.plugins.oracles.local.counts.hashed_response import Hashed
from cloister.plugins.oracles.local.counts.opening import LocalCounts


@component
class AskedLocalHashing(LocalCounts):
    """Counts from randomised response on a public hash of every user's bucket, of any bucket that is asked for."""

    mechanism, channel = "asked-local-hashing", KeptChannel

    def level(self, size: int, odds: Fraction, seed: PublicRng) -> Hashed:
        return Hashed.optimised(size, odds, seed)
