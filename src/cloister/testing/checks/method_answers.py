"""Checks that a method knows of the rows what it was answered, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cloister.core.clustering import Clustering, Problem
from cloister.core.questions import Round
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.session import Session, forecast
from cloister.core.types import Floats
from cloister.testing.check import given, require
from cloister.testing.checks.methods import problems, rows_of, schedule_of
from cloister.testing.scripts import SCRIPTS, tables_told
from cloister.testing.stubs import Handful

SCRIPT = SCRIPTS[1]
"""Says what is answered, whatever the rows are: plausible figures."""


def only_answers_tell_of_the_rows(method: Any) -> None:
    """A run is a pure function of the problem, the public key and the answers. Over no rows, over one and over many,
    equal answers lead to the rounds of the forecast, of equal digests, and to the same centres: nothing that sees rows
    on its way, a bucketing say, keeps any."""
    *_, (problem, seed) = problems(method)
    forecasted = schedule_of(forecast(method, problem, seed))
    wanted, rounds = _answered_alike(method, problem, seed, rows_of(problem).rows[:0])
    for what, rows in _data(problem):
        where = f"k = {problem.k}, equal answers, {what}"
        with given(where):
            found, asked = _answered_alike(method, problem, seed, rows)
        require(
            schedule_of(asked) == forecasted,
            f"{where}: it asks {len(asked)} rounds, {len(forecasted)} are forecast; or they spend something else",
        )
        others = [a.index for a, b in zip(asked, rounds, strict=True) if a.digest() != b.digest()]
        require(not others, f"{where}: round {others[:1]} asks something else than over no rows")
        moved = int((found.centers != wanted.centers).any(axis=1).sum())
        require(not moved, f"{where}: {moved} of {len(found.centers)} centres are others than over no rows")


def _data(problem: Problem) -> Iterator[tuple[str, Floats]]:
    """No rows but one, a neighbour of none; and many."""
    rows = rows_of(problem).rows
    yield "one row", rows[:1]
    yield f"{len(rows)} rows", rows


def _answered_alike(
    method: Any, problem: Problem, seed: PublicRng, rows: Floats
) -> tuple[Clustering, list[Round[Any]]]:
    """A live run over rows, which are gathered in every round, and whose answers are the script's all the same."""
    session: Session[Any] = Session(
        problem, seed, Handful(rows, problem.rows), noise=NoiseRng.for_tests(64),
        reading=lambda round, summaries, tables: tables_told(round, problem, seed, SCRIPT),
    )  # fmt: skip
    return method.cluster(problem, session, seed.child("method")), session.rounds


METHOD_ANSWERS = (only_answers_tell_of_the_rows,)
"""For every method, before any other check: what is kept for good was kept by nobody before."""
