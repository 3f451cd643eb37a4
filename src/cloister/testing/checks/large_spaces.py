"""Checks of what is asked lazily: the same laws, far out in a space that is too large to list.

An oracle that keeps a number per bucket may refuse such a space (``InvalidInput``). One that takes it is checked as on
few buckets: the kit's buckets are the last ones of a space of 2^59 and more, and whatever is asked of them is asked of
those.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any, NoReturn

import attrs
import numpy as np

from cloister.core.buckets import BucketedVectors, QuestionContext, Space
from cloister.core.budget import Budget, Event, Measure
from cloister.core.errors import InvalidInput
from cloister.core.lattice import Bound
from cloister.core.randomness import NoiseRng
from cloister.core.types import Floats, Ids, Ints
from cloister.testing.check import role_of
from cloister.testing.checks import oracle_biased, oracle_noise, oracle_privacy, oracle_rows
from cloister.testing.probes import Probe, budget_of, decoded, narrow_shapes

FAR = 2**59 + 2**31 + 7
"""Places of the buckets that the kit asks about. No float64 tells it from its neighbours."""

TOO_LARGE = (InvalidInput, MemoryError, OverflowError, ValueError)
"""How an oracle that keeps a number per bucket says, or shows, that a space is too large for it."""


@attrs.frozen
class FarTable:
    """A table, by numbers that count from ``FAR``."""

    table: Any

    def at(self, ids: Ints, level: int = 0) -> Floats:
        values: Floats = self.table.at(ids + FAR, level)
        return values

    def standard_error(self, ids: Ints, level: int = 0) -> Floats:
        errors: Floats = self.table.standard_error(ids + FAR, level)
        return errors

    def __repr__(self) -> str:
        return repr(self.table)

    def __reduce__(self) -> NoReturn:
        self.table.__reduce__()
        raise AssertionError("the table travels")


@attrs.frozen
class FarChannel:
    """A channel of the large space, whose items and tables count from ``FAR``."""

    channel: Any

    @property
    def events(self) -> tuple[Event, ...]:
        events: tuple[Event, ...] = self.channel.events
        return events

    def encode(self, items: Ints | BucketedVectors, users: Ids, rng: NoiseRng) -> Any:
        if isinstance(items, BucketedVectors):
            return self.channel.encode(BucketedVectors(_moved(items.buckets), items.values), users, rng)
        return self.channel.encode(_moved(items), users, rng)

    def absorb(self, report: Any) -> Any:
        return self.channel.absorb(report)

    def decode(self, summary: Any, rng: NoiseRng) -> FarTable:
        return FarTable(decoded(self.channel, summary, rng))


@attrs.frozen
class _Far:
    """An oracle that is asked about buckets of a large space."""

    oracle: Any

    uses_delta = asks_all_users = biased = False

    @property
    def trust(self) -> Any:
        return self.oracle.trust

    @property
    def measure(self) -> Measure:
        measure: Measure = self.oracle.measure
        return measure


class FarCounts(_Far):
    """Counts far out."""

    def open(self, space: Space, budget: Budget, context: QuestionContext) -> FarChannel:
        return FarChannel(self.oracle.open(_large(space), budget, context))

    def variance(self, space: Space, budget: Budget, context: QuestionContext) -> float:
        return float(self.oracle.variance(_large(space), budget, context))


class FarSums(_Far):
    """Vector sums far out."""

    def open(self, space: Space, bound: Bound, budget: Budget, context: QuestionContext) -> FarChannel:
        return FarChannel(self.oracle.open(_large(space), bound, budget, context))

    def variance(self, space: Space, bound: Bound, budget: Budget, context: QuestionContext) -> float:
        return float(self.oracle.variance(_large(space), bound, budget, context))


def _moved(buckets: Ints) -> Ints:
    return np.where(buckets >= 0, buckets + FAR, buckets)


def _large(space: Space) -> Space:
    return Space(tuple(FAR + size for size in space.sizes))


def far(oracle: Any) -> Any:
    """The oracle in a large space; None if it takes none."""
    made, shape = (
        (FarCounts if role_of(oracle) == "FrequencyOracle" else FarSums)(oracle),
        narrow_shapes(role_of(oracle))[0],
    )
    with suppress(*TOO_LARGE):
        probe, rng = Probe.of(made, shape, budget_of(oracle.measure, 0.3)), NoiseRng.for_tests(60)
        row = probe.items(np.zeros((1, 1), np.int64), np.zeros((1, probe.width), np.int64))
        probe.table(probe.summary(row, rng), rng)
        return made
    return None


def _far_out(check: Callable[[Any], None]) -> Callable[[Any], None]:
    """A check of oracles, far out."""

    @wraps(check)
    def far_out(oracle: Any) -> None:
        made = far(oracle)
        if made is not None:
            check(made)

    far_out.__name__ = f"{check.__name__}_in_a_large_space"
    return far_out


LARGE = tuple(
    _far_out(check)
    for check in (
        oracle_rows.rows_count_the_same_in_any_chunk_and_order,
        oracle_rows.merging_is_associative_and_commutative,
        oracle_rows.no_rows_are_valid_rows,
        oracle_rows.absorb_refuses_what_no_encoder_sends,
        oracle_rows.a_bucket_always_answers_the_same,
        oracle_rows.tables_neither_pickle_nor_print,
    )
)
"""For every Central oracle."""

LARGE_NOISE = tuple(
    _far_out(check)
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
"""For Central oracles that promise privacy."""

LARGE_BIASED = tuple(
    _far_out(check)
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
"""For those of them that are biased."""

LARGE_EXACT = (_far_out(oracle_noise.exact_answers_are_exact),)
"""For Central oracles that promise none."""
