"""A data holder's half of a round, and how reports come together."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest

from cloister.core.buckets import BucketedVectors, QuestionContext
from cloister.core.budget import Budget, Share
from cloister.core.domains import Ball
from cloister.core.encoding import absorb, chunk_rows, encode_lattice, encode_rows, map_merge, merge_summaries
from cloister.core.errors import Refused
from cloister.core.lattice import Bound
from cloister.core.nearest import NearestCenter
from cloister.core.questions import OpenedQuestion, Round
from cloister.core.randomness import NoiseRng
from cloister.core.trust import Central, Local
from cloister.plugins.oracles.central.exact import Exact
from tests.core.core_fakes import BOX, SEED, Strips, Whole

NOISE = NoiseRng.for_tests(0)
SETTING = QuestionContext(100, BOX.unit, SEED)
SPEND = Budget("exact", 1.0)


class Counted:
    """A bucketing that notes how many rows it was asked for."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.space, self.asked = inner, inner.space, list[int]()

    def locate(self, rows: np.ndarray) -> np.ndarray:
        self.asked.append(len(rows))
        return self.inner.locate(rows)


def counted(cells: Any, among: Share | None = None) -> OpenedQuestion:
    return OpenedQuestion(cells, None, among, Exact().open(cells.space, SPEND, SETTING))


def summed(vectors: Any, among: Share | None = None) -> OpenedQuestion:
    return OpenedQuestion(
        vectors.cells, vectors, among, Exact().open(vectors.cells.space, SPEND, SETTING, vectors.bound)
    )


def a_round(*parts: OpenedQuestion, trust: Any = Central, domain: Any = BOX) -> Round[Any]:
    return Round(0, trust, domain, parts)


def users(n: int) -> np.ndarray:
    return np.arange(n, dtype=np.uint64)


def totals(round: Round[Any], rows: np.ndarray, who: np.ndarray | None = None) -> list[np.ndarray]:
    who = users(len(rows)) if who is None else who
    return [s.vector for s in absorb(round, encode_rows(round, rows, who, NOISE))]


def test_counts_and_sums_are_those_of_the_lattice() -> None:
    rows = np.random.default_rng(0).normal(0, 0.7, (300, 2))
    cells = Strips(BOX.max_norm)
    counts, sums = totals(a_round(counted(cells), summed(Whole(cells, Bound(BOX.max_norm, 2)))), rows)
    points = BOX.snap(rows)
    coarse, fine = cells.locate(points).T
    assert counts.tolist() == [*np.bincount(coarse, minlength=4), *np.bincount(fine, minlength=8)]
    expected = [points[ids == i].sum(axis=0) for ids, size in ((coarse, 4), (fine, 8)) for i in range(size)]
    assert np.array_equal(sums.reshape(-1, 2), expected)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_row_with_a_cell_that_is_no_number_is_dropped_and_no_other(bad: float) -> None:
    rows = np.random.default_rng(1).uniform(-1, 1, (50, 2))
    share = Share(SEED, 0, 0.0, 0.5)
    cells = Strips(BOX.max_norm)
    round = a_round(counted(cells), counted(cells, share), trust=Local)
    holed = rows.copy()
    holed[[3, 17, 18], [0, 1, 0]] = bad
    keep = np.delete(np.arange(50), [3, 17, 18])
    for a, b in zip(totals(round, holed), totals(round, rows[keep], users(50)[keep]), strict=True):
        assert np.array_equal(a, b)
    assert totals(round, np.full((2, 2), bad))[0].sum() == 0


def test_whole_numbers_and_short_floats_are_rows_too() -> None:
    whole = np.random.default_rng(2).integers(-1, 2, (40, 2))
    round = a_round(counted(Strips(BOX.max_norm)))
    for dtype in (np.int8, np.int64, np.float32, bool):
        assert np.array_equal(totals(round, whole.astype(dtype)), totals(round, whole.astype(dtype).astype(float)))


def test_no_rows_are_valid_input() -> None:
    cells = Strips(BOX.max_norm)
    for total in totals(a_round(counted(cells), summed(Whole(cells, Bound(5, 2)))), np.zeros((0, 2))):
        assert not total.any()


@pytest.mark.parametrize("size", [1, 7, 99])
@pytest.mark.parametrize("domain", [BOX, Ball((0.0, 0.0), 1.0)])
def test_chunks_add_up_to_the_whole_in_any_order(size: int, domain: Any) -> None:
    rows = np.random.default_rng(3).normal(0, 0.7, (200, 2))
    centers = domain.snap(np.random.default_rng(4).uniform(-1, 1, (5, 2)))
    near = NearestCenter(centers, domain.max_norm, domain.max_norm // 3)
    round = a_round(
        counted(near), summed(near.offsets()), counted(near, Share(SEED, 0, 0.2, 0.7)), trust=Local, domain=domain
    )

    def summary(at: int) -> tuple[Any, ...]:
        chunk = slice(at, at + size)
        return absorb(round, encode_rows(round, rows[chunk], users(200)[chunk], NOISE))

    starts = range(0, 200, size)
    for order in (starts, reversed(starts)):
        merged = map_merge(order, summary, merge_summaries)
        for part, whole in zip(merged, totals(round, rows), strict=True):
            assert np.array_equal(part.vector, whole)
    shuffled = np.random.default_rng(5).permutation(200)
    for a, b in zip(totals(round, rows[shuffled], users(200)[shuffled]), totals(round, rows), strict=True):
        assert np.array_equal(a, b)


def test_reports_carry_the_users_whose_rows_they_are() -> None:
    seen: list[tuple[np.ndarray, np.ndarray]] = []

    class Spy:
        def encode(self, items: np.ndarray, who: np.ndarray, rng: Any) -> None:
            seen.append((items, who))

    rows = np.random.default_rng(8).uniform(-1, 1, (300, 2))
    rows[::7] = np.nan
    who = np.random.default_rng(9).integers(0, 2**64, 300, dtype=np.uint64)
    cells, share = Strips(BOX.max_norm), Share(SEED, 0, 0.0, 0.4)
    encode_rows(
        a_round(OpenedQuestion(cells, None, share, Spy()), OpenedQuestion(cells, None, None, Spy()), trust=Local),
        rows,
        who,
        NOISE,
    )  # type: ignore[arg-type]
    whole = np.isfinite(rows).all(axis=1)
    for (items, users_of), asked in zip(seen, (whole & share.holds(who), whole), strict=True):
        assert np.array_equal(users_of, who[asked])
        assert np.array_equal(items, cells.locate(BOX.snap(rows[asked])))


def test_each_bucketing_is_located_once_per_round() -> None:
    near, strips = Counted(NearestCenter(np.array([[0, 0], [9, 9]]), BOX.max_norm)), Counted(Strips(BOX.max_norm))
    whole = Whole(strips, Bound(5, 2))  # type: ignore[arg-type]
    parts = counted(near), summed(whole), counted(strips, Share(SEED, 0, 0.0, 0.5)), counted(near), summed(whole)
    encode_rows(a_round(*parts), np.zeros((10, 2)), users(10), NOISE)
    assert near.asked == strips.asked == [10]


@attrs.frozen(eq=False)
class Far:
    """Vectors beyond any bound."""

    cells: Any
    bound: Bound

    def values(self, rows: np.ndarray, buckets: np.ndarray) -> np.ndarray:
        return np.full((len(rows), 2), 10**12)


def test_vectors_are_clipped_to_their_bound_before_the_oracle_sees_them() -> None:
    seen: list[BucketedVectors] = []

    class Spy:
        def encode(self, items: BucketedVectors, users: Any, rng: Any) -> None:
            seen.append(items)

    cells = Strips(BOX.max_norm)
    part = OpenedQuestion(cells, Far(cells, Bound(100, 2)), None, Spy())  # type: ignore[arg-type]
    encode_lattice(a_round(part), np.zeros((3, 2), np.int64), users(3), NOISE)
    assert ((seen[0].values ** 2).sum(axis=1) <= 100**2).all()
    assert ((seen[0].values ** 2).sum(axis=1) > 98**2).all()
    assert np.array_equal(seen[0].buckets, cells.locate(np.zeros((3, 2), np.int64)))


def test_a_row_in_no_bucket_adds_to_none() -> None:
    near = NearestCenter(np.array([[0, 0]]), BOX.max_norm, 10)
    rows = np.array([[5, 5], [100, 0], [0, 0]])
    round = a_round(counted(near), summed(near.offsets()))
    counts, sums = (s.vector for s in absorb(round, encode_lattice(round, rows, users(3), NOISE)))
    assert counts.tolist() == [2]
    assert sums.tolist() == [5, 5]


def test_reports_that_do_not_belong_to_the_round_are_refused() -> None:
    cells = Strips(BOX.max_norm)
    round = a_round(counted(cells), summed(Whole(cells, Bound(5, 2))))
    good = encode_rows(round, np.zeros((3, 2)), users(3), NOISE)
    with pytest.raises(Refused, match="no encoder sends that"):
        absorb(round, good[::-1])
    for two in (lambda: absorb(round, good[:1]), lambda: merge_summaries(absorb(round, good), ())):
        with pytest.raises(ValueError, match=r"shorter|longer"):
            two()


def test_chunks_have_a_size_that_fits_a_cache() -> None:
    assert [chunk_rows(d) for d in (1, 2, 8, 16, 100, 512, 10_000)] == [16384, 16384, 16384, 8192, 1310, 256, 256]
