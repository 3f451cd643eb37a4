"""Checks of the noise itself: unbiased, as wide as declared, the same for every bucket, independent, fresh,
discrete."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import attrs
import numpy as np

from cloister.core.buckets import BucketedVectors
from cloister.core.lattice import shrink
from cloister.core.randomness import NoiseRng
from cloister.core.trust import Aggregated, Central
from cloister.core.types import Floats, Ints
from cloister.testing.check import require, role_of
from cloister.testing.probes import PAYABLE, Probe, budget_of, length, narrow_shapes, spread, wide_shapes
from cloister.testing.statistics import correlation, deviations, mean_band, step_of, variance_band
from cloister.testing.stubs import tables_of

TOTALS = 1e-9
"""Chance that an honest oracle's totals are judged wrongly, to either side."""

BUCKETS = 500
"""Per level of a wide table: a multiple of a hundred, so that ``spread`` fills as many with each number of rows."""

SECRET = 8192
"""Samples of the secret path: the least with which noise that is too small by 1.2 is certain to be caught."""

HELD = (0, 1, 3, 1000, 5000, 2**17)
"""Rows of every bucket, at which the noise is looked at: it must not know."""

STARTS_OVER = "draw from rng.child(...), another one for every draw: a seeded NoiseRng starts over each time"

JOINT = 0.5
"""Correlation of sizes within a vector that a joint law may have: noise by length alone has 0.21 in two columns, and
less in more. One size for all coordinates, which hides nothing, has 1."""

COMPARISONS = 64
"""More than the numbers that ``samples`` gives."""


@attrs.frozen(eq=False)
class Sample:
    """Noise (n, m) of m released numbers, their declared standard errors (m,), and where it comes from."""

    noise: Floats
    errors: Floats
    where: str


def drawn(probe: Probe, items: Ints | BucketedVectors, repeats: int, rng: NoiseRng, what: str = "") -> Iterator[Sample]:
    """One sample per level: the buckets of a level are samples of each of its coordinates."""
    noise = probe.by_level(probe.noise(items, repeats, rng))
    errors = probe.by_level(probe.errors(probe.table(probe.summary(items, rng), rng)))
    for level, (some, error) in enumerate(zip(noise, errors, strict=True)):
        where = f"{probe.shape}, budget {probe.budget.amount:.4g} ({probe.budget.measure}), level {level}{what}"
        yield Sample(some.reshape(-1, probe.width), error.max(axis=0), where)


def samples(oracle: Any) -> Iterator[Sample]:
    """Wide tables with every budget, and a narrow one where every bucket is on its own."""
    for probe in wide_probes(oracle):
        yield from drawn(
            probe, spread(probe.shape), 16 if oracle.trust in (Central, Aggregated) else 32, NoiseRng.for_tests(3)
        )
    shape = narrow_shapes(role_of(oracle))[1]
    items, rng = spread(shape), NoiseRng.for_tests(4)
    probe = Probe.of(oracle, shape, budget_of(oracle.measure, 0.2), length(items))
    noise = probe.noise(items, 1024 if oracle.trust in (Central, Aggregated) else 128, rng)
    errors = probe.errors(probe.table(probe.summary(items, rng), rng))
    yield Sample(noise.reshape(len(noise), -1), errors.ravel(), f"{shape}, every bucket")


def wide_probes(oracle: Any) -> Iterator[Probe]:
    """The oracle opened for wide tables, in every measure that it can be paid in, for little and for much. Where each
    user draws her own noise, which takes longer, only in its own measure, for smaller tables, with the true number of
    rows."""
    central = oracle.trust in (Central, Aggregated)
    for measure in PAYABLE[oracle.measure] if central else (oracle.measure,):
        for epsilon in (0.2, 2.0):
            for shape in wide_shapes(role_of(oracle), BUCKETS if central else 20):
                yield Probe.of(oracle, shape, budget_of(measure, epsilon), length(spread(shape)))


def bias_is_as_declared(oracle: Any) -> None:
    """Released values are unbiased: their mean over many releases of known rows is the exact answer."""
    for sample in samples(oracle):
        compare_means(sample, COMPARISONS, ": mend it, or declare it by `biased = True` in the oracle's class")


def variance_is_as_declared(oracle: Any) -> None:
    """``standard_error`` is the standard deviation of the noise; ``variance``, from which methods choose their shares,
    is the square of it (of one that lies between them, where levels differ)."""
    for sample in samples(oracle):
        compare_widths(sample)
    check_variance(oracle)


def check_variance(oracle: Any) -> None:
    """``variance`` is the square of ``standard_error``."""
    for probe in wide_probes(oracle):
        rng = NoiseRng.for_tests(4)
        errors = probe.errors(probe.table(probe.summary(spread(probe.shape), rng), rng))
        low, high, said = float(errors.min()) ** 2, float(errors.max()) ** 2, probe.declared_variance
        require(
            low * (1 - 1e-6) <= said <= high * (1 + 1e-6),
            f"{probe.shape}: variance() says {said:.6g}, standard_error() squared is {low:.6g} to {high:.6g}",
        )


def compare_means(sample: Sample, comparisons: int, hint: str = "") -> None:
    """The sample mean of every number is 0, within the band."""
    off, band = np.abs(sample.noise.mean(axis=0)), mean_band(sample.noise, comparisons)
    worst = int(np.argmax(off - band))
    require(
        (off <= band + 1e-9).all(),
        f"{sample.where}: the mean noise is {off[worst]:.6g}, which is not within {band[worst]:.4g} of 0 "
        f"({len(sample.noise)} samples){hint}",
    )


def compare_widths(sample: Sample) -> None:
    """The sample variance of every number is its declared one, within the band."""
    measured, band = sample.noise.var(axis=0), variance_band(sample.noise, COMPARISONS)
    wanted = sample.errors**2
    off = np.abs(measured - wanted)
    worst = int(np.argmax(off - band * wanted))
    require(
        (off <= band * wanted * (1 + 1e-9)).all(),
        f"{sample.where}: the noise has standard deviation {math.sqrt(measured[worst]):.6g}, standard_error() says "
        f"{sample.errors[worst]:.6g} ({len(sample.noise)} samples; variances may differ by {band[worst]:.1%}). "
        f"Where a law draws twice: {STARTS_OVER}",
    )


def secret_noise_has_the_declared_law(oracle: Any) -> None:
    """Noise from the system's entropy, which real runs use, is as wide as declared and unbiased, and has the law of the
    seeded noise that every other check draws."""
    sample, seeded = secret_and_seeded(oracle, SECRET)
    compare_widths(sample)
    off, band = float(np.abs(sample.noise.mean())), float(mean_band(sample.noise, 3)[0])
    require(off <= band, f"{sample.where}: its mean is {off:.6g}, which is not within {band:.4g} of 0")
    compare_laws(sample, seeded)


def secret_and_seeded(oracle: Any, size: int) -> tuple[Sample, Floats]:
    """Secret noise of one release of so many buckets, and the seeded noise (4 times as much) of the same rows."""
    shape = wide_shapes(role_of(oracle), size)[0]
    probe, items = Probe.of(oracle, shape, budget_of(oracle.measure, 0.2)), spread(shape, most=4)
    (sample,) = drawn(probe, items, 1, NoiseRng.secret(), " of secret noise")
    return sample, probe.noise(items, 4, NoiseRng.for_tests(5)).reshape(-1, 1)


def compare_laws(sample: Sample, seeded: Floats) -> None:
    """Two samples (n, 1) have one law (Kolmogorov and Smirnov)."""
    from scipy.stats import ks_2samp

    found: Any = ks_2samp(sample.noise.ravel(), seeded.ravel(), method="asymp")
    chance = float(found.pvalue)
    require(
        chance > 1e-7, f"{sample.where}: it has another law than seeded noise (Kolmogorov-Smirnov p = {chance:.2g})"
    )


def empty_buckets_get_the_same_noise(oracle: Any) -> None:
    """The noise does not depend on the rows: empty buckets, those with one row, with a few, with thousands and with a
    hundred thousand get the same, of the declared width and unbiased (a branch on an exact count lets one row decide
    the output for certain)."""
    for shape in wide_shapes(role_of(oracle), BUCKETS):
        probe = Probe.of(oracle, shape, budget_of(oracle.measure, 0.2))
        for held in HELD:
            for sample in drawn_alike(probe, held, 8, NoiseRng.for_tests(6).child(held)):
                compare_widths(sample)
                compare_means(sample, COMPARISONS)


def drawn_alike(probe: Probe, held: int, repeats: int, rng: NoiseRng) -> Iterator[Sample]:
    """One sample per level, of a table with so many rows in every bucket. However many they are, only one of each is
    encoded: the summary is merged with itself."""
    one = alike(probe, min(held, 1))
    summary = multiplied(probe.summary(one, rng), max(held, 1))
    tables = [probe.table(summary, rng.child("release", i)) for i in range(repeats)]
    noise = np.stack([probe.values(table) for table in tables]) - max(held, 1) * probe.exact(one)
    errors = probe.by_level(probe.errors(tables[0]))
    for level, (some, error) in enumerate(zip(probe.by_level(noise), errors, strict=True)):
        where = (
            f"{probe.shape}, budget {probe.budget.amount:.4g} ({probe.budget.measure}), level {level}, {held} rows per "
            f"bucket"
        )
        yield Sample(some.reshape(-1, probe.width), error.max(axis=0), where)


def multiplied(summary: Any, times: int) -> Any:
    """A summary merged with itself, as if every row had come so many times."""
    found = None
    while times:
        if times & 1:
            found = summary if found is None else found.merge(summary)
        summary, times = summary.merge(summary), times >> 1
    return found


def alike(probe: Probe, held: int) -> Ints | BucketedVectors:
    """Rows that put the same number in every bucket; their vectors are as long as the bound allows, along the
    diagonal."""
    ids = np.repeat(np.arange(probe.shape.sizes[0], dtype=np.int64), held)
    buckets = np.repeat(ids[:, None], len(probe.shape.sizes), axis=1)
    bound = probe.shape.bound
    vector = np.ones((1, 1), np.int64) if bound is None else shrink(np.full((1, bound.dimension), bound.l2), bound)
    return probe.items(buckets, np.repeat(vector, len(ids), axis=0))


def noises_are_independent(oracle: Any) -> None:
    """Any two numbers of a release, and any two releases, have independent noise: neither it nor its size is correlated
    (two mechanisms with one seed cancel). Within a vector sizes may be, up to 1/2, if its class says `joint = True`."""
    for shape in wide_shapes(role_of(oracle), BUCKETS):
        probe, rng = Probe.of(oracle, shape, budget_of(oracle.measure, 0.2)), NoiseRng.for_tests(7)
        one = probe.noise(spread(shape), 16, rng)
        other = probe.noise(spread(shape), 16, rng.child("another question"))
        columns = {
            (level, j): some[..., j].ravel()
            for level, some in enumerate(probe.by_level(one))
            for j in range(probe.width)
        }
        for (first, a), (second, b) in combinations(columns.items(), 2):
            where = " and ".join(f"level {level}, coordinate {j}" for level, j in (first, second))
            joint = first[0] == second[0] and getattr(oracle, "joint", False)
            check_correlations(f"{shape}: {where}", a, b, JOINT if joint else 0.0)
        some, pairs = probe.by_level(one)[0], [("two releases", one.ravel(), other.ravel())]
        for lag in (1, 2, 3, 4, 8, 16, 32, 64, 100, 128, 200, BUCKETS // 2, 256):
            pairs.append((f"a bucket and the one {lag} further", some[:, :-lag].ravel(), some[:, lag:].ravel()))
        half = BUCKETS // 2
        pairs.append(
            ("a bucket and the one as far from the end", some[:, :half].ravel(), some[:, ::-1][:, :half].ravel())
        )
        pairs.append(("a release and the next", one[:-1].ravel(), one[1:].ravel()))
        for where, a, b in pairs:
            check_correlations(f"{shape}: {where}", a, b)
        _check_total(f"{shape}", some)


def _check_total(where: str, noise: Floats) -> None:
    """The sum of all buckets' noise (releases, buckets, width) is neither known nor larger than that of independent
    ones: noise about its own mean gives the number of rows away."""
    from scipy.stats import chi2

    releases, buckets, width = noise.shape
    free, spread = (releases - 1) * width, noise - noise.mean(axis=0)  # bias is another check's
    found = float(np.square(spread.sum(axis=1)).sum() / (buckets * spread.var() * releases / (releases - 1)))
    low, high = (float(chi2.ppf(q, free)) for q in (TOTALS, 1 - TOTALS))
    require(
        low <= found <= high,
        f"{where}: the sum of all buckets' noise has {found / free:.2g} of the variance of independent noise, "
        f"which is between {low / free:.2g} and {high / free:.2g}: {STARTS_OVER}",
    )


def two_questions_have_independent_noise(oracle: Any) -> None:
    """Equal questions, of one round or of two, get noise of their own: otherwise their difference is exact."""
    for shape in (wide_shapes(role_of(oracle), 4000)[0], wide_shapes(role_of(oracle), 1000)[-1]):
        noises = [
            np.concatenate([np.asarray(t.at(np.arange(size), level)).ravel() for level, size in enumerate(shape.sizes)])
            for t in tables_of(oracle, shape, rounds=2, rows=0)
        ]
        for (i, a), (j, b) in combinations(enumerate(noises), 2):
            check_correlations(f"{shape}: questions {i + 1} and {j + 1}", a, b)


def check_correlations(where: str, a: Floats, b: Floats, allowed: float = 0.0) -> None:
    """Two samples (n,) of noise are uncorrelated, and their sizes but for what is allowed."""
    wide = deviations(128) / math.sqrt(len(a))
    for what, r, band in (
        ("noises", correlation(a, b), wide),
        ("sizes of the noises", correlation(np.abs(a), np.abs(b)), wide + allowed),
    ):
        require(
            abs(r) <= band,
            f"{where}: the {what} have correlation {r:.4f}, more than {band:.4f}: {STARTS_OVER}",
        )


def noise_comes_from_the_rng_it_is_given(oracle: Any) -> None:
    """All noise is drawn from the ``NoiseRng`` handed in: the same seed repeats a release, secret noise never
    repeats."""
    shape = wide_shapes(role_of(oracle), 8 if oracle.asks_all_users else 16)[-1]
    probe, items = Probe.of(oracle, shape, budget_of(oracle.measure, 0.2)), spread(shape)

    def released(rng: NoiseRng) -> Floats:
        return probe.values(probe.table(probe.summary(items, rng), rng))

    one, again = released(NoiseRng.for_tests(8)), released(NoiseRng.for_tests(8))
    require(np.array_equal(one, again), f"{shape}: a seeded release does not repeat: its noise has another source")
    for which, first, second in (
        ("two seeds", one, released(NoiseRng.for_tests(9))),
        ("two secret draws", released(NoiseRng.secret()), released(NoiseRng.secret())),
    ):
        same = float((first == second).mean())
        require(same < 0.5, f"{shape}: with {which}, {same:.0%} of all numbers are the same")


def noise_is_discrete(oracle: Any) -> None:
    """Released values are multiples of one step, as integer noise makes them: floating-point noise leaks through its
    last bits (law 5)."""
    for shape in wide_shapes(role_of(oracle), BUCKETS):
        probe, rng = Probe.of(oracle, shape, budget_of(oracle.measure, 0.2)), NoiseRng.for_tests(10)
        table = probe.table(probe.summary(spread(shape), rng), rng)
        for level, values in enumerate(probe.by_level(probe.values(table))):
            step = step_of(values.ravel(), math.sqrt(probe.declared_variance))
            require(step > 0, f"{shape}, level {level}: {values.size} released values are multiples of no common step")


def exact_answers_are_exact(oracle: Any) -> None:
    """An oracle whose measure is 'exact' adds nothing, and declares a standard error of zero."""
    for shape in (*narrow_shapes(role_of(oracle)), *wide_shapes(role_of(oracle), BUCKETS)):
        probe, rng, items = Probe.of(oracle, shape, budget_of("exact", 1.0)), NoiseRng.for_tests(11), spread(shape)
        table = probe.table(probe.summary(items, rng), rng)
        require(np.array_equal(probe.values(table), probe.exact(items)), f"{shape}: values are not the exact ones")
        require(not probe.errors(table).any(), f"{shape}: standard_error() is not 0")
        require(probe.declared_variance == 0, f"{shape}: variance() is not 0")


NOISE = (bias_is_as_declared, noise_comes_from_the_rng_it_is_given)
"""For oracles whose noise is drawn by the curator or by the users."""

CENTRAL_NOISE = (
    variance_is_as_declared,
    secret_noise_has_the_declared_law,
    empty_buckets_get_the_same_noise,
    noises_are_independent,
    two_questions_have_independent_noise,
    noise_is_discrete,
)
"""For oracles whose noise is drawn once per released number."""

EXACT = (exact_answers_are_exact,)
"""For oracles that promise no privacy."""
