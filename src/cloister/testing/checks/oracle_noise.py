"""Checks of noise: unbiased, as wide as declared, equal for every bucket, independent, fresh, discrete."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import attrs
import numpy as np

from cloister.plugin import BucketedVectors, Floats, Ints, NoiseRng, shrink
from cloister.testing.check import require, role_of
from cloister.testing.probes import (
    PAYABLE,
    Probe,
    budget_of,
    is_central,
    narrow_shapes,
    row_count,
    varied_rows,
    wide_shapes,
)
from cloister.testing.statistics import common_step, correlation, deviations, mean_band, variance_band
from cloister.testing.stubs import session_tables

TOTAL_ALARM = 1e-9
"""Probability, on either side, that the totals of an honest oracle are misjudged."""

BUCKETS = 500
"""Buckets per level of a wide table: a multiple of 100, so that ``varied_rows`` uses every number of rows alike."""

SECRET_SAMPLES = 8192
"""Samples of secret noise: the fewest that are certain to reveal noise too small by 1.2."""

ROWS_PER_BUCKET = (0, 1, 3, 1000, 5000, 2**17)
"""Numbers of rows per bucket, which the noise must not depend on."""

SEED_HINT = "draw from rng.child(...), another one for every draw: a seeded NoiseRng starts over each time"

JOINT = 0.5
"""Correlation of sizes within a vector that a joint distribution may have.

Noise by length alone has 0.21 in two columns, and less in more. One size for all coordinates, which hides nothing,
has 1.
"""

COMPARISONS = 64
"""Upper limit on the numbers that ``samples`` yields."""


@attrs.frozen(eq=False)
class Sample:
    """Noise (n, m) of m released numbers, with their declared standard errors (m,) and origin."""

    noise: Floats
    errors: Floats
    origin: str


def samples_by_level(
    probe: Probe, items: Ints | BucketedVectors, repeats: int, rng: NoiseRng, suffix: str = ""
) -> Iterator[Sample]:
    """Yield one sample per level, to which each of its buckets contributes."""
    yield from _split_by_level(probe, probe.noise(items, repeats, rng), probe.declared_errors(items, rng), suffix)


def _split_by_level(probe: Probe, noise: Floats, errors: Floats, suffix: str) -> Iterator[Sample]:
    for level, (values, error) in enumerate(zip(probe.by_level(noise), probe.by_level(errors), strict=True)):
        origin = f"{probe.shape}, budget {probe.budget.amount:.4g} ({probe.budget.measure}), level {level}{suffix}"
        yield Sample(values.reshape(-1, probe.width), error.max(axis=0), origin)


def samples(oracle: Any) -> Iterator[Sample]:
    """Yield samples of wide tables with every budget, and of a narrow one where every bucket is its own number."""
    for probe in wide_probes(oracle):
        yield from samples_by_level(
            probe, varied_rows(probe.shape), 16 if is_central(oracle) else 32, NoiseRng.for_tests(3)
        )
    shape = narrow_shapes(role_of(oracle))[1]
    items, rng = varied_rows(shape), NoiseRng.for_tests(4)
    probe = Probe.of(oracle, shape, budget_of(oracle.measure, 0.2), row_count(items))
    noise = probe.noise(items, 1024 if is_central(oracle) else 128, rng)
    errors = probe.declared_errors(items, rng)
    yield Sample(noise.reshape(len(noise), -1), errors.ravel(), f"{shape}, every bucket")


def wide_probes(oracle: Any) -> Iterator[Probe]:
    """Open the oracle for wide tables, with a small and a large budget in every measure that it accepts.

    Where each user draws noise, which takes longer: in the oracle's own measure, for smaller tables, with the true
    number of rows.
    """
    central = is_central(oracle)
    for measure in PAYABLE[oracle.measure] if central else (oracle.measure,):
        for epsilon in (0.2, 2.0):
            for shape in wide_shapes(role_of(oracle), BUCKETS if central else 20):
                yield Probe.of(oracle, shape, budget_of(measure, epsilon), row_count(varied_rows(shape)))


def bias_is_as_declared(oracle: Any) -> None:
    """Released values are unbiased: their mean over many releases of known rows is the exact answer."""
    for sample in samples(oracle):
        compare_means(sample, COMPARISONS, ": mend it, or declare it by `biased = True` in the oracle's class")


def variance_is_as_declared(oracle: Any) -> None:
    """``standard_error`` is the standard deviation of the noise, and ``variance`` its square.

    Where levels differ, ``variance``, from which methods choose their shares, lies between their squares.
    """
    for sample in samples(oracle):
        compare_widths(sample)
    check_variance(oracle)


def check_variance(oracle: Any) -> None:
    """Raise unless ``variance`` is the square of ``standard_error``."""
    for probe in wide_probes(oracle):
        rng = NoiseRng.for_tests(4)
        errors = probe.declared_errors(varied_rows(probe.shape), rng)
        low, high, variance = float(errors.min()) ** 2, float(errors.max()) ** 2, probe.declared_variance
        require(
            low * (1 - 1e-6) <= variance <= high * (1 + 1e-6),
            f"{probe.shape}: variance() is {variance:.6g}, standard_error() squared is {low:.6g} to {high:.6g}",
        )


def compare_means(sample: Sample, comparisons: int, hint: str = "") -> None:
    """Raise unless the sample mean of every number is 0, within the band."""
    off, band = np.abs(sample.noise.mean(axis=0)), mean_band(sample.noise, comparisons)
    worst = int(np.argmax(off - band))
    require(
        (off <= band + 1e-9).all(),
        f"{sample.origin}: the mean noise is {off[worst]:.6g}, which is not within {band[worst]:.4g} of 0 "
        f"({len(sample.noise)} samples){hint}",
    )


def compare_widths(sample: Sample) -> None:
    """Raise unless the sample variance of every number is the declared one, within the band."""
    measured, band = sample.noise.var(axis=0), variance_band(sample.noise, COMPARISONS)
    declared = sample.errors**2
    off = np.abs(measured - declared)
    worst = int(np.argmax(off - band * declared))
    require(
        (off <= band * declared * (1 + 1e-9)).all(),
        f"{sample.origin}: the noise has standard deviation {math.sqrt(measured[worst]):.6g}, standard_error() says "
        f"{sample.errors[worst]:.6g} ({len(sample.noise)} samples; variances may differ by {band[worst]:.1%}). "
        f"Where a law draws twice: {SEED_HINT}",
    )


def secret_noise_has_the_declared_law(oracle: Any) -> None:
    """Noise from the system's entropy, which real runs use, is unbiased and as wide as declared.

    It has the distribution of the seeded noise that every other check draws.
    """
    sample, seeded = secret_and_seeded(oracle, SECRET_SAMPLES)
    compare_widths(sample)
    off, band = float(np.abs(sample.noise.mean())), float(mean_band(sample.noise, 3)[0])
    require(off <= band, f"{sample.origin}: its mean is {off:.6g}, which is not within {band:.4g} of 0")
    compare_distributions(sample, seeded)


def secret_and_seeded(oracle: Any, size: int) -> tuple[Sample, Floats]:
    """Return secret noise of one release of ``size`` buckets, and four times as much seeded noise of the same rows."""
    shape = wide_shapes(role_of(oracle), size)[0]
    probe, items = Probe.of(oracle, shape, budget_of(oracle.measure, 0.2)), varied_rows(shape, max_rows=4)
    (sample,) = samples_by_level(probe, items, 1, NoiseRng.secret(), " of secret noise")
    return sample, probe.noise(items, 4, NoiseRng.for_tests(5)).reshape(-1, 1)


def compare_distributions(sample: Sample, seeded: Floats) -> None:
    """Raise unless two samples (n, 1) have one distribution (Kolmogorov and Smirnov)."""
    from scipy.stats import ks_2samp

    test: Any = ks_2samp(sample.noise.ravel(), seeded.ravel(), method="asymp")
    p = float(test.pvalue)
    require(
        p > 1e-7,
        f"{sample.origin}: its distribution differs from that of seeded noise (Kolmogorov-Smirnov p = {p:.2g})",
    )


def empty_buckets_get_the_same_noise(oracle: Any) -> None:
    """Noise does not depend on the rows: buckets with 0 to 131,072 rows get unbiased noise of the declared width.

    A branch on an exact count lets one row decide the output for certain.
    """
    for shape in wide_shapes(role_of(oracle), BUCKETS):
        probe = Probe.of(oracle, shape, budget_of(oracle.measure, 0.2))
        for count in ROWS_PER_BUCKET:
            for sample in equal_bucket_samples(probe, count, 8, NoiseRng.for_tests(6).child(count)):
                compare_widths(sample)
                compare_means(sample, COMPARISONS)


def equal_bucket_samples(probe: Probe, count: int, repeats: int, rng: NoiseRng) -> Iterator[Sample]:
    """Yield one sample per level of a table with ``count`` rows in every bucket."""
    row = equal_buckets(probe, min(count, 1))
    # however many the rows are, only one per bucket is encoded
    summary = merged_with_itself(probe.summary(row, rng), max(count, 1))
    tables = [probe.table(summary, rng.child("release", i)) for i in range(repeats)]
    noise = np.stack([probe.values(table) for table in tables]) - max(count, 1) * probe.exact(row)
    yield from _split_by_level(probe, noise, probe.errors(tables[0]), f", {count} rows per bucket")


def merged_with_itself(summary: Any, times: int) -> Any:
    """Return a summary merged with itself, as if every row had come so many times."""
    merged = None
    while times:
        if times & 1:
            merged = summary if merged is None else merged.merge(summary)
        summary, times = summary.merge(summary), times >> 1
    return merged


def equal_buckets(probe: Probe, count: int) -> Ints | BucketedVectors:
    """Return rows that put the same number in every bucket, with the longest vectors along the diagonal."""
    ids = np.repeat(np.arange(probe.shape.sizes[0], dtype=np.int64), count)
    buckets = np.repeat(ids[:, None], len(probe.shape.sizes), axis=1)
    bound = probe.shape.bound
    vector = np.ones((1, 1), np.int64) if bound is None else shrink(np.full((1, bound.dimension), bound.l2), bound)
    return probe.items(buckets, np.repeat(vector, len(ids), axis=0))


def noises_are_independent(oracle: Any) -> None:
    """Any two numbers of a release, and any two releases, have uncorrelated noise of uncorrelated sizes.

    Two mechanisms with one seed cancel. Within a vector sizes may correlate up to 1/2, if the class has
    `joint = True`.
    """
    for shape in wide_shapes(role_of(oracle), BUCKETS):
        probe, rng = Probe.of(oracle, shape, budget_of(oracle.measure, 0.2)), NoiseRng.for_tests(7)
        one = probe.noise(varied_rows(shape), 16, rng)
        other = probe.noise(varied_rows(shape), 16, rng.child("another question"))
        columns = {
            (level, j): level_noise[..., j].ravel()
            for level, level_noise in enumerate(probe.by_level(one))
            for j in range(probe.width)
        }
        for (first, a), (second, b) in combinations(columns.items(), 2):
            label = " and ".join(f"level {level}, coordinate {j}" for level, j in (first, second))
            joint = first[0] == second[0] and getattr(oracle, "joint", False)
            check_correlations(f"{shape}: {label}", a, b, JOINT if joint else 0.0)
        first_level, pairs = probe.by_level(one)[0], [("two releases", one.ravel(), other.ravel())]
        for lag in (1, 2, 3, 4, 8, 16, 32, 64, 100, 128, 200, BUCKETS // 2, 256):
            pairs.append(
                (f"a bucket and the one {lag} further", first_level[:, :-lag].ravel(), first_level[:, lag:].ravel())
            )
        half = BUCKETS // 2
        pairs.append(
            (
                "a bucket and the one as far from the end",
                first_level[:, :half].ravel(),
                first_level[:, ::-1][:, :half].ravel(),
            )
        )
        pairs.append(("a release and the next", one[:-1].ravel(), one[1:].ravel()))
        for label, a, b in pairs:
            check_correlations(f"{shape}: {label}", a, b)
        _check_total(f"{shape}", first_level)


def _check_total(label: str, noise: Floats) -> None:
    """Raise unless the sum of all buckets' noise (releases, buckets, width) varies as that of independent noise.

    Noise around its own mean would reveal the number of rows.
    """
    from scipy.stats import chi2

    releases, buckets, width = noise.shape
    freedom, deviations_from_mean = (releases - 1) * width, noise - noise.mean(axis=0)  # bias is another check's
    statistic = float(
        np.square(deviations_from_mean.sum(axis=1)).sum()
        / (buckets * deviations_from_mean.var() * releases / (releases - 1))
    )
    low, high = (float(chi2.ppf(q, freedom)) for q in (TOTAL_ALARM, 1 - TOTAL_ALARM))
    require(
        low <= statistic <= high,
        f"{label}: the sum of all buckets' noise has {statistic / freedom:.2g} of the variance of independent noise, "
        f"which is between {low / freedom:.2g} and {high / freedom:.2g}: {SEED_HINT}",
    )


def two_questions_have_independent_noise(oracle: Any) -> None:
    """Equal questions, of one round or of two, get independent noise: otherwise their difference is exact."""
    for shape in (wide_shapes(role_of(oracle), 4000)[0], wide_shapes(role_of(oracle), 1000)[-1]):
        noises = [
            np.concatenate([np.asarray(t.at(np.arange(size), level)).ravel() for level, size in enumerate(shape.sizes)])
            for t in session_tables(oracle, shape, rounds=2, rows=0)
        ]
        for (i, a), (j, b) in combinations(enumerate(noises), 2):
            check_correlations(f"{shape}: questions {i + 1} and {j + 1}", a, b)


def check_correlations(label: str, a: Floats, b: Floats, allowed: float = 0.0) -> None:
    """Raise if two samples (n,) of noise correlate, or their sizes by more than allowed."""
    chance = deviations(128) / math.sqrt(len(a))
    for quantity, r, band in (
        ("noises", correlation(a, b), chance),
        ("sizes of the noises", correlation(np.abs(a), np.abs(b)), chance + allowed),
    ):
        require(
            abs(r) <= band,
            f"{label}: the {quantity} have correlation {r:.4f}, more than {band:.4f}: {SEED_HINT}",
        )


def noise_comes_from_the_rng_it_is_given(oracle: Any) -> None:
    """All noise is drawn from the given ``NoiseRng``: a seed repeats a release, secret noise never repeats."""
    shape = wide_shapes(role_of(oracle), 8 if oracle.asks_all_users else 16)[-1]
    probe, items = Probe.of(oracle, shape, budget_of(oracle.measure, 0.2)), varied_rows(shape)

    def released(rng: NoiseRng) -> Floats:
        return probe.release(items, rng)

    one, again = released(NoiseRng.for_tests(8)), released(NoiseRng.for_tests(8))
    require(np.array_equal(one, again), f"{shape}: a seeded release does not repeat: its noise has another source")
    for which, first, second in (
        ("two seeds", one, released(NoiseRng.for_tests(9))),
        ("two secret draws", released(NoiseRng.secret()), released(NoiseRng.secret())),
    ):
        same = float((first == second).mean())
        require(same < 0.5, f"{shape}: with {which}, {same:.0%} of all numbers are the same")


def noise_is_discrete(oracle: Any) -> None:
    """Released values are multiples of one step, as integer noise makes them.

    Floating-point noise leaks through its last bits (law 5).
    """
    for shape in wide_shapes(role_of(oracle), BUCKETS):
        probe, rng = Probe.of(oracle, shape, budget_of(oracle.measure, 0.2)), NoiseRng.for_tests(10)
        for level, values in enumerate(probe.by_level(probe.release(varied_rows(shape), rng))):
            step = common_step(values.ravel(), math.sqrt(probe.declared_variance))
            require(step > 0, f"{shape}, level {level}: {values.size} released values are multiples of no common step")


def exact_answers_are_exact(oracle: Any) -> None:
    """Oracles of the measure 'exact' add nothing, and declare a standard error of zero."""
    for shape in (*narrow_shapes(role_of(oracle)), *wide_shapes(role_of(oracle), BUCKETS)):
        probe, rng, items = Probe.of(oracle, shape, budget_of("exact", 1.0)), NoiseRng.for_tests(11), varied_rows(shape)
        table = probe.table(probe.summary(items, rng), rng)
        require(np.array_equal(probe.values(table), probe.exact(items)), f"{shape}: values are not the exact ones")
        require(not probe.errors(table).any(), f"{shape}: standard_error() is not 0")
        require(probe.declared_variance == 0, f"{shape}: variance() is not 0")


NOISE = (bias_is_as_declared, noise_comes_from_the_rng_it_is_given)
"""Checks of unbiased oracles, whether curator or users draw the noise."""

CENTRAL_NOISE = (
    variance_is_as_declared,
    secret_noise_has_the_declared_law,
    empty_buckets_get_the_same_noise,
    noises_are_independent,
    two_questions_have_independent_noise,
    noise_is_discrete,
)
"""Checks of unbiased oracles whose noise is drawn once per released number."""

EXACT = (exact_answers_are_exact,)
"""Checks of oracles without privacy."""
