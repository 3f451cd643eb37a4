"""Randomised response on the bucket or on a hash of it: whichever has the less noise."""

from __future__ import annotations

import math

import pytest

from cloister.plugins.oracles.local.counts.adaptive_response import AdaptiveResponse, Direct
from cloister.plugins.oracles.local.counts.local_hashing import OptimisedLocalHashing
from cloister.plugins.oracles.local.counts.subset_selection import SubsetSelection
from cloister.plugins.oracles.local.hashing import Hashed
from tests.plugins.oracles.local.counts.test_counts import opened


@pytest.mark.parametrize(
    ("epsilon", "size", "kind"), [(1.0, 8, Direct), (1.0, 256, Hashed), (6.0, 1024, Direct), (6.0, 2000, Hashed)]
)
def test_few_buckets_are_named_and_many_are_hashed(epsilon: float, size: int, kind: type) -> None:
    channel = opened(AdaptiveResponse(), (size,), epsilon)
    assert isinstance(channel.asked.levels[0], kind)
    assert channel.asked.variance <= opened(OptimisedLocalHashing(), (size,), epsilon).asked.variance * 1.02


def test_named_buckets_have_the_published_variance_and_nearly_the_least() -> None:
    e, size = math.exp(6.0), 256
    variance = opened(AdaptiveResponse(), (size,), 6.0).asked.variance
    assert variance == pytest.approx(
        1000 * (e + size - 1) / (e - 1) ** 2, rel=0.001
    )  # with a symbol for 'in no bucket'
    assert variance <= opened(SubsetSelection(), (size,), 6.0).asked.variance * 1.001


def test_a_channel_says_whether_it_is_plain_response() -> None:
    assert opened(AdaptiveResponse(), (16,), 4.0).response_values == 17
    assert opened(AdaptiveResponse(), (16, 8), 4.0).response_values == 9
    assert opened(AdaptiveResponse(share="budget"), (16, 8), 4.0).response_values is None
    assert opened(OptimisedLocalHashing(), (16,), 2.0).response_values == 8
    assert opened(SubsetSelection(), (16,), 2.0).response_values is None
