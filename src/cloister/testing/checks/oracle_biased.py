"""Checks of oracles whose values are off on average.

Of those that are ``biased`` what needs no unbiased values is asked too, as far as it can be. Those that release
occupied buckets only, and pay for it by a delta of their own (``uses_delta``), have no noise where there is no row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from cloister.accounting.conversions import delta_of_mu
from cloister.core.budget import Budget
from cloister.core.randomness import NoiseRng
from cloister.core.trust import Aggregated, Central
from cloister.core.types import Bools, Floats
from cloister.testing.check import require, role_of
from cloister.testing.checks.oracle_noise import (
    BUCKETS,
    COMPARISONS,
    HELD,
    SECRET,
    Sample,
    alike,
    check_correlations,
    check_variance,
    compare_laws,
    compare_means,
    compare_widths,
    drawn_alike,
    noise_comes_from_the_rng_it_is_given,
    noise_is_discrete,
    noises_are_independent,
    samples,
    secret_and_seeded,
    two_questions_have_independent_noise,
)
from cloister.testing.probes import Probe, Shape, budget_of, wide_shapes
from cloister.testing.statistics import mean_band, proportion, step_of, variance_band

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


LEVELS = (1, 3)
APART = 2**12
"""Per level: each is an experiment of its own."""

EPSILON, DELTA = 1.0, 0.05
"""A budget, also in mu^2; a delta so large that rows which are released outright are seen in a sample."""

EVENTS = 2**10
"""More than the events that one check looks at."""


def _probes(oracle: Any, buckets: int = APART) -> Iterator[Probe]:
    for levels in LEVELS:
        yield Probe.of(oracle, Shape((buckets,) * levels), Budget(oracle.measure, EPSILON, delta=DELTA))


def empty_buckets_read_zero(oracle: Any) -> None:
    """A bucket without a row reads exactly 0, whatever its neighbours hold."""
    for probe in _probes(oracle, 300):
        rng = NoiseRng.for_tests(80)
        items = np.repeat(np.arange(0, 300, 2)[:, None], 500, axis=0).repeat(len(probe.shape.sizes), axis=1)
        values = probe.values(probe.table(probe.summary(items, rng), rng))
        wrong = int((values[probe.exact(items) == 0] != 0).sum())
        require(not wrong, f"{probe.shape}: {wrong} empty buckets are released")


def a_lone_row_is_released_as_seldom_as_declared(oracle: Any) -> None:
    """A row that is alone in its buckets of all levels shows in any of them with a probability of at most the declared
    delta."""
    for probe in _probes(oracle):
        seen, delta = _levels(probe, 1, 81) != 0, _declared(probe)
        low = proportion(int(seen.any(axis=1).sum()), len(seen), EVENTS)[0]
        require(
            low <= delta,
            f"{probe.shape}: a lone row is released with a probability of at least {low:.4g}, delta is {delta:.4g}",
        )


def counts_are_hard_to_tell_apart(oracle: Any) -> None:
    """No event is more probable with a row than e^epsilon times what it is without, and delta; nor the other way
    round. Of noise that is paid in mu^2, delta has the part that goes with this epsilon."""
    for probe in _probes(oracle):
        pure = probe.budget.measure == "pure"
        factor, delta = math.exp(EPSILON), _declared(probe) + (0.0 if pure else delta_of_mu(probe.budget.mu, EPSILON))
        for held in (0, 1, 2, 5, 20):
            one, other = _levels(probe, held, 82), _levels(probe, held + 1, 83)
            for name, event in _distinguishers(held):
                hits = [int(event(some).sum()) for some in (one, other)]
                for a, b in (hits, hits[::-1]):
                    low, high = proportion(a, len(one), EVENTS)[0], proportion(b, len(one), EVENTS)[1]
                    require(
                        low <= factor * high + delta,
                        f"{probe.shape}, {held} and {held + 1} rows per bucket, {name}: probabilities of at least "
                        f"{low:.4g} and at most {high:.4g} do not go with epsilon {EPSILON:g} and delta "
                        f"{delta:.4g}",
                    )


def _distinguishers(held: int) -> Iterator[tuple[str, Callable[[Floats], Bools]]]:
    """Events of the levels' values (n, levels)."""
    yield "all are released", _all_released
    yield "none is released", _none_released
    for beyond in (-6, -3, -1, 0, 1, 3, 6):
        yield f"all above {held + beyond}", partial(_all_above, held + beyond)
        yield f"all at most {held + beyond}", partial(_all_at_most, held + beyond)


def _all_released(values: Floats) -> Bools:
    return np.asarray((values != 0).all(axis=1))


def _none_released(values: Floats) -> Bools:
    return np.asarray((values == 0).all(axis=1))


def _all_above(at: float, values: Floats) -> Bools:
    return np.asarray((values > at).all(axis=1))


def _all_at_most(at: float, values: Floats) -> Bools:
    return np.asarray((values <= at).all(axis=1))


def _levels(probe: Probe, held: int, seed: int) -> Floats:
    """Releases (16 buckets' numbers, levels) with this many rows in every bucket."""
    noisy = probe.noise(alike(probe, held), 16, NoiseRng.for_tests(seed).child(held)) + held
    return np.concatenate(probe.by_level(noisy), axis=2).reshape(-1, len(probe.shape.sizes))


def _declared(probe: Probe) -> float:
    return math.fsum(event.delta for event in probe.channel.events)


def released_counts_have_the_declared_noise(oracle: Any) -> None:
    """Far above any threshold, however far, values are unbiased, as wide as declared, and independent; ``variance``
    says the same."""
    for probe in _probes(oracle, 100):
        items = alike(probe, 1000)
        for sample in (s for held in (1000, 5000, 2**17) for s in drawn_alike(probe, held, 32, NoiseRng.for_tests(84))):
            compare_widths(sample)
            compare_means(sample, EVENTS)
            width = float(sample.errors[0]) ** 2
            require(
                math.isclose(probe.declared_variance, width, rel_tol=1e-6), f"{sample.where}: variance() is another"
            )
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
"""For Central count oracles with a delta of their own: they have no noise where there is no row, which others must
have."""
