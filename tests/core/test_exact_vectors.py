"""Noise on whole vectors: that what floats decide is what integers decide, and that the law is the closed one."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from cloister.core import exact_vectors
from cloister.core.errors import InvalidInput
from cloister.core.exact_coins import GUARD, Uniform
from cloister.core.exact_vectors import FAR, VectorLaw
from cloister.core.randomness import NoiseRng
from cloister.core.types import Floats, Ints
from tests.alarms import Alarm

LAWS = [VectorLaw(scale, width) for width in (1, 2, 3, 10) for scale in (1.5, 1000.3, 2.0**40)]


def candidates(law: VectorLaw, many: int, seed: int = 1) -> Ints:
    drawn = NoiseRng.for_tests(seed).discrete_laplace(law.around, many * law.width)
    return drawn.reshape(many, law.width)


@pytest.mark.parametrize("law", LAWS)
def test_candidates_are_as_wide_as_cauchy_and_schwarz_ask(law: VectorLaw) -> None:
    assert Fraction(law.around) ** 2 >= Fraction(law.scale) ** 2 * law.width


@pytest.mark.parametrize("law", LAWS)
def test_the_filter_says_what_integers_say_wherever_it_answers(law: VectorLaw) -> None:
    """Coins at the border too: the chance itself, and the words beside it."""
    some = candidates(law, 60)
    lengths = np.sqrt(np.square(some.astype(np.float64)).sum(axis=1)) / law.scale
    chance = np.exp(-np.maximum(lengths - np.abs(some.astype(np.float64)).sum(axis=1) / law.around, 0.0))
    near = np.minimum((chance * 2.0**64).astype(np.float64), 2.0**64 - 2**12).astype(np.uint64)
    free = NoiseRng.for_tests(2)._source().words(60)[:, 0]
    unsure = 0
    for words in (free, near, near + np.uint64(2**30), near - np.minimum(near, np.uint64(2**30))):
        accepted, undecided = law.filtered(some, words)
        assert not (accepted & undecided).any()
        unsure += int(undecided.sum())
        for i in np.flatnonzero(~undecided).tolist():
            assert law.exactly(some[i].tolist(), Uniform(int(words[i]), lambda: 0)) == accepted[i]
    assert unsure >= 40  # of the 60 at the border


def test_numbers_far_out_and_coins_at_the_border_are_left_to_integers() -> None:
    law = VectorLaw(3.0, 2)
    far = np.array([[int(3 * FAR) + 1, 0], [0, -(2**62)], [0, 0]])
    accepted, undecided = law.filtered(far, np.array([5, 5, 5], np.uint64))
    assert undecided.tolist() == [True, True, False]
    assert accepted[2]  # nothing is longer, or as likely
    assert not law.exactly([2**62, 2**62], Uniform(5, lambda: 5))
    assert law.exactly([0, 0], Uniform(2**64 - 1, lambda: 2**64 - 1))


@pytest.mark.parametrize("law", LAWS[:8])
def test_a_filter_that_is_too_wide_leaves_it_to_integers_which_draw_the_same_vectors(law: VectorLaw) -> None:
    def drawn(widened: float) -> Ints:
        rng, wide = NoiseRng.for_tests(3), VectorLaw(law.scale, law.width, widened)
        return wide.draw(
            40,
            lambda attempt, many: rng.child(attempt).discrete_laplace(law.around, many),
            lambda attempt: rng.child("coins", attempt)._source(),
        )

    assert np.array_equal(drawn(2.0**45), drawn(1.0))


def test_a_coin_between_the_bounds_of_a_chance_is_looked_at_further(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds that are a quarter apart at 64 bits, and 2^-66 at 128, leave more coins open and draw the same vectors."""
    law, real = VectorLaw(20.0, 3, widened=2.0**45), exact_vectors.exp_bounds

    def accepted() -> list[bool]:
        g = np.random.default_rng(5)
        candidates, coins = g.integers(-60, 60, (200, 3)).tolist(), g.integers(0, 2**63, 200).tolist()
        more = [iter(g.integers(0, 2**63, 8).tolist()) for _ in coins]
        return [
            law.exactly(candidate, Uniform(2 * coin, lambda words=words: next(words)))  # type: ignore[misc]
            for candidate, coin, words in zip(candidates, coins, more, strict=True)
        ]

    def wide(x: Fraction, precision: int) -> tuple[int, int]:
        low, high = real(x, precision)
        return low - (1 << GUARD + 62), high + (1 << GUARD + 62)

    once = accepted()
    monkeypatch.setattr(exact_vectors, "exp_bounds", wide)
    assert accepted() == once
    assert 20 < sum(once) < 180


def probabilities(scale: float, width: int, most: int) -> Floats:
    """Of all vectors of numbers up to ``most``."""
    numbers = np.arange(-most, most + 1.0)
    squares = sum(np.square(axis) for axis in np.meshgrid(*[numbers] * width, indexing="ij"))
    weights: Floats = np.exp(-np.sqrt(squares) / scale)
    return weights / weights.sum()


@pytest.mark.alarm(1e-8)
@pytest.mark.parametrize(("scale", "width", "most"), [(1.5, 2, 60), (0.7, 3, 30)])
def test_vectors_follow_the_closed_law_and_none_that_is_three_percent_wider_or_narrower(
    scale: float, width: int, most: int, alarm: Alarm
) -> None:
    sample = NoiseRng.secret().spherical(scale, width, 200_000)
    cells = np.ravel_multi_index((sample + most).T.tolist(), (2 * most + 1,) * width)
    seen = np.bincount(cells, minlength=(2 * most + 1) ** width)

    def fit(wrong: float) -> float:
        law = probabilities(scale * wrong, width, most).ravel() * len(sample)
        often = law >= 20
        observed, expected = np.append(seen[often], seen[~often].sum()), np.append(law[often], law[~often].sum())
        return float(stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue)

    alarm.fits(fit(1.0))
    alarm.refutes(fit(1.03), fit(1 / 1.03))


def test_widths_and_scales_that_it_is_not_proved_for_are_refused() -> None:
    for width in (0, 17):
        with pytest.raises(InvalidInput, match=f"1 to 16 columns, not {width}"):
            NoiseRng.secret().spherical(1e6, width, 3)
    with pytest.raises(InvalidInput, match="outside"):
        NoiseRng.secret().spherical(2.0**62, 2, 3)
    with pytest.raises(InvalidInput, match="cannot be replayed"):
        NoiseRng.replayed(range(1000)).spherical(1e6, 2, 3)
    assert NoiseRng.secret().spherical(1e6, 3, 0).shape == (0, 3)
    assert not NoiseRng.secret().spherical(1e-3, 3, 50).any()
