"""A random order through files: nothing lost, nothing doubled, every order equally likely."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any, final

import numpy as np
import pytest

from cloister.collection.shuffler.release import Scattered
from cloister.core.types import Ids


def shuffled(folder: Path, size: int, rng: Any, files: int) -> tuple[int, ...]:
    """The numbers 0 .. size - 1, in the order in which they stand in the end."""
    folder.mkdir()
    numbers = np.arange(size, dtype="<u4").view(np.uint8).reshape(size, 4)
    scattered = Scattered(folder, 4, rng, files)
    scattered.add(numbers)
    out = np.concatenate(list(scattered.shuffled()))
    folder.rmdir()  # it is empty
    return tuple(np.ascontiguousarray(out).view("<u4").reshape(-1).tolist())


@final
class Told:
    """Words that are told: the files that messages go to, and the order of the words that sort each file."""

    def __init__(self, targets: tuple[int, ...], orders: dict[str, tuple[int, ...]], purpose: str = "") -> None:
        self._targets, self._orders, self._purpose = targets, orders, purpose

    def child(self, purpose: str) -> Told:
        return Told(self._targets, self._orders, purpose)

    def words(self, positions: Ids, each: int) -> Ids:
        told = self._targets if self._purpose == "scatter" else self._orders.get(self._purpose, ())
        return np.array([told[p] for p in positions], np.uint64).reshape(len(positions), each)


@pytest.mark.parametrize("files", [1, 2, 4])
def test_every_order_of_four_is_equally_likely_exactly(tmp_path: Path, files: int) -> None:
    """All ways to divide four messages over the files and to sort each of them, weighed by their probabilities: 1 / 24
    for each order."""
    found: Counter[tuple[int, ...]] = Counter()
    for targets in itertools.product(range(files), repeat=4):
        sizes = [targets.count(i) for i in range(files)]
        every = [list(itertools.permutations(range(size))) for size in sizes]
        weight = Fraction(1, files**4 * math.prod(map(len, every)))
        for orders in itertools.product(*every):
            words = Told(targets, {f"order {i} 0": order for i, order in enumerate(orders)})
            found[shuffled(tmp_path / "work", 4, words, files)] += weight  # type: ignore[assignment]
    assert found == dict.fromkeys(itertools.permutations(range(4)), Fraction(1, 24))


def test_equal_words_are_drawn_anew(tmp_path: Path) -> None:
    words = Told((0, 0, 0), {"order 0 0": (5, 7, 5), "order 0 1": (2, 1, 0)})
    assert shuffled(tmp_path / "work", 3, words, 1) == (2, 1, 0)
