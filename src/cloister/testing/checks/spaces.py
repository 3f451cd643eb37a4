"""Checks of spaces too large to list, and of nested spaces, whose levels add up.

An oracle that keeps a number per bucket may refuse a large space (``InvalidInput``). One that accepts it is checked as
on few buckets: the kit asks about the last buckets of a space of more than 2^59. In a nested space, an oracle that
counts at the deepest level and adds up must give every level its exact counts and its own noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property, wraps
from typing import Any, NoReturn, final

import attrs
import numpy as np

from cloister.plugin import (
    Bound,
    BucketedVectors,
    Budget,
    Event,
    Floats,
    Ids,
    Ints,
    InvalidInput,
    Measure,
    NoiseRng,
    PublicRng,
    QuestionContext,
    Space,
)
from cloister.testing.check import require, role_of
from cloister.testing.checks import oracle_biased, oracle_noise, oracle_privacy, oracle_rows
from cloister.testing.checks.oracle_biased import compare_squares
from cloister.testing.checks.oracle_noise import Sample, compare_means, compare_widths
from cloister.testing.probes import UNIT, Probe, budget_of, decoded, narrow_shapes, with_vectors
from cloister.testing.statistics import correlation, deviations

OFFSET = 2**59 + 2**31 + 7
"""Position of the first bucket that the kit asks about; float64 cannot tell it from its neighbours."""

TOO_LARGE = (InvalidInput, MemoryError, OverflowError, ValueError)
"""Exceptions by which an oracle that keeps a number per bucket refuses, or fails on, a large space."""


@attrs.frozen
class FarTable:
    """Table with ids relative to ``OFFSET``."""

    table: Any

    def at(self, ids: Ints, level: int = 0) -> Floats:
        values: Floats = self.table.at(ids + OFFSET, level)
        return values

    def standard_error(self, ids: Ints, level: int = 0) -> Floats:
        errors: Floats = self.table.standard_error(ids + OFFSET, level)
        return errors

    def __repr__(self) -> str:
        return repr(self.table)

    def __reduce__(self) -> NoReturn:
        self.table.__reduce__()
        raise AssertionError("the table travels")


@attrs.frozen
class FarChannel:
    """Channel of the large space, with buckets relative to ``OFFSET``."""

    channel: Any

    @property
    def events(self) -> tuple[Event, ...]:
        events: tuple[Event, ...] = self.channel.events
        return events

    def encode(self, items: Ints | BucketedVectors, users: Ids, rng: NoiseRng) -> Any:
        if isinstance(items, BucketedVectors):
            return self.channel.encode(BucketedVectors(_shifted(items.buckets), items.values), users, rng)
        return self.channel.encode(_shifted(items), users, rng)

    def absorb(self, report: Any) -> Any:
        return self.channel.absorb(report)

    def decode(self, summary: Any, rng: NoiseRng) -> FarTable:
        return FarTable(decoded(self.channel, summary, rng))


@attrs.frozen
class _Far:
    """Oracle that is asked about buckets of a large space."""

    oracle: Any

    uses_delta = asks_all_users = biased = False

    @property
    def trust(self) -> Any:
        return self.oracle.trust

    @property
    def joint(self) -> bool:
        return bool(getattr(self.oracle, "joint", False))

    @property
    def measure(self) -> Measure:
        measure: Measure = self.oracle.measure
        return measure


class FarCounts(_Far):
    """Count oracle in a large space."""

    def open(self, space: Space, budget: Budget, context: QuestionContext) -> FarChannel:
        return FarChannel(self.oracle.open(_large(space), budget, context))

    def variance(self, space: Space, budget: Budget, context: QuestionContext) -> float:
        return float(self.oracle.variance(_large(space), budget, context))


class FarSums(_Far):
    """Vector-sum oracle in a large space."""

    def open(self, space: Space, budget: Budget, context: QuestionContext, bound: Bound) -> FarChannel:
        return FarChannel(self.oracle.open(_large(space), budget, context, bound))

    def variance(self, space: Space, budget: Budget, context: QuestionContext, bound: Bound) -> float:
        return float(self.oracle.variance(_large(space), budget, context, bound))


def _shifted(buckets: Ints) -> Ints:
    return np.where(buckets >= 0, buckets + OFFSET, buckets)


def _large(space: Space) -> Space:
    return Space(tuple(OFFSET + size for size in space.sizes))


def large_space_oracle(oracle: Any) -> Any:
    """Return the oracle in a large space; None if it accepts none."""
    role = role_of(oracle)
    shifted = FarCounts(oracle) if role == "FrequencyOracle" else FarSums(oracle)
    with suppress(*TOO_LARGE):
        probe, rng = Probe.of(shifted, narrow_shapes(role)[0], budget_of(oracle.measure, 0.3)), NoiseRng.for_tests(60)
        row = probe.items(np.zeros((1, 1), np.int64), np.zeros((1, probe.width), np.int64))
        probe.table(probe.summary(row, rng), rng)
        return shifted
    return None


def _in_large_space(check: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return a check of oracles, applied in a large space."""

    @wraps(check)
    def in_large_space_check(oracle: Any) -> None:
        shifted = large_space_oracle(oracle)
        if shifted is not None:
            check(shifted)

    in_large_space_check.__name__ = f"{check.__name__}_in_a_large_space"
    return in_large_space_check


LARGE = tuple(
    _in_large_space(check)
    for check in (
        oracle_rows.rows_count_the_same_in_any_chunk_and_order,
        oracle_rows.merging_is_associative_and_commutative,
        oracle_rows.no_rows_are_valid_rows,
        oracle_rows.absorb_refuses_what_no_encoder_sends,
        oracle_rows.a_bucket_always_answers_the_same,
        oracle_rows.tables_neither_pickle_nor_print,
    )
)
"""Checks of every Central oracle."""

LARGE_NOISE = tuple(
    _in_large_space(check)
    for check in (
        oracle_noise.bias_is_as_declared,
        oracle_noise.noise_comes_from_the_rng_it_is_given,
        oracle_noise.variance_is_as_declared,
        oracle_noise.secret_noise_has_the_declared_law,
        oracle_noise.empty_buckets_get_the_same_noise,
        oracle_noise.noises_are_independent,
        oracle_noise.noise_is_discrete,
        oracle_privacy.neighbours_are_hard_to_tell_apart,
    )
)
"""Checks of unbiased Central oracles that promise privacy."""

LARGE_BIASED = tuple(
    _in_large_space(check)
    for check in (
        oracle_biased.errors_are_within_the_declared_ones,
        oracle_biased.secret_noise_has_the_law_of_seeded_noise,
        oracle_biased.many_rows_get_the_same_noise,
        oracle_noise.noise_comes_from_the_rng_it_is_given,
        oracle_noise.noises_are_independent,
        oracle_noise.noise_is_discrete,
        oracle_privacy.neighbours_are_hard_to_tell_apart,
    )
)
"""Checks of biased Central oracles."""

LARGE_EXACT = (_in_large_space(oracle_noise.exact_answers_are_exact),)
"""Checks of Central oracles without privacy."""


SPACES = tuple(
    Space(sizes, nested=True)
    for sizes in ((1,), (1, 2, 4, 8), (4, 8, 16), (1, 2, 3, 5), (1, 1, 1, 1), tuple(2**level for level in range(60)))
)
"""Nested spaces: shallow, with and without a root, not a power of two, one cell, deep."""

COMPARISONS = 256
"""Upper limit on the levels of all spaces."""


@final
@attrs.frozen(eq=False, slots=False)
class Nest:
    """Rows in a nested space, and the buckets to ask about.

    Args:
        oracle: oracle under test.
        space: nested space.
        bound: bound of the vectors; None for counts.
    """

    oracle: Any
    space: Space
    bound: Bound | None

    @cached_property
    def deepest(self) -> Ints:
        """Ids (n,) of the rows at the deepest level, -1 among them: some buckets hold many rows, most hold none."""
        g, size = np.random.default_rng(70), self.space.sizes[-1]
        ids = g.integers(0, size, 5)
        return np.concatenate([np.repeat(ids, [0, 1, 2, 30, 200]), g.integers(0, size, 20), np.full(9, -1)])

    @cached_property
    def items(self) -> Ints | BucketedVectors:
        ids = self.deepest
        buckets = np.stack([ids >> down for down in range(self.space.levels)][::-1], axis=1)
        if self.bound is None:
            return buckets
        limit = math.isqrt(self.bound.l2**2 // self.bound.dimension)
        g = np.random.default_rng(71)
        return BucketedVectors(buckets, g.integers(-limit, limit, (len(ids), self.bound.dimension), endpoint=True))

    def ids_at(self, level: int) -> Ints:
        """Return buckets of a level: some with rows, their siblings, and the first and last."""
        size, ids = self.space.sizes[level], self.deepest[:-9] >> (self.space.levels - 1 - level)
        occupied = np.unique(ids)[:6]
        return np.unique(np.clip(np.concatenate([occupied, occupied ^ 1, [0, size - 1]]), 0, size - 1))

    def exact(self, level: int) -> Floats:
        """Return the values of ``ids_at`` without noise (m, width)."""
        rows, ids = with_vectors(self.items), self.ids_at(level)
        inside = ids[:, None] == rows.buckets[:, level]
        values: Floats = (inside @ rows.values) * (1.0 if self.bound is None else UNIT)
        return values

    def noise(self, repeats: int) -> list[Floats]:
        """Return, per level, releases less the exact values (repeats, m, width).

        Raises:
            InvalidInput: the oracle keeps a number per bucket, and there are too many.
        """
        channel, ids_by_level = self.channel, [self.ids_at(level) for level in range(self.space.levels)]
        users = np.arange(len(self.deepest), dtype=np.uint64)
        summary = channel.absorb(channel.encode(self.items, users, NoiseRng.for_tests(72)))
        tables = [decoded(channel, summary, NoiseRng.for_tests(72).child(i)) for i in range(repeats)]
        return [
            np.stack([np.asarray(table.at(ids, level)).reshape(len(ids), -1) for table in tables]) - self.exact(level)
            for level, ids in enumerate(ids_by_level)
        ]

    @property
    def channel(self) -> Any:
        context, bound = (
            QuestionContext(1000, UNIT, PublicRng.from_seed(73)),
            () if self.bound is None else (self.bound,),
        )
        return self.oracle.open(self.space, budget_of(self.oracle.measure, 0.5), context, *bound)

    def errors(self, level: int) -> Floats:
        """Return the declared standard errors (m,) of ``ids_at``."""
        rng = NoiseRng.for_tests(74)
        none = np.zeros((0, self.space.levels), np.int64)
        items = none if self.bound is None else BucketedVectors(none, np.zeros((0, self.bound.dimension), np.int64))
        channel = self.channel
        table = decoded(channel, channel.absorb(channel.encode(items, np.zeros(0, np.uint64), rng)), rng)
        return np.asarray(table.standard_error(self.ids_at(level), level))


def _nests(oracle: Any) -> Iterator[Nest]:
    """Yield the nested spaces that the oracle accepts."""
    for space in SPACES:
        nest = Nest(oracle, space, None if role_of(oracle) == "FrequencyOracle" else Bound(1000, 2))
        try:
            nest.noise(1)
        except TOO_LARGE:
            continue
        yield nest


def nested_levels_are_added_up_exactly(oracle: Any) -> None:
    """Levels of a nested space answer with what their buckets hold: the mean over many releases is exact."""
    for nest in _nests(oracle):
        for level, noise in enumerate(nest.noise(100)):
            flat = noise.reshape(len(noise), -1)
            sample = Sample(flat, np.zeros(flat.shape[1]), f"{_name(nest)}, level {level}")
            compare_means(sample, COMPARISONS * flat.shape[1])


def nested_levels_have_noise_of_their_own(oracle: Any) -> None:
    """Levels of a nested space have the declared noise whatever they hold, uncorrelated with their parents' noise.

    Noise that is added up with the counts is another mechanism.
    """
    _check_levels(oracle, compare_widths)


def nested_errors_are_within_the_declared_ones(oracle: Any) -> None:
    """Levels of a nested space from a biased oracle have a root mean square error of at most ``standard_error``.

    A bucket's noise is uncorrelated with its parent's.
    """
    _check_levels(oracle, compare_squares)


def _check_levels(oracle: Any, compare: Callable[[Sample], None]) -> None:
    for nest in _nests(oracle):
        noises = nest.noise(512 if nest.space.levels < 10 else 128)
        for level, noise in enumerate(noises):
            errors = np.full(noise.shape[-1], nest.errors(level).max())
            compare(Sample(noise.reshape(-1, noise.shape[-1]), errors, f"{_name(nest)}, level {level}"))
        for level in range(nest.space.levels - 1):
            _check_apart(nest, level, noises[level], noises[level + 1])


def _check_apart(nest: Nest, level: int, above: Floats, below: Floats) -> None:
    """Raise if a parent's noise correlates with that of its children, together or alone."""
    parents, children = nest.ids_at(level), nest.ids_at(level + 1)
    band = deviations(64 * COMPARISONS) / math.sqrt(len(above) * above.shape[-1])
    for i, parent in enumerate(parents):
        siblings = np.flatnonzero(children >> 1 == parent)
        for subset in (siblings, siblings[:1], siblings[1:]):
            children_noise = below[:, subset].sum(axis=1)
            if np.ptp(above[:, i]) and np.ptp(children_noise):  # noise rounded to wide steps may be constant
                r = correlation(above[:, i].ravel(), children_noise.ravel())
                require(
                    abs(r) <= band,
                    f"{_name(nest)}: the noise of a parent of level {level} and its children correlate, r = {r:.3f}",
                )


def _name(nest: Nest) -> str:
    return f"a nested space of {nest.space.levels} levels, {nest.space.sizes[-1]} buckets on the deepest"


NESTED = (nested_levels_are_added_up_exactly,)
"""Checks of unbiased Central oracles."""

NESTED_NOISE = (nested_levels_have_noise_of_their_own,)
"""Checks of unbiased Central oracles that promise privacy."""

NESTED_BIASED = (nested_errors_are_within_the_declared_ones,)
"""Checks of biased Central oracles."""
