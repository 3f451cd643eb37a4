"""Set of user numbers: one bit per planned user."""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

import numpy as np

from cloister.core.errors import InvalidInput
from cloister.core.types import AnyArray, Bools, Ids

BLOCK = 2**20
"""User numbers that ``pieces`` unpacks at once."""


@final
class UserSet:
    """Set of numbers 0 <= user < size, in size / 8 bytes; ``count`` is the number of its elements.

    Raises: InvalidInput: not enough memory.
    """

    def __init__(self, size: int) -> None:
        self.size, self.count = size, 0
        try:
            self._bits = np.zeros(-(-size // 8), np.uint8)
        except (MemoryError, ValueError):
            raise InvalidInput(f"a bit for each of the plan's {size:,} users is more memory than there is") from None

    def has(self, users: Ids) -> Bools:
        """Return which users (n,), all below size, are in the set."""
        place, bit = _bits(users)
        present: Bools = (self._bits[place] & bit) != 0
        return present

    def add(self, users: Ids) -> None:
        """Add users (n,). Raises: InvalidInput: one is out of range or in the set; how many were added is unknown."""
        if len(users) and int(users.max()) >= self.size:
            raise InvalidInput(f"user numbers must be whole numbers from 0 to {self.size - 1}: some are not")
        place, bit = _bits(users)
        if (self._bits[place] & bit).any() or not first_of(users).all():
            raise InvalidInput("a user number occurs twice: give each user one row")
        np.bitwise_or.at(self._bits, place, bit)
        self.count += len(users)

    def update(self, users: Ids) -> Ids:
        """Add users (n,), all below size; return those that were in the set or occur again."""
        repeated = users[self.has(users) | ~first_of(users)]
        place, bit = _bits(users)
        np.bitwise_or.at(self._bits, place, bit)
        self.count += len(users) - len(repeated)
        return repeated

    def merge(self, other: UserSet) -> UserSet:
        """Add another set of this size; return the intersection of both."""
        both = UserSet(self.size)
        np.bitwise_and(self._bits, other._bits, out=both._bits)
        np.bitwise_or(self._bits, other._bits, out=self._bits)
        both.count = int(np.bitwise_count(both._bits).sum())
        self.count += other.count - both.count
        return both

    def pieces(self, size: int) -> Iterator[Ids]:
        """Yield all users, ascending, at most ``size`` at a time."""
        for start in range(0, len(self._bits), BLOCK // 8):
            positions = np.flatnonzero(np.unpackbits(self._bits[start : start + BLOCK // 8], bitorder="little"))
            users = (positions + 8 * start).astype(np.uint64)
            for first in range(0, len(users), size):
                yield users[first : first + size]


def first_of(users: Ids) -> Bools:
    """Return the mask (n,) of each user's first position."""
    ascending = users if (users[1:] > users[:-1]).all() else np.sort(users)
    if (ascending[1:] > ascending[:-1]).all():
        return np.ones(len(users), bool)
    first = np.zeros(len(users), bool)
    first[np.unique(users, return_index=True)[1]] = True
    return first


def _bits(users: Ids) -> tuple[Ids, AnyArray]:
    """Return the index of each user's byte, and the user's bit in it."""
    return users >> np.uint64(3), (np.uint8(1) << (users & np.uint64(7)).astype(np.uint8)).astype(np.uint8)
