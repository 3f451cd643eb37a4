"""A data holder's half of a round, and how reports come together."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest

from cloister.core.buckets import QuestionContext
from cloister.core.budget import Budget, Share
from cloister.core.domains import Ball
from cloister.core.encoding import absorb, encode_lattice, encode_rows, map_merge, merge_summaries
from cloister.core.errors import Refused
from cloister.core.lattice import Bound
from cloister.core.nearest import NearestCenter
from cloister.core.questions import OpenedQuestion, Round, Rows
from cloister.core.randomness import NoiseRng
from cloister.core.trust import Central, Local
from cloister.plugins.oracles.central.exact import Exact
from tests.core.core_fakes import BOX, SEED, Strips

NOISE = NoiseRng.for_tests(0)
SETTING = QuestionContext(100, BOX.unit, SEED)
SPEND = Budget("exact", 1.0)


class Spy:
    """A channel that notes what it is given."""

    def __init__(self) -> None:
        self.seen = list[tuple[Any, np.ndarray]]()

    def encode(self, items: Any, who: np.ndarray, rng: Any) -> None:
        self.seen.append((items, who))


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
    counts, sums = totals(a_round(counted(cells), summed(Rows(cells, Bound(BOX.max_norm, 2)))), rows)
    points = BOX.snap(rows)
    coarse, fine = cells.locate(points).T
    assert counts.tolist() == [*np.bincount(coarse, minlength=4), *np.bincount(fine, minlength=8)]
    expected = [points[ids == i].sum(axis=0) for ids, size in ((coarse, 4), (fine, 8)) for i in range(size)]
    assert np.array_equal(sums.reshape(-1, 2), expected)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_row_with_a_cell_that_is_no_number_is_dropped_and_no_other(bad: float) -> None:
    rows, cells = np.random.default_rng(1).uniform(-1, 1, (50, 2)), Strips(BOX.max_norm)
    round = a_round(counted(cells), counted(cells, Share(SEED, 0, 0.0, 0.5)), trust=Local)
    holed = rows.copy()
    holed[[3, 17, 18], [0, 1, 0]] = bad
    keep = np.delete(np.arange(50), [3, 17, 18])
    assert all(map(np.array_equal, totals(round, holed), totals(round, rows[keep], users(50)[keep])))
    assert totals(round, np.full((2, 2), bad))[0].sum() == 0


def test_whole_numbers_short_floats_and_no_rows_are_rows_too() -> None:
    whole, cells = np.random.default_rng(2).integers(-1, 2, (40, 2)), Strips(BOX.max_norm)
    round = a_round(counted(cells), summed(Rows(cells, Bound(5, 2))))
    for dtype in (np.int8, np.int64, np.float32, bool):
        kept = whole.astype(dtype)
        assert all(map(np.array_equal, totals(round, kept), totals(round, kept.astype(float))))
    assert not any(total.any() for total in totals(round, np.zeros((0, 2))))


@pytest.mark.parametrize(("size", "domain"), [(1, BOX), (7, Ball((0.0, 0.0), 1.0)), (99, BOX)])
def test_chunks_add_up_to_the_whole_in_any_order(size: int, domain: Any) -> None:
    rows = np.random.default_rng(3).normal(0, 0.7, (200, 2))
    centers = domain.snap(np.random.default_rng(4).uniform(-1, 1, (5, 2)))
    near = NearestCenter(centers, domain.max_norm, domain.max_norm // 3)
    asked = counted(near), summed(near.offsets()), counted(near, Share(SEED, 0, 0.2, 0.7))
    round = a_round(*asked, trust=Local, domain=domain)
    whole = totals(round, rows)

    def summary(at: int) -> tuple[Any, ...]:
        chunk = slice(at, at + size)
        return absorb(round, encode_rows(round, rows[chunk], users(200)[chunk], NOISE))

    starts = range(0, 200, size)
    for order in (starts, reversed(starts)):
        merged = map_merge(order, summary, merge_summaries)
        assert all(np.array_equal(part.vector, total) for part, total in zip(merged, whole, strict=True))
    shuffled = np.random.default_rng(5).permutation(200)
    assert all(map(np.array_equal, totals(round, rows[shuffled], users(200)[shuffled]), whole))


def test_reports_carry_the_users_whose_rows_they_are() -> None:
    rows, spy = np.random.default_rng(8).uniform(-1, 1, (300, 2)), Spy()
    rows[::7] = np.nan
    who = np.random.default_rng(9).integers(0, 2**64, 300, dtype=np.uint64)
    cells, share = Strips(BOX.max_norm), Share(SEED, 0, 0.0, 0.4)
    parts = (OpenedQuestion(cells, None, among, spy) for among in (share, None))  # type: ignore[arg-type]
    encode_rows(a_round(*parts, trust=Local), rows, who, NOISE)
    whole = np.isfinite(rows).all(axis=1)
    for (items, users_of), asked in zip(spy.seen, (whole & share.holds(who), whole), strict=True):
        assert np.array_equal(users_of, who[asked])
        assert np.array_equal(items, cells.locate(BOX.snap(rows[asked])))


@attrs.frozen(eq=False)
class Far:
    """Vectors beyond any bound."""

    cells: Any
    bound: Bound

    def values(self, rows: np.ndarray, buckets: np.ndarray) -> np.ndarray:
        return np.full((len(rows), 2), 10**12)


def test_vectors_are_clipped_to_their_bound_before_the_oracle_sees_them() -> None:
    spy, cells, rows = Spy(), Strips(BOX.max_norm), np.zeros((3, 2), np.int64)
    part = OpenedQuestion(cells, Far(cells, Bound(100, 2)), None, spy)  # type: ignore[arg-type]
    encode_lattice(a_round(part), rows, users(3), NOISE)
    ((given, _),) = spy.seen
    lengths = (given.values**2).sum(axis=1)
    assert (lengths > 98**2).all()
    assert (lengths <= 100**2).all()
    assert np.array_equal(given.buckets, cells.locate(rows))


def test_a_row_in_no_bucket_adds_to_none() -> None:
    near = NearestCenter(np.array([[0, 0]]), BOX.max_norm, 10)
    rows = np.array([[5, 5], [100, 0], [0, 0]])
    round = a_round(counted(near), summed(near.offsets()))
    counts, sums = (s.vector for s in absorb(round, encode_lattice(round, rows, users(3), NOISE)))
    assert counts.tolist() == [2]
    assert sums.tolist() == [5, 5]


def test_reports_that_do_not_belong_to_the_round_are_refused() -> None:
    cells = Strips(BOX.max_norm)
    round = a_round(counted(cells), summed(Rows(cells, Bound(5, 2))))
    good = encode_rows(round, np.zeros((3, 2)), users(3), NOISE)
    with pytest.raises(Refused, match="no encoder sends that"):
        absorb(round, good[::-1])
    with pytest.raises(ValueError, match=r"shorter|longer"):
        absorb(round, good[:1])
    with pytest.raises(ValueError, match=r"shorter|longer"):
        merge_summaries(absorb(round, good), ())
