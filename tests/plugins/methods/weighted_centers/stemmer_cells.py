"""Buckets of Stemmer's method, made without a run: what its tests are about."""

from __future__ import annotations

from cloister.core.domains import Ball, Domain
from cloister.core.randomness import PublicRng
from cloister.core.types import Ints
from cloister.plugins.methods.weighted_centers.partitions import Intervals, PStable, PStableHash

SEED = PublicRng.from_seed(600)
BALL = Ball((0.0,) * 5, 1.0)


def hash_of(domain: Domain, rng: PublicRng, bits: int = 6) -> PStableHash:
    return PStable(domain.max_norm / 3, 0.6, 0.01, 3).sample(domain.dimension, bits, rng.child("hash"))


def intervals_of(domain: Domain, rng: PublicRng) -> Intervals:
    return Intervals.of(domain, domain.max_norm / 4, rng.child("intervals"))


def some_rows(domain: Domain, rng: PublicRng, n: int) -> Ints:
    return domain.snap(domain.sample(rng.generator(), n, 0.0))
