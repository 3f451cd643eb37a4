"""A set of user numbers: one bit per planned user."""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

import numpy as np

from cloister.core.errors import InvalidInput
from cloister.core.types import AnyArray, Bools, Ids

BLOCK = 2**20
"""Numbers that ``pieces`` unpacks at once."""


@final
class UserSet:
    """A set of numbers 0 <= user < size, in size / 8 bytes. ``count``: how many are in it. Raises: InvalidInput: not
    enough memory."""

    def __init__(self, size: int) -> None:
        self.size, self.count = size, 0
        try:
            self._bits = np.zeros(-(-size // 8), np.uint8)
        except (MemoryError, ValueError):
            raise InvalidInput(f"a bit for each of the plan's {size:,} users is more memory than there is") from None

    def has(self, users: Ids) -> Bools:
        """Which of these (n,), all below size, are in the set."""
        place, bit = _bits(users)
        there: Bools = (self._bits[place] & bit) != 0
        return there

    def add(self, users: Ids) -> None:
        """Add these (n,). Raises: InvalidInput: one is out of range or in the set already; then nothing is known of
        what was added."""
        if len(users) and int(users.max()) >= self.size:
            raise InvalidInput(f"user numbers must be whole numbers from 0 to {self.size - 1}: some are not")
        place, bit = _bits(users)
        if (self._bits[place] & bit).any() or not first_of(users).all():
            raise InvalidInput("a user number stands twice: give each user one row")
        np.bitwise_or.at(self._bits, place, bit)
        self.count += len(users)

    def mark(self, users: Ids) -> Ids:
        """Add these (n,), all below size, whether they are in the set or not; those that were, or that stand twice."""
        again = users[self.has(users) | ~first_of(users)]
        place, bit = _bits(users)
        np.bitwise_or.at(self._bits, place, bit)
        self.count += len(users) - len(again)
        return again

    def join(self, other: UserSet) -> UserSet:
        """Add all of another set of this size; the numbers that were in both, as a set."""
        both = UserSet(self.size)
        np.bitwise_and(self._bits, other._bits, out=both._bits)
        np.bitwise_or(self._bits, other._bits, out=self._bits)
        both.count = int(np.bitwise_count(both._bits).sum())
        self.count += other.count - both.count
        return both

    def pieces(self, most: int) -> Iterator[Ids]:
        """Yield all numbers, ascending, at most ``most`` at a time."""
        for start in range(0, len(self._bits), BLOCK // 8):
            found = np.flatnonzero(np.unpackbits(self._bits[start : start + BLOCK // 8], bitorder="little"))
            users = (found + 8 * start).astype(np.uint64)
            for first in range(0, len(users), most):
                yield users[first : first + most]


def first_of(users: Ids) -> Bools:
    """Mask (n,) of each user's first position."""
    ascending = users if (users[1:] > users[:-1]).all() else np.sort(users)
    if (ascending[1:] > ascending[:-1]).all():
        return np.ones(len(users), bool)
    first = np.zeros(len(users), bool)
    first[np.unique(users, return_index=True)[1]] = True
    return first


def _bits(users: Ids) -> tuple[Ids, AnyArray]:
    """The byte that holds each number, and its bit in there."""
    return users >> np.uint64(3), (np.uint8(1) << (users & np.uint64(7)).astype(np.uint8)).astype(np.uint8)
