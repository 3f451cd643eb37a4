"""A random order through files: nothing lost, nothing doubled, every order equally likely."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, final

import numpy as np
import pytest

from cloister.collection.shuffler.release import Permute, Scattered
from cloister.core.types import AnyArray, Ids


@final
class Told:
    """Words that are told: the files that messages go to, and the order of the words that sort each file."""

    def __init__(self, targets: tuple[int, ...], orders: dict[str, tuple[int, ...]], purpose: str = "") -> None:
        self._targets, self._orders, self._purpose = targets, orders, purpose

    def child(self, purpose: str) -> Told:
        return Told(self._targets, self._orders, purpose)

    def of(self, first: int, last: int) -> Told:
        """What a worker is told who scatters some of the messages."""
        return Told(self._targets[first:last], {})

    def words(self, positions: Ids, each: int) -> Ids:
        told = self._targets if self._purpose == "scatter" else self._orders.get(self._purpose, ())
        return np.array([told[p] for p in positions], np.uint64).reshape(len(positions), each)


def alone(folder: Path, words: Any, files: int) -> list[AnyArray]:
    """The numbers 0 .. 3, which come in two pieces, in the order in which they stand in the end."""
    scattered = Scattered(folder, 1, words, files)
    for piece in np.arange(4, dtype=np.uint8).reshape(2, 2, 1):
        scattered.add(piece)
    return list(scattered.shuffled())


def apart(folder: Path, words: Any, files: int) -> list[AnyArray]:
    """The same of three workers, of which two scatter one number and a third two."""
    places = list[Path]()
    for first, last in ((0, 1), (1, 3), (3, 4)):
        places.append(folder / str(first))
        places[-1].mkdir()
        scattered = Scattered(places[-1], 1, words.of(first, last), files)
        scattered.add(np.arange(first, last, dtype=np.uint8)[:, None])
        scattered.close()
    permute = Permute(tuple(places), folder, 1, words)
    return [np.fromfile(permute(number)[1], np.uint8)[:, None] for number in range(files)]


@pytest.mark.parametrize(("shuffled", "files"), [(alone, 1), (alone, 2), (alone, 4), (apart, 2)])
def test_every_order_of_four_is_equally_likely_exactly(
    tmp_path: Path, shuffled: Callable[[Path, Any, int], list[AnyArray]], files: int
) -> None:
    """All ways to divide four messages over the files and to sort each of them, weighed by their probabilities: 1 / 24
    for each order."""
    found: Counter[tuple[int, ...]] = Counter()
    for number, targets in enumerate(itertools.product(range(files), repeat=4)):
        sizes = [targets.count(i) for i in range(files)]
        every = [list(itertools.permutations(range(size))) for size in sizes]
        weight = Fraction(1, files**4 * math.prod(map(len, every)))
        for place, orders in enumerate(itertools.product(*every)):
            folder = tmp_path / f"{number}-{place}"
            folder.mkdir()
            words = Told(targets, {f"order {i} 0": order for i, order in enumerate(orders)})
            order = np.concatenate(shuffled(folder, words, files))[:, 0]
            found[tuple(order.tolist())] += weight  # type: ignore[assignment]
    assert found == dict.fromkeys(itertools.permutations(range(4)), Fraction(1, 24))
