"""A session whose answers are invented: what a method does must not depend on there being rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, final

import attrs
import numpy as np

from cloister.core.clustering import Problem
from cloister.core.errors import InvalidInput
from cloister.core.questions import OpenedQuestion, Round
from cloister.core.randomness import PublicRng, unit_floats
from cloister.core.session import Session
from cloister.core.types import Floats, Ints


@final
@attrs.frozen
class Script:
    """Invented answers. Args: name, value (from chances in [0, 1), the largest answer and the number of buckets)."""

    name: str
    value: Callable[[Floats, float, int], Floats]


SCRIPTS = (
    Script("zero everywhere", lambda u, most, size: 0.0 * u),
    Script("plausible", lambda u, most, size: u * most / math.sqrt(16 * size)),
    Script("all negative", lambda u, most, size: -u * most - 1.0),
    Script("noise a million times the answer", lambda u, most, size: (2 * u - 1) * most * 1e6),
    Script("tiny", lambda u, most, size: (u - 0.5) * 1e-6),
    Script("one bucket has everything", lambda u, most, size: np.where(u == u.max(initial=0.0), most, 0.0)),
)


@final
@attrs.frozen
class Told:
    """A table of invented answers: the same id answers the same."""

    part: OpenedQuestion
    script: Script
    rng: PublicRng
    most: float

    def at(self, ids: Ints, level: int = 0) -> Floats:
        asked, size = self._asked(ids, level), self.part.cells.space.sizes[level]
        width = 0 if self.part.vectors is None else self.part.vectors.bound.dimension
        columns = [
            self.script.value(unit_floats(self.rng.child(level, j).of_users(asked.astype(np.uint64))), self.most, size)
            for j in range(max(1, width))
        ]
        return np.stack(columns, axis=1) if width else columns[0]

    def standard_error(self, ids: Ints, level: int = 0) -> Floats:
        return np.full(len(self._asked(ids, level)), 1e-3 * self.most)

    def _asked(self, ids: Ints, level: int) -> Ints:
        asked, sizes = np.asarray(ids, np.int64), self.part.cells.space.sizes
        if (
            not 0 <= level < len(sizes)
            or asked.ndim != 1
            or (len(asked) and not (asked.min() >= 0 and asked.max() < sizes[level]))
        ):
            raise InvalidInput(f"bucket {ids} of level {level} was looked at; there are {sizes}")
        return asked


class Invented:
    """A session that opens every round as a forecast does, and answers it from a script. There is no population."""

    def __init__(self, problem: Problem, seed: PublicRng, script: Script) -> None:
        self._session: Session[Any] = Session(problem, seed, forecasting=True)
        self._script, self._seed = script, seed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def framed(self, lattice: Any, domain: Any) -> Invented:
        """As ``Session.framed``: its answers are invented too."""
        view = Invented(self._session.problem, self._seed, self._script)
        view._session = self._session.framed(lattice, domain)
        return view

    def ask(self, *questions: Any) -> tuple[Told, ...]:
        self._session.ask(*questions)
        return tables_told(self._session.rounds[-1], self._session.problem, self._seed, self._script)


def tables_told(round: Round[Any], problem: Problem, seed: PublicRng, script: Script) -> tuple[Told, ...]:
    """A script's answers to a round, which may be in other units than the problem's own."""
    rows, unit = float(problem.rows), problem.domain.unit
    return tuple(
        Told(
            part, script, seed.child("script", round.index, i),
            rows if part.vectors is None else rows * part.vectors.bound.l2 * unit,
        )
        for i, part in enumerate(round.parts)
    )  # fmt: skip
