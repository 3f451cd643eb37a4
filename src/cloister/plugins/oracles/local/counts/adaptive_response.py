"""Randomised response on the bucket itself if there are few buckets for this epsilon, else on a public hash of it.

Guarantee (Local; replace one row, or have none; pure, no delta): either way ``Response`` on k symbols that are a
function of her bucket and of public coins: eps-DP. 'In no bucket' is a symbol of its own, or a uniform hash value. For
several levels see ``reports``.

Variance with n users and K buckets: n (e^eps + K - 1) / (e^eps - 1)^2 on the bucket, about n 4 e^eps / (e^eps - 1)^2 on
a hash. The bucket is used iff K < 3 e^eps + 2, typically where reports are shuffled and epsilon is 5 to 10.

Source: Wang, Blocki, Li, Jha 2017, sections 4.4 and 5 (direct encoding against local hashing).
"""

from __future__ import annotations

from fractions import Fraction

from cloister.plugin import PublicRng, component
from cloister.plugins.oracles.local.counts.channel import Direct, LocalCounts, TalliedRandomiser
from cloister.plugins.oracles.local.hashing import Hashed
from cloister.plugins.oracles.local.randomised_response import Response

MAX_BUCKETS = 2**16


@component
class AdaptiveResponse(LocalCounts):
    """Counts from randomised response on every user's bucket or on a public hash of it, whichever has less noise."""

    mechanism, max_buckets = "adaptive-response", MAX_BUCKETS
    instead = "'hadamard-response', or 'explicit-histogram' if few buckets are looked up"

    def level(self, size: int, odds: Fraction, seed: PublicRng) -> TalliedRandomiser:
        if size < 3 * odds + 2:
            return Direct(size, Response.within(odds, size + 1))
        return Hashed.optimised(size, odds, seed)
