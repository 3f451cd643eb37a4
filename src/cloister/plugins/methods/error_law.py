"""A law for what a method predicts of its error, with constants of its own.

With s the standard error of one of k counts that has the whole budget (1 / mu for Gaussian noise), a group of n / k
rows is q = n / (k s) standard errors. Noise moves centres by a part of the width k^(-1/d) that each has of the domain,
and hides groups; both fall with q:

    v = factor k^(groups - 2 / d) d^columns q^-power,

over the squared radius of the domain. Constants are fitted to what methods lost against scikit-learn on 30 generated
mixtures (150 to 50,000 rows, 2 to 60 columns, 2 to 40 groups of equal and unequal sizes, near and far apart) and on
iris, wine, house, s1, digits and shuttle, at an epsilon of 0.1, 0.25, 0.5 and 1: a regression of the logarithm of what
was lost, with an effect of each set, over what one centre would lose. A figure is good to a factor of three; which of
two methods is better is right more often, since they share the effect of the set (``benchmarks/predicted.py``).
"""

from __future__ import annotations

import math
from typing import Any

import attrs

from cloister.core.buckets import Space
from cloister.core.clustering import Problem
from cloister.core.roles import FrequencyOracle


@attrs.frozen
class ErrorLaw:
    """Args: of the formula. The method's docstring says v."""

    factor: float
    power: float
    columns: float
    groups: float

    def error(self, problem: Problem, counts: FrequencyOracle[Any]) -> float:
        """v for the method's count oracle."""
        k, d = problem.k, problem.domain.dimension
        scale = self.factor * math.pow(k, self.groups - 2 / d) * math.pow(d, self.columns)
        return scale * math.pow(strength(problem, counts), -self.power)


def strength(problem: Problem, counts: FrequencyOracle[Any]) -> float:
    """q of the module's docstring; infinite without noise."""
    variance = counts.variance(Space((problem.k,)), problem.budget, problem.context(problem.budget))
    return problem.rows / (problem.k * math.sqrt(variance)) if variance else math.inf
