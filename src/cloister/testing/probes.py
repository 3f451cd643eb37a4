"""Probes of an opened oracle: encode known rows, release them, and measure the noise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, final

import attrs
import numpy as np

from cloister.core.aggregated import RingVector, whole_noise
from cloister.core.shuffling import in_messages
from cloister.plugin import (
    Aggregated,
    Bound,
    BucketedVectors,
    Budget,
    Central,
    Floats,
    Ids,
    Ints,
    InvalidInput,
    Measure,
    NoiseRng,
    PublicRng,
    QuestionContext,
    Space,
    shrink,
)
from cloister.testing.check import require, role_of

UNIT = 2.0**-10
"""Lattice spacing in the kit's questions; not 1, which would hide an oracle that ignores it."""

PAYABLE: dict[Measure, tuple[Measure, ...]] = {
    "pure": ("pure", "zcdp"),
    "gaussian": ("gaussian", "zcdp"),
    "zcdp": ("zcdp",),
    "exact": ("exact",),
}
"""Measures of the budgets that an oracle of each measure accepts."""

CROWD = 1000
"""Minimum public number of users where they hide each other (Shuffled trust)."""

ON_THE_WIRE = 2**19
"""Maximum number of messages made for one release; larger releases are drawn by ``pooled``."""

DELTA = 1e-3
"""Delta of the kit's budgets, for mechanisms that spend one."""


def budget_of(measure: Measure, epsilon: float) -> Budget:
    """Return a budget of about the same privacy in any measure: epsilon, mu = epsilon or rho = epsilon^2 / 2."""
    amounts = {"pure": epsilon, "gaussian": epsilon**2, "zcdp": epsilon**2 / 2, "exact": math.inf}
    return Budget(measure, amounts[measure], delta=DELTA)


@final
@attrs.frozen
class Shape:
    """Outline of a question.

    Args:
        sizes: number of buckets per level.
        bound: bound of the vectors; None for counts.
    """

    sizes: tuple[int, ...]
    bound: Bound | None = None


def is_central(oracle: Any) -> bool:
    """Return True if the noise is drawn once per released number."""
    return oracle.trust in (Central, Aggregated)


def user_numbers(n: int) -> Ids:
    return np.arange(n, dtype=np.uint64)


def narrow_shapes(role: str) -> tuple[Shape, ...]:
    """Return shapes of few buckets: one bucket, a tree's levels, many levels, every kind of vector bound."""
    if role == "FrequencyOracle":
        return Shape((1,)), Shape((1, 2, 4)), Shape((2,) * 5)
    return Shape((1,), Bound(1, 1)), Shape((1, 2), Bound(1000, 3)), Shape((2,), Bound(900, 4, 1200))


def wide_shapes(role: str, size: int) -> tuple[Shape, ...]:
    """Return shapes of many buckets, each an independent experiment, with one and several levels and coordinates."""
    if role == "FrequencyOracle":
        return Shape((size,)), Shape((size,) * 3)
    return Shape((size,), Bound(1000, 1)), Shape((size,), Bound(1000, 3)), Shape((size,) * 2, Bound(900, 2, 1200))


@final
@attrs.frozen(eq=False)
class Probe:
    """An opened channel with its question.

    Args:
        oracle: oracle that was opened.
        shape: outline of the question.
        budget: budget that it was opened with.
        rows: public number of rows.
        channel: opened channel.
    """

    oracle: Any
    shape: Shape
    budget: Budget
    rows: int
    channel: Any

    @classmethod
    def of(cls, oracle: Any, shape: Shape, budget: Budget, rows: int = 1000, seed: int = 1) -> Probe:
        rows = max(rows, CROWD) if oracle.asks_all_users else rows
        return cls(oracle, shape, budget, rows, oracle.open(*_arguments(shape, budget, rows, seed)))

    @property
    def width(self) -> int:
        return 1 if self.shape.bound is None else self.shape.bound.dimension

    @property
    def declared_variance(self) -> float:
        """The oracle's ``variance`` for this question."""
        return float(self.oracle.variance(*_arguments(self.shape, self.budget, self.rows, 1)))

    def items(self, buckets: Ints, vectors: Ints | None = None) -> Ints | BucketedVectors:
        """Return an encoder's input: ids (n, levels), and for sums the vectors (n, dimension)."""
        return buckets if self.shape.bound is None or vectors is None else BucketedVectors(buckets, vectors)

    @property
    def no_rows(self) -> Ints | BucketedVectors:
        """An encoder's input without rows."""
        return self.items(np.zeros((0, len(self.shape.sizes)), np.int64), np.zeros((0, self.width), np.int64))

    def summary(self, items: Ints | BucketedVectors, rng: NoiseRng, users: Ids | None = None) -> Any:
        """Encode and absorb rows, with users numbered from 0 by default."""
        return self.channel.absorb(self.report(items, rng.child("encode"), users))

    def report(self, items: Ints | BucketedVectors, rng: NoiseRng, users: Ids | None = None) -> Any:
        """Encode rows, with users numbered from 0 by default."""
        return self.channel.encode(items, user_numbers(row_count(items)) if users is None else users, rng)

    def population_summary(self, items: Ints | BucketedVectors, rng: NoiseRng) -> Any:
        """Return the summary of these rows in a population of ``rows`` users, where all owe a share of the noise.

        The other users are in no bucket. Above ``ON_THE_WIRE`` messages the summary is drawn at once.
        """
        if in_messages(self.channel) is None:
            return self.summary(items, rng)
        missing = max(0, self.rows - row_count(items))
        nowhere, zeros = np.full((missing, len(self.shape.sizes)), -1), np.zeros((missing, self.width), np.int64)
        who = user_numbers(row_count(items) + missing)
        padded: Ints | BucketedVectors
        if isinstance(items, BucketedVectors):
            padded = BucketedVectors(np.concatenate([items.buckets, nowhere]), np.concatenate([items.values, zeros]))
        else:
            padded = np.concatenate([items, nowhere])
        if len(who) * self.channel.messages <= ON_THE_WIRE:
            return self.summary(padded, rng)
        return self.channel.pooled(padded, who, rng.child("encode"))

    def table(self, summary: Any, rng: NoiseRng) -> Any:
        return decoded(self.channel, summary, rng.child("decode"))

    def values(self, table: Any) -> Floats:
        """Return every released number (buckets of all levels, width)."""
        levels = []
        for level, size in enumerate(self.shape.sizes):
            values = np.asarray(table.at(np.arange(size, dtype=np.int64), level))
            expected = (size,) if self.shape.bound is None else (size, self.width)
            require(values.shape == expected, f"at() of {size} buckets has the shape {values.shape}, not {expected}")
            levels.append(values.reshape(size, self.width))
        return np.concatenate(levels).astype(np.float64)

    def errors(self, table: Any) -> Floats:
        """Return the declared standard error of every released number (buckets of all levels, width)."""
        levels = []
        for level, size in enumerate(self.shape.sizes):
            values = np.asarray(table.standard_error(np.arange(size, dtype=np.int64), level), np.float64)
            require(values.shape == (size,), f"standard_error() of {size} buckets has the shape {values.shape}")
            levels.append(np.repeat(values[:, None], self.width, axis=1))
        return np.concatenate(levels)

    def exact(self, items: Ints | BucketedVectors) -> Floats:
        """Return the values without noise (buckets of all levels, width)."""
        unit, totals, rows = 1.0 if self.shape.bound is None else UNIT, [], with_vectors(items)
        for level, size in enumerate(self.shape.sizes):
            total = np.zeros((size + 1, self.width), np.int64)
            np.add.at(total, rows.buckets[:, level], rows.values)  # -1 is the last row, which is cut off
            totals.append(total[:-1])
        return np.concatenate(totals).astype(np.float64) * unit

    def releases(self, items: Ints | BucketedVectors, repeats: int, rng: NoiseRng) -> Iterator[Floats]:
        """Yield ``values`` of independent releases of the same rows."""
        # hashes are part of what makes users' answers unbiased, so public coins are drawn anew as well
        drawn_by_users = not is_central(self.oracle)
        summary = None if drawn_by_users else self.summary(items, rng)
        for i in range(repeats):
            release_rng = rng.child("release", i)
            probe = Probe.of(self.oracle, self.shape, self.budget, self.rows, i) if drawn_by_users else self
            yield probe.values(
                probe.table(probe.population_summary(items, release_rng) if summary is None else summary, release_rng)
            )

    def release(self, items: Ints | BucketedVectors, rng: NoiseRng) -> Floats:
        """Return ``values`` of one release of these rows alone."""
        return self.values(self.table(self.summary(items, rng), rng))

    def declared_errors(self, items: Ints | BucketedVectors, rng: NoiseRng) -> Floats:
        """Return ``errors`` of one release of these rows alone."""
        return self.errors(self.table(self.summary(items, rng), rng))

    def experiments(self, numbers: Floats) -> Floats:
        """Return (repeats, buckets of all levels, width) of a wide table as (experiments, levels times width)."""
        levels = np.concatenate(self.by_level(numbers), axis=2)
        return levels.reshape(-1, levels.shape[2])

    def noise(self, items: Ints | BucketedVectors, repeats: int, rng: NoiseRng) -> Floats:
        """Return releases less the exact values: (repeats, buckets of all levels, width)."""
        return np.stack(list(self.releases(items, repeats, rng))) - self.exact(items)

    def by_level(self, numbers: Floats) -> list[Floats]:
        """Split an array (..., buckets of all levels, width) into levels."""
        return np.split(numbers, np.cumsum(self.shape.sizes)[:-1], axis=-2)


def decoded(channel: Any, summary: Any, rng: NoiseRng) -> Any:
    """Return the table of a summary, adding first any noise that ``decode`` does not draw."""
    return channel.decode(noised(channel, summary, rng), rng)


def noised(channel: Any, summary: Any, rng: NoiseRng) -> Any:
    """Return a summary with the noise that parties and coordinator add under Aggregated trust."""
    if not isinstance(summary, RingVector) or summary.noised:
        return summary
    return summary.released(whole_noise(channel, rng))


def _arguments(shape: Shape, budget: Budget, rows: int, seed: int) -> tuple[Any, ...]:
    """Return the arguments of ``open`` and ``variance``."""
    context = QuestionContext(rows, UNIT, PublicRng.from_seed(seed).child("probe"))
    return (Space(shape.sizes), budget, context, *(() if shape.bound is None else (shape.bound,)))


def deep_probe(oracle: Any, budget: Budget) -> Probe:
    """Open a question of about as many levels, or columns, as methods use: what a row changes grows with them."""
    if role_of(oracle) == "FrequencyOracle":
        return Probe.of(oracle, Shape((2,) * 40), budget)
    try:
        return Probe.of(oracle, Shape((2,), Bound(900, 100)), budget)
    except InvalidInput:  # it is for fewer columns
        return Probe.of(oracle, Shape((2,), Bound(900, 10)), budget)


def row_count(items: Ints | BucketedVectors) -> int:
    return len(items.buckets if isinstance(items, BucketedVectors) else items)


def repeated(row: Ints | BucketedVectors, n: int) -> Ints | BucketedVectors:
    """Return n copies of a row."""
    if isinstance(row, BucketedVectors):
        return BucketedVectors(np.repeat(row.buckets, n, 0), np.repeat(row.values, n, 0))
    return np.repeat(row, n, 0)


def with_vectors(items: Ints | BucketedVectors) -> BucketedVectors:
    """Return rows with vectors; counted rows get the vector 1."""
    return items if isinstance(items, BucketedVectors) else BucketedVectors(items, np.ones((len(items), 1), np.int64))


def varied_rows(shape: Shape, seed: int = 0, max_rows: int = 100) -> Ints | BucketedVectors:
    """Return rows that fill the buckets of every level with 0 to max_rows - 1 rows, in independent orders.

    Vectors are random. At least one row in nine is in no bucket of a level.
    """
    g = np.random.default_rng(seed)
    columns = [np.repeat(g.permutation(size), np.arange(size) % max_rows) for size in shape.sizes]
    n = max(len(column) for column in columns) * 9 // 8 + 1
    padded = [np.concatenate([column, np.full(n - len(column), -1)]) for column in columns]
    buckets = np.stack([g.permutation(column) for column in padded], axis=1).astype(np.int64)
    bound = shape.bound
    if bound is None:
        return buckets
    wide = g.integers(-bound.l2, bound.l2, (n, bound.dimension), endpoint=True)
    return BucketedVectors(buckets, shrink(wide, bound))


def worst_vectors(bound: Bound | None) -> Ints:
    """Return vectors (m, dimension) at their bounds: along an axis, along the diagonal, and at the L1 bound.

    For counts this is the vector 1.
    """
    if bound is None:
        return np.ones((1, 1), np.int64)
    axis = np.zeros(bound.dimension, np.int64)
    axis[0] = -bound.l2
    diagonal = np.full(bound.dimension, int(bound.l2 / math.sqrt(bound.dimension)), np.int64)
    diagonal[1::2] *= -1
    even = np.full(bound.dimension, bound.l1 // bound.dimension, np.int64)
    return np.unique(shrink(np.stack([axis, diagonal, even]), bound), axis=0)
