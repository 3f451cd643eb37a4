"""Checks of count and sum oracles whose values are off on average, or have noise in occupied buckets only.

Biased oracles (``biased``) are also tested for all that does not need unbiased values. Oracles that release occupied
buckets only pay for it with a delta (``uses_delta``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from cloister.accounting import delta_of_mu
from cloister.plugin import Bools, Budget, Floats, NoiseRng
from cloister.testing.check import require, role_of
from cloister.testing.checks.oracle_noise import (
    BUCKETS,
    COMPARISONS,
    ROWS_PER_BUCKET,
    SECRET_SAMPLES,
    Sample,
    check_correlations,
    check_variance,
    compare_distributions,
    compare_means,
    compare_widths,
    equal_bucket_samples,
    equal_buckets,
    noise_comes_from_the_rng_it_is_given,
    noise_is_discrete,
    noises_are_independent,
    samples,
    secret_and_seeded,
    two_questions_have_independent_noise,
)
from cloister.testing.probes import Probe, Shape, budget_of, is_central, wide_shapes
from cloister.testing.statistics import common_step, mean_band, opposed_bounds, probability_bounds, variance_band

MANY = (300, *ROWS_PER_BUCKET[3:])
"""Rows per bucket far above the noise, so that nothing is clamped at 0."""


def errors_are_within_the_declared_ones(oracle: Any) -> None:
    """Biased values have a root mean square error of at most ``standard_error``, whatever the rows.

    ``variance`` is the square of it.
    """
    for sample in samples(oracle):
        compare_squares(sample)
    check_variance(oracle)
    for shape in wide_shapes(role_of(oracle), BUCKETS) if is_central(oracle) else ():
        probe = Probe.of(oracle, shape, budget_of(oracle.measure, 0.2))
        for count in ROWS_PER_BUCKET:
            for sample in equal_bucket_samples(probe, count, 8, NoiseRng.for_tests(6).child(count)):
                compare_squares(sample)


def compare_squares(sample: Sample) -> None:
    """Raise unless the mean square of every number is at most its declared one, within the band."""
    squares = sample.noise**2
    lower_bound = squares.mean(axis=0) - mean_band(squares, COMPARISONS)
    worst = int(np.argmax(lower_bound - sample.errors**2))
    require(
        (lower_bound <= sample.errors**2 + 1e-9).all(),
        f"{sample.origin}: the mean square error is at least {lower_bound[worst]:.6g}, standard_error() squared is "
        f"{sample.errors[worst] ** 2:.6g} ({len(sample.noise)} samples)",
    )


def secret_noise_has_the_law_of_seeded_noise(oracle: Any) -> None:
    """Biased noise from the system's entropy, as in real runs, has the width and distribution of seeded noise."""
    sample, seeded = secret_and_seeded(oracle, 2 * SECRET_SAMPLES)
    secret, expected = float(sample.noise.var()), float(seeded.var())
    band = float(variance_band(seeded, COMPARISONS)[0]) * math.sqrt(5)  # of a fourth of them, and of all
    require(
        abs(secret - expected) <= band * expected,
        f"{sample.origin}: its standard deviation is {math.sqrt(secret):.6g}, that of seeded noise "
        f"{math.sqrt(expected):.6g} (variances may differ by {band:.1%})",
    )
    compare_distributions(sample, seeded)


def many_rows_get_the_same_noise(oracle: Any) -> None:
    """Where buckets hold so many rows that 0 is far, the noise does not depend on how many, biased or not.

    A branch on an exact count lets one row decide the output for certain. Only rounding to steps wider than the noise
    may depend on it.
    """
    for shape in wide_shapes(role_of(oracle), BUCKETS):
        probe = Probe.of(oracle, shape, budget_of(oracle.measure, 0.2))
        widths_by_count = [
            list(equal_bucket_samples(probe, count, 32, NoiseRng.for_tests(6).child(count))) for count in MANY
        ]
        for base, *larger in zip(*widths_by_count, strict=True):
            for sample in larger:
                _compare_each_width(base, sample)


def _compare_each_width(one: Sample, other: Sample) -> None:
    for a, b in zip(one.noise.T, other.noise.T, strict=True):
        low, high = sorted((float(a.std()), float(b.std())))
        if max(common_step(a, high), common_step(b, high)) > low:
            continue
        band = math.sqrt(2) * float(max(variance_band(a, COMPARISONS), variance_band(b, COMPARISONS)))
        require(
            high**2 - low**2 <= band * high**2,
            f"{other.origin}: the noise has standard deviation {b.std():.6g}, with {MANY[0]} rows it is {a.std():.6g} "
            f"(variances may differ by {band:.1%})",
        )


BIASED = (errors_are_within_the_declared_ones, noise_comes_from_the_rng_it_is_given)
"""Checks of biased oracles."""

CENTRAL_BIASED = (
    secret_noise_has_the_law_of_seeded_noise,
    many_rows_get_the_same_noise,
    noises_are_independent,
    two_questions_have_independent_noise,
    noise_is_discrete,
)
"""Checks of biased oracles whose noise is drawn once per released number."""


LEVELS = (1, 3)
APART = 2**12
"""Buckets per level, each an independent experiment."""

EPSILON, DELTA = 1.0, 0.05
"""Budget, also in mu^2, with a delta so large that rows released outright show in a sample."""

EVENTS = 2**10
"""Upper limit on the events of one check."""


def _probes(oracle: Any, buckets: int = APART) -> Iterator[Probe]:
    for levels in LEVELS:
        yield Probe.of(oracle, Shape((buckets,) * levels), Budget(oracle.measure, EPSILON, delta=DELTA))


def empty_buckets_read_zero(oracle: Any) -> None:
    """Buckets without a row read exactly 0, whatever their neighbours hold."""
    for probe in _probes(oracle, 300):
        rng = NoiseRng.for_tests(80)
        items = np.repeat(np.arange(0, 300, 2)[:, None], 500, axis=0).repeat(len(probe.shape.sizes), axis=1)
        values = probe.release(items, rng)
        wrong = int((values[probe.exact(items) == 0] != 0).sum())
        require(not wrong, f"{probe.shape}: {wrong} empty buckets are released")


def a_lone_row_is_released_as_seldom_as_declared(oracle: Any) -> None:
    """Rows alone in their buckets of all levels show in any with a probability of at most the declared delta."""
    for probe in _probes(oracle):
        released, delta = _levels(probe, 1, 81) != 0, _declared(probe)
        low = probability_bounds(int(released.any(axis=1).sum()), len(released), EVENTS)[0]
        require(
            low <= delta,
            f"{probe.shape}: a lone row is released with a probability of at least {low:.4g}, delta is {delta:.4g}",
        )


def counts_are_hard_to_tell_apart(oracle: Any) -> None:
    """No event is more probable with a row than e^epsilon times its probability without, plus delta, or vice versa.

    Noise paid in mu^2 is allowed the additional delta of this epsilon.
    """
    for probe in _probes(oracle):
        pure = probe.budget.measure == "pure"
        factor, delta = math.exp(EPSILON), _declared(probe) + (0.0 if pure else delta_of_mu(probe.budget.mu, EPSILON))
        for count in (0, 1, 2, 5, 20):
            one, other = _levels(probe, count, 82), _levels(probe, count + 1, 83)
            for name, event in _distinguishers(count):
                hits = [int(event(values).sum()) for values in (one, other)]
                for a, b in (hits, hits[::-1]):
                    low, high = opposed_bounds(a, b, len(one), EVENTS)
                    require(
                        low <= factor * high + delta,
                        f"{probe.shape}, {count} and {count + 1} rows per bucket, {name}: probabilities of at least "
                        f"{low:.4g} and at most {high:.4g} contradict epsilon {EPSILON:g} and delta {delta:.4g}",
                    )


def _distinguishers(count: int) -> Iterator[tuple[str, Callable[[Floats], Bools]]]:
    """Yield events of the levels' values (n, levels)."""
    yield "all are released", partial(_all_levels, np.not_equal, 0)
    yield "none is released", partial(_all_levels, np.equal, 0)
    for beyond in (-6, -3, -1, 0, 1, 3, 6):
        yield f"all above {count + beyond}", partial(_all_levels, np.greater, count + beyond)
        yield f"all at most {count + beyond}", partial(_all_levels, np.less_equal, count + beyond)


def _all_levels(compare: Callable[[Floats, float], Bools], bound: float, values: Floats) -> Bools:
    return np.asarray(compare(values, bound).all(axis=1))


def _levels(probe: Probe, count: int, seed: int) -> Floats:
    """Return 16 releases of every bucket (experiments, levels) with ``count`` rows each."""
    noisy = probe.noise(equal_buckets(probe, count), 16, NoiseRng.for_tests(seed).child(count)) + count
    return probe.experiments(noisy)


def _declared(probe: Probe) -> float:
    return math.fsum(event.delta for event in probe.channel.events)


def released_counts_have_the_declared_noise(oracle: Any) -> None:
    """Far above any threshold, values are unbiased, as wide as declared, and independent.

    ``variance`` is the same as ``standard_error`` squared.
    """
    for probe in _probes(oracle, 100):
        items = equal_buckets(probe, 1000)
        for sample in (
            s for count in (1000, 5000, 2**17) for s in equal_bucket_samples(probe, count, 32, NoiseRng.for_tests(84))
        ):
            compare_widths(sample)
            compare_means(sample, EVENTS)
            width = float(sample.errors[0]) ** 2
            require(math.isclose(probe.declared_variance, width, rel_tol=1e-6), f"{sample.origin}: variance() differs")
        noise = probe.by_level(probe.noise(items, 40, NoiseRng.for_tests(85)))
        columns = [level.ravel() for level in noise] + [
            np.roll(noise[0], 1, axis=0).ravel(),
            np.roll(noise[0], 1, axis=1).ravel(),
        ]
        for (i, a), (j, b) in combinations(enumerate(columns), 2):
            check_correlations(f"{probe.shape}: numbers {i} and {j}", a, b)


THRESHOLD = (
    empty_buckets_read_zero,
    a_lone_row_is_released_as_seldom_as_declared,
    counts_are_hard_to_tell_apart,
    released_counts_have_the_declared_noise,
)
"""Checks of Central count oracles that spend a delta: they have no noise where there is no row."""
