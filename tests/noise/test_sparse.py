"""Counts and sums of nested and of large spaces: exact totals, noise on every level that is paid for, once for each
bucket."""

from __future__ import annotations

import math
from collections import Counter
from functools import reduce
from typing import Any

import attrs
import numpy as np
import pytest

from cloister.noise import sparse_totals
from cloister.noise.sparse import _contained, additive_channel
from cloister.noise.sparse_totals import PIECES, LevelTotals, SparsePieces, SparseTotals, sum_by_id
from cloister.plugin import (
    CAP,
    Bound,
    BucketedVectors,
    Budget,
    Ints,
    InvalidInput,
    NoiseRng,
    PublicRng,
    QuestionContext,
    Refused,
    Space,
    SparseChannel,
    TensorChannel,
    Threshold,
)
from cloister.plugins.oracles.central.discrete_laplace import DiscreteLaplace
from tests.alarms import Alarm

SETTING = QuestionContext(1000, 0.5, PublicRng.from_seed(1))
EXACT = Budget("exact", math.inf)
NOBODY = np.zeros(0, np.uint64)

DEEP = Space(tuple(2**level for level in range(60)), nested=True)
FLAT = Space((2**62, 5, 2**40))


def path(leaves: Ints, levels: int) -> Ints:
    """Bucket ids (n, levels) of a nested space."""
    return np.stack([leaves >> min(down, 63) for down in range(levels)][::-1], axis=1)


def summary(channel: Any, *chunks: Any) -> Any:
    sent = [channel.absorb(channel.encode(some, NOBODY, NoiseRng.for_tests(0))) for some in chunks]
    return reduce(lambda a, b: a.merge(b), sent)


def test_what_is_small_is_a_tensor_and_what_is_large_is_sparse() -> None:
    counts = DiscreteLaplace()
    assert isinstance(counts.open(Space((2**17,)), Budget("pure", 1.0), SETTING), TensorChannel)
    assert isinstance(counts.open(Space((2**17 + 1,)), Budget("pure", 1.0), SETTING), SparseChannel)
    for sizes in ((2**62 + 1,), (2**62 + 1, 5)):
        with pytest.raises(InvalidInput, match="2\\^62"):
            counts.open(Space(sizes), Budget("pure", 1.0), SETTING)
    flat, sums = Space((2**17,)), Bound(2, 3)
    for bound, kind in ((None, TensorChannel), (sums, SparseChannel)):
        channel = additive_channel("exact", EXACT, flat, bound, None, 3, 0.5)
        assert type(channel) is kind
        assert (channel.mechanism, channel.budget, channel.space, channel.bound) == ("exact", EXACT, flat, bound)
        assert (channel.law, channel.shift, channel.unit, channel.threshold) == (None, 3, 0.5, None)
    for kind in (TensorChannel, SparseChannel):
        with pytest.raises(InvalidInput, match="could overflow 64 bits"):
            kind("exact", EXACT, flat, None, None, 31, 1.0)


@pytest.mark.parametrize("sizes", [(1, 3), (2, 2), (4, 8, 8), (1, 2, 4, 9)])
def test_a_nested_space_halves_from_level_to_level(sizes: tuple[int, ...]) -> None:
    with pytest.raises(InvalidInput, match="half the next one's buckets"):
        Space(sizes, nested=True)
    assert Space(sizes).sizes == sizes


def reference(ids: Ints, asked: Ints, values: Ints | None) -> Any:
    """Totals by comparing every row with every bucket."""
    same = asked[:, None] == ids
    return same.sum(axis=1) if values is None else same @ values


@pytest.mark.parametrize(
    ("kind", "space", "chunks"),
    [
        (SparseChannel, DEEP, 3 * PIECES),
        (SparseChannel, FLAT, 7),
        (SparseChannel, Space(tuple(2**level for level in range(63)), nested=True), 2),
        (SparseChannel, Space((1,) * 80, nested=True), 1),
        (TensorChannel, Space((3, 5, 9), nested=True), 7),
    ],
)
def test_totals_are_exact_in_any_number_of_chunks(kind: Any, space: Space, chunks: int) -> None:
    g = np.random.default_rng(chunks)
    few = [g.integers(0, size, 30) for size in space.sizes]
    columns = [np.append(some, -1)[g.integers(0, 31, 1000)] for some in few]
    buckets = path(columns[-1], space.levels) if space.nested else np.stack(columns, axis=1)
    vectors = g.integers(-(10**6), 10**6, (1000, 3))
    parts = np.array_split(np.arange(1000), chunks)
    for bound, values in ((None, None), (Bound(10**7, 3), vectors)):
        channel = kind("exact", EXACT, space, bound, None, 0, 1.0)
        items = (buckets[p] if values is None else BucketedVectors(buckets[p], values[p]) for p in parts)
        table = channel.decode(summary(channel, *items), NoiseRng.for_tests(1))
        for level, size in enumerate(space.sizes):
            asked = np.unique(np.concatenate([buckets[:60, level], buckets[:60, level] ^ 1, [0, size - 1]]))
            asked = asked[(asked >= 0) & (asked < size)]
            assert np.array_equal(table.at(asked, level), reference(buckets[:, level], asked, values))


def lists(**changes: Any) -> SparseTotals:
    """A report of ids 3, 7 (twice) on the first of two levels and 4 on the second, with changes."""
    report = SparseTotals(np.array([0, 2, 3]), np.array([3, 7, 4]), np.array([1, 2, 3]))
    return attrs.evolve(report, **changes)


IMPOSSIBLE = {
    "starts that do not end": {"starts": [0, 2, 4]},
    "starts of three levels": {"starts": [0, 1, 2, 3]},
    "a start that is not 0": {"starts": [1, 2, 3]},
    "ids that descend": {"ids": [7, 3, 4]},
    "an id twice": {"ids": [3, 3, 4]},
    "ids of which the last descends": {"starts": [0, 3, 4], "ids": [3, 9, 7, 4], "values": [1, 1, 1, 3]},
    "an id of -1": {"ids": [-1, 7, 4]},
    "an id beyond the level": {"ids": [3, 7, 5]},
    "a count of 0": {"values": [1, 0, 3]},
    "counts in floating point": {"values": [1.0, 2.0, 3.0]},
    "vectors": {"values": [[1, 1, 1]] * 3},
    "too few counts": {"values": [1, 2]},
    "more rows than any run": {"values": [1, CAP + 1, 3]},
}


@pytest.mark.parametrize("changes", IMPOSSIBLE.values(), ids=IMPOSSIBLE.keys())
def test_a_report_that_no_encoder_sends_is_refused(changes: dict[str, list[Any]]) -> None:
    channel: Any = DiscreteLaplace().open(Space((2**62, 5)), Budget("pure", 1.0), SETTING)
    assert isinstance(channel.absorb(lists()), SparsePieces)
    with pytest.raises(Refused, match="no encoder sends"):
        channel.absorb(lists(**{name: np.array(column) for name, column in changes.items()}))
    with pytest.raises(Refused, match="no encoder sends"):  # a list for an array
        channel.absorb(lists(**changes))


def test_a_report_of_as_many_rows_as_a_run_may_have_is_taken_and_starts_that_descend_once_are_not() -> None:
    channel: Any = DiscreteLaplace().open(Space((2**62, 5, 5)), Budget("pure", 1.0), SETTING)
    whole = SparseTotals(np.array([0, 1, 2, 3]), np.array([3, 3, 4]), np.array([CAP, CAP, CAP]))
    assert channel.absorb(whole).total() is whole
    with pytest.raises(Refused, match="no encoder sends"):  # the lists of ids 3, none, and 3, 4 would pass
        channel.absorb(attrs.evolve(whole, starts=np.array([0, 2, 1, 3]), ids=np.array([2, 3, 4])))


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


def test_a_row_counts_where_its_deepest_id_says() -> None:
    """What a bucketing says of the other levels of a nested space changes nothing: the sensitivity does not rest on
    it."""
    wild = np.array([[0, 1, 3, 5], [-1, 0, 0, 7]])
    for kind, first in ((TensorChannel, 1), (SparseChannel, 1), (SparseChannel, 2**56)):
        space = Space(tuple(first << level for level in range(4)), nested=True)
        channel: Any = kind("exact", EXACT, space, None, None, 0, 1.0)
        table = channel.decode(summary(channel, wild), NoiseRng.for_tests(1))
        assert [table.at(np.array([w >> 1, w]), 3).tolist() for w in (5, 7)] == [[0.0, 1.0]] * 2
        assert table.at(np.array([2, 3]), 2).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("largest", [5, 2**31 - 1, 2**31, 2**62 - 1])
def test_lists_of_counts_add_up_whether_or_not_an_id_and_its_count_fit_one_number(largest: int) -> None:
    rng, wanted, lists = np.random.default_rng(1), Counter[int](), []
    for held in (1, 2**31 - 8, 7):
        ids = np.unique(np.append(rng.integers(0, largest + 1, 40), largest))
        lists.append(SparseTotals.of([LevelTotals(ids, np.full(len(ids), held))]))
        wanted.update(dict.fromkeys(ids.tolist(), held))
    whole = SparsePieces(tuple(lists)).total()
    assert dict(zip(whole.ids.tolist(), whole.values.tolist(), strict=True)) == wanted
    assert whole.ids.tolist() == sorted(wanted)
    assert whole.values.max() == 2**31


def test_a_count_of_all_rows_does_not_run_into_the_id_that_it_is_packed_with() -> None:
    lists = [SparseTotals.of([LevelTotals(np.array([8, 12]), np.array(held))]) for held in ([CAP, 1], [CAP - 1, CAP])]
    whole = SparsePieces(tuple(lists)).total()
    assert whole.ids.tolist() == [8, 12]
    assert whole.values.tolist() == [2 * CAP - 1, CAP + 1]


@pytest.mark.parametrize("order", [1, -1])
def test_one_list_of_large_ids_among_lists_of_small_ones_adds_up(order: int) -> None:
    small, mixed = np.array([0, 3, 4]), np.array([3, 5, 2**40])
    lists = [SparseTotals.of([LevelTotals(ids, np.array([1, 2, 3]))]) for ids in (small, mixed)]
    whole = SparsePieces(tuple(lists[::order])).total()
    assert whole.ids.tolist() == [0, 3, 4, 5, 2**40]
    assert whole.values.tolist() == [1, 3, 3, 2, 3]


def of_ids(ids: Ints) -> SparsePieces:
    return SparsePieces((SparseTotals.of([LevelTotals(ids, np.ones(len(ids), np.int64))]),))


def test_short_lists_are_joined_now_and_then_and_a_long_one_is_left_alone() -> None:
    long = of_ids(np.arange(100_000))
    merged = reduce(lambda a, b: a.merge(b), (of_ids(np.arange(i, i + 3)) for i in range(500)), long)
    assert len(merged.pieces) <= PIECES
    assert any(piece is long.pieces[0] for piece in merged.pieces)
    assert merged.total().values.sum() == 100_000 + 3 * 500


def test_lists_are_joined_once_there_are_more_than_a_summary_keeps() -> None:
    short = [of_ids(np.arange(i, i + 3)) for i in range(PIECES + 1)]
    kept = reduce(lambda a, b: a.merge(b), short[:PIECES])
    assert [id(piece) for piece in kept.pieces] == [id(piece) for one in short[:PIECES] for piece in one.pieces]
    assert len(kept.merge(short[PIECES]).pieces) < PIECES


def test_totals_that_a_database_adds_up_are_those_of_its_rows() -> None:
    channel = SparseChannel("exact", EXACT, Space((2**40, 7)), None, None, 0, 1.0)
    of_rows = summary(channel, np.array([[5, 3], [5, 3], [900, 3], [900, 6]])).total()
    totalled = channel.totalled([(np.array([5, 900]), np.array([2, 2])), (np.array([3, 6]), np.array([3, 1]))], 4)
    for level, expected in zip(totalled.total().levels, of_rows.levels, strict=True):
        assert level.ids.tolist() == expected.ids.tolist()
        assert level.values.tolist() == expected.values.tolist()


def test_lists_are_joined_when_all_but_the_longest_take_128_megabytes(monkeypatch: pytest.MonkeyPatch) -> None:
    def sized(numbers: int) -> SparsePieces:
        ones = np.broadcast_to(np.int64(1), numbers)  # as many numbers, and the memory of one
        return SparsePieces((SparseTotals(np.array([0, numbers]), ones, ones),))

    monkeypatch.setattr(sparse_totals, "_fewer", lambda pieces: ())
    most = 2**27 // 8
    assert len(sized(3 * most).merge(sized(most)).pieces) == 2
    assert len(sized(most + 1).merge(sized(3 * most)).pieces) == 0


def test_what_is_in_no_bucket_is_left_out_of_counts_and_of_vectors() -> None:
    for values in (np.array([3, 4, 5]), np.array([[3, 1], [4, 1], [5, 1]])):
        nothing = sum_by_id(np.full(3, -1), values)
        assert (nothing.ids.shape, nothing.values.shape) == ((0,), (0, *values.shape[1:]))
        some = sum_by_id(np.array([7, -1, 7]), values)
        assert some.ids.tolist() == [7]
        assert some.values.tolist() == [(values[0] + values[2]).tolist()]


def test_buckets_are_listed_on_flat_levels_with_a_threshold_alone() -> None:
    """Without a threshold the list would be the exact figure of who is there."""
    flat, nested = Space((2**40,)), Space((2**40, 2**41), nested=True)
    for space, threshold in ((flat, None), (nested, None), (nested, Threshold(0, 1e-6))):
        channel = SparseChannel("exact", EXACT, space, None, None, 0, 1.0, threshold)
        held = np.array([[5, 11]])[:, : space.levels]
        table = channel.decode(summary(channel, held), NoiseRng.for_tests(1))
        with pytest.raises(Refused, match="only for counts with a threshold"):
            table.occupied()
    channel = SparseChannel("exact", EXACT, flat, None, None, 0, 1.0, Threshold(1, 1e-6))
    table = channel.decode(summary(channel, np.array([[5], [7], [7], [2**39], [2**39]])), NoiseRng.for_tests(1))
    assert table.occupied().tolist() == [7, 2**39]


def test_known_buckets_are_told_from_new_ones_the_last_among_them() -> None:
    known = np.array([3, 5, 9])
    assert _contained(np.array([2, 3, 4, 5, 9, 10]), known).tolist() == [False, True, False, True, True, False]
    assert _contained(np.array([2, 3]), known[:0]).tolist() == [False, False]
    assert _contained(np.array([2, 3]), known[:1]).tolist() == [False, True]


def test_buckets_that_are_asked_for_again_are_not_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    channel: Any = DiscreteLaplace().open(Space((2**40,)), Budget("pure", 1.0), SETTING)
    table = channel.decode(summary(channel, np.array([[5], [7]])), NoiseRng.for_tests(1))
    drawn, noised = list[int](), SparseChannel.noised
    monkeypatch.setattr(
        SparseChannel, "noised", lambda self, totals, rng: drawn.append(len(totals)) or noised(self, totals, rng)
    )
    first = table.at(np.array([7, 5, 7, 900]))
    again = table.at(np.array([900, 7, 901, 5]))
    assert drawn == [3, 1]
    assert first[[3, 0, 1]].tolist() == again[[0, 1, 3]].tolist()
    assert first[0] == first[2]


def test_each_look_that_finds_new_buckets_has_the_next_stream_of_noise() -> None:
    """The streams are part of what a seed means: results of seeded runs stay the same."""
    channel: Any = DiscreteLaplace().open(Space((2**40,)), Budget("pure", 0.1), SETTING)
    rng = NoiseRng.for_tests(1)
    table = channel.decode(summary(channel, np.array([[5], [7]])), rng)
    for look, (ids, exact) in enumerate((([5, 6], [1, 0]), ([7, 900], [1, 0]))):
        expected = channel.noised(np.array(exact), rng.child("look", look))
        assert table.at(np.array(ids)).tolist() == expected.tolist()
        assert table.at(np.array(ids)).tolist() == expected.tolist()  # nothing is drawn, and no stream is passed over
    assert table.standard_error(np.arange(3)).tolist() == [channel.deviation] * 3


@pytest.mark.parametrize(
    ("sizes", "left"),
    [((1, 2, 7, 22), [3, 7, 22]), ((1, 3, 10), [1, 3, 10]), ((1, 1, 4, 13), [6, 13]), ((5, 1, 3), [9])],
)
def test_a_list_is_joined_to_the_smaller_ones_if_it_is_at_most_twice_as_long(
    sizes: tuple[int, ...], left: list[int]
) -> None:
    starts = np.cumsum([0, *sizes])
    lists = [of_ids(np.arange(a, a + size)).pieces[0] for a, size in zip(starts, sizes, strict=False)]
    fewer = sparse_totals._fewer(lists)
    assert [len(piece.ids) for piece in fewer] == left
