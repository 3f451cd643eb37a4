"""Protocols of the holder of rows, or of reports made of them, who answers a session's rounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from cloister.core.lattice import CAP
from cloister.core.questions import Round
from cloister.core.randomness import NoiseRng
from cloister.core.trust import T_contra


class Answering(Protocol[T_contra]):
    """Holder of rows, or of reports made of them, who answers a session's questions."""

    def gather(self, round: Round[T_contra], rng: NoiseRng) -> tuple[Any, ...]:
        """Return one merged summary per question, from one pass over the rows; the round is opaque to it."""
        ...


class Population(Answering[T_contra], Protocol[T_contra]):
    """Holder of the rows that ``run.fit`` clusters.

    Laws: every round reads the same rows, each with the same user number. A row with a missing or infinite cell is
    dropped under add-or-remove; under replace-one its report is like everybody's, in no bucket
    (``core.encoding.everybody_reports``). The rule looks at that row alone.

    Optional members are ``people`` (number of people who report under replace-one, which is everybody; None: only
    ``gather`` can tell), without which Shuffled trust refuses it; ``fingerprints``; ``trust``, if it pools parties'
    rows; and the abilities in ``core.capabilities``.
    """

    @property
    def columns(self) -> Sequence[str]:
        """Public names of the columns, in the order of the domain's bounds."""
        ...

    def check(self, most_rows: int = CAP) -> None:
        """Validate the rows before anything is charged; only the data holder learns the outcome (law 7).

        Args:
            most_rows: cap on one party's usable rows.

        Raises:
            InvalidInput: there are more rows, or rows that cannot be used.
        """
        ...
