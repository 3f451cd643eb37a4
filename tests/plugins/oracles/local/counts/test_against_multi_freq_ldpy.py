"""Our local count oracles beside an independent implementation: multi-freq-ldpy (Arcolezi et al. 2022)."""

from __future__ import annotations

import math
from typing import Any

import pytest

from cloister.core.buckets import QuestionContext, Space
from cloister.core.budget import Budget
from cloister.core.randomness import PublicRng
from cloister.plugins.oracles.local.counts.local_hashing import OptimisedLocalHashing
from cloister.plugins.oracles.local.counts.optimised_unary import OptimisedUnary
from cloister.plugins.oracles.local.counts.subset_selection import SubsetSelection

oracles = pytest.importorskip("multi_freq_ldpy.pure_frequency_oracles")

K, N = 12, 1000


def theirs() -> Any:
    from multi_freq_ldpy.pure_frequency_oracles import SS, UE, Variance_PURE

    return SS, UE, Variance_PURE.VAR_Pure


def stated(oracle: Any, epsilon: float) -> float:
    """Variance of an empty bucket's count among N users."""
    return float(oracle.variance(Space((K,)), Budget("pure", epsilon), QuestionContext(N, 1.0, PublicRng.from_seed(1))))


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 3.0])
def test_stated_variances_are_those_of_the_other_library_s_formula(epsilon: float) -> None:
    _, _, formula = theirs()
    e, g = math.exp(epsilon), round(math.exp(epsilon)) + 1
    symbols = K + 1  # ours has one more, for users in no bucket
    size = max(1, round(symbols / (e + 1)))
    chances = {
        OptimisedLocalHashing: (e / (e + g - 1), 1 / g),
        OptimisedUnary: (1 / 2, 1 / (e + 1)),
        SubsetSelection: (
            size * e / (size * e + symbols - size),
            size * (e * (size - 1) + symbols - size) / (symbols - 1) / (size * e + symbols - size),
        ),
    }
    for oracle, (p, q) in chances.items():
        assert stated(oracle(), epsilon) == pytest.approx(N**2 * formula(p, q, N, 0.0), rel=1e-6)
