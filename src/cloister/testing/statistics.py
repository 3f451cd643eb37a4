"""Statistics of the checks: every threshold follows from one false-alarm rate.

A check makes many comparisons; each gets an equal share of ``ALARM`` (Bonferroni), so that the whole check raises a
false alarm at most that often. Most draws are seeded, which makes the outcome the same on every run besides.

Sets of outcomes that an audit looks at.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Protocol, final

import attrs
import numpy as np

from cloister.core.types import Bools, Floats

ALARM = 1e-6
"""How often one check may blame a component that keeps the law."""

KURTOSIS = 6.0
"""Laplace noise's, the heaviest tail that the variance bands foresee; a larger one of samples widens them."""

SKEW = 1.25
"""The variance of heavy-tailed samples has a longer upper tail than its normal approximation. Simulated: of sample
variances of 1,024 Laplace variables, one in 10^5 is off by 0.61 of the band for 64 comparisons, and every decade adds
0.07 or less."""


def deviations(comparisons: int) -> float:
    """How many standard errors a normal estimate may be off, either way, in one of so many comparisons."""
    return NormalDist().inv_cdf(1 - ALARM / (2 * comparisons))


def mean_band(samples: Floats, comparisons: int) -> Floats:
    """How far means over the first axis may be from the truth."""
    return deviations(comparisons) * np.asarray(samples.std(axis=0)) / math.sqrt(len(samples))


def variance_band(samples: Floats, comparisons: int) -> Floats:
    """How far sample variances over the first axis may be from the truth, as a fraction of it.

    The variance of N samples has the relative standard error sqrt((kurtosis - 1) / N).
    """
    centred = samples - samples.mean(axis=0)
    second = np.maximum((centred**2).mean(axis=0), 1e-150)
    kurtosis = np.maximum((centred**4).mean(axis=0) / second**2, KURTOSIS)
    return np.asarray(SKEW * deviations(comparisons) * np.sqrt((kurtosis - 1) / len(samples)))


def proportion(hits: int, n: int, comparisons: int) -> tuple[float, float]:
    """Bounds on a probability from ``hits`` in ``n`` trials, each of them exact (Clopper and Pearson 1934)."""
    from scipy.stats import beta

    tail = ALARM / (2 * comparisons)
    low = float(beta.ppf(tail, hits, n - hits + 1)) if hits else 0.0
    high = float(beta.ppf(1 - tail, hits + 1, n - hits)) if hits < n else 1.0
    return low, high


def correlation(one: Floats, other: Floats) -> float:
    """Pearson's r of two samples (n,); 1 if either is constant, which no noise is."""
    a, b = one - one.mean(), other - other.mean()
    size = math.sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / size if size > 0 else 1.0


def step_of(values: Floats, deviation: float) -> float:
    """The largest step of which all differences of the values (n,) are multiples, or 0.0 if there is none.

    Floating-point noise has none: its last bits stand at 2^-50 of its standard deviation. Binary steps are found
    exactly (down to 2^-40 of the deviation), others by Euclid's algorithm on real numbers (down to 2^-24).
    """
    from_last_bit = _binary_step(values, deviation * 2.0**-40)
    return from_last_bit or _euclid(np.abs(values[1:] - values[0]), deviation * 2.0**-30)


def _binary_step(values: Floats, least: float) -> float:
    mantissas, exponents = np.frexp(values[values != 0])
    if not len(mantissas):
        return 0.0
    whole = np.abs(np.ldexp(mantissas, 53)).astype(np.int64)
    last = int((np.log2(whole & -whole) + exponents - 53).min())
    if 2.0**last < least or np.abs(values).max() >= 2.0 ** (last + 62):
        return 0.0
    steps = np.ldexp(values, -last).astype(np.int64)
    return float(np.gcd.reduce(np.abs(steps - steps[0]))) * 2.0**last


def _euclid(gaps: Floats, least: float) -> float:
    step = widest = 0.0
    for gap in gaps:
        rest, widest = float(gap), max(float(gap), widest)
        while rest > least:
            step, rest = rest, math.fmod(step, rest)
            rest = 0.0 if step - rest <= least else rest
        if step > 64 * least:
            step = widest / round(widest / step)  # or else the error of a small step would grow with every quotient
    return step if step > 64 * least else 0.0


class Happening(Protocol):
    """A set of outcomes: which of the outcomes (n, numbers) are in it (n,)."""

    @property
    def name(self) -> str: ...

    def holds(self, outcomes: Floats) -> Bools: ...


@final
@attrs.frozen(eq=False)
class HalfSpace:
    """Outcomes whose product with a direction (numbers,) is at least a threshold; or, turned around, below it."""

    name: str
    direction: Floats
    least: float
    turned: bool = False

    def holds(self, outcomes: Floats) -> Bools:
        return np.asarray((outcomes @ self.direction >= self.least) != self.turned)


@final
@attrs.frozen(eq=False)
class Quadrant:
    """Outcomes whose every number, times its sign (numbers,), is at least its threshold (numbers,)."""

    name: str
    sign: Floats
    least: Floats

    def holds(self, outcomes: Floats) -> Bools:
        return np.asarray(np.all(outcomes * self.sign >= self.least, axis=1))
