"""Statistics of the checks, whose every threshold follows from one false-alarm rate.

A check makes many comparisons; each gets an equal share of ``ALARM`` (Bonferroni), so that the whole check raises a
false alarm at most that often. Most draws are seeded, which also makes the outcome the same on every run.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import Protocol, final

import attrs
import numpy as np

from cloister.plugin import Bools, Floats

ALARM = 1e-6
"""Maximum probability that one check blames a component that keeps the law."""

KURTOSIS = 6.0
"""Kurtosis of Laplace noise, the heaviest tail that the variance bands assume; a larger sample kurtosis widens them."""

SKEW = 1.25
"""Factor for the upper tail of the variance of heavy-tailed samples, longer than in the normal approximation.

Simulated: of sample variances of 1,024 Laplace variables, one in 10^5 is off by 0.61 of the band for 64 comparisons,
and every decade adds 0.07 or less.
"""


def deviations(comparisons: int) -> float:
    """Return how many standard errors a normal estimate may be off, either way, in one of so many comparisons."""
    return NormalDist().inv_cdf(1 - ALARM / (2 * comparisons))


def mean_band(samples: Floats, comparisons: int) -> Floats:
    """Return how far means over the first axis may be from the truth."""
    return deviations(comparisons) * np.asarray(samples.std(axis=0)) / math.sqrt(len(samples))


def variance_band(samples: Floats, comparisons: int) -> Floats:
    """Return how far sample variances over the first axis may be from the truth, as a fraction of it.

    The variance of N samples has the relative standard error sqrt((kurtosis - 1) / N).
    """
    centred = samples - samples.mean(axis=0)
    second = np.maximum((centred**2).mean(axis=0), 1e-150)
    kurtosis = np.maximum((centred**4).mean(axis=0) / second**2, KURTOSIS)
    return np.asarray(SKEW * deviations(comparisons) * np.sqrt((kurtosis - 1) / len(samples)))


def probability_bounds(hits: int, n: int, comparisons: int) -> tuple[float, float]:
    """Return bounds on a probability from ``hits`` in ``n`` trials, each of them exact (Clopper and Pearson 1934)."""
    low, high = bounds_by_hits(n, comparisons)
    return float(low[hits]), float(high[hits])


@lru_cache(maxsize=64)
def bounds_by_hits(n: int, comparisons: int, alarm: float = ALARM) -> tuple[Floats, Floats]:
    """Return the bounds (n + 1,) of ``probability_bounds`` for every number of hits."""
    from scipy.stats import beta

    tail, hits = alarm / (2 * comparisons), np.arange(n + 1)
    low, high = np.zeros(n + 1), np.ones(n + 1)
    low[1:] = beta.ppf(tail, hits[1:], n - hits[1:] + 1)
    high[:-1] = beta.ppf(1 - tail, hits[:-1] + 1, n - hits[:-1])
    return low, high


def opposed_bounds(hits: int, other_hits: int, n: int, comparisons: int) -> tuple[float, float]:
    """Return a lower bound on one probability and an upper bound on another, from ``n`` trials of each."""
    return probability_bounds(hits, n, comparisons)[0], probability_bounds(other_hits, n, comparisons)[1]


def correlation(one: Floats, other: Floats) -> float:
    """Return Pearson's r of two samples (n,); 1 if either is constant, which no noise is."""
    a, b = one - one.mean(), other - other.mean()
    size = math.sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / size if size > 0 else 1.0


def common_step(values: Floats, deviation: float) -> float:
    """Return the largest step of which all differences of the values (n,) are multiples, or 0.0 if there is none.

    Floating-point noise has none: its last bits stand at 2^-50 of its standard deviation. Binary steps are found
    exactly (down to 2^-40 of the deviation), others by Euclid's algorithm on real numbers (down to 2^-24).
    """
    from_last_bit = _binary_step(values, deviation * 2.0**-40)
    return from_last_bit or _euclid(np.abs(values[1:] - values[0]), deviation * 2.0**-30)


def _binary_step(values: Floats, min_step: float) -> float:
    mantissas, exponents = np.frexp(values[values != 0])
    if not len(mantissas):
        return 0.0
    mantissa_bits = np.abs(np.ldexp(mantissas, 53)).astype(np.int64)
    last = int((np.log2(mantissa_bits & -mantissa_bits) + exponents - 53).min())
    if 2.0**last < min_step or np.abs(values).max() >= 2.0 ** (last + 62):
        return 0.0
    steps = np.ldexp(values, -last).astype(np.int64)
    return float(np.gcd.reduce(np.abs(steps - steps[0]))) * 2.0**last


def _euclid(gaps: Floats, min_step: float) -> float:
    step = widest = 0.0
    for gap in gaps:
        remainder, widest = float(gap), max(float(gap), widest)
        while remainder > min_step:
            step, remainder = remainder, math.fmod(step, remainder)
            remainder = 0.0 if step - remainder <= min_step else remainder
        if step > 64 * min_step:
            step = widest / round(widest / step)  # or else the error of a small step would grow with every quotient
    return step if step > 64 * min_step else 0.0


class OutcomeSet(Protocol):
    """A set of outcomes that an audit tests: which of the outcomes (n, numbers) are in it (n,)."""

    @property
    def name(self) -> str: ...

    def contains(self, outcomes: Floats) -> Bools: ...


@final
@attrs.frozen(eq=False)
class HalfSpace:
    """Outcomes whose product with a direction (numbers,) is at least a threshold, or the complement."""

    name: str
    direction: Floats
    threshold: float
    complement: bool = False

    def contains(self, outcomes: Floats) -> Bools:
        return np.asarray((outcomes @ self.direction >= self.threshold) != self.complement)


@final
@attrs.frozen(eq=False)
class Quadrant:
    """Outcomes whose every number, times its sign (numbers,), is at least its threshold (numbers,)."""

    name: str
    sign: Floats
    threshold: Floats

    def contains(self, outcomes: Floats) -> Bools:
        return np.asarray(np.all(outcomes * self.sign >= self.threshold, axis=1))
