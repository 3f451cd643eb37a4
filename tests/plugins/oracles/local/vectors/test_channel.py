"""Answers of vectors: the sign that a user in no bucket gives hers."""

from __future__ import annotations

import numpy as np

from cloister.plugin import Bound, Budget, PublicRng, QuestionContext, Space
from cloister.plugins.oracles.local.vectors.vector_sums import HadamardVector


def test_whoever_is_in_no_bucket_has_either_sign_as_often_by_a_coin_of_her_own() -> None:
    context = QuestionContext(1000, 1e-3, PublicRng.from_seed(5))
    channel = HadamardVector(randomiser="privunit").open(Space((8,)), Budget("pure", 1.0), context, Bound(1000, 4))
    users = np.arange(1000, dtype=np.uint64)
    nowhere, first = (channel.asked.signs(np.full(1000, bucket), users, 0) for bucket in (-1, 1))
    assert set(nowhere.tolist()) == {-1.0, 1.0}
    assert abs(nowhere.sum()) < 150
    assert 400 < (nowhere == first).sum() < 600
