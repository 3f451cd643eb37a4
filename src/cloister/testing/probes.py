"""An opened oracle, and what the checks do to it: ask it about known rows, and look at the noise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, final

import attrs
import numpy as np

from cloister.core.aggregated import RingVector, whole_noise
from cloister.core.buckets import BucketedVectors, QuestionContext, Space
from cloister.core.budget import Budget, Measure
from cloister.core.errors import InvalidInput
from cloister.core.lattice import Bound, shrink
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.shuffling import in_messages
from cloister.core.trust import Local, Shuffled
from cloister.core.types import Floats, Ids, Ints
from cloister.testing.check import require, role_of

UNIT = 2.0**-10
"""The lattice's spacing in the kit's questions: not 1, so that an oracle that forgets it is found out."""

PAYABLE: dict[Measure, tuple[Measure, ...]] = {
    "pure": ("pure", "zcdp"),
    "gaussian": ("gaussian", "zcdp"),
    "zcdp": ("zcdp",),
    "exact": ("exact",),
}
"""In which measures an oracle of each measure takes budgets."""

CROWD = 1000
"""Least public number of users where they hide each other (Shuffled trust)."""

ON_THE_WIRE = 2**19
"""Most messages that are made for one release; beyond, it is drawn by ``pooled``."""

DELTA = 1e-3
"""Delta of the kit's budgets, for mechanisms that have a delta of their own."""


def budget_of(measure: Measure, epsilon: float) -> Budget:
    """About as much privacy in every measure: epsilon, mu = epsilon, rho = epsilon^2 / 2; and a delta for who spends
    one."""
    amounts = {"pure": epsilon, "gaussian": epsilon**2, "zcdp": epsilon**2 / 2, "exact": math.inf}
    return Budget(measure, amounts[measure], delta=DELTA)


@final
@attrs.frozen
class Shape:
    """A question's outline. Args: sizes (buckets per level), bound (of the vectors; None for counts)."""

    sizes: tuple[int, ...]
    bound: Bound | None = None


def narrow_shapes(role: str) -> tuple[Shape, ...]:
    """Few buckets: a single one, a tree's levels with their root, many levels, and every kind of vector bound."""
    if role == "FrequencyOracle":
        return Shape((1,)), Shape((1, 2, 4)), Shape((2,) * 5)
    return Shape((1,), Bound(1, 1)), Shape((1, 2), Bound(1000, 3)), Shape((2,), Bound(900, 4, 1200))


def wide_shapes(role: str, size: int) -> tuple[Shape, ...]:
    """Many buckets, each of them an experiment of its own: one level and several, one coordinate and several."""
    if role == "FrequencyOracle":
        return Shape((size,)), Shape((size,) * 3)
    return Shape((size,), Bound(1000, 1)), Shape((size,), Bound(1000, 3)), Shape((size,) * 2, Bound(900, 2, 1200))


@final
@attrs.frozen(eq=False)
class Probe:
    """A channel with what it was opened with.

    Args:
        oracle, shape, budget: what was opened.
        rows: the public number of rows.
        channel: what came out.
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
        """The oracle's ``variance`` of this channel."""
        return float(self.oracle.variance(*_arguments(self.shape, self.budget, self.rows, 1)))

    def items(self, buckets: Ints, vectors: Ints | None = None) -> Ints | BucketedVectors:
        """An encoder's input: ids (n, levels), and for sums the vectors (n, dimension)."""
        return buckets if self.shape.bound is None or vectors is None else BucketedVectors(buckets, vectors)

    def summary(self, items: Ints | BucketedVectors, rng: NoiseRng, users: Ids | None = None) -> Any:
        """Encoded and absorbed, users numbered from 0 unless they are given."""
        who = np.arange(length(items), dtype=np.uint64) if users is None else users
        return self.channel.absorb(self.channel.encode(items, who, rng.child("encode")))

    def released(self, items: Ints | BucketedVectors, rng: NoiseRng) -> Any:
        """The same, but where all users owe a share of the noise: then of these rows and as many in no bucket as the
        public number of users leaves, drawn at once if there would be many messages."""
        if in_messages(self.channel) is None:
            return self.summary(items, rng)
        more = max(0, self.rows - length(items))
        nowhere, zeros = np.full((more, len(self.shape.sizes)), -1), np.zeros((more, self.width), np.int64)
        who = np.arange(length(items) + more, dtype=np.uint64)
        every: Ints | BucketedVectors
        if isinstance(items, BucketedVectors):
            every = BucketedVectors(np.concatenate([items.buckets, nowhere]), np.concatenate([items.values, zeros]))
        else:
            every = np.concatenate([items, nowhere])
        if len(who) * self.channel.messages <= ON_THE_WIRE:
            return self.summary(every, rng)
        return self.channel.pooled(every, who, rng.child("encode"))

    def table(self, summary: Any, rng: NoiseRng) -> Any:
        return decoded(self.channel, summary, rng.child("decode"))

    def values(self, table: Any) -> Floats:
        """Every released number (buckets of all levels, width)."""
        found = []
        for level, size in enumerate(self.shape.sizes):
            values = np.asarray(table.at(np.arange(size, dtype=np.int64), level))
            wanted = (size,) if self.shape.bound is None else (size, self.width)
            require(values.shape == wanted, f"at() of {size} buckets has the shape {values.shape}, not {wanted}")
            found.append(values.reshape(size, self.width))
        return np.concatenate(found).astype(np.float64)

    def errors(self, table: Any) -> Floats:
        """The declared standard error of every released number (buckets of all levels, width)."""
        found = []
        for level, size in enumerate(self.shape.sizes):
            values = np.asarray(table.standard_error(np.arange(size, dtype=np.int64), level), np.float64)
            require(values.shape == (size,), f"standard_error() of {size} buckets has the shape {values.shape}")
            found.append(np.repeat(values[:, None], self.width, axis=1))
        return np.concatenate(found)

    def exact(self, items: Ints | BucketedVectors) -> Floats:
        """Values that would be released without noise (buckets of all levels, width)."""
        unit, found, rows = 1.0 if self.shape.bound is None else UNIT, [], placed(items)
        for level, size in enumerate(self.shape.sizes):
            total = np.zeros((size + 1, self.width), np.int64)
            np.add.at(total, rows.buckets[:, level], rows.values)  # -1 is the last row, which is cut off
            found.append(total[:-1])
        return np.concatenate(found).astype(np.float64) * unit

    def releases(self, items: Ints | BucketedVectors, repeats: int, rng: NoiseRng) -> Iterator[Floats]:
        """Independent releases of the same rows, ``values`` each. Where users draw, all coins are thrown again, public
        ones too: hashes are part of what makes their answers unbiased."""
        drawn_by_users = self.oracle.trust in (Local, Shuffled)
        summary = None if drawn_by_users else self.summary(items, rng)
        for i in range(repeats):
            mine = rng.child("release", i)
            probe = Probe.of(self.oracle, self.shape, self.budget, self.rows, i) if drawn_by_users else self
            yield probe.values(probe.table(probe.released(items, mine) if summary is None else summary, mine))

    def noise(self, items: Ints | BucketedVectors, repeats: int, rng: NoiseRng) -> Floats:
        """Releases less the truth: (repeats, buckets of all levels, width)."""
        return np.stack(list(self.releases(items, repeats, rng))) - self.exact(items)

    def by_level(self, numbers: Floats) -> list[Floats]:
        """An array (..., buckets of all levels, width) cut into levels."""
        return np.split(numbers, np.cumsum(self.shape.sizes)[:-1], axis=-2)


def decoded(channel: Any, summary: Any, rng: NoiseRng) -> Any:
    """The table of a summary. Under Aggregated trust the whole noise is added first, as the parties and their
    coordinator do."""
    return channel.decode(noised(channel, summary, rng), rng)


def noised(channel: Any, summary: Any, rng: NoiseRng) -> Any:
    """A summary with the noise that ``decode`` does not draw."""
    if not isinstance(summary, RingVector) or summary.noised:
        return summary
    return summary.released(whole_noise(channel, rng))


def _arguments(shape: Shape, budget: Budget, rows: int, seed: int) -> tuple[Any, ...]:
    """Arguments of ``open`` and ``variance``."""
    context = QuestionContext(rows, UNIT, PublicRng.from_seed(seed).child("probe"))
    return (Space(shape.sizes), budget, context, *(() if shape.bound is None else (shape.bound,)))


def deep(oracle: Any, budget: Budget) -> Probe:
    """About as many levels, or columns, as methods ask about, or as the oracle takes: what a row changes grows with
    them."""
    if role_of(oracle) == "FrequencyOracle":
        return Probe.of(oracle, Shape((2,) * 40), budget)
    try:
        return Probe.of(oracle, Shape((2,), Bound(900, 100)), budget)
    except InvalidInput:  # it is for fewer columns
        return Probe.of(oracle, Shape((2,), Bound(900, 10)), budget)


def length(items: Ints | BucketedVectors) -> int:
    """How many rows there are."""
    return len(items.buckets if isinstance(items, BucketedVectors) else items)


def repeated(row: Ints | BucketedVectors, n: int) -> Ints | BucketedVectors:
    """So many rows like this one."""
    if isinstance(row, BucketedVectors):
        return BucketedVectors(np.repeat(row.buckets, n, 0), np.repeat(row.values, n, 0))
    return np.repeat(row, n, 0)


def placed(items: Ints | BucketedVectors) -> BucketedVectors:
    """Rows with their vectors; where they are counted, each counts 1."""
    return items if isinstance(items, BucketedVectors) else BucketedVectors(items, np.ones((len(items), 1), np.int64))


def spread(shape: Shape, seed: int = 0, most: int = 100) -> Ints | BucketedVectors:
    """Rows whose buckets hold 0 .. most - 1 rows, evenly, in an order of their own at every level; vectors at random.
    One in nine or more is in no bucket of a level."""
    g = np.random.default_rng(seed)
    columns = [np.repeat(g.permutation(size), np.arange(size) % most) for size in shape.sizes]
    n = max(len(column) for column in columns) * 9 // 8 + 1
    padded = [np.concatenate([column, np.full(n - len(column), -1)]) for column in columns]
    buckets = np.stack([g.permutation(column) for column in padded], axis=1).astype(np.int64)
    bound = shape.bound
    if bound is None:
        return buckets
    wide = g.integers(-bound.l2, bound.l2, (n, bound.dimension), endpoint=True)
    return BucketedVectors(buckets, shrink(wide, bound))


def worst_vectors(bound: Bound | None) -> Ints:
    """Vectors (m, dimension) that no bound lets grow: along an axis, along the diagonal, and at the L1 bound. A row
    counts 1."""
    if bound is None:
        return np.ones((1, 1), np.int64)
    axis = np.zeros(bound.dimension, np.int64)
    axis[0] = -bound.l2
    diagonal = np.full(bound.dimension, int(bound.l2 / math.sqrt(bound.dimension)), np.int64)
    diagonal[1::2] *= -1
    even = np.full(bound.dimension, bound.l1 // bound.dimension, np.int64)
    return np.unique(shrink(np.stack([axis, diagonal, even]), bound), axis=0)
