"""Buckets of Stemmer's method, made without a run: what its tests are about."""

from __future__ import annotations

import numpy as np

from cloister.core.domains import Ball, Domain
from cloister.core.lattice import Bound
from cloister.core.randomness import PublicRng
from cloister.core.types import Ints
from cloister.plugins.methods.weighted_centers.buckets import (
    Assigned,
    Centred,
    Created,
    Own,
    Reassigned,
    Regions,
)
from cloister.plugins.methods.weighted_centers.partitions import Intervals, PStable, PStableHash

SEED = PublicRng.from_seed(600)
BALL = Ball((0.0,) * 5, 1.0)


def hash_of(domain: Domain, rng: PublicRng, bits: int = 6) -> PStableHash:
    return PStable(domain.max_norm / 3, 0.6, 0.01, 3).sample(domain.dimension, bits, rng.child("hash"))


def intervals_of(domain: Domain, rng: PublicRng) -> Intervals:
    return Intervals.of(domain, domain.max_norm / 4, rng.child("intervals"))


def some_rows(domain: Domain, rng: PublicRng, n: int) -> Ints:
    return domain.snap(domain.sample(rng.generator(), n, 0.0))


def regions(domain: Domain, rng: PublicRng) -> Regions:
    """Of five rows: their hash values, their boxes."""
    h, intervals, rows = hash_of(domain, rng), intervals_of(domain, rng), some_rows(domain, rng, 5)
    values, first = np.unique(h.of(rows), return_index=True)
    return Regions(h, intervals, values[::-1], intervals.of_rows(rows[first[::-1]]), 8)


def created(domain: Domain, rng: PublicRng, start: str = "created") -> Created:
    h, rows = hash_of(domain, rng.child(start)), some_rows(domain, rng.child(start), 5)
    values, first = np.unique(h.of(rows), return_index=True)
    return Created(h, values, rows[first], domain.max_norm // 2, 8)


def assigned(domain: Domain, rng: PublicRng) -> Assigned:
    """Two procedures, of two radii, of one group; and the centres of a third."""
    one, other, rest = created(domain, rng, "one"), created(domain, rng, "other"), some_rows(domain, rng, 3)
    centers = np.concatenate([one.places, other.places, rest])
    ranks = np.repeat([0, 1, 1], [len(one.places), len(other.places), 3])
    return Assigned((Own(0, 0, one), Own(1, len(one.places), other)), centers, ranks, domain.max_norm, 16)


def reassigned(domain: Domain, rng: PublicRng) -> Reassigned:
    a = assigned(domain, rng)
    return Reassigned(a, np.arange(len(a.places)) % 2 == 0)


def centred(domain: Domain, rng: PublicRng) -> Centred:
    cells = regions(domain, rng)
    return Centred(
        cells, cells.intervals.middles(cells.chosen), Bound(int(cells.intervals.half_diagonal), domain.dimension)
    )
