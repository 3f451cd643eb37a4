"""The built-in oracles play their roles, as annotations read by every checker."""

from __future__ import annotations

from cloister.core.roles import FrequencyOracle, VectorSumOracle
from cloister.core.trust import Central
from cloister.plugins.oracles.central.discrete_gaussian import DiscreteGaussianCounts, DiscreteGaussianSums
from cloister.plugins.oracles.central.discrete_laplace import DiscreteLaplaceCounts, DiscreteLaplaceSums
from cloister.plugins.oracles.central.exact import ExactCounts, ExactSums

counts: list[FrequencyOracle[Central]] = [DiscreteLaplaceCounts(), DiscreteGaussianCounts(), ExactCounts()]
sums: list[VectorSumOracle[Central]] = [DiscreteLaplaceSums(), DiscreteGaussianSums(), ExactSums()]
