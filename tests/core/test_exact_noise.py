"""Noise as arrays: that what floats decide is what integers decide, and that the laws are the closed ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import count, product

import numpy as np
import pytest
from scipy import stats

from cloister.core import exact_noise
from cloister.core.errors import InvalidInput
from cloister.core.exact_coins import Uniform, exp_bounds
from cloister.core.exact_noise import TRUSTED, Law
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.types import Floats, Ids, Ints
from tests.alarms import Alarm

SCALES = [0.3, 1.0, 4.5, 300.7, 2.0**20 + 0.1, 2.0**40]
LAWS = [
    pytest.param(Law(s, squared), id=f"{'gauss' if squared else 'laplace'} {s:g}")
    for squared in (False, True)
    for s in SCALES
]
ENDS = [Law(s, squared) for squared in (False, True) for s in (512 - 2.0**-44, 2.0**53, 2.0**56, 2.0**58)]
"""The widest noise, and where t / M or the floats that it is computed in turn over."""

WORD = 2**64
MANY = 10**6
LONG = Context(prec=80)


def decimal_exp(x: Fraction) -> Decimal:
    """e^-x to 80 digits."""
    return LONG.exp(LONG.divide(Decimal(-x.numerator), Decimal(x.denominator)))


def words_of(rows: list[tuple[int, int, int]]) -> Ids:
    return np.array([[word % WORD for word in row] for row in rows], np.uint64)


def beyond(candidate: int = 0) -> Callable[[int], Callable[[], int]]:
    """Words after those of a candidate, which follow from its number."""

    def of(column: int) -> Callable[[], int]:
        keys = (PublicRng.from_seed(5).child(candidate, column, i).key for i in count())
        return lambda: int.from_bytes(next(keys)[:8], "little")

    return of


def agree(law: Law, words: Ids) -> int:
    """See the filter say what integers say, wherever it answers; how often it does not."""
    values, accepted, undecided = law.filtered(words)
    assert not (accepted & undecided).any()
    for i, (a, b, c) in enumerate(words.tolist()):
        if not undecided[i]:
            assert (int(values[i]) if accepted[i] else None) == law.exactly((a, b, c), beyond(i)), (law, a, b, c)
    return int(undecided.sum())


# --- coins


def test_bounds_of_the_exponential_hold_and_are_close() -> None:
    xs = [Fraction(n, d) for n in (1, 2, 7, 1000, 123457) for d in (1, 3, 1024, 10**6, 2**90)] + [Fraction(0)]
    with localcontext(LONG):
        for precision, x in product((8, 64, 88, 200), xs):
            low, high = exp_bounds(x, precision)
            assert low <= decimal_exp(x) * 2**precision <= high
            assert high - low <= 2


@pytest.mark.parametrize("x", [Fraction(1, 2**70), Fraction(1, 3), Fraction(1), Fraction(40), Fraction(60)])
def test_a_coin_is_decided_by_the_bits_beyond_its_word(x: Fraction) -> None:
    """The word in which e^-x lies, with the bits that follow those of e^-x by one unit more or less."""
    with localcontext(LONG):
        number = int(decimal_exp(x) * 2**192)
    for off, below in ((-2, True), (-1, True), (1, False), (2, False)):
        bits = number + off
        rest = iter([bits >> 64 & (WORD - 1), bits & (WORD - 1)])
        assert Uniform(bits >> 128, lambda rest=rest: next(rest)).below_exp(x) is below  # type: ignore[misc]


def test_log_and_exp_are_a_hundred_times_better_than_they_are_trusted_to_be() -> None:
    r = np.random.default_rng(1)
    xs = np.concatenate([r.uniform(0, 45, 2000), 2.0 ** -r.uniform(0, 60, 1000)])
    us = np.concatenate([2.0 ** -r.uniform(0, 24, 2000), 1 - 2.0 ** -r.uniform(1, 53, 1000)])
    with localcontext(LONG):
        for x, e in zip(xs.tolist(), np.exp(-xs).tolist(), strict=True):
            assert abs(Decimal(e) / decimal_exp(Fraction(x)) - 1) < Decimal(TRUSTED / 100)
        for u, log in zip(us.tolist(), np.log(us).tolist(), strict=True):
            exact = Decimal(u).ln()
            assert abs(Decimal(log) - exact) < Decimal(TRUSTED / 100) * max(1, abs(exact))


# --- the filter


@pytest.mark.parametrize("law", [*LAWS, *ENDS])
def test_the_filter_says_what_integers_say_at_random_words(law: Law) -> None:
    words = np.random.default_rng(2).integers(0, WORD, (400, 3), dtype=np.uint64)
    assert agree(law, words) <= 1


@pytest.mark.parametrize("law", [*LAWS, *ENDS])
def test_the_filter_says_what_integers_say_beside_every_border(law: Law) -> None:
    """At the words where H turns from k - 1 to k, and where a coin turns, and a little off."""
    t = Fraction(law.around or law.scale)
    step = (1 << law.shift) / t
    near = [0, *(sign << by for sign in (1, -1) for by in (0, 1, 6, 10, 12, 20, 30, 40))]
    some = range(1, 24) if step > 0.5 else (1, 2, 3, 100, 255, 1000, 3000)
    with localcontext(LONG):
        borders = [border for k in some if (border := int(decimal_exp(k * step) * WORD)) >= 2**41]
        rows = [(border + off, 77, 1) for border in borders for off in near if 0 <= border + off < WORD]
        middles = [1 << 63, WORD - 2**61, *(border + (WORD - border) // 100 for border in borders[::3])]
        for a in middles:
            for low in (0, (1 << law.shift) // 3):
                y = abs(law.exactly((a, low, 0), lambda _: lambda: 0) or 0)
                coin = int(decimal_exp(exponent(law, y)) * WORD)
                rows += [(a, low | sign, c) for off in near for sign in (0, 1 << 63) if 0 <= (c := coin + off) < WORD]
    rows += [(a, b, c) for a in (0, 1, 2**40 - 1, 2**40, WORD - 1) for b in (0, 1 << 63) for c in (0, 1, WORD - 1)]
    assert agree(law, words_of(rows)) < len(rows)


def test_a_coin_of_no_probability_at_all_is_left_to_integers_or_rejected() -> None:
    """y = 15 is 50 deviations out: e^-x is 0 in floats."""
    words = words_of([(2**43, 0, c) for c in (0, 1, 2**4, 2**10, WORD - 1)])
    law = Law(0.3, True)
    assert agree(law, words) >= 2
    assert not law.filtered(words)[1].any()


def exponent(law: Law, y: int) -> Fraction:
    """x of a candidate y: accepted with probability e^-x."""
    s = Fraction(law.scale)
    if not law.squared:
        return (y & ((1 << law.shift) - 1)) / s
    t = law.around
    return y**2 / (2 * s**2) - Fraction(y & ~((1 << law.shift) - 1), t) + s**2 / (2 * t**2)


@pytest.mark.parametrize("law", LAWS)
def test_integers_draw_the_closed_law(law: Law) -> None:
    """A number y of high part k has the chance P(H = k) e^-x: words turn H at e^(-k step) and the coin at e^-x, and
    k step + x is y / s or y^2 / 2 s^2, but for a constant. Of numbers whose coin one word decides."""
    s, t = Fraction(law.scale), Fraction(law.around or law.scale)
    step, low, seen = (1 << law.shift) / t, (1 << law.shift) // 3, 0
    with localcontext(LONG):
        edges = [int(decimal_exp(k * step) * WORD) for k in range(9)]
        for k in range(1, 8):
            y = (k << law.shift) + low
            x = (y**2 / (2 * s**2) + s**2 / (2 * t**2) if law.squared else y / s) - k * step
            coin, inside = int(decimal_exp(x) * WORD), (edges[k] + edges[k + 1]) // 2
            if coin > 2:
                seen += 1
                assert [law.exactly((inside, low, coin + off), beyond()) for off in (-2, 2)] == [y, None]
                sides = [law.exactly((edges[k] + off, low, 0), beyond()) for off in (2, -1)]
                assert [side >> law.shift for side in sides if side is not None] == [k - 1, k]
    assert seen > 0


@pytest.mark.parametrize("law", LAWS)
def test_the_filter_leaves_next_to_nothing_undecided(law: Law) -> None:
    """Below 2^-20 of candidates: more than 3 of 250,000 have a chance below 1e-3, and these words are given."""
    words = np.random.default_rng(3).integers(0, WORD, (MANY // 4, 3), dtype=np.uint64)
    assert law.filtered(words)[2].sum() <= 3


# --- the laws


def below(law: Law, edges: Ints) -> Floats:
    """P(X <= edge)."""
    s = law.scale
    if not law.squared:
        return np.asarray(stats.dlaplace.cdf(edges, 1 / s))
    if s > 1000:
        return np.asarray(stats.norm.cdf((edges + 0.5) / s))
    x = np.arange(-60 - int(40 * s), 61 + int(40 * s))
    mass = np.exp(-(x**2) / (2 * s**2))
    return (np.cumsum(mass) / mass.sum())[edges - x[0]]


def fit(law: Law, sample: Ints, bins: int = 32) -> float:
    """p-value of a chi-square test on bins of about the same probability, each expected at least 20 times."""
    s = law.scale
    probe = (np.linspace(-12, 12, 4001) * max(s, 1)).astype(np.int64)
    chances = below(law, probe)
    edges = np.unique(probe[np.searchsorted(chances, np.arange(1, bins) / bins)])
    edges = np.unique(np.concatenate([edges, [-1, 0]])) if s < 10 else edges
    expected = np.diff(below(law, edges), prepend=0.0, append=1.0) * len(sample)
    assert (expected >= 20).all()
    seen = np.bincount(np.searchsorted(edges, sample, side="left"), minlength=len(edges) + 1)
    return float(stats.chisquare(seen, expected).pvalue)


def draw(rng: NoiseRng, law: Law, size: int) -> Ints:
    return rng.discrete_gaussian(law.scale, size) if law.squared else rng.discrete_laplace(law.scale, size)


@pytest.mark.alarm(1e-8)
@pytest.mark.parametrize("law", LAWS)
def test_numbers_follow_the_closed_law_and_none_that_is_two_percent_wider_or_narrower(law: Law, alarm: Alarm) -> None:
    """Power above 0.999: 10^6 numbers tell 1.02 from 1 by a noncentrality of about 400. Signs are even, and low bits of
    wide noise are uniform."""
    sample = draw(NoiseRng.secret(), law, MANY)
    alarm.fits(fit(law, sample), of=4)
    alarm.refutes(*(fit(Law(law.scale * wrong, law.squared), sample) for wrong in (1.02, 1 / 1.02)))
    signed = sample[sample != 0]
    alarm.fits(stats.binomtest(int((signed > 0).sum()), len(signed)).pvalue, of=4)
    if law.scale > 1000:
        alarm.fits(stats.chisquare(np.bincount(sample & 63, minlength=64)).pvalue, of=4)
        alarm.fits(stats.chisquare(np.bincount(np.abs(sample) >> law.shift & 1 ^ sample & 1)).pvalue, of=4)


# --- drawing


@pytest.mark.parametrize("law", LAWS)
def test_a_filter_that_is_too_wide_leaves_it_to_integers_which_draw_the_same_numbers(law: Law) -> None:
    rng = NoiseRng.for_tests(8)
    wide = Law(law.scale, law.squared, widened=2.0**45)
    assert wide.filtered(rng._source().words(300))[2].mean() > 0.4
    assert np.array_equal(wide.draw(150, rng._source()), draw(rng, law, 150))


class Given:
    """Words that a test chose; what lies beyond them is noted."""

    def __init__(self, rows: list[tuple[int, int, int]]) -> None:
        self.rows: Iterator[tuple[int, int, int]] = iter(rows)
        self.asked: list[tuple[int, int]] = []

    def words(self, many: int) -> Ids:
        return words_of([next(self.rows) for _ in range(many)])

    def beyond(self, candidate: int, column: int) -> Callable[[], int]:
        self.asked.append((candidate, column))
        return lambda: 12345


def test_bits_beyond_belong_to_the_candidate_by_its_number_in_the_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact_noise, "CHUNK", 2)
    sure, unsure = (WORD - WORD // 8, 0, 0), (5, 0, 2**63)
    minus_zero = (WORD - WORD // 8, 2**63, 0)
    for rows, accepted, wanted in (
        ([sure, sure, sure, unsure, sure, unsure], 6, (3, 5)),
        ([sure, minus_zero, unsure, sure, minus_zero, unsure, sure, sure], 5, (2, 5)),
        ([minus_zero, minus_zero, minus_zero, unsure, unsure, sure], 3, (3, 4)),
    ):
        source = Given(rows)
        Law(3.0, False).draw(accepted, source)
        assert sorted(set(source.asked)) == [(number, column) for number in wanted for column in (0, 2)]


def test_a_shorter_draw_is_the_beginning_of_a_longer_one_in_chunks_of_any_length(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    long = {law: draw(NoiseRng.for_tests(2), law, 2000) for law in (Law(3.0, False), Law(1e6, True))}
    for chunk in (7, 2**14):
        monkeypatch.setattr(exact_noise, "CHUNK", chunk)
        for law, numbers in long.items():
            for size in (0, 1, 17, 500):
                assert np.array_equal(draw(NoiseRng.for_tests(2), law, size), numbers[:size])


def test_noise_of_nearly_no_scale_is_zero() -> None:
    source = NoiseRng.secret()._source()
    for squared, scale in product((False, True), (5e-324, 1e-300, 1e-160, 2.0**-20, 0.01)):
        assert not Law(scale, squared).draw(5000, source).any()
        assert not Law(scale, squared, widened=2.0**45).draw(20, source).any()


def candidate(law: Law, number: int) -> tuple[int, int, int]:
    """Words that make this number, and accept it."""
    step = (1 << law.shift) / (law.around or law.scale)
    first = int(math.exp(-((abs(number) >> law.shift) + 0.5) * step) * WORD)
    return first, abs(number) & ((1 << law.shift) - 1) | (number < 0) << 63, 0


@pytest.mark.parametrize("law", [Law(2.0**60, False), Law(2.0**60.5, True)], ids=str)
@pytest.mark.parametrize("sign", [1, -1])
def test_every_number_up_to_63_bits_is_drawn_and_the_next_ones_never_wrap(law: Law, sign: int) -> None:
    """By floats, and of Laplace's noise, whose coins are sure, by integers alone."""
    plenty = [candidate(law, 2**58)] * 20
    for number in (1, 2**62 - 1, 2**62, 2**62 + 2**52 + 1, 3 * 2**61, 2**63 - 2**52, 2**63 - 1):
        words = candidate(law, sign * number)
        assert law.draw(1, Given([words, *plenty])).tolist() == [sign * number]
        assert law.squared or law.exactly(words, beyond()) == sign * number
    for number in (2**63, 2**63 + 1, 2**63 + 2**53, 5 * 2**61, 3 * 2**62, 7 * 2**61, 2**64 - 1, 2**64, 2**64 + 2**59):
        words = candidate(law, sign * number)
        with pytest.raises(InvalidInput, match="64 bits"):
            law.draw(1, Given([words, *plenty]))
        if not law.squared:
            with pytest.raises(InvalidInput, match="64 bits"):
                law.exactly(words, beyond())
