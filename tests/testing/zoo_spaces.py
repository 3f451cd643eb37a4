"""The zoo in large and in nested spaces.

All of them claim the guarantee of the honest ones (Central; add-or-remove one row).
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from cloister.core.buckets import BucketedVectors, Space
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.types import Floats, Ids, Ints
from cloister.testing.checks.spaces import FAR, FarTable
from tests.testing.honest import Channel, HalvingTree, HonestCounts, Totals
from tests.testing.zoo_cells import _Unnested


def _back(buckets: Ints) -> Ints:
    return np.where(buckets >= 0, buckets - FAR, buckets)


class _NearTable(FarTable):
    """A table of few buckets, by their numbers in the large space."""

    def at(self, ids: Ints, level: int = 0) -> Floats:
        values: Floats = self.table.at(ids - FAR, level)
        return values

    def standard_error(self, ids: Ints, level: int = 0) -> Floats:
        errors: Floats = self.table.standard_error(ids - FAR, level)
        return errors


@attrs.frozen
class _Window:
    """A channel of few buckets that stands where the kit asks in a large space."""

    channel: Any

    @property
    def events(self) -> Any:
        return self.channel.events

    def encode(self, items: Any, users: Ids, rng: NoiseRng) -> Any:
        near = (
            BucketedVectors(_back(items.buckets), items.values) if isinstance(items, BucketedVectors) else _back(items)
        )
        return self.channel.encode(near, users, rng)

    def absorb(self, report: Any) -> Any:
        return self.channel.absorb(report)

    def decode(self, summary: Any, rng: NoiseRng) -> Any:
        return _NearTable(self.channel.decode(summary, rng))


def far_out(specimen: Any) -> Any:
    """The specimen, broken as it is, for large spaces too."""

    class Lazy(type(specimen)):  # type: ignore[misc]  # whatever it is
        def open(self, space: Space, *rest: Any) -> Any:
            near = Space(tuple(size - FAR for size in space.sizes))
            return _Window(super().open(near, *rest))

        def variance(self, space: Space, *rest: Any) -> float:
            near = Space(tuple(size - FAR for size in space.sizes))
            made = super().open(near, *rest)
            return float(made.errors[0] ** 2)

    if specimen.__class__.open.__code__.co_argcount == 5:
        return _sums(Lazy)
    return _counts(Lazy)


def _counts(lazy: Any) -> Any:
    class Counts(lazy):  # type: ignore[misc]
        def open(self, space: Any, budget: Any, context: Any) -> Any:
            return super().open(space, budget, context)

    Counts.__name__ = f"{lazy.__mro__[1].__name__}FarOut"
    return Counts()


def _sums(lazy: Any) -> Any:
    class Sums(lazy):  # type: ignore[misc]
        def open(self, space: Any, budget: Any, context: Any, bound: Any) -> Any:
            return super().open(space, budget, context, bound)

    Sums.__name__ = f"{lazy.__mro__[1].__name__}FarOut"
    return Sums()


class _FromTheLeaves(Channel):
    """Counts the deepest level of a nested space, and adds up what it noised."""

    def decode(self, summary: Totals, rng: NoiseRng) -> Any:
        table: Any = super().decode(summary, rng)
        starts = np.cumsum([0, *self.space.sizes])
        if self.space.nested:
            for level in range(self.space.levels - 2, -1, -1):
                below = table._values[starts[level + 1] : starts[level + 2]]
                below = np.concatenate([below, np.zeros((len(below) % 2, self.width))])
                table._values[starts[level] : starts[level + 1]] = below[0::2] + below[1::2]
        return table


class NoiseFromTheLeaves(HonestCounts):
    channel = _FromTheLeaves


class _Odd(Channel):
    """Pairs of the deepest level make the others; one that has no neighbour is forgotten."""

    def decode(self, summary: Totals, rng: NoiseRng) -> Any:
        totals, starts = summary.vector.copy(), np.cumsum([0, *self.space.sizes])
        if self.space.nested:
            for level in range(self.space.levels - 2, -1, -1):
                below, size = totals[starts[level + 1] : starts[level + 2]], self.space.sizes[level]
                pairs = below[: len(below) // 2 * 2]
                totals[starts[level] : starts[level + 1]] = 0
                totals[starts[level] : starts[level] + min(size, len(pairs) // 2)] = pairs[0::2] + pairs[1::2]
        return super().decode(Totals(totals), rng)


class ForgetsTheOddOne(HonestCounts):
    channel = _Odd


class NoiseFromTheLeavesIsCalledBias(NoiseFromTheLeaves):
    biased = True


def nested_elsewhere(domain: Any, rng: PublicRng) -> HalvingTree:
    """A bucketing whose space says that it is nested."""
    return _Unnested(domain.sides, domain.unit, domain.middle, 4)
