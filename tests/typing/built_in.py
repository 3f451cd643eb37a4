"""The built-in oracles play their roles, as annotations read by every checker."""

from __future__ import annotations

from cloister.core.roles import FrequencyOracle, VectorSumOracle
from cloister.core.trust import Central
from cloister.plugins.oracles.central.discrete_gaussian import DiscreteGaussian
from cloister.plugins.oracles.central.discrete_laplace import DiscreteLaplace
from cloister.plugins.oracles.central.exact import Exact

counts: list[FrequencyOracle[Central]] = [DiscreteLaplace(), DiscreteGaussian(), Exact()]
sums: list[VectorSumOracle[Central]] = [DiscreteLaplace(), DiscreteGaussian(), Exact()]
