"""A data holder's half of a round, and how reports come together. Ids that are of no bucket, and vectors that are not
as promised, are refused before any oracle is given them: a randomiser may send them as they are."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest

from cloister.core.buckets import QuestionContext, Space
from cloister.core.budget import Budget, Share
from cloister.core.encoding import absorb, encode_lattice, encode_owned, encode_rows, merge_summaries, summarise_lattice
from cloister.core.errors import InvalidInput, Refused
from cloister.core.lattice import Bound
from cloister.core.nearest import NearestCenter
from cloister.core.questions import OpenedQuestion, Round, Rows
from cloister.core.randomness import NoiseRng
from cloister.core.registry.components import Spec
from cloister.core.registry.compose import compose
from cloister.core.registry.registry import registry
from cloister.core.trust import Central, Local
from cloister.plugins.oracles.central.exact import Exact
from cloister.testing.probes import budget_of
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


def counted(cells: Any) -> OpenedQuestion:
    return OpenedQuestion(cells, None, None, Exact().open(cells.space, SPEND, SETTING))


def summed(vectors: Any) -> OpenedQuestion:
    channel = Exact().open(vectors.cells.space, SPEND, SETTING, vectors.bound)
    return OpenedQuestion(vectors.cells, vectors, None, channel)


def a_round(*parts: OpenedQuestion, trust: Any = Central) -> Round[Any]:
    return Round(0, trust, BOX, parts)


def users(n: int) -> np.ndarray:
    return np.arange(n, dtype=np.uint64)


def test_counts_and_sums_are_those_of_the_lattice() -> None:
    rows = np.random.default_rng(0).normal(0, 0.7, (300, 2))
    cells = Strips(BOX.max_norm)
    round = a_round(counted(cells), summed(Rows(cells, Bound(BOX.max_norm, 2))))
    counts, sums = (s.vector for s in absorb(round, encode_rows(round, rows, users(300), NOISE)))
    points = BOX.snap(rows)
    coarse, fine = cells.locate(points).T
    assert counts.tolist() == [*np.bincount(coarse, minlength=4), *np.bincount(fine, minlength=8)]
    expected = [points[ids == i].sum(axis=0) for ids, size in ((coarse, 4), (fine, 8)) for i in range(size)]
    assert np.array_equal(sums.reshape(-1, 2), expected)


def test_a_sender_whose_row_cannot_be_used_reports_too_and_is_in_no_bucket() -> None:
    """Who sends nothing would say for certain that a cell of hers is missing."""
    g, spy = np.random.default_rng(8), Spy()
    rows, who = g.uniform(-1, 1, (300, 2)), g.integers(0, 2**64, 300, dtype=np.uint64)
    rows[::21], rows[7::21, 0], rows[14::21, 1] = np.nan, np.inf, -np.inf
    cells, share = Strips(BOX.max_norm), Share(SEED, 0, 0.0, 0.4)
    sums = OpenedQuestion(cells, Rows(cells, Bound(BOX.max_norm, 2)), None, spy)  # type: ignore[arg-type]
    parts = [OpenedQuestion(cells, None, among, spy) for among in (share, None)]  # type: ignore[arg-type]
    reports = encode_owned(a_round(*parts, sums, trust=Local), rows, who, NOISE)
    whole, located = np.isfinite(rows).all(axis=1), cells.locate(BOX.snap(np.nan_to_num(rows)))
    for report, (items, users_of), asked in zip(
        reports, spy.seen, (share.holds(who), np.ones(300, bool), np.ones(300, bool)), strict=True
    ):
        assert np.array_equal(report.rows, np.flatnonzero(asked))
        assert np.array_equal(users_of, who[asked])
        ids = getattr(items, "buckets", items)
        assert np.array_equal(ids, np.where(whole[:, None], located, -1)[asked])


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


BUILT_IN = next(plugin.specs for plugin in registry().plugins if plugin.origin == "built in")
ORACLES = [spec for spec in BUILT_IN if spec.role in ("FrequencyOracle", "VectorSumOracle")]
SPACE = Space((3, 5))
N = 40
ROWS = np.random.default_rng(0).uniform(-1, 1, (N, 2))
USERS = np.arange(N, dtype=np.uint64)


@attrs.frozen(eq=False)
class Stranger:
    """A stranger's bucketing, which says these ids of the rows."""

    ids: np.ndarray
    space: Space = SPACE

    def locate(self, rows: np.ndarray) -> np.ndarray:
        return self.ids[: len(rows)]


FIRST = Stranger(np.zeros((N, 2), np.int64))
"""Every row is in the first buckets."""


def asked_of(spec: Spec, cells: Any) -> Round[Any]:
    oracle = compose(registry(), spec.role, spec.name, {}, {}).value
    bound = () if spec.role == "FrequencyOracle" else (Bound(BOX.max_norm, 2),)
    context = QuestionContext(100_000, BOX.unit, SEED)
    channel = oracle.open(cells.space, budget_of(oracle.measure, 1.0), context, *bound)
    vectors = None if spec.role == "FrequencyOracle" else Rows(cells, Bound(BOX.max_norm, 2))
    return Round(0, oracle.trust, BOX, (OpenedQuestion(cells, vectors, None, channel),))


@pytest.mark.parametrize("last", [(3, 0), (0, 5), (-2, 0), (0, 2**40), (-(2**63), 0)])
@pytest.mark.parametrize("spec", ORACLES, ids=lambda s: s.name)
def test_no_oracle_is_given_an_id_that_is_of_no_bucket(spec: Spec, last: tuple[int, int]) -> None:
    ids = np.vstack([FIRST.ids[1:], last])
    round, noise = asked_of(spec, Stranger(ids)), NoiseRng.for_tests(0)
    for encode in (encode_rows, encode_owned):
        with pytest.raises(InvalidInput, match="the bucketing Stranger returned an id outside its space") as error:
            encode(round, ROWS, USERS, noise)
        assert not any(str(number) in str(error.value) for number in last if number)  # it says nothing of the row
    for work in (encode_lattice, summarise_lattice):
        with pytest.raises(InvalidInput, match="Nothing was encoded"):
            work(round, BOX.snap(ROWS), USERS, noise)


def test_what_is_no_ids_is_refused() -> None:
    for shape, kind in (((N, 2), float), ((N, 1), int), ((N, 2), np.uint64), (N, int), ((3, 2), int)):
        with pytest.raises(InvalidInput, match="the bucketing Stranger"):
            encode_rows(asked_of(ORACLES[0], Stranger(np.zeros(shape, kind))), ROWS, USERS, NoiseRng.for_tests(0))


@attrs.frozen(eq=False)
class Promising:
    """Vectors of two numbers, it says."""

    made: Any
    cells: Any = FIRST
    bound = Bound(BOX.max_norm, 2)

    def values(self, rows: np.ndarray, buckets: np.ndarray) -> Any:
        return self.made(rows)


@pytest.mark.parametrize(
    ("made", "found"),
    [
        (lambda rows: rows[:, 0], r"\(n\) and type int64"),
        (lambda rows: rows / 2, r"\(n, 2\) and type float64"),
        (lambda rows: rows[1:], r"\(not n, 2\) and type int64"),
        (lambda rows: rows.tolist(), r"\(n, 2\) and type list"),
    ],
)
def test_vectors_of_another_shape_or_type_are_refused_by_name(made: Any, found: str) -> None:
    (spec,) = (spec for spec in ORACLES if (spec.name, spec.role) == ("discrete-gaussian", "VectorSumOracle"))
    round = asked_of(spec, FIRST)
    round = attrs.evolve(round, parts=(attrs.evolve(round.parts[0], vectors=Promising(made)),))
    with pytest.raises(InvalidInput, match=rf"Promising\.values of n rows .*{found}; its bound promises \(n, 2\)"):
        encode_rows(round, ROWS, USERS, NoiseRng.for_tests(0))


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
