"""Which users were seen: each number once."""

from __future__ import annotations

import numpy as np
import pytest

from cloister.core.errors import InvalidInput
from cloister.core.roll import Roll
from cloister.core.types import Ids


def users(*numbers: int) -> Ids:
    return np.array(numbers, np.uint64)


def test_what_was_entered_is_there_and_nothing_else() -> None:
    roll = Roll(20)
    roll.add(users(3, 19, 8))
    assert roll.has(users(*range(20))).nonzero()[0].tolist() == [3, 8, 19]
    assert roll.count == 3
    assert [piece.tolist() for piece in roll.pieces(2)] == [[3, 8], [19]]


@pytest.mark.parametrize("twice", [(5, 5), (5, 2, 5), (2, 5, 5), (9, 5, 1, 9)])
def test_a_number_that_stands_twice_in_one_piece_is_refused(twice: tuple[int, ...]) -> None:
    with pytest.raises(InvalidInput, match="stands twice"):
        Roll(10).add(users(*twice))


@pytest.mark.parametrize("again", [(4,), (1, 4), (4, 9), (7, 4, 2)])
def test_a_number_that_came_before_is_refused(again: tuple[int, ...]) -> None:
    roll = Roll(10)
    roll.add(users(4, 6))
    with pytest.raises(InvalidInput, match="stands twice"):
        roll.add(users(*again))


def test_numbers_that_share_a_byte_are_not_taken_for_one_another() -> None:
    roll = Roll(16)
    for number in range(16):
        roll.add(users(number))
    assert roll.count == 16


def test_a_number_out_of_range_is_refused() -> None:
    with pytest.raises(InvalidInput, match="from 0 to 9"):
        Roll(10).add(users(2, 10))
