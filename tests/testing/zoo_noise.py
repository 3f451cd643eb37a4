"""Oracles whose noise is too small, depends on the data or on other noise, or comes from nowhere, or from the leaves.

All of them claim the guarantee of the honest ones (Central; add-or-remove one row, or Local; replace one row).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import attrs
import numpy as np

from cloister.core.budget import Budget
from cloister.core.lattice import Bound
from cloister.core.randomness import NoiseRng
from cloister.core.types import Floats, Ints
from cloister.plugin import AdditiveCounts, Central, Laplace, Measure, Sensitivity, component, option
from tests.testing.caught import caught_by, opened_by
from tests.testing.honest import Channel, HonestCounts, HonestGaussianCounts, HonestGaussianSums, HonestSums, Totals


def _quieter(channel: Channel, level: int, size: int, rng: NoiseRng) -> Ints:
    return Channel.noise(attrs.evolve(channel, scale=channel.scale / 1.2), level, size, rng)


class _Quieter(Channel):
    """Noise too small by 1.2, and the standard error that it should have."""

    def noise(self, level: int, size: int, rng: NoiseRng) -> Ints:
        return _quieter(self, level, size, rng)


@caught_by("variance_is_as_declared", "variance_is_as_declared_in_a_large_space")
class QuieterThanItSays(HonestCounts):
    channel = _Quieter


@caught_by("variance_is_as_declared")
class QuieterSums(HonestGaussianSums):
    channel = _Quieter


@opened_by(HonestSums, "noise_falls_on_either_side_alike")
class FlipsSignsSeldom(Channel):
    """One in forty of the numbers below 0 loses its sign."""

    def noise(self, level: int, size: int, rng: NoiseRng) -> Ints:
        drawn = super().noise(level, size, rng)
        words = rng.child("sign").words(np.arange(size, dtype=np.uint64), 1)[:, 0]
        lost = (words < np.uint64(0.025 * 2.0**64)) & (drawn < 0)
        return np.where(lost, -drawn, drawn)


@caught_by("neighbours_are_hard_to_tell_apart")
class QuieterAndAdmitsIt(HonestCounts):
    """Noise too small by 1.2, with the standard error that it has."""

    def scale(self, levels: int, bound: Bound | None, budget: Budget) -> float:
        return super().scale(levels, bound, budget) / 1.2


@opened_by(HonestCounts, "secret_noise_has_the_declared_law", "secret_noise_has_the_declared_law_in_a_large_space")
class QuieterInSecret(Channel):
    """The noise of tests is right, that of real runs too small by 1.2."""

    def noise(self, level: int, size: int, rng: NoiseRng) -> Ints:
        return super().noise(level, size, rng) if rng.seeded else _quieter(self, level, size, rng)


@caught_by(
    "neighbours_are_hard_to_tell_apart",
    "neighbours_are_hard_to_tell_apart_in_a_large_space",
    "one_row_moves_no_mean_too_far",
)
class LevelsNotCounted(HonestGaussianCounts):
    """Every level gets the whole budget."""

    def scale(self, levels: int, bound: Bound | None, budget: Budget) -> float:
        return 1 / budget.mu


@caught_by("one_row_moves_no_mean_too_far")
class BoundPerCoordinate(HonestGaussianSums):
    """The L2 bound is taken for that of a typical coordinate."""

    def scale(self, levels: int, bound: Bound | None, budget: Budget) -> float:
        assert bound is not None
        return super().scale(levels, bound, budget) / math.sqrt(bound.dimension)


@caught_by("neighbours_are_hard_to_tell_apart", "budgets_in_a_foreign_measure_are_refused")
class RhoForEpsilon(HonestCounts):
    """Reads the amount of any budget as epsilon."""

    def scale(self, levels: int, bound: Bound | None, budget: Budget) -> float:
        return levels / budget.amount


@opened_by(HonestGaussianCounts, "neighbours_are_hard_to_tell_apart")
class ShortTails(Channel):
    """Noise beyond three standard deviations is cut off: values beyond are certain to come from one of two
    neighbours."""

    def drawn(self, noise: Ints) -> Ints:
        most = int(3 * self.scale * 2.0**self.shift)
        return np.clip(noise, -most, most)


@opened_by(HonestCounts, "one_row_moves_no_mean_too_far")
class ExactUnderAPrivateName(Channel):
    """No noise at all, and it says so."""

    error = 0.0

    def drawn(self, noise: Ints) -> Ints:
        return np.zeros_like(noise)


@opened_by(HonestCounts, "empty_buckets_get_the_same_noise", "empty_buckets_get_the_same_noise_in_a_large_space")
class EmptyBucketsSkipped(Channel):
    """An empty bucket is released as it is."""

    def noised(self, summary: Totals, rng: NoiseRng) -> Floats:
        return np.where(summary.vector == 0, 0.0, super().noised(summary, rng))


@opened_by(HonestCounts, "noises_are_independent")
class OneSeedForAllLevels(Channel):
    """Every level draws from the same seed."""

    def noise(self, level: int, size: int, rng: NoiseRng) -> Ints:
        return super().noise(0, size, rng)


@opened_by(HonestSums, "noises_are_independent", "noises_are_independent_in_a_large_space")
class CancellingNoise(Channel):
    """The second half of the noise takes back the first."""

    def drawn(self, noise: Ints) -> Ints:
        half = noise[: (len(noise) + 1) // 2]
        return np.concatenate([half, -half])[: len(noise)]


@opened_by(HonestCounts, "noises_are_independent")
class MirroredNoise(Channel):
    """The second half of a large table takes back the first, from the end."""

    def drawn(self, noise: Ints) -> Ints:
        half = noise[: (len(noise) + 1) // 2]
        return np.concatenate([half, -half[::-1]])[: len(noise)] if len(noise) >= 64 else noise


@opened_by(HonestCounts, "noises_are_independent")
class GivesTheTotalAway(Channel):
    """Noise about its own mean: the number of rows comes out as it is."""

    def drawn(self, noise: Ints) -> Ints:
        share, more = divmod(int(noise.sum()), len(noise))
        return noise - share - (np.arange(len(noise)) < more) if len(noise) >= 100 else noise


@caught_by("one_row_moves_no_mean_too_far")
class NeverMoreThanFiveLevels(HonestGaussianCounts):
    """Five levels are enough for anybody."""

    def scale(self, levels: int, bound: Bound | None, budget: Budget) -> float:
        return super().scale(min(levels, 5), bound, budget)


@caught_by("neighbours_are_hard_to_tell_apart")
class NeverMoreThanFivePureLevels(HonestCounts):
    """The same in pure noise, where no mean tells: losses add up, and their roots do not."""

    def scale(self, levels: int, bound: Bound | None, budget: Budget) -> float:
        return super().scale(min(levels, 5), bound, budget)


@caught_by("one_row_moves_no_mean_too_far")
class NeverMuchNoise(HonestCounts):
    """More than that would drown everything."""

    def scale(self, levels: int, bound: Bound | None, budget: Budget) -> float:
        return min(100.0, super().scale(levels, bound, budget))


@caught_by("one_row_moves_no_mean_too_far")
class NeverMoreThanTenColumns(HonestGaussianSums):
    """The L2 bound is taken for that of the first ten."""

    def scale(self, levels: int, bound: Bound | None, budget: Budget) -> float:
        assert bound is not None
        return super().scale(levels, bound, budget) * min(1, math.sqrt(10 / bound.dimension))


@opened_by(HonestCounts, "two_questions_have_independent_noise")
class ReusesNoise(Channel):
    """Draws once, and keeps it for the next question of that size."""

    kept: ClassVar[dict[Any, Ints]] = {}

    def noise(self, level: int, size: int, rng: NoiseRng) -> Ints:
        key = (self.scale, level, size)
        if key not in self.kept:
            self.kept[key] = super().noise(level, size, rng)
        return self.kept[key]


@opened_by(HonestCounts, "noise_comes_from_the_rng_it_is_given", "noises_are_independent")
class PublicNoise(Channel):
    """One seed for noise and for public choices."""

    def noise(self, level: int, size: int, rng: NoiseRng) -> Ints:
        return super().noise(level, size, NoiseRng(self.context.seed))


@opened_by(
    HonestCounts, "noise_comes_from_the_rng_it_is_given", "noise_comes_from_the_rng_it_is_given_in_a_large_space"
)
class OwnNoise(Channel):
    """NumPy's generator instead of the one that was handed in."""

    def noise(self, level: int, size: int, rng: NoiseRng) -> Ints:
        p = -math.expm1(-1 / self.scale)
        g = np.random.default_rng()
        return np.asarray(g.geometric(p, size) - g.geometric(p, size))


@opened_by(HonestCounts, "noise_is_discrete", "noise_is_discrete_in_a_large_space")
class FloatNoise(Channel):
    """Real Laplace noise."""

    def noised(self, summary: Totals, rng: NoiseRng) -> Floats:
        values = super().noised(summary, rng)
        words = rng.child("fraction").words(np.arange(len(values), dtype=np.uint64), self.width)
        return values + (words / 2.0**64 - 0.5) * self.unit


class _HalvedAbove(Channel):
    """Half of the noise where more than a thousand (rows, or units) are."""

    def noised(self, summary: Totals, rng: NoiseRng) -> Floats:
        values, exact = super().noised(summary, rng), summary.vector * self.unit
        return np.where(np.abs(exact) > 1000, (values + exact) / 2, values)


@caught_by("empty_buckets_get_the_same_noise")
class HalvesTheNoiseOfLargeCounts(HonestCounts):
    channel = _HalvedAbove


@caught_by("empty_buckets_get_the_same_noise")
class HalvesTheNoiseOfLargeSums(HonestGaussianSums):
    channel = _HalvedAbove


@caught_by("many_rows_get_the_same_noise", "many_rows_get_the_same_noise_in_a_large_space")
class HalvesAndCallsItBias(HalvesTheNoiseOfLargeCounts):
    biased = True


class _FromTheLeaves(Channel):
    """Counts the deepest level of a nested space, and adds up what it noised."""

    def noised(self, summary: Totals, rng: NoiseRng) -> Floats:
        values, starts = super().noised(summary, rng), self.starts
        if self.space.nested:
            for level in range(self.space.levels - 2, -1, -1):
                below = values[starts[level + 1] : starts[level + 2]]
                below = np.concatenate([below, np.zeros((len(below) % 2, self.width))])
                values[starts[level] : starts[level + 1]] = below[0::2] + below[1::2]
        return values


@caught_by("nested_levels_have_noise_of_their_own")
class NoiseFromTheLeaves(HonestCounts):
    channel = _FromTheLeaves


@caught_by("nested_errors_are_within_the_declared_ones")
class NoiseFromTheLeavesIsCalledBias(NoiseFromTheLeaves):
    biased = True


@opened_by(HonestCounts, "nested_levels_are_added_up_exactly")
class ForgetsTheOddOne(Channel):
    """Pairs of the deepest level make the others; one that has no neighbour is forgotten."""

    def noised(self, summary: Totals, rng: NoiseRng) -> Floats:
        totals, starts = summary.vector.copy(), self.starts
        if self.space.nested:
            for level in range(self.space.levels - 2, -1, -1):
                below, size = totals[starts[level + 1] : starts[level + 2]], self.space.sizes[level]
                pairs = below[: len(below) // 2 * 2]
                totals[starts[level] : starts[level + 1]] = 0
                totals[starts[level] : starts[level] + min(size, len(pairs) // 2)] = pairs[0::2] + pairs[1::2]
        return super().noised(Totals(totals), rng)


@attrs.frozen
class NotBelowZero(Laplace):
    """Clamped at 0."""

    def post_processed(self, noised: Ints) -> Ints:
        return np.maximum(noised, 0)


@component
class Clamped(AdditiveCounts):
    """Central; add-or-remove one row: eps-DP, clamped, and says so."""

    trust, mechanism = Central, "clamped"
    biased = True
    law = NotBelowZero

    @property
    def measure(self) -> Measure:
        return "pure"

    def noise(self, sensitivity: Sensitivity, budget: Budget) -> tuple[Laplace, int]:
        return self.law(sensitivity.l1 / budget.epsilon), 0


@caught_by("bias_is_as_declared")
class ClampedInSilence(Clamped):
    """Clamped, and does not say so."""

    biased = False


@attrs.frozen
class NotBelowZeroAndBoastful(NotBelowZero):
    @property
    def deviation(self) -> float:
        return super().deviation / 1.5


@caught_by("errors_are_within_the_declared_ones", "errors_are_within_the_declared_ones_in_a_large_space")
class ClampedAndBoastful(Clamped):
    """Clamped, with too small a standard error."""

    law = NotBelowZeroAndBoastful


@attrs.frozen
class RoundedDown(Laplace):
    """The multiple of ``step`` below."""

    step: int

    @property
    def deviation(self) -> float:
        return super().deviation + self.step

    def post_processed(self, noised: Ints) -> Ints:
        return noised // self.step * self.step


@component
class RoundsDown(Clamped):
    """Central; add-or-remove one row: eps-DP, rounded down, and says so."""

    step: int = option(default=5, low=1, help="released counts are multiples of this")

    def noise(self, sensitivity: Sensitivity, budget: Budget) -> tuple[Laplace, int]:
        return RoundedDown(sensitivity.l1 / budget.epsilon, self.step), 0


@attrs.frozen
class NotBelowZeroAndQuietInSecret(NotBelowZero):
    def draw(self, size: int, rng: NoiseRng) -> Ints:
        return rng.discrete_laplace(self.scale if rng.seeded else self.scale / 1.25, size)


@caught_by("secret_noise_has_the_law_of_seeded_noise", "secret_noise_has_the_law_of_seeded_noise_in_a_large_space")
class ClampedAndQuietInSecret(Clamped):
    """Noise that is too small, where nobody can repeat it only."""

    law = NotBelowZeroAndQuietInSecret


@attrs.frozen
class DrawsTwice(Laplace):
    def draw(self, size: int, rng: NoiseRng) -> Ints:
        return super().draw(size, rng) - super().draw(size, rng)


class NoiseThatCancels(ClampedInSilence):
    """Two draws of one seed."""

    law = DrawsTwice
