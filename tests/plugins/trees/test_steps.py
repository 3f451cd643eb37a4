"""Searching by a table gives what bisection gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from cloister.plugins.trees.reduction import Steps


@given(
    side=st.one_of(st.integers(1, 40), st.just(2**20)),
    many=st.integers(0, 300),
    spread=st.floats(0.001, 1.0),
    seed=st.integers(0, 99),
)
@settings(deadline=None, max_examples=200)
def test_every_integer_is_between_the_same_cuts_as_by_bisection(side: int, many: int, spread: float, seed: int) -> None:
    rng, wide = np.random.default_rng(seed), max(1, int(side * spread))
    cuts = np.sort(rng.integers(-wide, wide + 2, many))
    x = np.unique(np.concatenate([[-side, 0, side], cuts, cuts - 1, rng.integers(-side, side + 1, 100)])).clip(
        -side, side
    )
    assert Steps.of(cuts, side).below(x).tolist() == np.searchsorted(cuts, x, side="right").tolist()


@pytest.mark.parametrize("crowd", [1, 4, 5, 200])
def test_cuts_that_crowd_in_one_cell_are_found_too(crowd: int) -> None:
    steps = Steps.of(np.arange(1, crowd + 1), 2**20)
    assert steps.crowd == min(crowd, 1 << steps.shift)
    assert steps.below(np.array([-(2**20), 0, 1, crowd, 2**20])).tolist() == [0, 0, 1, crowd, crowd]
