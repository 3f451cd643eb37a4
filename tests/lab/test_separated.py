"""Gaussian clusters at a wanted separation: against its authors' figures and its definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from cloister.core.errors import InvalidInput
from cloister.lab.separated import (
    Mixture,
    _apart,
    _sharpest,
    in_proportion,
    separated,
)

Z = 1.959963984540054


def separation_index(mixture: Mixture) -> Any:
    """The separation index J of every pair of clusters (k, k), 1 on the diagonal.

    On a line w with m = w'(c2 - c1) and standard deviations s1, s2, J = (m - z (s1 + s2)) / (m + z (s1 + s2)) with
    z = 1.96. It grows with m / (s1 + s2), and the line is the one that makes that largest.

    Source: Qiu and Joe, Separation index and partial membership for clustering, CSDA 50 (2006).
    """
    reach, width, _ = _sharpest(mixture.centers, mixture.covariances)
    apart = _apart(reach, width)
    np.fill_diagonal(apart, 0.0)
    index = (apart - Z) / (apart + Z)
    np.fill_diagonal(index, 1.0)
    return index


@pytest.mark.parametrize(("apart", "index"), [(4, 0.01011020), (6, 0.2096862), (8, 0.34229)])
def test_the_index_has_the_values_of_its_authors(apart: float, index: float) -> None:
    """Qiu and Joe's examples: N(0, 1) and N(apart, 1) are close, separated, well separated."""
    pair = Mixture(np.array([[0.0, 0.0], [apart, 0.0]]), np.array([np.eye(2), np.eye(2)]))
    assert separation_index(pair)[0, 1] == pytest.approx(index, abs=1e-5)


@given(k=st.integers(2, 12), d=st.integers(2, 9), wanted=st.floats(-0.5, 0.9), seed=st.integers(0, 2**31))
@settings(deadline=None, max_examples=30)
def test_every_cluster_is_at_the_wanted_index_from_its_nearest_neighbour(
    k: int, d: int, wanted: float, seed: int
) -> None:
    index = separation_index(separated(k, d, wanted, np.random.default_rng(seed)))
    np.testing.assert_allclose(index, index.T, atol=1e-6)
    np.testing.assert_allclose(np.sort(index, axis=1)[:, 0], wanted, atol=1e-5)


def test_cluster_sizes_are_in_the_ratio_one_to_k() -> None:
    sizes = in_proportion(10_000, 128)
    assert sizes.sum() == 10_000
    assert np.abs(sizes - 20_000 * np.arange(1, 129) / (128 * 129)).max() <= 1
    with pytest.raises(InvalidInput, match="too few"):
        in_proportion(10, 10)
