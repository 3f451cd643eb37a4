"""Checks that one row is hidden: worst-case neighbours, against the budget that the events declare.

The bounds assume nothing of the noise's distribution, so they hold for any oracle of the measure.

*Means.* If P' against P is mu-GDP, its chi-square divergence is at most e^(mu^2) - 1 (that of N(mu, 1) against N(0, 1),
of which any such pair is a post-processing; for rho-zCDP e^(2 rho) - 1, from the Renyi divergence of order 2; for
epsilon-DP (e^eps - 1)^2 e^-eps, that of randomised response). By Hammersley, Chapman and Robbins no statistic moves
further: (E' y - E y)^2 <= chi2 Var y. With y along the row's change, in units of the noise, Gaussian noise attains it
for small mu: noise too small by 1.2 breaks it, and so do a missing root of the levels or an L2 bound per coordinate.

*Events.* epsilon-DP: P'(S) <= e^eps P(S) for every set; Laplace noise attains it on quadrants beyond the row's change.
mu-GDP: P'(S) - e^a P(S) <= delta(a) for every a; Gaussian noise attains it on half-spaces. Probabilities are bounded by
Clopper and Pearson, exactly. The buckets of a wide table are independent experiments here: noise is drawn once per
released value, as ``noises_are_independent`` and ``empty_buckets_get_the_same_noise`` ensure.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from cloister.accounting import delta_of_mu
from cloister.plugin import BucketedVectors, Budget, Floats, Ints, Measure, NoiseRng
from cloister.testing.check import require, role_of
from cloister.testing.checks.declarations import spent
from cloister.testing.probes import PAYABLE, Probe, budget_of, deep_probe, narrow_shapes, wide_shapes, worst_vectors
from cloister.testing.statistics import HalfSpace, OutcomeSet, Quadrant, deviations, opposed_bounds, variance_band

COMPARISONS = 1024
"""Upper limit on the statistics or events of one check."""

REPEATS = 512
"""Releases for estimates of privacy losses."""

LITTLE = 0.01
"""Epsilon of a question that is one of many in a run."""

DISCRETE = 1.001
"""Tolerance for the discrete Gaussian; accounting pays for the difference, which is far below this."""

TAILS: dict[Measure, tuple[tuple[Measure, float], ...]] = {
    "pure": (("pure", 1.0), ("zcdp", 3.0)),
    "gaussian": (("gaussian", 1.0),),
}
"""Budgets of the check of events, by the oracle's measure.

Pure noise paid in rho takes epsilon^2 / 2 <= rho: with epsilon = 1 an oracle that took rho for epsilon would be too
careful, with 3 it is not careful enough.
"""


def max_chi_square(paid: Budget) -> float:
    """Return the largest chi-square divergence of neighbours under this budget."""
    if paid.measure == "pure":
        return math.expm1(paid.amount) ** 2 * math.exp(-paid.amount)
    return math.expm1(paid.amount if paid.measure == "gaussian" else 2 * paid.amount)


def one_row_moves_no_mean_too_far(oracle: Any) -> None:
    """Neighbours move no mean further than the budget allows, in units of the noise (Hammersley, Chapman, Robbins)."""
    for measure in PAYABLE[oracle.measure]:
        for shape in narrow_shapes(role_of(oracle)):
            _check_means(Probe.of(oracle, shape, budget_of(measure, 0.3)), 1024 if measure == oracle.measure else 128)
        for shape in wide_shapes(role_of(oracle), 500):
            _check_means(Probe.of(oracle, shape, budget_of(measure, 0.3)), 24)
        for epsilon in (LITTLE, 0.3):
            _check_means(deep_probe(oracle, budget_of(measure, epsilon)), 128)


def _check_means(probe: Probe, repeats: int) -> None:
    """Check the means, with a row added to the first buckets (narrow) or one to every bucket (wide)."""
    wide = min(probe.shape.sizes) > 16
    base = _rows(probe, np.zeros(probe.width, np.int64), wide)
    noise = _experiments(probe, probe.noise(base, repeats, NoiseRng.for_tests(20)), wide)
    errors = _experiments(probe, _errors(probe)[None], wide)[0]
    require((errors > 0).all(), f"{probe.shape}: standard_error() is 0 where budget is spent")
    for vector in worst_vectors(probe.shape.bound):
        moved = _moved(probe, base, _rows(probe, vector, wide), wide)
        require(moved.any(), f"{probe.shape}: a row with the vector {vector} changes nothing that is released")
        mean, band = moved.mean(axis=0), deviations(COMPARISONS) * moved.std(axis=0) / math.sqrt(len(moved))
        change = np.sign(mean) * np.maximum(np.abs(mean) - band, 0.0)
        for label, weights in [("joint change", change / errors**2), *_axes(change)]:
            _check_mean(probe, noise @ weights, float(change @ weights), f"{label} by a row with the vector {vector}")


def _check_mean(probe: Probe, statistic: Floats, moved: float, label: str) -> None:
    paid = spent(probe.channel.events)
    limit = max_chi_square(paid) * DISCRETE
    widest = float(statistic.var() * (1 + variance_band(statistic, COMPARISONS)))
    ratio = moved**2 / widest if widest > 0 else math.inf if moved else 0.0
    require(
        ratio <= limit,
        f"{probe.shape}, budget {paid.amount:.4g} ({paid.measure}), {label}: squared change over variance is at least "
        f"{ratio:.4g}, the budget allows {limit:.4g} (noise too small by {math.sqrt(ratio / limit):.2f} or more)",
    )


def neighbours_are_hard_to_tell_apart(oracle: Any) -> None:
    """No event is more probable with a row than the declared budget allows, nor without it."""
    shapes = wide_shapes(role_of(oracle), 2**12)
    for measure, epsilon in TAILS.get(oracle.measure, ()):
        for shape in shapes if measure == oracle.measure else shapes[:1]:
            vectors = worst_vectors(shape.bound)
            lengths = np.abs(vectors).sum(axis=1) if oracle.measure == "pure" else (vectors**2).sum(axis=1)
            _check_events(Probe.of(oracle, shape, budget_of(measure, epsilon)), vectors[int(np.argmax(lengths))])
    if oracle.measure == "pure" and not getattr(oracle, "joint", False):
        _check_losses(deep_probe(oracle, budget_of("pure", 1.0)))


def _check_losses(probe: Probe) -> None:
    """Check that the privacy losses of all numbers that a row changes add up to at most epsilon.

    The numbers have independent noise Z_i: P(Z_i >= 0) / P(Z_i >= c_i) is how much likelier the row makes it that
    number i is beyond its change c_i, and the product is what it does to all.
    """
    vectors = worst_vectors(probe.shape.bound)
    vector = vectors[int(np.argmax(np.abs(vectors).sum(axis=1)))]
    base, added = (_rows(probe, v, wide=False) for v in (np.zeros_like(vector), vector))
    change = (probe.exact(added) - probe.exact(base)).ravel()
    touched = np.flatnonzero(change)
    noise = probe.noise(base, REPEATS, NoiseRng.for_tests(25)).reshape(REPEATS, -1)[:, touched] * np.sign(
        change[touched]
    )
    beyond, further = (noise >= 0).sum(axis=0), (noise >= np.abs(change[touched])).sum(axis=0)
    loss = float(np.log(np.maximum(beyond, 1) / np.maximum(further, 1)).sum())
    # given the draws beyond 0, only the number of those short of the change is random
    error = math.sqrt(float(((beyond - further) / np.maximum(further, 1) ** 2.0).sum()))
    lower_bound, paid = loss - deviations(COMPARISONS) * error, spent(probe.channel.events)
    require(
        lower_bound <= paid.epsilon,
        f"{len(probe.shape.sizes)} levels, {probe.width} columns: the losses of all {len(touched)} numbers that a row "
        f"changes add up to an epsilon of at least {lower_bound:.4g}, not {paid.epsilon:.4g}",
    )


def _check_events(probe: Probe, vector: Ints) -> None:
    base, added = (_rows(probe, v, wide=True) for v in (np.zeros_like(vector), vector))
    change = _experiments(probe, (probe.exact(added) - probe.exact(base))[None], wide=True)[0]
    errors = _experiments(probe, _errors(probe)[None], wide=True)[0]
    touched = np.flatnonzero(change)
    repeats = max(64, 2 ** (len(touched) + 2))
    without_row, with_row = (
        _experiments(probe, probe.noise(rows, repeats, NoiseRng.for_tests(seed)), wide=True)[:, touched]
        for rows, seed in ((base, 21), (added, 22))
    )
    with_row += change[touched]
    for distinguisher in _distinguishers(change[touched], errors[touched]):
        hits = [int(distinguisher.contains(outcomes).sum()) for outcomes in (with_row, without_row)]
        for way, (one, other) in (("with", hits), ("without", hits[::-1])):
            low, high = opposed_bounds(one, other, len(with_row), COMPARISONS)
            _check_event(probe, low, high, f"{distinguisher.name} (likelier {way} the row whose vector is {vector})")


def _check_event(probe: Probe, low: float, high: float, name: str) -> None:
    """Check an event with probability at least ``low`` for one of two neighbours and at most ``high`` for the other."""
    paid = spent(probe.channel.events)
    label = (
        f"{probe.shape}, budget {paid.amount:.4g} ({paid.measure}), event: {name}: its probabilities are at least "
        f"{low:.4g} and at most {high:.4g}"
    )
    if probe.oracle.measure == "pure":
        lower_bound = math.log(max(low, 1e-300) / high)
        require(
            lower_bound <= paid.epsilon, f"{label}, so epsilon is at least {lower_bound:.4g}, not {paid.epsilon:.4g}"
        )
        return
    for a in (0.0, 0.5, 1.0, 2.0, 3.0, 4.0):
        delta, lower_bound = delta_of_mu(paid.mu, a) * DISCRETE, low - math.exp(a) * high
        require(
            lower_bound <= delta, f"{label}, so delta at epsilon {a:g} is at least {lower_bound:.4g}, not {delta:.4g}"
        )


def _distinguishers(change: Floats, errors: Floats) -> Iterator[OutcomeSet]:
    """Yield quadrants beyond the change or short of it, and half-spaces along it, before any sample is seen."""
    sign, size = np.sign(change), np.abs(change)
    for share in (0.5, 1.0):
        yield Quadrant(f"all numbers beyond {share:g} of the change", sign, share * size)
        yield Quadrant(f"all numbers short of {1 - share:g} of the change", -sign, (share - 1) * size)
    along = change / errors**2
    width = math.sqrt(float(along @ change))
    for t in (-3.0, -2.0, -1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0):
        yield HalfSpace(f"the sum along the change beyond {t:g} deviations", along, t * width)
        yield HalfSpace(f"the sum along the change short of {t:g} deviations", along, t * width, complement=True)


def _rows(probe: Probe, vector: Ints, wide: bool) -> Ints | BucketedVectors:
    """Return three rows per wide bucket (or in the first narrow buckets), and one more with any non-zero vector."""
    levels = len(probe.shape.sizes)
    ids = np.arange(min(probe.shape.sizes) if wide else 1, dtype=np.int64)
    base, added = (np.repeat(np.tile(ids, n)[:, None], levels, axis=1) for n in (3, 1 if vector.any() else 0))
    values = np.concatenate([np.zeros((len(base), probe.width), np.int64), np.tile(vector, (len(added), 1))])
    return probe.items(np.concatenate([base, added]), values)


def _experiments(probe: Probe, numbers: Floats, wide: bool) -> Floats:
    """Return (repeats, buckets of all levels, width) as (experiments, numbers of one experiment)."""
    if not wide:
        return numbers.reshape(len(numbers), -1)
    return probe.experiments(numbers)


def _moved(probe: Probe, base: Any, added: Any, wide: bool) -> Floats:
    """Return what the row moves (experiments, numbers): two releases with equal noise differ by nothing else.

    If differences vary (an oracle that rounds, say), many are taken.
    """

    def differences(first: int, last: int) -> Floats:
        pairs: list[Floats] = []
        for i in range(first, last):
            rng = NoiseRng.for_tests(23).child(i)
            one, other = (probe.release(rows, rng) for rows in (base, added))
            pairs.append(other - one)
        return _experiments(probe, np.stack(pairs), wide)

    sampled = differences(0, 1 if wide else 8)
    constant = sampled.any() and not sampled.std(axis=0).any()
    return sampled if constant else np.concatenate([sampled, differences(8, 40 if wide else 400)])


def _errors(probe: Probe) -> Floats:
    return probe.declared_errors(probe.no_rows, NoiseRng.for_tests(24))


def _axes(change: Floats) -> Iterator[tuple[str, Floats]]:
    """Yield every released number that changes, alone."""
    for i in np.flatnonzero(change)[:12]:
        axis = np.zeros(len(change))
        axis[i] = 1.0
        yield f"change of number {i}", axis


PRIVACY = (one_row_moves_no_mean_too_far, neighbours_are_hard_to_tell_apart)
"""Checks of Central oracles that promise privacy."""
