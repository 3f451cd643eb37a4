"""Law of the error that a method predicts, with constants of its own.

With s the standard error of one of k counts that has the whole budget (1 / mu for Gaussian noise), a group of n / k
rows is q = n / (k s) standard errors. Noise moves centres by a part of the width k^(-1/d) that each has of the domain,
and hides groups; both fall with q:

    v = factor k^(groups - 2 / d) d^columns q^-power + missed k^(1 - 2 / d),

over the squared radius of the domain. Where sums have pure noise, q is a group in standard errors of a coordinate of
its sum, sqrt(d) or sqrt((d + 1) / 2) times those of its count (``discrete-laplace``, ``l2-mechanism``). Constants are
fitted to what methods lost against scikit-learn on 30 generated mixtures (150 to 50,000 rows, 2 to 60 columns, 2 to 40
groups of equal and unequal sizes, near and far apart) and on iris, wine, house, s1, digits and shuttle, at an epsilon
of 0.1, 0.25, 0.5 and 1: a regression of the logarithm of what was lost, with an effect of each set, over what one
centre would lose. A figure is good to a factor of four (``core.capabilities``); which of two methods is better is right
more often, since they share the effect of the set (``benchmarks/predicted.py``).
"""

from __future__ import annotations

import math
from typing import Any

import attrs

from cloister.plugin import Aggregated, Bound, Central, FrequencyOracle, Problem, Space, VectorSumOracle
from cloister.plugins.methods.clipping import SCALE

MISSED = 5e-6
"""Chance that a method which seeks candidates, or starts anywhere, misses one of many groups with any noise. Counts
on a grid miss none that noise does not hide: with many rows in few columns they are better (birch2 with 100,000 rows,
epsilon = 2: half of the cost). Chosen on 27 mixtures in up to six columns and s1, birch2_25k, house."""


@attrs.frozen
class ErrorLaw:
    """Args: of the formula, which says v; missed (``MISSED``, or 0 of a method that sees all groups at once)."""

    factor: float
    power: float
    columns: float
    groups: float
    missed: float = 0.0

    def error(self, problem: Problem, counts: FrequencyOracle[Any], sums: VectorSumOracle[Any]) -> float:
        """Return v for the method's oracles."""
        return self.of(problem, strength(problem, counts, sums))

    def of(self, problem: Problem, q: float) -> float:
        """Return v for a group of q standard errors."""
        k, d = problem.k, problem.domain.dimension
        scale = self.factor * math.pow(k, self.groups - 2 / d) * math.pow(d, self.columns)
        return scale * math.pow(q, -self.power) + self.missed * math.pow(k, 1 - 2 / d)


def strength(problem: Problem, counts: FrequencyOracle[Any], sums: VectorSumOracle[Any]) -> float:
    """Return q of the module's docstring; infinite without noise."""
    space, context = Space((problem.k,)), problem.context(problem.budget)
    if sums_are_pure(problem, counts):
        bound = Bound(SCALE, problem.domain.dimension)
        variance = sums.variance(space, problem.budget, attrs.evolve(context, unit=1 / SCALE), bound)
    else:
        variance = counts.variance(space, problem.budget, context)
    return problem.rows / (problem.k * math.sqrt(variance)) if variance else math.inf


def sums_are_pure(problem: Problem, counts: FrequencyOracle[Any]) -> bool:
    """Return True if pure noise is added to sums of rows."""
    return problem.budget.measure == "pure" and counts.trust in (Central, Aggregated)
