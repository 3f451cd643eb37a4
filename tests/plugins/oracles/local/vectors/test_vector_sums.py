"""Local vector sums: what the oracles answer, whoever adds the reports up, and in whatever order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from cloister.plugin import (
    Bound,
    BucketedVectors,
    Budget,
    InvalidInput,
    NoiseRng,
    PublicRng,
    QuestionContext,
    Space,
)
from cloister.plugins.oracles.local.reports import Share
from cloister.plugins.oracles.local.vectors.vector_sums import ExplicitHistogramVector, HadamardVector

SEED = PublicRng.from_seed(90)
NOISE = NoiseRng.for_tests(91)
UNIT = 2.0**-12
BOUND = 2**12


def opened(oracle: Any, sizes: tuple[int, ...], d: int, n: int, epsilon: float = 1.0, seed: PublicRng = SEED) -> Any:
    return oracle.open(Space(sizes), Budget("pure", epsilon), QuestionContext(n, UNIT, seed), Bound(BOUND, d))


def points(n: int, d: int, seed: int = 0) -> np.ndarray:
    g = np.random.default_rng(seed)
    v = g.standard_normal((n, d))
    inside = v / np.linalg.norm(v, axis=1)[:, None] * g.uniform(0, BOUND, (n, 1))
    return np.asarray(np.trunc(inside), np.int64)


def users_of(n: int) -> np.ndarray:
    return np.arange(n, dtype=np.uint64)


def released(channel: Any, items: BucketedVectors) -> Any:
    return channel.decode(channel.absorb(channel.encode(items, users_of(len(items.buckets)), NOISE)), NOISE)


@pytest.mark.parametrize("share", ["users", "budget"])
@pytest.mark.parametrize("oracle", [HadamardVector, ExplicitHistogramVector])
def test_levels_share_users_or_budget(oracle: Any, share: Share) -> None:
    one, wider = (opened(oracle(), (5,), 20, 1000, epsilon).asked.variance for epsilon in (4.0, 4.0 / 3))
    channel = opened(oracle(share=share), (1, 2, 5), 20, 1000, 4.0)
    assert channel.asked.variance == pytest.approx(3 * one if share == "users" else wider)
    assert [event.spent.amount for event in channel.events] == [4.0]


@pytest.mark.parametrize("oracle", [HadamardVector(), ExplicitHistogramVector()])
def test_standard_errors_are_those_of_the_reports_that_came(oracle: Any) -> None:
    """A fifth of the planned users, and as many as were planned."""
    items = BucketedVectors(np.zeros((200, 1), np.int64), points(200, 3))
    some, all_of_them = (released(opened(oracle, (4,), 3, planned), items) for planned in (1000, 200))
    assert some.standard_error(np.arange(4)) == pytest.approx(all_of_them.standard_error(np.arange(4)))


def test_what_cannot_be_answered_is_refused_when_it_is_opened() -> None:
    with pytest.raises(InvalidInput, match="explicit-histogram-vector"):
        opened(HadamardVector(), (2**24,), 10, 100)
    with pytest.raises(InvalidInput, match="finite"):
        opened(HadamardVector(), (4,), 10, 100, math.inf)
    with pytest.raises(InvalidInput, match="Gaussian"):
        HadamardVector().open(Space((4,)), Budget("gaussian", 1.0), QuestionContext(10, 1.0, SEED), Bound(10, 3))
    with pytest.raises(InvalidInput, match="laplace"):
        HadamardVector(randomiser="laplace")  # type: ignore[arg-type]
