"""Choices that a request leaves open, decided from public figures alone, before any row is read.

* Which oracles: under a trust model that the caller names, those that ``core.registry.filling`` finds, the first that
  can be paid with (epsilon, delta) and that open in a forecast of the whole run.
* Which method: of ``auto``'s candidates the one that predicts the least error, each under the budget that its own
  oracles get. It then stands in the plan by its own name, so that a plan, a resumed run and every party mean the same
  method, whatever else is installed where they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import attrs

from cloister.accounting.accountant import Accountant
from cloister.accounting.total import Total, budget_of, problem_of
from cloister.core.capabilities import chooses_k, predicted_error
from cloister.core.clustering import Problem
from cloister.core.domains import Domain
from cloister.core.errors import CloisterError, InvalidInput
from cloister.core.randomness import ANY_KEY
from cloister.core.registry.components import Choices, slots_of
from cloister.core.registry.compose import Composed, below
from cloister.core.registry.filling import Filler
from cloister.core.registry.making import unregistered
from cloister.core.registry.registry import registry
from cloister.core.session import forecast

HOPELESS = (
    "that of one centre at the middle of the bounds: expect hardly better. More rows, more epsilon, fewer centres, "
    "fewer columns or narrower bounds would help"
)
"""A predicted error of 1 or more."""


@attrs.frozen
class Candidate:
    """A method that could be picked. Args: name, error (v of ``PredictsError``; None: it cannot run), why (not)."""

    name: str
    error: float | None
    why: str = ""


@attrs.frozen
class Choice:
    """The choice made. Args: method (the one asked for: auto), picked, candidates (least error first)."""

    method: str
    picked: str
    candidates: tuple[Candidate, ...]

    @property
    def error(self) -> float:
        """The least predicted error."""
        return next(c.error for c in self.candidates if c.name == self.picked and c.error is not None)

    @property
    def words(self) -> str:
        """What was picked and why, in one line."""
        others = [c for c in self.candidates if c.error is not None and c.name != self.picked]
        following = "".join(f"; next: {c.name} {c.error:.2g}" for c in others[:1])
        return f"{self.method} picked {self.picked}: predicted error {self.error:.2g} of one centre's{following}"

    @property
    def note(self) -> str:
        """What a statement and a plan say of it, with the candidates that could not run, and why."""
        unable = "; ".join(f"{c.name}: {c.why}" for c in self.candidates if c.error is None)
        beside = f" Candidates that cannot run here: {unable}." if unable else ""
        return f"{self.words}. Errors are predicted from public figures alone, for tight groups of one size.{beside}"

    @property
    def warning(self) -> str:
        """What to expect where no candidate predicts an error below that of one centre; else empty."""
        return "" if self.error < 1 else f"even the least predicted error is {HOPELESS}"

    def as_dict(self) -> dict[str, Any]:
        """Plain data, with the sentences for people."""
        candidates = [attrs.asdict(c) for c in self.candidates]
        return {"picked": self.picked, "candidates": candidates, "words": self.words, "warning": self.warning}


Planned: TypeAlias = tuple[Composed, Problem, Choice | None]
"""The method to run, its problem, and how it was picked, if it was."""


@attrs.frozen
class Chooser:
    """Args: total, k, domain, rows: of the run. trust (that the caller named; None: as composed), parties (that pool
    their rows; 0: not said), fewest (of a range of k; None: k is one number)."""

    total: Total
    k: int
    domain: Domain
    rows: int
    trust: str | None = None
    parties: int = 0
    fewest: int | None = None

    def chosen(
        self, composed: Composed, wires: Mapping[str, str], values: Mapping[str, Any], only: str | None = None
    ) -> Planned:
        """The plan of a run.

        Args:
            composed: the method asked for; wires and values, with what it was composed.
            only: the candidate to take, whatever it predicts.

        Raises: InvalidInput, WrongComposition: nothing fits.
        """
        if not any(isinstance(facts, Choices) for facts in slots_of(type(composed.value)).values()):
            return *self.filled(composed, wires, values), None
        Problem(self.k, self.domain, self.rows, budget_of(self.total, ()))  # refuses what no candidate can do, once
        judged = [Candidate(name, None, why) for name, why in composed.unable.items()]
        found = dict[str, tuple[Composed, Problem]]()
        chooser = attrs.evolve(self, trust=self.trust or "Central")
        for name, part in composed.inner.items():
            try:
                if self.fewest is not None and not chooses_k(part.value):
                    raise InvalidInput("it cannot choose k")
                found[name] = chooser.filled(part, below(wires, name), below(values, name), lazily=True)
                judged.append(Candidate(name, predicted_error(found[name][0].value, found[name][1])))
            except CloisterError as error:
                judged.append(Candidate(name, None, str(error)))
        judged.sort(key=lambda c: (c.error is None, c.error, c.name))
        for candidate in list(judged):
            if candidate.error is None or only not in (None, candidate.name):
                continue
            try:
                self.check(found[candidate.name][0])
            except CloisterError as error:
                judged.remove(candidate)
                judged.append(Candidate(candidate.name, None, str(error)))
                continue
            return *found[candidate.name], Choice(composed.spec.name, candidate.name, tuple(judged))
        reasons = "; ".join(f"{c.name}: {c.why}" for c in judged if c.why)
        raise InvalidInput(f"no candidate of '{composed.spec.name}' can run: {reasons}")

    def filled(
        self, composed: Composed, wires: Mapping[str, str], values: Mapping[str, Any], lazily: bool = False
    ) -> tuple[Composed, Problem]:
        """The method with its slots filled under the trust, and its problem. Args and errors: as ``chosen``; lazily: a
        method that fits as it is is not forecast."""
        if self.trust is not None:
            filler = Filler(registry(), self.trust, self.parties, pays=self.problem, runs=self.check)
            if unregistered(composed):  # as it was put together: no name could compose it again
                filler.check_trust(composed)
            else:
                composed = filler.filled("Method", composed.spec.name, wires, values, lazily=lazily)
        return composed, self.problem(composed)

    def problem(self, composed: Composed) -> Problem:
        return problem_of(composed, self.total, self.k, self.domain, self.rows)

    def check(self, composed: Composed) -> None:
        """Forecast a run. Raises: CloisterError: a question does not open, or all together cost too much."""
        problem = self.problem(composed)
        rounds = forecast(composed.value, problem, ANY_KEY)
        Accountant(self.total, problem.budget).forecast([round.events for round in rounds])
