"""A bit per planned user: what is in it, what is refused."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from cloister.collection.wire.user_set import UserSet
from cloister.core.errors import InvalidInput


def entered(*numbers: int) -> UserSet:
    roll = UserSet(1000)
    roll.add(np.array(numbers, np.uint64))
    return roll


def test_a_roll_holds_what_was_entered() -> None:
    roll, g = UserSet(1000), np.random.default_rng(0)
    numbers = g.permutation(1000)[:700].astype(np.uint64)
    for some in np.array_split(numbers, 9):
        roll.add(some)
    assert roll.count == 700
    assert np.array_equal(roll.has(np.arange(1000, dtype=np.uint64)), np.isin(np.arange(1000), numbers))
    assert np.concatenate(list(roll.pieces(64))).tolist() == sorted(numbers.tolist())
    assert max(map(len, roll.pieces(64))) <= 64


@pytest.mark.parametrize("again", [[5], [7, 5], [5, 8], [9, 1, 9], [9, 9], [8, 9, 9]])
def test_a_number_is_entered_once_by_one_call_or_by_two(again: Sequence[int]) -> None:
    roll = entered(5, 6)
    with pytest.raises(InvalidInput, match="a user number stands twice"):
        roll.add(np.array(again, np.uint64))
    assert roll.count == 2
