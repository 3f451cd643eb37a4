"""Local vector sums: what the oracles answer, whoever adds the reports up, and in whatever order.

False alarms: at most 1e-6 per test (bands of 5 standard errors and more); seeds are fixed.
"""

from __future__ import annotations

import math
import pickle
from typing import Any

import attrs
import numpy as np
import pytest

from cloister.core.buckets import BucketedVectors, QuestionContext, Space
from cloister.core.budget import Budget
from cloister.core.clustering import Clustering, Problem
from cloister.core.domains import Ball
from cloister.core.encoding import absorb, encode_rows, merge_summaries
from cloister.core.errors import InvalidInput, Refused
from cloister.core.lattice import Bound
from cloister.core.plain_data import digest
from cloister.core.questions import Round, vector_sum
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.session import Session, forecast
from cloister.core.trust import Local
from cloister.plugins.oracles.local.levels import Share
from cloister.plugins.oracles.local.question import Reports
from cloister.plugins.oracles.local.vectors.randomisers import Randomised
from cloister.plugins.oracles.local.vectors.vector_sums import ExplicitHistogramVector, HadamardVector

SEED = PublicRng.from_seed(90)
NOISE = NoiseRng.for_tests(91)
NAMES = ("one-byte", "privunit", "duchi")
UNIT = 2.0**-12
BOUND = 2**12


def opened(oracle: Any, sizes: tuple[int, ...], d: int, n: int, epsilon: float = 1.0, seed: PublicRng = SEED) -> Any:
    return oracle.open(Space(sizes), Budget("pure", epsilon), QuestionContext(n, UNIT, seed), Bound(BOUND, d))


def points(n: int, d: int, seed: int = 0) -> np.ndarray:
    g = np.random.default_rng(seed)
    v = g.standard_normal((n, d))
    inside = v / np.linalg.norm(v, axis=1)[:, None] * g.uniform(0, BOUND, (n, 1))
    return np.asarray(np.trunc(inside), np.int64)


def truth(items: BucketedVectors, size: int, level: int = 0) -> np.ndarray:
    total = np.zeros((size + 1, items.values.shape[1]))
    np.add.at(total, items.buckets[:, level], items.values * UNIT)
    return total[:-1]


def users_of(n: int) -> np.ndarray:
    return np.arange(n, dtype=np.uint64)


def released(channel: Any, items: BucketedVectors, rng: NoiseRng = NOISE) -> Any:
    return channel.decode(channel.absorb(channel.encode(items, users_of(len(items.buckets)), rng)), rng)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_noise_of_all_cells_is_as_wide_as_declared(name: Randomised, epsilon: float) -> None:
    """3% on 20,000 numbers is six standard errors of the sd; a variance off by 1.2 is 9.5%."""
    n, d, size = 20_000, 100, 200
    channel = opened(HadamardVector(randomiser=name), (size,), d, n, epsilon)
    items = BucketedVectors(np.random.default_rng(1).integers(0, size, (n, 1)), points(n, d))
    table, ids = released(channel, items), np.arange(size)
    noise = table.at(ids) - truth(items, size)
    declared = table.standard_error(ids)
    assert noise.std() == pytest.approx(declared[0], rel=0.03)
    assert abs(noise.mean()) < 5 * declared[0] / math.sqrt(noise.size)
    oracle = HadamardVector(randomiser=name)
    asked = (Space((size,)), Bound(BOUND, d), Budget("pure", epsilon), QuestionContext(n, UNIT, SEED))
    assert declared == pytest.approx(np.full(size, math.sqrt(oracle.variance(*asked))))
    m = {"one-byte": {1.0: 0.3976, 4.0: 1.5088}, "privunit": {1.0: 0.3975, 4.0: 1.5156}}.get(name)
    if m:
        assert declared[0] == pytest.approx(math.sqrt(n) / m[epsilon], rel=0.013)


def together(n: int, d: int, sizes: tuple[int, ...]) -> BucketedVectors:
    """Rows whose vectors differ little within a bucket, so that there is something to find in the sums."""
    g = np.random.default_rng(2)
    buckets = np.stack([g.integers(0, size, n) for size in sizes], axis=1)
    centres = points(sizes[-1], d, 3) // 4 + np.eye(d, dtype=np.int64)[0] * (BOUND * 2 // 3)
    return BucketedVectors(buckets, centres[buckets[:, -1]])


@pytest.mark.parametrize("oracle", [HadamardVector, ExplicitHistogramVector])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [1, 5, 8])
def test_sums_are_unbiased_in_any_number_of_buckets(oracle: Any, name: Randomised, size: int) -> None:
    """The projection on the truth is 1 within 5 standard errors, under an eighth in all."""
    n, d = 60_000, 6
    items, ids = together(n, d, (size,)), np.arange(size)
    table = released(opened(oracle(randomiser=name), (size,), d, n, 4.0), items)
    want, got = truth(items, size), table.at(ids)
    error = table.standard_error(ids)[0] / np.linalg.norm(want)
    assert 5 * error < 0.125
    assert (got * want).sum() / (want**2).sum() == pytest.approx(1, abs=5 * error)
    rest = got - want
    assert np.abs(rest).max() < 6 * table.standard_error(ids)[0] * 1.3


@pytest.mark.parametrize("share", ["users", "budget"])
@pytest.mark.parametrize("oracle", [HadamardVector, ExplicitHistogramVector])
def test_levels_share_users_or_budget(oracle: Any, share: Share) -> None:
    n, d, sizes = 40_000, 20, (1, 2, 5)
    items = together(n, d, sizes)
    channel = opened(oracle(randomiser="one-byte", share=share), sizes, d, n, 4.0)
    table = released(channel, items)
    for level, size in enumerate(sizes):
        want, ids = truth(items, size, level), np.arange(size)
        se = table.standard_error(ids, level)[0]
        got = table.at(ids, level)
        sampled = math.sqrt(2 / n) if share == "users" else 0.0
        assert (got * want).sum() / (want**2).sum() == pytest.approx(
            1, abs=5 * (se / np.linalg.norm(want) + sampled * math.sqrt(size))
        )
    one = opened(oracle(randomiser="one-byte"), (5,), d, n, 4.0).asked.variance
    wider = opened(oracle(randomiser="one-byte"), (5,), d, n, 4.0 / 3).asked.variance
    assert channel.asked.variance == pytest.approx(3 * one if share == "users" else wider)
    assert [event.spent.amount for event in channel.events] == [4.0]


@pytest.mark.parametrize("oracle", [HadamardVector, ExplicitHistogramVector])
def test_noise_is_as_wide_as_declared_where_a_fifth_of_the_users_report(oracle: Any) -> None:
    """3% on 20,000 numbers is six standard errors of the sd."""
    n, d, size = 4_000, 100, 200
    items = BucketedVectors(np.random.default_rng(1).integers(0, size, (n, 1)), points(n, d))
    table, ids = released(opened(oracle(randomiser="one-byte"), (size,), d, 5 * n), items), np.arange(size)
    assert (table.at(ids) - truth(items, size)).std() == pytest.approx(table.standard_error(ids)[0], rel=0.03)


@pytest.mark.parametrize("share", ["users", "budget"])
def test_noise_with_levels_is_as_wide_as_declared(share: Share) -> None:
    n, d, sizes = 12_000, 50, (50, 100)
    g = np.random.default_rng(4)
    items = BucketedVectors(np.stack([g.integers(0, size, n) for size in sizes], axis=1), points(n, d, 5))
    table = released(opened(HadamardVector(randomiser="one-byte", share=share), sizes, d, n), items)
    noise = np.concatenate([table.at(np.arange(s), i) - truth(items, s, i) for i, s in enumerate(sizes)])
    assert noise.std() == pytest.approx(table.standard_error(np.arange(1))[0], rel=0.05)  # 7,500 numbers: 6 se


@pytest.mark.parametrize("name", NAMES)
def test_an_explicit_histogram_answers_for_ids_of_any_size(name: Randomised) -> None:
    n, d, far = 40_000, 4, 2**61 + 12345
    values = np.repeat(np.array([[BOUND // 2, -BOUND // 2, 0, 0]]), n, axis=0)
    items = BucketedVectors(np.where(np.arange(n) % 2, far, 3)[:, None], values)
    table = released(opened(ExplicitHistogramVector(randomiser=name), (2**62,), d, n, 4.0), items)
    ids = np.array([far, 3, 0, far - 1, 2**62 - 1])
    se = table.standard_error(ids)[0]
    want = np.outer([1, 1, 0, 0, 0], [n / 4, -n / 4, 0, 0])
    assert 6 * se < 0.2 * n / 4
    assert table.at(ids) == pytest.approx(want, abs=6 * se)
    assert np.array_equal(table.at(ids[::-1])[::-1], table.at(ids))
    assert table.at(ids[:0]).shape == (0, d)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("share", ["users", "budget"])
def test_a_report_is_the_same_alone_in_any_chunk_and_in_any_order(name: Randomised, share: Share) -> None:
    n, d, sizes = 3_000, 10, (4, 9)
    g = np.random.default_rng(6)
    items = BucketedVectors(np.stack([g.integers(-1, size, n) for size in sizes], axis=1), points(n, d, 7))
    users = g.permutation(n).astype(np.uint64) * np.uint64(977)
    channel = opened(HadamardVector(randomiser=name, share=share), sizes, d, n)
    whole = channel.encode(items, users, NOISE).answers

    def some(which: Any) -> np.ndarray:
        part = BucketedVectors(items.buckets[which], items.values[which])
        return np.asarray(channel.encode(part, users[which], NOISE).answers)

    order = g.permutation(n)
    assert np.array_equal(some(order), whole[order])
    assert np.array_equal(np.concatenate([some(slice(0, 7)), some(slice(7, 1001)), some(slice(1001, n))]), whole)
    for i in range(40):
        assert np.array_equal(some(slice(i, i + 1)), whole[i : i + 1])
    assert len(np.unique(whole, axis=0)) > min(100, n // 30)


@pytest.mark.parametrize("oracle", [HadamardVector(), HadamardVector(randomiser="duchi"), ExplicitHistogramVector()])
def test_summaries_merge_in_any_order_and_are_as_small_as_they_should(oracle: Any) -> None:
    n, d, sizes = 1_500, 5, (3, 6)
    channel, ids = opened(oracle, sizes, d, n), np.arange(6)
    items, users = together(n, d, sizes), users_of(n)
    cuts = [slice(0, 10), slice(10, 900), slice(900, n), slice(0, 0)]
    parts = [
        channel.absorb(channel.encode(BucketedVectors(items.buckets[c], items.values[c]), users[c], NOISE))
        for c in cuts
    ]
    a, b, c, nothing = parts
    whole = released(channel, items).at(ids, 1)
    for merged in (a.merge(b).merge(c), a.merge(b.merge(c)), c.merge(nothing).merge(a).merge(b)):
        assert np.array_equal(channel.decode(merged, NOISE).at(ids, 1), whole)
    assert not channel.decode(nothing, NOISE).at(ids, 1).any()
    if isinstance(oracle, HadamardVector):
        assert [total.shape for total in a.totals] == [(4 * d,), (8 * d,)]
        assert all(total.dtype == np.int64 for total in a.totals)


@pytest.mark.parametrize("name", NAMES)
def test_absorb_refuses_what_no_encoder_sends(name: Randomised) -> None:
    n, d = 40, 6
    channel = opened(HadamardVector(randomiser=name), (4,), d, n)
    report = channel.encode(together(n, d, (4,)), users_of(n), NOISE)
    channel.absorb(Reports.load(report.columns()))
    impossible = report.answers.copy()
    impossible[3] = 0
    other = opened(HadamardVector(randomiser=name), (4,), d, n, 2.0)
    wrong = [
        attrs.evolve(report, answers=report.answers.astype(np.float64)),
        attrs.evolve(report, answers=report.answers.astype(np.uint32)),
        attrs.evolve(report, answers=report.answers[:-1]),
        attrs.evolve(report, answers=report.answers[None]),
        attrs.evolve(report, users=report.users.astype(np.int64)),
        attrs.evolve(report, users=report.users[::2].repeat(2)),
        other.encode(together(n, d, (4,)), users_of(n), NOISE),
    ]
    if name != "one-byte":
        wrong.append(attrs.evolve(report, answers=impossible))
    if name == "duchi":
        wrong.append(attrs.evolve(report, answers=np.full_like(report.answers, 2**16 - 1)))
    for one in wrong:
        with pytest.raises(Refused):
            channel.absorb(one)


def test_absorb_refuses_codewords_beyond_a_codebook_of_16_bits() -> None:
    channel = opened(HadamardVector(), (4,), 200, 10)
    report = channel.encode(together(10, 200, (4,)), users_of(10), NOISE)
    assert report.answers.dtype == np.uint16
    channel.absorb(attrs.evolve(report, answers=np.full((10, 1), 511, np.uint16)))
    with pytest.raises(Refused):
        channel.absorb(attrs.evolve(report, answers=np.full((10, 1), 512, np.uint16)))


@pytest.mark.parametrize("name", NAMES)
def test_a_row_in_no_bucket_reports_like_any_other_and_adds_nothing(name: Randomised) -> None:
    """Its vector does not count, and what remains is noise of the declared width (5 standard errors: 2% of 32,000
    numbers)."""
    n, d, size = 30_000, 64, 500
    channel, ids = opened(HadamardVector(randomiser=name), (size,), d, n), np.arange(size)
    nowhere = np.full((n, 1), -1)
    table = released(channel, BucketedVectors(nowhere, np.full((n, d), 10)))
    noise = table.at(ids)
    assert noise.std() == pytest.approx(table.standard_error(ids)[0], rel=0.02)
    assert np.abs(noise.mean(axis=0)).max() < 6 * table.standard_error(ids)[0] / math.sqrt(size)
    users, one, other = users_of(n), points(n, d, 8), points(n, d, 9)
    first, second = (channel.encode(BucketedVectors(nowhere, v), users, NOISE).answers for v in (one, other))
    assert np.array_equal(first, second)
    assert len(first) == n


def test_the_lifted_coordinate_of_rows_in_no_bucket_cancels_too() -> None:
    """Their public signs are even, and independent of every bucket's."""
    asked = opened(HadamardVector(), (8,), 3, 10).asked
    n = 200_000
    nobody = asked.signs(np.full(n, -1), users_of(n), 0)
    for v in range(8):
        signs = asked.signs(np.full(n, v), users_of(n), 0)
        assert abs((nobody * signs).mean()) < 5.5 / math.sqrt(n)
        assert v == 0 or abs(signs.mean()) < 5.5 / math.sqrt(n)


def test_signs_tell_any_two_buckets_apart() -> None:
    asked = opened(ExplicitHistogramVector(), (2**62,), 3, 10).asked
    n, ids = 200_000, [0, 1, 2, 3, 255, 256, 2**31, 2**40 + 1, 2**62 - 1]
    signs = np.stack([asked.signs(np.full(n, v), users_of(n), 0) for v in ids])
    assert (signs @ signs.T / n) == pytest.approx(np.eye(len(ids)), abs=5.5 / math.sqrt(n))


def test_channels_are_plain_public_data() -> None:
    for oracle in (HadamardVector(), HadamardVector(randomiser="privunit"), ExplicitHistogramVector()):
        one, again = opened(oracle, (4, 8), 5, 100), opened(oracle, (4, 8), 5, 100)
        other = opened(oracle, (4, 8), 5, 100, seed=SEED.child("other"))
        assert digest(one) == digest(again) == digest(pickle.loads(pickle.dumps(one))) != digest(other)
        table = released(one, together(50, 5, (4, 8)))
        with pytest.raises(TypeError):
            pickle.dumps(table)


def test_what_cannot_be_answered_is_refused_when_it_is_opened() -> None:
    with pytest.raises(InvalidInput, match="explicit-histogram-vector"):
        opened(HadamardVector(), (2**24,), 10, 100)
    with pytest.raises(InvalidInput, match="finite"):
        opened(HadamardVector(), (4,), 10, 100, math.inf)
    with pytest.raises(InvalidInput, match="Gaussian"):
        HadamardVector().open(Space((4,)), Budget("gaussian", 1.0), QuestionContext(10, 1.0, SEED), Bound(10, 3))
    with pytest.raises(InvalidInput, match="laplace"):
        HadamardVector(randomiser="laplace")  # type: ignore[arg-type]


@attrs.frozen
class Halves:
    """Two buckets: by the sign of the first coordinate."""

    @property
    def space(self) -> Space:
        return Space((2,))

    def locate(self, rows: np.ndarray) -> np.ndarray:
        return (rows[:, :1] >= 0).astype(np.int64)


@attrs.frozen
class Whole:
    digest_tag = "tests.test_vector_sums.Whole"

    cells: Halves
    bound: Bound

    def values(self, rows: np.ndarray, buckets: np.ndarray) -> np.ndarray:
        return rows


@attrs.frozen
class TwoSums:
    """Asks shares of the users for the same sums, of two oracles, in one round."""

    def cluster(self, problem: Problem, session: Session[Local], rng: PublicRng) -> Clustering:
        vectors = Whole(Halves(), Bound(problem.domain.max_norm, 2))
        few, many = problem.budget.split_users(rng.child("share"), 1, 3)
        one, other = session.ask(
            vector_sum(vectors, oracle=ExplicitHistogramVector(), budget=few),
            vector_sum(vectors, oracle=HadamardVector(), budget=many),
        )
        ids = np.arange(2)
        errors = [table.standard_error(ids)[0] for table in (one, other)]
        return Clustering(np.concatenate([one.at(ids), other.at(ids), [errors]]))


@attrs.frozen
class InPieces:
    rows: np.ndarray

    def gather(self, round: Round[Any], rng: NoiseRng) -> tuple[Any, ...]:
        users, half = users_of(len(self.rows)), len(self.rows) // 2
        pieces = [
            absorb(round, encode_rows(round, self.rows[s], users[s], rng)) for s in (slice(0, half), slice(half, None))
        ]
        return merge_summaries(*pieces)


def test_a_method_asks_shares_of_the_users_and_gets_sums_over_all() -> None:
    n = 60_000
    rows = np.random.default_rng(10).uniform(-0.1, 0.1, (n, 2)) + np.where(np.arange(n) % 3, 0.6, -0.6)[:, None]
    problem = Problem(2, Ball((0.0, 0.0), 1.0), n, Budget("pure", 2.0))
    session: Session[Local] = Session(problem, SEED, InPieces(rows), noise=NOISE)
    found = np.asarray(TwoSums().cluster(problem, session, SEED.child("method")).centers)
    want = np.stack([rows[rows[:, 0] < 0].sum(axis=0), rows[rows[:, 0] >= 0].sum(axis=0)])
    for got, error, share in zip((found[:2], found[2:4]), found[4], (0.25, 0.75), strict=True):
        sampling = math.sqrt(n * 0.36 * (1 / share - 1))
        assert 5.5 * math.hypot(error, sampling) < 0.2 * abs(want[1, 0])
        assert got == pytest.approx(want, abs=5.5 * math.hypot(error, sampling))
    assert [event.mechanism for event in session.released] == ["explicit-histogram-vector", "hadamard-vector"]
    assert all(event.spent.epsilon == 2.0 for event in session.released)
    assert [r.digest() for r in forecast(TwoSums(), problem, SEED)] == [r.digest() for r in session.rounds]
