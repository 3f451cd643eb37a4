"""Integer tensors under additive integer noise: what every Central oracle on enumerable buckets is made of.

Reports are exact int64 totals, laid out level after level. They are multiplied by a public power of two (``shift``) before
the noise, so that Gaussian noise is so wide in integers that the discrete law stands in for the real one (see
``cloister.accounting.discrete``), and divided by it after.
"""

from __future__ import annotations

import math
from typing import Any, NoReturn, Protocol, final

import attrs
import numpy as np

from cloister.core.budget import Budget, Event
from cloister.core.errors import InvalidInput, Refused
from cloister.core.lattice import CAP, Bound
from cloister.core.questions import Placed, Space
from cloister.core.randomness import NoiseRng
from cloister.core.types import Floats, Ids, Ints

MOST = 2**26
"""Most numbers in one table: larger domains need an oracle that is asked lazily."""


class Law(Protocol):
    """A law of additive integer noise."""

    @property
    def deviation(self) -> float:
        """Standard deviation, in integers."""
        ...

    def draw(self, size: int, rng: NoiseRng) -> Ints: ...


@final
@attrs.frozen
class Laplace:
    """Two-sided geometric noise. Args: scale, in integers: L1 sensitivity over epsilon."""

    scale: float

    @property
    def deviation(self) -> float:
        return float(np.sqrt(0.5) / np.sinh(0.5 / self.scale))

    def draw(self, size: int, rng: NoiseRng) -> Ints:
        return rng.discrete_laplace(self.scale, size)


@final
@attrs.frozen
class Gaussian:
    """Discrete Gaussian noise. Args: sigma, in integers: L2 sensitivity over mu."""

    sigma: float

    @property
    def deviation(self) -> float:
        return self.sigma

    def draw(self, size: int, rng: NoiseRng) -> Ints:
        return rng.discrete_gaussian(self.sigma, size)


@final
@attrs.frozen
class Skellam:
    """Skellam noise in shares, each of the same variance. Args: share (its standard deviation, in integers), shares, honest
    (how many of them are counted on)."""

    share: float
    shares: int
    honest: int

    @property
    def deviation(self) -> float:
        return self.share * math.sqrt(self.shares)

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise that is counted on."""
        return self.share * math.sqrt(self.honest)

    def draw(self, size: int, rng: NoiseRng) -> Ints:
        """One share."""
        return rng.skellam(self.share**2, size)


@final
@attrs.frozen(eq=False)
class Totals:
    """Merged reports: exact int64 totals, flat."""

    vector: Ints = attrs.field(repr=False)

    def merge(self, other: Totals) -> Totals:
        return Totals(self.vector + other.vector)


@final
class Noised:
    """A table of values that all carry their noise already."""

    def __init__(self, values: Floats, space: Space, deviation: float) -> None:
        self._values, self._deviation = values, deviation
        self._starts = np.concatenate([[0], np.cumsum(space.sizes)])

    def at(self, ids: Ints, level: int = 0) -> Floats:
        return np.asarray(self._values[self._starts[level] + ids], np.float64)

    def standard_error(self, ids: Ints, level: int = 0) -> Floats:
        return np.full(len(ids), self._deviation)

    def __reduce__(self) -> NoReturn:
        raise TypeError("tables do not travel: keep what at() gave")


@final
@attrs.frozen
class TensorChannel:
    """Both halves of a question on enumerable buckets, with noise drawn once, after the merge.

    Args:
        mechanism, budget: what is declared to the accountant.
        space: the buckets.
        bound: of the vectors; None for counts.
        law: of the noise, in shifted integers; None for no noise (not private).
        shift: bits that totals are scaled up by before the noise.
        unit: value of one lattice step in the caller's units (1 for counts).
    """

    mechanism: str
    budget: Budget
    space: Space
    bound: Bound | None
    law: Laplace | Gaussian | Skellam | None
    shift: int
    unit: float

    def __attrs_post_init__(self) -> None:
        if sum(self.space.sizes) * self.width > MOST:
            raise InvalidInput(
                f"'{self.mechanism}' keeps a number per bucket: {sum(self.space.sizes)} buckets of {self.width} numbers are too many"
            )
        largest = CAP * (self.bound.l2 if self.bound else 1) * 2**self.shift
        tail = 0.0 if self.law is None else 64 * self.law.deviation
        if largest + tail >= 2.0**62:
            raise InvalidInput(
                f"'{self.mechanism}' could overflow 64 bits with {CAP} rows: the budget of this question is too small, or its bound too large"
            )

    @property
    def width(self) -> int:
        """Numbers per bucket."""
        return self.bound.dimension if self.bound else 1

    @property
    def events(self) -> tuple[Event, ...]:
        sigma = self.law.sigma if isinstance(self.law, Gaussian) else float("inf")
        return (Event(self.mechanism, self.budget, touched=self.space.levels * self.width, sigma=sigma),)

    def encode(self, items: Ints | Placed, users: Ids, rng: NoiseRng) -> Totals:
        buckets = items.buckets if isinstance(items, Placed) else items
        levels = []
        for level, size in enumerate(self.space.sizes):
            ids = buckets[:, level]
            if isinstance(items, Placed):
                levels.append(_added(ids, items.values, size))
            else:
                levels.append(np.bincount(ids + 1, minlength=size + 1)[1:])
        return Totals(np.concatenate([total.ravel() for total in levels]).astype(np.int64, copy=False))

    def absorb(self, report: Totals) -> Totals:
        vector = report.vector
        if vector.dtype != np.int64 or vector.shape != (sum(self.space.sizes) * self.width,):
            raise Refused(
                f"a report of '{self.mechanism}' has shape {vector.shape} and type {vector.dtype}: no encoder sends that"
            )
        return report

    def decode(self, summary: Totals, rng: NoiseRng) -> Noised:
        noised = self.scaled(summary)
        if self.law is not None:
            noised = noised + self.law.draw(len(noised), rng)
        return self.table(noised)

    def scaled(self, totals: Totals) -> Ints:
        """Totals in the integers that noise is drawn in."""
        return totals.vector << np.int64(self.shift)

    def table(self, noised: Ints) -> Noised:
        """What noised integers say, in the caller's units."""
        values: Floats = noised.astype(np.float64) * (self.unit * 2.0**-self.shift)
        return Noised(values.reshape(-1, self.width) if self.bound else values, self.space, self.deviation)

    @property
    def deviation(self) -> float:
        """Standard deviation of each released number, in its own unit."""
        return 0.0 if self.law is None else self.law.deviation * self.unit * 2.0**-self.shift


def _added(ids: Ints, values: Ints, size: int) -> Ints:
    """Exact sums (size, d) of the values (n, d) per id; ids of -1 count nowhere."""
    from scipy.sparse import csc_matrix

    n = len(ids)
    which: Any = csc_matrix((np.ones(n, np.int64), ids + 1, np.arange(n + 1)), shape=(size + 1, n))
    total: Ints = which @ values
    return total[1:]


UP = 1 + 2.0**-40
"""Rounding in a division never makes the noise too small."""


def gaussian_channel(mechanism: str, space: Space, bound: Bound | None, budget: Budget, unit: float) -> TensorChannel:
    """Discrete Gaussian noise: sigma from the joint L2 sensitivity over all levels and coordinates, and the shift that makes it
    wide. Central and Aggregated oracles share this, so that both release the same numbers."""
    sigma = sensitivity_of(space, bound) / budget.mu * UP
    shift = enough_bits(sigma)
    return TensorChannel(mechanism, budget, space, bound, Gaussian(sigma * 2.0**shift), shift, unit)


def sensitivity_of(space: Space, bound: Bound | None) -> float:
    """The most that one row moves all totals together, in L2: one vector (or 1) per level."""
    return math.sqrt(space.levels) * (bound.l2 if bound else 1)


def enough_bits(deviation: float, wanted: float = 2.0**20) -> int:
    """The least shift that makes noise of this width, in integers, at least ``wanted``."""
    return max(0, int(np.ceil(np.log2(wanted / deviation))))
