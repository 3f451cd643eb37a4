"""Counts and sums of nested and of large spaces: exact totals, noise on every level that is paid for, once for each
bucket."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from cloister.core.buckets import BucketedVectors, QuestionContext, Space
from cloister.core.budget import Budget
from cloister.core.clustering import Problem
from cloister.core.domains import Box
from cloister.core.encoding import map_merge
from cloister.core.errors import InvalidInput, Refused
from cloister.core.lattice import CAP, Bound
from cloister.core.questions import count
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.record import Record
from cloister.core.session import Session
from cloister.core.types import Ints
from cloister.noise.channel import TensorChannel
from cloister.noise.sparse import DENSE, PIECES, LevelTotals, SparseChannel, SparsePieces, SparseTotals
from cloister.plugins.oracles.central.discrete_gaussian import DiscreteGaussian
from cloister.plugins.oracles.central.discrete_laplace import DiscreteLaplace
from cloister.plugins.oracles.central.exact import Exact
from cloister.testing.stubs import Handful
from tests.alarms import Alarm

SETTING = QuestionContext(1000, 0.5, PublicRng.from_seed(1))
EXACT = Budget("exact", math.inf)
NOBODY = np.zeros(0, np.uint64)

DEEP = Space(tuple(2**level for level in range(60)), nested=True)
DENSE_TREE = Space((1, 2, 4, 8), nested=True)
FLAT = Space((2**62, 5, 2**40))


def path(leaves: Ints, levels: int) -> Ints:
    """Bucket ids (n, levels) of a nested space."""
    return np.stack([leaves >> min(down, 63) for down in range(levels)][::-1], axis=1)


def summary(channel: Any, *chunks: Any) -> Any:
    return map_merge(
        chunks,
        lambda some: channel.absorb(channel.encode(some, NOBODY, NoiseRng.for_tests(0))),
        lambda a, b: a.merge(b),
    )


def test_what_is_small_is_a_tensor_and_what_is_large_is_sparse() -> None:
    counts = DiscreteLaplace()
    assert isinstance(counts.open(Space((DENSE,)), Budget("pure", 1.0), SETTING), TensorChannel)
    assert isinstance(counts.open(Space((DENSE + 1,)), Budget("pure", 1.0), SETTING), SparseChannel)
    sums = DiscreteGaussian().open(Space((DENSE // 8 + 1,)), Budget("gaussian", 1.0), SETTING, Bound(9, 8))
    assert isinstance(sums, SparseChannel)
    with pytest.raises(InvalidInput, match="2\\^62"):
        counts.open(Space((2**62 + 1,)), Budget("pure", 1.0), SETTING)


@pytest.mark.parametrize("sizes", [(1, 3), (2, 2), (4, 8, 8), (1, 2, 4, 9)])
def test_a_nested_space_halves_from_level_to_level(sizes: tuple[int, ...]) -> None:
    with pytest.raises(InvalidInput, match="half the next one's buckets"):
        Space(sizes, nested=True)
    assert Space(sizes).sizes == sizes


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.integers(1, 700), st.lists(st.integers(-1, 699), max_size=60), st.integers(0, 2**31))
def test_nested_and_plain_tensors_answer_alike(levels: int, size: int, leaves: list[int], seed: int) -> None:
    ids = np.array([leaf % size if leaf >= 0 else -1 for leaf in leaves], np.int64).reshape(-1)
    sizes = tuple((size + (1 << down) - 1) >> down for down in range(levels))[::-1]
    vectors = np.random.default_rng(seed).integers(-5, 6, (len(ids), 2))
    for oracle, more, items in (
        (DiscreteLaplace(), (), path(ids, levels)),
        (DiscreteLaplace(), (Bound(9, 2),), BucketedVectors(path(ids, levels), vectors)),
    ):
        tables = []
        for nested in (True, False):
            channel: Any = oracle.open(Space(sizes, nested), Budget("pure", 1.0), SETTING, *more)
            tables.append(channel.decode(summary(channel, items), NoiseRng.for_tests(seed)))
        for level, buckets in enumerate(sizes):
            every = np.arange(buckets)
            assert np.array_equal(tables[0].at(every, level), tables[1].at(every, level))


def reference(ids: Ints, asked: Ints, values: Ints | None) -> Any:
    """Totals by comparing every row with every bucket."""
    same = asked[:, None] == ids
    return same.sum(axis=1) if values is None else same @ values


@pytest.mark.parametrize("space", [DEEP, FLAT, Space((2**61 + 1, 2**62), nested=False), Space((3, 6, 12), nested=True)])
@pytest.mark.parametrize("chunks", [1, 2, 7, 3 * PIECES])
def test_totals_are_exact_in_any_number_of_chunks(space: Space, chunks: int) -> None:
    g = np.random.default_rng(chunks)
    few = [g.integers(0, size, 30) for size in space.sizes]
    columns = [np.append(some, -1)[g.integers(0, 31, 1000)] for some in few]
    buckets = path(columns[-1], space.levels) if space.nested else np.stack(columns, axis=1)
    vectors = g.integers(-(10**6), 10**6, (1000, 3))
    parts = np.array_split(np.arange(1000), chunks)
    counts: Any = attrs.evolve(Exact().open(FLAT, EXACT, SETTING), space=space)
    sums: Any = attrs.evolve(Exact().open(FLAT, EXACT, SETTING, Bound(10**7, 3)), space=space, unit=1.0)
    assert isinstance(counts, SparseChannel)
    found = counts.decode(summary(counts, *(buckets[p] for p in parts)), NoiseRng.for_tests(1))
    added = sums.decode(summary(sums, *(BucketedVectors(buckets[p], vectors[p]) for p in parts)), NoiseRng.for_tests(1))
    for level, size in enumerate(space.sizes):
        asked = np.unique(np.concatenate([buckets[:60, level], buckets[:60, level] ^ 1, [0, size - 1]]))
        asked = asked[(asked >= 0) & (asked < size)]
        assert np.array_equal(found.at(asked, level), reference(buckets[:, level], asked, None))
        assert np.array_equal(added.at(asked, level), reference(buckets[:, level], asked, vectors))


def test_a_summary_keeps_few_lists_and_small_ones_are_joined_first() -> None:
    channel: Any = Exact().open(DEEP, EXACT, SETTING)
    g, merged, most = np.random.default_rng(5), None, 0
    for _ in range(1500):
        some = summary(channel, path(g.integers(0, 2**59, 50), 60))
        merged = some if merged is None else merged.merge(some)
        most = max(most, len(merged.pieces))
    assert most <= PIECES
    assert int(merged.total().values.sum()) == 1500 * 50
    sizes = sorted(len(piece.ids) for piece in merged.pieces)
    assert sizes[-1] > 100 * sizes[0]


def lists(**changes: Any) -> SparseTotals:
    """A report of ids 3, 7 (twice) on the first of two levels and 4 on the second, with changes."""
    report = SparseTotals(np.array([0, 2, 3]), np.array([3, 7, 4]), np.array([1, 2, 3]))
    return attrs.evolve(report, **changes)


IMPOSSIBLE = {
    "starts that do not end": {"starts": np.array([0, 2, 4])},
    "starts that go back": {"starts": np.array([0, 4, 3])},
    "starts of three levels": {"starts": np.array([0, 1, 2, 3])},
    "a start that is not 0": {"starts": np.array([1, 2, 3])},
    "ids that descend": {"ids": np.array([7, 3, 4])},
    "an id twice": {"ids": np.array([3, 3, 4])},
    "an id of -1": {"ids": np.array([-1, 7, 4])},
    "an id beyond the level": {"ids": np.array([3, 7, 5])},
    "a count of 0": {"values": np.array([1, 0, 3])},
    "a negative count": {"values": np.array([1, -2, 3])},
    "counts in floating point": {"values": np.array([1.0, 2.0, 3.0])},
    "vectors": {"values": np.ones((3, 2), np.int64)},
    "too few counts": {"values": np.array([1, 2])},
    "a list for an array": {"ids": [3, 7, 4]},
    "more rows than any run": {"values": np.array([1, CAP + 1, 3])},
}


@pytest.mark.parametrize("changes", IMPOSSIBLE.values(), ids=IMPOSSIBLE.keys())
def test_a_report_that_no_encoder_sends_is_refused(changes: dict[str, Any]) -> None:
    channel: Any = DiscreteLaplace().open(Space((2**62, 5)), Budget("pure", 1.0), SETTING)
    assert isinstance(channel.absorb(lists()), SparsePieces)
    with pytest.raises(Refused, match="no encoder sends"):
        channel.absorb(lists(**changes))


@pytest.mark.parametrize("levels", [1, 4, 59])
def test_laplace_scale_is_levels_over_epsilon_and_gaussian_sigma_its_root_over_mu(levels: int) -> None:
    space = Space(tuple(2 ** (60 - levels + i) for i in range(levels)), nested=True)
    laplace: Any = DiscreteLaplace().open(space, Budget("pure", 3.0), SETTING)
    assert laplace.law.scale == pytest.approx(levels / 3)
    gauss: Any = DiscreteGaussian().open(space, Budget("gaussian", 0.25), SETTING)
    assert gauss.law.sigma * 2.0**-gauss.shift == pytest.approx(math.sqrt(levels) / 0.5)
    assert gauss.law.sigma >= 2**20
    sums: Any = DiscreteGaussian().open(space, Budget("gaussian", 0.25), SETTING, Bound(40, 2))
    assert sums.law.sigma * 2.0**-sums.shift == pytest.approx(math.sqrt(levels) * 40 / 0.5)
    assert sums.deviation == pytest.approx(math.sqrt(levels) * 40 / 0.5 * SETTING.unit)
    pure: Any = DiscreteLaplace().open(space, Budget("pure", 3.0), SETTING, Bound(40, 2, 50))
    assert pure.law.scale == pytest.approx(levels * 50 / 3)


@pytest.mark.alarm(1e-8)
def test_looks_draw_afresh_for_new_buckets_only(alarm: Alarm) -> None:
    """Noises of later looks, and of levels, are uncorrelated with earlier ones."""
    channel: Any = DiscreteLaplace().open(DEEP, Budget("pure", 1.0), SETTING)
    table = channel.decode(summary(channel, path(np.zeros(0, np.int64), 60)), NoiseRng.for_tests(11))
    ids = np.arange(3000)
    columns = [table.at(ids, 59), table.at(ids + 3000, 59), table.at(ids, 58), table.at(ids, 20)]
    every = table.at(np.arange(6000), 59)
    assert np.array_equal(every, np.concatenate(columns[:2]))
    alarm.near(np.corrcoef(columns)[np.triu_indices(4, 1)], 0, 1 / math.sqrt(3000))


def test_the_last_bucket_of_the_largest_level_is_found() -> None:
    for sizes, nested in (((2**62,), False), (tuple(2**level for level in range(63)), True), ((1,) * 80, True)):
        space = Space(sizes, nested=nested)
        channel: Any = SparseChannel("exact", EXACT, space, None, None, 0, 1.0)
        last = np.array([sizes[-1] - 1] * 2 + [0])
        table = channel.decode(summary(channel, path(last, space.levels)), NoiseRng.for_tests(1))
        for level, size in enumerate(sizes):
            assert table.at(np.array([size - 1]), level).tolist() == [3.0 if size == 1 else 2.0]


def test_a_row_counts_where_its_deepest_id_says() -> None:
    """What a bucketing says of the other levels of a nested space changes nothing: the sensitivity does not rest on
    it."""
    for space in (DENSE_TREE, attrs.evolve(DEEP, sizes=DEEP.sizes[56:])):
        channel: Any = SparseChannel("exact", EXACT, space, None, None, 0, 1.0)
        dense: Any = TensorChannel("exact", EXACT, space, None, None, 0, 1.0) if sum(space.sizes) < 100 else channel
        wild = np.array([[0, 1, 3, 5], [-1, 0, 0, 7]])
        for some in (channel, dense):
            table = some.decode(summary(some, wild), NoiseRng.for_tests(1))
            assert [table.at(np.array([w >> 1, w]), 3).tolist() for w in (5, 7)] == [[0.0, 1.0]] * 2
            assert table.at(np.array([2, 3]), 2).tolist() == [1.0, 1.0]


@attrs.frozen
class Leaf:
    """Rows (n, 1) by their lattice coordinate, in a tree of 40 levels."""

    @property
    def space(self) -> Space:
        return Space(tuple(2**level for level in range(20, 60)), nested=True)

    def locate(self, rows: Ints) -> Ints:
        return path((rows[:, 0] + 2**21) << 20, 40)


@attrs.frozen
class Looks:
    """A method that looks at the same tree three times; it may die in between."""

    dies: int = 99

    def cluster(self, problem: Any, session: Any, rng: Any) -> Any:
        (table,) = session.ask(count(Leaf(), oracle=DiscreteLaplace(), budget=problem.budget))
        seen = []
        for number, ids in enumerate((np.arange(0, 60), np.arange(30, 90), np.arange(60, 120))):
            if number == self.dies:
                raise KeyboardInterrupt
            seen.append(table.at(ids + 2**38, 19))
        return np.concatenate(seen)


@pytest.mark.parametrize("dies", [1, 2])
def test_a_resumed_run_keeps_what_was_seen_and_draws_afresh_for_the_rest(dies: int) -> None:
    problem = Problem(2, Box((-1.0,), (1.0,)), 100, Budget("pure", 4.0))
    rows = Handful(np.random.default_rng(1).uniform(-1, 1, (100, 1)), 100)
    seed, record = PublicRng.from_seed(5), Record()
    with pytest.raises(KeyboardInterrupt):
        Looks(dies).cluster(problem, Session(problem, seed, rows, record=record, noise=NoiseRng.for_tests(1)), seed)
    before = [look.values.copy() for look in record.lookups]
    after = Session[Any](problem, seed, rows, record=record, noise=NoiseRng.for_tests(2))
    seen = Looks().cluster(problem, after, seed)
    assert np.array_equal(seen[: 60 * dies], np.concatenate(before))
    by_id: dict[int, float] = {}
    for ids, values in zip(np.split(np.r_[0:60, 30:90, 60:120], 3), np.split(seen, 3), strict=True):
        for i, value in zip(ids.tolist(), values.tolist(), strict=True):
            assert by_id.setdefault(i, value) == value
    unbroken = Looks().cluster(problem, Session(problem, seed, rows, noise=NoiseRng.for_tests(1)), seed)
    assert np.array_equal(unbroken[: 60 * dies], seen[: 60 * dies])
    assert (unbroken[-30:] != seen[-30:]).mean() > 0.5


@pytest.mark.parametrize("largest", [5, 2**31 - 1, 2**31, 2**62 - 1])
def test_lists_of_counts_add_up_whether_or_not_an_id_and_its_count_fit_one_number(largest: int) -> None:
    rng = np.random.default_rng(1)
    lists = [
        LevelTotals(ids := np.unique(np.append(rng.integers(0, largest + 1, 40), largest)), np.full(len(ids), count))
        for count in (1, 2**31 - 8, 7)
    ]
    wanted = dict[int, int]()
    for some in lists:
        for key, value in zip(some.ids.tolist(), some.values.tolist(), strict=True):
            wanted[key] = wanted.get(key, 0) + value
    whole = SparsePieces(tuple(SparseTotals.of([some]) for some in lists)).total()
    assert dict(zip(whole.ids.tolist(), whole.values.tolist(), strict=True)) == wanted
    assert whole.ids.tolist() == sorted(wanted)
    assert whole.values.max() == 2**31
