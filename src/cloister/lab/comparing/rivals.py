"""Rivals of a study: entrants of ``cloister bench``, each run in a process of its own."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import TYPE_CHECKING, final

import attrs
import numpy as np

from cloister.core.domains import Box
from cloister.core.errors import CloisterError, InvalidInput, UnknownName
from cloister.core.frames import unknown_columns
from cloister.core.types import Floats
from cloister.lab.comparing.conditions import Conditions, ranges

if TYPE_CHECKING:
    from cloister.lab.bench.entrants import Entrant

TIMEOUT = 3600.0
"""Seconds after which a run of a rival fails."""


@final
@attrs.frozen
class Rival:
    """Rival of a study. Args: argument (the name of an entrant that comes with cloister, or a folder), label."""

    argument: str
    label: str

    @property
    def entrant(self) -> Entrant:
        """The entrant."""
        from cloister.lab.bench.entrants import entrant_of

        return entrant_of(self.argument)

    @property
    def guarantee(self) -> str:
        """What it states of itself: ``pure``, ``approximate`` or ``none``."""
        return self.entrant.facts.guarantee

    @property
    def text(self) -> str:
        """Its guarantee and its note in a sentence or two, with the command that tests it."""
        facts = self.entrant.facts
        stated = f"states {facts.guarantee} differential privacy, which 'cloister bench audit {self.argument}' tests"
        return " ".join([f"{stated if facts.private else 'states no guarantee'}.", facts.note]).strip()

    def check(self, conditions: Conditions) -> None:
        """Install it. Raises: CloisterError: it cannot be installed, or cannot use the bounds."""
        from cloister.lab.bench.installing import install

        entrant = self.entrant
        if entrant.facts.bounds == "used" and not isinstance(conditions.domain, Box):
            raise InvalidInput(f"{self.label} needs bounds per column, not a ball")
        if entrant.facts.bounds == "used" and unknown_columns(conditions.domain):
            raise InvalidInput(f"{self.label} needs bounds of every column")
        install(entrant)

    def centers(self, rows: Floats, conditions: Conditions, epsilon: float) -> tuple[Floats, float]:
        """Return its centres (k, d), in the caller's units, and the seconds of its process.

        Args:
            rows: (n, d) in the caller's units; it gets them in units of distance.
            conditions: of the study.
            epsilon: its budget.

        Raises: CloisterError: it failed, or its output is none.
        """
        from cloister.lab.bench.installing import install
        from cloister.lab.bench.running import RowsFile, RunFailure, Task, run_entrant

        entrant, units, box = self.entrant, conditions.units, conditions.widths
        bounds = np.column_stack([box.lower, box.upper]) if isinstance(box, Box) else np.array(ranges(rows))
        with RowsFile.of(rows / units, bounds / units[:, None]) as file:
            task = Task(
                file=file,
                k=conditions.k,
                epsilon=epsilon,
                delta=0.0 if entrant.facts.guarantee == "pure" else conditions.delta,
                seed=secrets.randbits(31),
                n=conditions.rows,
            )
            outcome = run_entrant(entrant, install(entrant), task, TIMEOUT)
        if isinstance(outcome, RunFailure):
            raise CloisterError(f"{self.label} failed: {outcome.text}")
        return outcome.centers[0] * units, outcome.seconds


def rivals_of(arguments: Iterable[str]) -> list[Rival]:
    """Return the rivals of arguments. Raises: UnknownName: no such entrant comes with cloister; InvalidInput."""
    from cloister.lab.bench.entrants import entrant_of, shipped_names

    rivals = list[Rival]()
    for argument in dict.fromkeys(arguments):
        entrant = None
        try:
            entrant = entrant_of(argument)
        except UnknownName as error:
            if error.kind != "entrant":
                raise
        if entrant is None or entrant.folder is None:  # methods of cloister are contenders
            raise UnknownName("rival", argument, shipped_names())
        rivals.append(Rival(argument, entrant.name))
    return rivals
