"""The people of the demonstration, who are made up, and the plan that asks them. Nobody's row is kept anywhere."""

from __future__ import annotations

import secrets
from threading import Lock
from typing import final

import numpy as np

from cloister.collection.plan.plan import CollectionPlan
from cloister.collection.plan.publish import publish
from cloister.core.types import Floats
from cloister.run.request import Request

COLUMNS = ("sleep", "screen")
"""Both in hours a day."""

GROUPS = ((9.0, 2.5), (5.5, 3.0), (4.5, 8.5), (8.8, 7.5))
"""The middles of the groups, which are of one size."""

SPREAD = 0.6
"""Standard deviation of each column within a group."""

LONGEST = 12.0
"""Public bound of both columns: each lies between 0 and so many hours."""


def plan_of(people: int, epsilon: float) -> CollectionPlan:
    """The plan that asks so many people, once each."""
    bounds = ((0.0, LONGEST),) * len(COLUMNS)
    request = Request(
        k=len(GROUPS), method="one-round", epsilon=epsilon, bounds=bounds, rows=people, zoom="off", scale="none"
    )
    return publish(request, COLUMNS)


def rows(people: int, g: np.random.Generator) -> Floats:
    """Rows (n, 2) of people who are new each time."""
    middles = np.asarray(GROUPS)[g.integers(0, len(GROUPS), people)]
    return np.clip(middles + g.normal(0, SPREAD, middles.shape), 0, LONGEST)


@final
class Numbers:
    """The user numbers 0 to n - 1 in an order that nobody chose, each given out once, from any thread.

    Whoever could choose hers could choose what it is asked (``core.shares``).
    """

    def __init__(self, n: int) -> None:
        self._order = np.random.default_rng(secrets.randbits(128)).permutation(n)
        self._given, self._lock = 0, Lock()

    def take(self, count: int) -> list[int]:
        """The next numbers; fewer, or none, where they come to an end."""
        with self._lock:
            start, self._given = self._given, min(len(self._order), self._given + count)
            return [int(number) for number in self._order[start : self._given]]
