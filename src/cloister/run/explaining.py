"""Forecast of a run from public figures alone: the method picked and why, its questions, and their noise.

No row is read and nothing is spent. A run follows the schedule of its forecast (law 2).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from cloister.core.capabilities import loss_upper_bound
from cloister.core.domains import Box
from cloister.core.errors import CloisterError
from cloister.core.questions import OpenedQuestion, Question
from cloister.core.randomness import ANY_KEY, PublicRng
from cloister.core.session import Session
from cloister.rows.selection import Selection
from cloister.run.layers.levels import Level, clustering, method_of, recorded
from cloister.run.method_selection import PREDICTED, in_words
from cloister.run.request import PreparedRun, Request, prepare
from cloister.run.row_count import LIKELY, SHARE, after_count
from cloister.run.statement import UNITS
from cloister.run.warnings import before


@attrs.frozen
class ScheduledQuestion:
    """Question of the schedule.

    Args:
        round: counted from 1.
        kind: counts, or sums.
        mechanism: the oracle's.
        buckets: number of buckets, of all levels.
        share: of the run's budget; None if it is in another measure.
        users: share of the users who are asked.
        error: standard error of one number of the answer: for counts in rows; for sums in the caller's units (for
            k-median's unit vectors, lattice units), or if framed in half widths of the frame, which are not yet known.
        framed: the question is asked in a frame (``run.layers.preprocessing``).
    """

    round: int
    kind: str
    mechanism: str
    buckets: int
    share: float | None
    users: float
    error: float
    framed: bool = False

    @property
    def words(self) -> str:
        """Line for people."""
        share = "" if self.share is None else f", {self.share:.1%} of the budget"
        users = "" if self.users == 1 else f", {self.users:.1%} of the users"
        noun = "bucket" if self.buckets == 1 else "buckets"
        unit = "rows" if self.kind == "counts" else "half widths per column" if self.framed else "units per column"
        return (
            f"round {self.round}: {self.kind} of {self.buckets:,} {noun} by {self.mechanism}{share}{users}; standard "
            f"error {self.error:.3g} {unit}"
        )


@attrs.frozen(eq=False)
class Explanation:
    """Plan of a request, its schedule, and its predicted error in parts of one centre's cost (None: unpredicted)."""

    plan: PreparedRun
    error: float | None
    asked: tuple[ScheduledQuestion, ...]

    @property
    def method(self) -> dict[str, Any]:
        """Method and the components in its slots, as a result records them."""
        return recorded(self.plan.composed)

    @property
    def warnings(self) -> list[str]:
        """Warnings that the run gives before a row is read."""
        return [str(warning) for warning in before(self.plan)]

    @property
    def text(self) -> str:
        """Forecast for people."""
        p, total = self.plan.problem, self.plan.total
        name, rounds = self.method["name"], len({a.round for a in self.asked})
        rows = f"{p.rows:,} rows" if self.plan.rows is not None else f"rows still to be counted, shown for {p.rows:,},"
        budget = f"{UNITS[p.budget.measure]} {self.plan.budget.amount:.4g}"
        return "\n".join(
            [
                *self._candidates(),
                *(f"WARNING: {text}." for text in self.warnings),
                f"{name}: {self._centers} of {rows} in {len(self.plan.clustered)} columns, {rounds} "
                f"{'round' if rounds == 1 else 'rounds'}, epsilon = {total.epsilon:g}, delta = {total.delta:g} "
                f"({budget}), {self.plan.composed.trust or 'any'} trust",
                *filter(None, [self.plan.price]),
                *self._uncounted(),
                *(f"  {question.words}" for question in self.asked),
                f"No row was read and nothing was spent.{'' if self.error is None else f' {PREDICTED}.'}",
            ]
        )

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, for programs."""
        choice = self.plan.choice
        return {
            "method": self.method,
            "trust": self.plan.composed.trust,
            "error": self.error,
            "at_most": None if self.error is None else loss_upper_bound(self.error),
            "warnings": self.warnings,
            "auto": None if choice is None else choice.as_dict(),
            "columns": list(self.plan.columns),
            "problem": self.plan.describe(),
            "epsilon": self.plan.total.epsilon,
            "delta": self.plan.total.delta,
            "budget": {"measure": self.plan.budget.measure, "amount": self.plan.budget.amount},
            "schedule": [attrs.asdict(question) for question in self.asked],
            "by_rows": [{"rows": rows, "method": name, "error": error} for rows, name, error in self.by_rows],
        }

    def _uncounted(self) -> Iterator[str]:
        """Yield lines on what a public number of rows would change, if none was given."""
        if self.plan.rows is not None:
            return
        yield (
            f"Without --rows (rows=), {SHARE:.0%} of the budget counts the rows first, and the rest is planned anew "
            f"for what it finds; a round figure of the right size saves that. For other numbers:"
        )
        for rows, name, error in self.by_rows:
            yield f"  {rows:>9,} rows: {name}" + ("" if error is None else f", {in_words(error)}")

    @property
    def by_rows(self) -> list[tuple[int, str, float | None]]:
        """Likely numbers of rows with the method (or refusal) and predicted error; empty if ``rows`` is known."""
        return [] if self.plan.rows is not None else [self._at(rows) for rows in LIKELY if rows >= self.plan.problem.k]

    def _at(self, rows: int) -> tuple[int, str, float | None]:
        try:
            composed, problem, choice = after_count(
                self.plan.planned, (self.plan.composed, self.plan.problem, self.plan.choice), rows
            )
        except CloisterError:
            return rows, "refused: too few for this budget", None
        plan = attrs.evolve(self.plan, composed=composed, problem=problem, choice=choice)
        return rows, method_of(composed).spec.name, plan.error

    @property
    def _centers(self) -> str:
        p = self.plan.problem
        return (
            f"{p.k} centres"
            if p.fewest is None
            else f"{p.fewest} to {p.k} centres (planned for {p.k}; what is released decides)"
        )

    def _candidates(self) -> Iterator[str]:
        choice = self.plan.choice
        if choice is None:
            if self.error is not None:
                yield in_words(self.error)
            return
        yield choice.words
        width = max(len(c.name) for c in choice.candidates)
        for c in choice.candidates:
            yield f"  {c.name:<{width}}  {'-' if c.error is None else f'{c.error:.3g}':<9}  {c.why}".rstrip()


def explain(request: Request, columns: Sequence[str], chosen: Selection | None = None) -> Explanation:
    """Forecast a request without reading a row.

    Args:
        request: the request.
        columns: names of the rows' columns.
        chosen: how they were selected from a table's columns, if they were.

    Raises:
        CloisterError: as ``prepare``.
    """
    plan = prepare(request, columns, chosen_columns=chosen)
    seed = ANY_KEY if request.seed is None else PublicRng.from_seed(request.seed)
    session: Session[Any] = Session(plan.problem, seed, forecasting=True)
    method = plan.composed.value
    plan.count_rows(session)
    method.cluster(plan.problem, session, seed.child("method"))
    stack = plan.levels
    schedule = tuple(
        _scheduled(plan, stack, round.index + 1, part, question)
        for round, questions in zip(session.rounds, session.asked, strict=True)
        for part, question in zip(round.parts, questions, strict=True)
    )
    return Explanation(plan, plan.error, schedule)


def _scheduled(
    plan: PreparedRun, stack: Sequence[Level], number: int, part: OpenedQuestion, question: Question[Any, Any]
) -> ScheduledQuestion:
    budget, events = plan.budget, part.channel.events
    level = clustering(stack)
    alike = math.isfinite(budget.amount) and all(event.spent.measure == budget.measure for event in events)
    share = sum(event.spent.amount for event in events) / budget.amount if alike else None
    variance, domain = question.variance(level.problem.context(question.budget)), level.problem.domain
    framed = level.wrapper is not None and isinstance(domain, Box) and part.vectors is not None
    unit = stack[0].problem.domain.unit / domain.unit if framed else 1.0
    return ScheduledQuestion(
        number,
        "counts" if part.vectors is None else "sums",
        events[0].mechanism if events else "nothing",
        sum(part.cells.space.sizes),
        share,
        part.fraction,
        unit * math.sqrt(variance) / part.fraction,
        framed,
    )
