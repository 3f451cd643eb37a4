"""The conformance kit on the buckets and vectors of Stemmer's method."""

from __future__ import annotations

from typing import Any

import pytest

from cloister.testing import parametrize
from tests.plugins.methods.weighted_centers.stemmer_cells import axis_intervals, centred, reassigned, regions


@pytest.mark.thorough
@parametrize(regions, reassigned, role="Bucketing")
def test_buckets_of_regions_and_of_centres_conform(component: Any, check: Any) -> None:
    check(component)


@parametrize(axis_intervals, role="Bucketing")
def test_pairs_of_hash_value_and_interval_conform(component: Any, check: Any) -> None:
    if (
        check.name != "a_row_falls_in_the_same_bucket_in_any_batch"
    ):  # seen to for regions, by the same hash and intervals
        check(component)


@parametrize(centred, role="Vectors")
def test_vectors_relative_to_a_region_conform(component: Any, check: Any) -> None:
    check(component)
