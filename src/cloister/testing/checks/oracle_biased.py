"""Checks of oracles that are ``biased``: what needs no unbiased values is asked of them too, as far as it can be."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cloister.core.randomness import NoiseRng
from cloister.core.trust import Aggregated, Central
from cloister.testing.check import require, role_of
from cloister.testing.checks.oracle_noise import (
    BUCKETS,
    COMPARISONS,
    HELD,
    SECRET,
    Sample,
    check_variance,
    compare_laws,
    drawn_alike,
    noise_comes_from_the_rng_it_is_given,
    noise_is_discrete,
    noises_are_independent,
    samples,
    secret_and_seeded,
    two_questions_have_independent_noise,
)
from cloister.testing.probes import Probe, budget_of, wide_shapes
from cloister.testing.statistics import mean_band, step_of, variance_band

MANY = (300, *HELD[3:])
"""Rows of every bucket that are far above the noise, so that nothing is clamped at 0."""


def errors_are_within_the_declared_ones(oracle: Any) -> None:
    """What a biased oracle releases is off by ``standard_error`` at most, as the root of the mean square, whatever the
    rows are; ``variance`` is the square of it."""
    for sample in samples(oracle):
        compare_squares(sample)
    check_variance(oracle)
    for shape in wide_shapes(role_of(oracle), BUCKETS) if oracle.trust in (Central, Aggregated) else ():
        probe = Probe.of(oracle, shape, budget_of(oracle.measure, 0.2))
        for held in HELD:
            for sample in drawn_alike(probe, held, 8, NoiseRng.for_tests(6).child(held)):
                compare_squares(sample)


def compare_squares(sample: Sample) -> None:
    """The mean square of every number is at most its declared one, within the band."""
    squares = sample.noise**2
    least = squares.mean(axis=0) - mean_band(squares, COMPARISONS)
    worst = int(np.argmax(least - sample.errors**2))
    require(
        (least <= sample.errors**2 + 1e-9).all(),
        f"{sample.where}: the mean square error is at least {least[worst]:.6g}, standard_error() squared is "
        f"{sample.errors[worst] ** 2:.6g} ({len(sample.noise)} samples)",
    )


def secret_noise_has_the_law_of_seeded_noise(oracle: Any) -> None:
    """What a biased oracle releases with noise from the system's entropy, which real runs use, has the law, and the
    width, of what it releases with the seeded noise that every other check draws."""
    sample, seeded = secret_and_seeded(oracle, 2 * SECRET)
    secret, wanted = float(sample.noise.var()), float(seeded.var())
    band = float(variance_band(seeded, COMPARISONS)[0]) * math.sqrt(5)  # of a fourth of them, and of all
    require(
        abs(secret - wanted) <= band * wanted,
        f"{sample.where}: its standard deviation is {math.sqrt(secret):.6g}, of seeded noise it is "
        f"{math.sqrt(wanted):.6g} (variances may differ by {band:.1%})",
    )
    compare_laws(sample, seeded)


def many_rows_get_the_same_noise(oracle: Any) -> None:
    """Where buckets hold so many rows that 0 is far, the noise does not depend on how many, biased or not (a branch on
    an exact count lets one row decide the output for certain). Only rounding to steps wider than the noise may."""
    for shape in wide_shapes(role_of(oracle), BUCKETS):
        probe = Probe.of(oracle, shape, budget_of(oracle.measure, 0.2))
        drawn = [list(drawn_alike(probe, held, 32, NoiseRng.for_tests(6).child(held))) for held in MANY]
        for few, *more in zip(*drawn, strict=True):
            for many in more:
                _compare_each_width(few, many)


def _compare_each_width(one: Sample, other: Sample) -> None:
    for a, b in zip(one.noise.T, other.noise.T, strict=True):
        low, high = sorted((float(a.std()), float(b.std())))
        if max(step_of(a, high), step_of(b, high)) > low:
            continue
        band = math.sqrt(2) * float(max(variance_band(a, COMPARISONS), variance_band(b, COMPARISONS)))
        require(
            high**2 - low**2 <= band * high**2,
            f"{other.where}: the noise has standard deviation {b.std():.6g}, with {MANY[0]} rows it is {a.std():.6g} "
            f"(variances may differ by {band:.1%})",
        )


BIASED = (errors_are_within_the_declared_ones, noise_comes_from_the_rng_it_is_given)
"""For oracles that say that what they release is off on average."""

CENTRAL_BIASED = (
    secret_noise_has_the_law_of_seeded_noise,
    many_rows_get_the_same_noise,
    noises_are_independent,
    two_questions_have_independent_noise,
    noise_is_discrete,
)
"""For those of them whose noise is drawn once per released number."""
