"""Our local count oracles beside an independent implementation: multi-freq-ldpy (Arcolezi et al. 2022)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from cloister.core.buckets import QuestionContext, Space
from cloister.core.budget import Budget
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.types import AnyArray
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


def supports(reports: list[Any], bits: bool) -> AnyArray:
    """How many reports support each bucket (K,): rows of bits, or lists of buckets."""
    if bits:
        return np.sum(reports, axis=0)
    return np.bincount(np.concatenate([np.asarray(r, np.int64) for r in reports]), minlength=K)[:K]


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["unary", "subset"])
def test_reports_of_both_libraries_support_buckets_equally_often(name: str) -> None:
    """20,000 reports of one bucket each; a difference of 4.9 standard errors is a false alarm once in a million."""
    ss, ue, _ = theirs()
    epsilon, n, bucket = 1.0, 20_000, 3
    client = ue.UE_Client if name == "unary" else ss.SS_Client
    np.random.seed(5)  # the other library draws from the global stream
    symbols = K if name == "unary" else K + 1
    other = supports([client(bucket, symbols, epsilon) for _ in range(n)], name == "unary")
    oracle: Any = OptimisedUnary() if name == "unary" else SubsetSelection()
    channel = oracle.open(Space((K,)), Budget("pure", epsilon), QuestionContext(n, 1.0, PublicRng.from_seed(2)))
    users = np.arange(n, dtype=np.uint64)
    summary = channel.absorb(channel.encode(np.full((n, 1), bucket), users, NoiseRng.for_tests(3)))
    ours = channel.asked.levels[0].supports(summary.totals[0], n)[: len(other)]
    spread = np.sqrt((other * (1 - other / n) + ours * (1 - ours / n)).astype(float))
    assert (np.abs(ours - other) < 4.9 * spread).all()
