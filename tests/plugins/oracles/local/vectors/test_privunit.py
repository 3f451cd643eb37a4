"""PrivUnit: what every row can send, how often, and how much one report weighs. False alarms: at most 1e-6 per test,
seeds fixed."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.special import betainc
from scipy.stats import beta

from cloister.core.reproducible_math import cap_error, normals, words_for
from cloister.plugin import (
    AnyArray,
    Bound,
    BucketedVectors,
    Budget,
    Floats,
    Ids,
    NoiseRng,
    PublicRng,
    QuestionContext,
    Space,
)
from cloister.plugins.oracles.local.coins import WORDS, odds
from cloister.plugins.oracles.local.vectors.channel import word_source
from cloister.plugins.oracles.local.vectors.privunit import PrivUnit, _cap_share
from cloister.plugins.oracles.local.vectors.unit_randomiser import STEP, ZERO, DrawWords, received
from cloister.plugins.oracles.local.vectors.vector_sums import HadamardVector
from tests.alarms import Alarm

SEED = PublicRng.from_seed(640)
HALVES = 2**6


def made(epsilon: float, dimension: int) -> PrivUnit:
    return PrivUnit.within(odds(Budget("pure", epsilon)), dimension)


def users_of(n: int) -> Ids:
    return np.arange(n, dtype=np.uint64)


def said(unit: PrivUnit, u: Floats, words: DrawWords, n: int) -> AnyArray:
    """Answers (n, d) of n persons with the same row."""
    return unit.randomise(np.repeat(u[:, None], n, axis=1), users_of(n), words, SEED)


def test_what_one_row_sends_other_rows_send_too() -> None:
    """With the same secret words opposite rows keep the same vectors, but for the side: 46% of all, 35% being ten
    errors less.

    A vector that is made from the row's own parts is sent by that row alone: where floating point has gaps, others
    never send it.
    """
    n, d = 2000, 20
    question = Space((1,)), Budget("pure", 1.0), QuestionContext(n, 1e-3, SEED), Bound(1000, d)
    channel = HadamardVector(randomiser="privunit").open(*question)
    row, nowhere = np.repeat(1000 * np.eye(1, d, dtype=np.int64), n, axis=0), np.zeros((n, 1), np.int64)
    one, other = (
        channel.encode(BucketedVectors(nowhere, sign * row), users_of(n), NoiseRng.for_tests(642)).answers
        for sign in (1, -1)
    )
    assert (one == other).all(axis=1).mean() > 0.35


def tiny(goes: AnyArray) -> DrawWords:
    """Words of the first go as given; then some that every row keeps, at an angle between two of those of ``grid``."""
    last = np.array([0, (2**31 << 32) + 32], np.uint64)
    return lambda users, go: np.repeat(last[None], len(users), axis=0) if go else goes


def grid() -> Ids:
    """A word for each of 64 radii and 64 angles: a small analogue of all 2^64."""
    radii = (np.arange(HALVES, dtype=np.uint64) << np.uint64(26)) + np.uint64(2**25)
    angles = np.arange(HALVES, dtype=np.uint64) << np.uint64(6)  # of the 12 bits that count most
    return ((radii << np.uint64(32))[:, None] + angles).ravel()


def rows_of_the_circle() -> list[Floats]:
    turns = [0.0, math.pi / 2, math.pi, 0.3, 1.1, 2.9, 4.0, 5.5]
    return [np.array([math.cos(a), math.sin(a)]) for a in turns]


def test_the_whole_law_of_a_small_analogue_keeps_its_bound_for_every_pair_of_rows() -> None:
    """By enumeration, in fractions: two chances for each vector, the same vectors for all rows, ratio at most max A /
    (t min A)."""
    unit, pairs = made(1.0, 1), grid()
    assert unit.together == 1
    n, t = len(pairs), Fraction(unit.coin, WORDS)
    other = ZERO + round(math.sqrt(2) * math.cos(2 * math.pi * 32 / 4096) / STEP)
    everything = said(unit, np.array([1.0, 0.0]), tiny(np.stack([np.zeros(n, np.uint64), pairs], axis=1)), n)[:, 0]
    assert not (everything == other).any()
    tables, kept = [], []
    for u in rows_of_the_circle():
        v = normals(pairs[:, None], 2)
        inside = u @ v >= unit.gamma * np.hypot(*v) / math.sqrt(2)
        for word in (unit.coin - 1, unit.coin, WORDS - 1):
            goes = np.stack([np.full(n, word, np.uint64), pairs], axis=1)
            answers = said(unit, u, tiny(goes), n)[:, 0]
            taken = inside | (word < unit.coin)
            assert np.array_equal(answers[taken], everything[taken])
            assert (answers[~taken] == other).all()
        share = Fraction(int(inside.sum()), n)
        accepted = share + (1 - share) * t
        chances: Counter[int] = Counter()
        for answer, within in zip(everything.tolist(), inside, strict=True):
            chances[answer] += (1 if within else t) / accepted / n  # type: ignore[assignment]
        assert sum(chances.values()) == 1
        tables.append(chances)
        kept.append(accepted)
        assert abs(share - Fraction(unit_cap(unit))) <= Fraction(3, HALVES)
    most = max(kept) / min(kept) / t
    for one, other in product(tables, tables):
        assert one.keys() == other.keys()
        assert all(one[answer] <= most * other[answer] for answer in one)


def unit_cap(unit: PrivUnit) -> float:
    """The share of the cap, by scipy."""
    size = unit.dimension + 1
    return float(beta.sf(unit.gamma**2 / size, 0.5, (size - 1) / 2)) / 2


@pytest.mark.parametrize(
    ("epsilon", "dimension"),
    [
        (1e-3, 1),
        (1e-3, 4096),
        (0.5, 20),
        (1.0, 1),
        (1.0, 100),
        (4.0, 20),
        (4.0, 4096),
        (12.0, 100),
        (39.0, 1),
        (39.0, 4096),
    ],
)
def test_the_coin_is_on_the_safe_side_and_close(epsilon: float, dimension: int) -> None:
    """max A / (t min A) <= odds in exact fractions, for every q that the proof allows."""
    mpmath = pytest.importorskip("mpmath")
    most = odds(Budget("pure", epsilon))
    unit = made(epsilon, dimension)
    with mpmath.workdps(60):
        n = mpmath.mpf(dimension)
        cap = mpmath.betainc(n / 2, 0.5, 0, 1 - mpmath.mpf(unit.gamma) ** 2 / (n + 1), regularized=True) / 2
        off = mpmath.mpf((words_for(dimension + 1) + 1) / 2**29)
        share = mpmath.mpf(unit.coin) / WORDS
        accepted = [q + (1 - q) * share for q in (cap - off, cap + off)]
        ratio = accepted[1] / accepted[0] / share
        bound = mpmath.mpf(most.numerator) / most.denominator
        assert ratio <= bound
        assert ratio >= bound * (1 - (5e-4 if epsilon <= 4 else 0.05))
    assert unit.coin < WORDS
    assert cap_error(dimension + 1) >= Fraction(words_for(dimension + 1), 2**30)


@pytest.mark.alarm(1e-8)
def test_how_often_she_draws_says_nothing_about_what_she_sends(alarm: Alarm) -> None:
    """Of those who keep their first vector as many are in the cap as of all, for either row."""
    n, unit = 100_000, made(1.0, 1)
    for number, u in enumerate(([1.0, 0.0], [-1.0, 0.0])):
        asked: list[Ids] = []
        secret = word_source(NoiseRng.for_tests(647 + number), unit.secret_words)

        def words(users: Ids, go: int, asked: list[Ids] = asked, secret: DrawWords = secret) -> Ids:
            asked.append(users)
            return secret(users, go)

        inside = received(said(unit, np.array(u), words, n))[:, 0] * u[0] * STEP >= unit.gamma
        first = np.ones(n, bool)
        first[asked[1].astype(np.int64)] = False
        assert first.mean() == pytest.approx(unit.accepted, abs=alarm.errors(8) * 0.5 / math.sqrt(n))
        p = unit_cap(unit) / unit.accepted
        for some in (inside, inside[first], inside[~first]):
            assert some.mean() == pytest.approx(p, abs=alarm.errors(8) * 0.5 / math.sqrt(len(some)) + 1e-3)


def test_reports_that_are_longer_than_any_that_is_sent_are_refused() -> None:
    unit, d = made(1.0, 20), 20
    even, one = np.ones(d, np.int64), np.eye(1, d, dtype=np.int64)[0]
    longest = int(math.sqrt(d + 1) / STEP / math.sqrt(d))
    sent = (longest * even, 9_300 * one, 0 * one)
    never = ((longest + 5) * even, -(longest + 5) * even, 9_400 * one, (ZERO - 1) * even, -ZERO * even)
    for some, possible in ((sent, True), (never, False)):
        assert [unit.possible((steps + ZERO).astype(np.uint16)[None]) for steps in some] == [possible] * len(some)


@pytest.mark.alarm(1e-8)
def test_the_audit_finds_epsilon_and_no_more(alarm: Alarm) -> None:
    """Opposite rows, 200,000 reports of each: P(S) <= e^eps P'(S) by Clopper and Pearson on the cap, on what is far
    out, on long vectors, and on pairs of variates that are all there is; and on the cap it is not less either, by more
    than 5%."""
    n, unit = 200_000, made(1.0, 3)
    u = np.array([1.0, 0.0, 0.0, 0.0])
    one, other = (
        received(said(unit, sign * u, word_source(NoiseRng.for_tests(644 + sign), unit.secret_words), n)) * STEP
        for sign in (1, -1)
    )
    events = {
        "cap": lambda v: v[:, 0] >= unit.gamma,
        "far": lambda v: v[:, 0] >= 1.8,
        "aside": lambda v: np.abs(v[:, 1]) >= 1.9,
        "long": lambda v: (v**2).sum(axis=1) >= 3.99,
        "pair": lambda v: np.hypot(v[:, 0], v[:, 2]) >= 1.98,
    }
    for name, event in events.items():
        first, second = int(event(one).sum()), int(event(other).sum())
        for a, b in ((first, second), (second, first)):
            assert alarm.proportion(a, n, 20)[0] <= math.e * alarm.proportion(b, n, 20)[1], name
        if name == "cap":
            assert first / second == pytest.approx(math.e, rel=0.05)


@pytest.mark.parametrize("size", [2, 3, 5, 50, 1000])
@pytest.mark.parametrize("gamma", [0.0, 0.1, 1.0, 1.4])
def test_the_share_of_a_cap_is_that_of_the_incomplete_beta_function(gamma: float, size: int) -> None:
    """On a circle, where the integrand is 1 up to its end, as well as where it vanishes there."""
    assert _cap_share(gamma, size) == pytest.approx(betainc((size - 1) / 2, 0.5, 1 - gamma**2 / size) / 2, rel=1e-11)
