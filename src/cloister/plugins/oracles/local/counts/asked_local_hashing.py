"""Local hashing for domains of any size: one small number per user; buckets are answered when they are asked for.

Guarantee (Local; replace one row, or have none; pure, no delta), estimate and variance: those of ``local_hashing``, whose reports these
are. Reports are kept, and looked through for every bucket that is asked for, so that a look costs n per bucket, and a domain may have
2^62 of them. ``explicit-histogram`` is the same with two hash values: simpler, one bit per user, and at eps = 4 fourteen times the
variance.

Source: Wang, Blocki, Li, Jha 2017, section 4.4; Bassily, Nissim, Stemmer, Thakurta 2020 (ExplicitHist).
"""

from __future__ import annotations

from cloister.core.buckets import Setting, Space
from cloister.core.budget import Budget, Measure
from cloister.core.registry.components import component
from cloister.core.trust import Local
from cloister.plugins.oracles.local.counts.channel import KeptChannel
from cloister.plugins.oracles.local.counts.hashed_response import Hashed
from cloister.plugins.oracles.local.counts.opening import opened
from cloister.plugins.oracles.local.levels import Share, share_option


@component
class AskedLocalHashing:
    """Counts from randomised response on a public hash of every user's bucket, of any bucket that is asked for."""

    share: Share = share_option()

    trust = Local

    @property
    def measure(self) -> Measure:
        return "pure"

    def open(self, space: Space, budget: Budget, setting: Setting) -> KeptChannel:
        return KeptChannel(opened("asked-local-hashing", space, budget, setting, self.share, Hashed.optimised))

    def variance(self, space: Space, budget: Budget, setting: Setting) -> float:
        return self.open(space, budget, setting).asked.variance
