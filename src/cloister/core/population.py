"""Whoever answers a session's rounds, as Protocols: the holder of rows, or of reports made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from cloister.core.lattice import CAP
from cloister.core.questions import Round
from cloister.core.randomness import NoiseRng
from cloister.core.trust import T_contra


class Answering(Protocol[T_contra]):
    """Answers a session's questions, from rows or from reports made of them."""

    def gather(self, round: Round[T_contra], rng: NoiseRng) -> tuple[Any, ...]:
        """One merged summary per question, from one pass over the rows. The round is opaque to it."""
        ...


class Population(Answering[T_contra], Protocol[T_contra]):
    """The holder of the rows that ``run.fit`` clusters.

    Laws: every round reads the same rows, each with the same user number. A row with a missing or infinite cell is
    dropped under add-or-remove, and in no bucket of a report like everybody's under replace-one
    (``core.encoding.everybody_reports``), by a rule that looks at that row alone.
    Besides it may have ``people`` (how many report under replace-one, which is everybody; None: only a ``gather`` can
    tell), without which Shuffled trust refuses it; ``fingerprints``; ``trust``, where it pools parties' rows; and the
    abilities in ``core.capabilities``.
    """

    @property
    def columns(self) -> Sequence[str]:
        """Names of the columns, in the order of the domain's bounds. Public."""
        ...

    def check(self, most_rows: int = CAP) -> None:
        """Validate the rows, before anything is charged. The outcome is for the data holder's eyes alone (law 7).

        Args: most_rows, the cap on one party's usable rows. Raises: InvalidInput for more rows, or rows that cannot be
        used.
        """
        ...
