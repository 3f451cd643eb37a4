"""The server's side of a plan: reports to centres. It never sees a row."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, final

import attrs

from cloister import __version__
from cloister.accounting.accountant import Accountant
from cloister.core.registry import registry
from cloister.core.results import Result
from cloister.core.session import Session
from cloister.core.statement import state
from cloister.plans import PublishedPlan


@final
@attrs.frozen(eq=False)
class Decoded:
    """What a server has. Args: result, intake (what became of the reports: ``lines()``, ``accepted``)."""

    result: Result
    intake: Any


def decode(
    plan: PublishedPlan | str | os.PathLike[str], reports: str | Path | Sequence[str | Path], *, strict: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Decoded:  # fmt: skip
    """Cluster the people who have reported. Under Shuffled trust, ``reports`` is what the shuffler released.

    Counts and weights are of those who reported: people who did not are missing from them, and from nothing else. Where half of the
    planned users report, whoever they are, weights add up to about half of the planned rows, centres are those of these people, and
    noise moves them by sqrt 2 times as much as planned; standard errors stay those of the plan, which are then too large by
    sqrt 2. If who reports depends on her row, so do the centres: nothing can tell.

    The result is a pure function of the plan and the accepted reports. Whoever computes it from the same reports gets the same.

    Args:
        plan: or the folder that it is in.
        reports: folders, files or patterns, see ``Collected``.
        strict: fail at the first refusal.
        progress: told how many more reports were looked at.

    Raises:
        InvalidInput: no report can be used, or a file or plan cannot be read.
        Damaged, Refused: the plan is not as it was published, or its round comes out differently here; or ``strict``.
    """
    opened = plan if isinstance(plan, PublishedPlan) else PublishedPlan.read(plan)
    kind = registry().load(registry().spec("Population", "reports" if opened.crowd is None else "messages"))
    collected = kind(reports, opened.hash, opened.rows, strict, progress)
    round, composed, problem = opened.round(), opened.compose(), opened.problem
    accountant = Accountant(opened.total, problem.budget)
    accountant.forecast([round.events])
    session: Session[Any] = Session(problem, opened.seed, collected, accountant=accountant)
    found = composed.value.cluster(problem, session, opened.seed.child("method"))
    privacy = state(
        session.rounds, opened.total.epsilon, opened.total.delta, trust=opened.trust, rows=opened.rows, seeded=False,
        private=True,
    )  # fmt: skip
    details = {**found.details, "plan": opened.hash, "reports": collected.intake.as_dict(opened.rows)}
    problem_facts = {**opened.as_dict()["problem"], "lattice unit": opened.domain.unit}
    columns = opened.columns or tuple(str(i) for i in range(opened.dimension))
    result = Result(
        found.centers, found.weights, columns, composed.config(), problem_facts, privacy, details, __version__
    )
    return Decoded(result, collected.intake)
