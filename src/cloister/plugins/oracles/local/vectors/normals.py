"""Real vectors as small integers: what the real-valued randomisers share."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator

import attrs
import numpy as np

from cloister.core.portions import ReportLaw
from cloister.core.randomness import PublicRng
from cloister.core.types import AnyArray, Ids, Ints

STEP = 2.0**-11
"""Real answers are sent in these steps, 16 bits each, for coordinates of variance 1: rounding adds STEP^2 / 12 = 2e-8
to that."""

ZERO = 2**15
"""The 16-bit number that stands for 0. Sent numbers are 1 .. 2^16 - 1: coordinates within 16."""

BLOCK = 2**15
"""Variates that are made at once: they stay in a core's cache."""


def blocks(users: int, each: int) -> Iterator[slice]:
    """Users whose variates, so many each, are made at once."""
    step = max(1, BLOCK // each)
    return (slice(start, start + step) for start in range(0, users, step))


def sent(vectors: AnyArray) -> AnyArray:
    """Columns (d, n) of real numbers to answers (n, d), uint16."""
    steps = np.clip(np.rint(vectors * vectors.dtype.type(1 / STEP)), 1 - ZERO, ZERO - 1).astype(np.int32)
    return np.ascontiguousarray((steps + ZERO).astype(np.uint16).T)


def received(answers: AnyArray) -> Ints:
    """Answers (n, d) back to steps."""
    return answers.astype(np.int64) - ZERO


@attrs.frozen
class OnSphere(ABC):
    """Sends the first d coordinates of vectors of length sqrt(D) of R^D, D = d + 1, rounded: none is longer.

    Args:
        dimension: d.
    """

    dimension: int

    dtype = "u2"

    @property
    def size(self) -> int:
        """D."""
        return self.dimension + 1

    @property
    def width(self) -> int:
        return self.dimension

    @property
    def longest(self) -> float:
        return self._reach * self.scale

    @property
    def usual(self) -> float:
        """Any vector of that length can be sent."""
        return self.longest

    @property
    @abstractmethod
    def scale(self) -> float:
        """What a step is worth, in bounds."""

    @property
    def _reach(self) -> float:
        """No answer is longer, in steps: rounding adds at most one to every coordinate."""
        return math.sqrt(self.size) / STEP + math.sqrt(self.dimension)

    def possible(self, answers: AnyArray) -> bool:
        return bool((answers > 0).all() and ((received(answers) ** 2).sum(axis=1) <= self._reach**2).all())

    def counted(self, answers: AnyArray) -> Ints:
        return np.zeros(0, np.int64)

    def laws(self, counted: Ints, reports: int) -> tuple[ReportLaw, ...]:
        return ()

    def estimates(self, answers: AnyArray, users: Ids, seed: PublicRng) -> Ints:
        return received(answers)
