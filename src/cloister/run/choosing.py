"""Choices that a request leaves open, decided from public figures alone, before any row is read.

* Which oracles: under a trust model that the caller names, every slot for an oracle (those of methods in slots too) is
  filled with that trust's oracles, in their declared order (``Spec.fills``), the first that can be paid with (epsilon,
  delta) and that opens in a forecast of the whole run. A method that fits the trust as it is stays so, and slots that
  the caller named stay as named.
* Which method: of ``auto``'s candidates the one that predicts the least error, each under the budget that its own
  oracles get. It then stands in the plan by its own name, so that a plan, a resumed run and every party mean the same
  method, whatever else is installed where they are.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeAlias

import attrs

from cloister.accounting.accountant import Accountant
from cloister.accounting.total import Total, budget_of, problem_of
from cloister.core.budget import Currency
from cloister.core.capabilities import chooses_k, predicted_error
from cloister.core.clustering import Problem
from cloister.core.domains import Domain
from cloister.core.errors import CloisterError, InvalidInput
from cloister.core.randomness import ANY_KEY
from cloister.core.registry.components import Choices, options_of, slots_of
from cloister.core.registry.compose import Composed, compose
from cloister.core.registry.describe import below, oracle_slots
from cloister.core.registry.making import make, unregistered
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
                found[name] = chooser.filled(part, below(wires, name), below(values, name), check=False)
                judged.append(Candidate(name, predicted_error(found[name][0].value, found[name][1])))
            except CloisterError as error:
                judged.append(Candidate(name, None, str(error)))
        judged.sort(key=lambda c: (c.error is None, c.error, c.name))
        for candidate in list(judged):
            if candidate.error is None or only not in (None, candidate.name):
                continue
            try:
                self.check(*found[candidate.name])
            except CloisterError as error:
                judged.remove(candidate)
                judged.append(Candidate(candidate.name, None, str(error)))
                continue
            return *found[candidate.name], Choice(composed.spec.name, candidate.name, tuple(judged))
        reasons = "; ".join(f"{c.name}: {c.why}" for c in judged if c.why)
        raise InvalidInput(f"no candidate of '{composed.spec.name}' can run: {reasons}")

    def filled(
        self, composed: Composed, wires: Mapping[str, str], values: Mapping[str, Any], check: bool = True
    ) -> tuple[Composed, Problem]:
        """The method with its slots filled under the trust, and its problem. Args and errors: as ``chosen``; check:
        forecast a method that fits as it is, too."""
        name = composed.spec.name
        if self.trust is None:
            return composed, self.problem(composed)
        if unregistered(composed):  # as it was put together: no name could compose it again
            self._fits(composed)
            return composed, self.problem(composed)
        open_slots = dict(oracle_slots(registry(), name, wires))
        try:
            as_it_is = compose(registry(), "Method", name, wires, self._pooled(wires, values))
            if as_it_is.trust in (None, self.trust):
                problem = self.problem(as_it_is)
                if check and open_slots:
                    self.check(as_it_is, problem)
                return as_it_is, problem
        except CloisterError:
            if not open_slots:
                raise
        return self._searched(name, wires, values, open_slots)

    def problem(self, composed: Composed) -> Problem:
        return problem_of(composed, self.total, self.k, self.domain, self.rows)

    def check(self, composed: Composed, problem: Problem) -> None:
        """Forecast a run. Raises: CloisterError: a question does not open, or all together cost too much."""
        rounds = forecast(composed.value, problem, ANY_KEY)
        Accountant(self.total, problem.budget).forecast([round.events for round in rounds])

    def _searched(
        self, name: str, wires: Mapping[str, str], values: Mapping[str, Any], slots: Mapping[str, Any]
    ) -> tuple[Composed, Problem]:
        """One count oracle and one vector oracle for all open slots, the earliest in their orders that run; then, slot
        by slot, an earlier one that runs too."""
        orders = {role: self._payable(role) for role in dict.fromkeys(slots.values())}
        first: CloisterError | None = None
        for each in sorted(itertools.product(*(range(len(order)) for order in orders.values())), key=sum):
            chosen = {role: order[i] for (role, order), i in zip(orders.items(), each, strict=True)}
            try:
                found = self._tried(name, wires, values, {path: chosen[role] for path, role in slots.items()})
            except CloisterError as error:
                first = first or error
                continue
            return found if not any(each) else self._improved(name, wires, values, slots, orders, chosen)
        raise InvalidInput(f"no {self.trust} oracles fit '{name}': {first or 'none can be paid, or is installed'}")

    def _improved(
        self,
        name: str,
        wires: Mapping[str, str],
        values: Mapping[str, Any],
        slots: Mapping[str, Any],
        orders: Mapping[Any, list[str]],
        chosen: Mapping[Any, str],
    ) -> tuple[Composed, Problem]:
        given = {path: chosen[role] for path, role in slots.items()}
        for path, role in slots.items():
            for earlier in orders[role][: orders[role].index(given[path])]:
                with suppress(CloisterError):
                    self._tried(name, wires, values, {**given, path: earlier})
                    given[path] = earlier
                    break
        return self._tried(name, wires, values, given)

    def _tried(
        self, name: str, wires: Mapping[str, str], values: Mapping[str, Any], given: Mapping[str, str]
    ) -> tuple[Composed, Problem]:
        every = {**given, **wires}
        composed = compose(registry(), "Method", name, every, self._pooled(every, values))
        self._fits(composed)
        problem = self.problem(composed)
        self.check(composed, problem)
        return composed, problem

    def _fits(self, composed: Composed) -> None:
        """Raises: InvalidInput: it is of another trust model than the one asked for."""
        if composed.trust not in (None, self.trust):
            raise InvalidInput(
                f"'{composed.spec.name}' as composed is {composed.trust}, and the trust model asked for is "
                f"{self.trust}: leave its oracles open, or name {self.trust} ones"
            )

    def _payable(self, role: Any) -> list[str]:
        """The trust's oracles of a role, in order, less those that (epsilon, delta) cannot pay."""
        found = list[str]()
        for spec in registry().in_order(role, self.trust):
            with suppress(CloisterError):
                budget_of(self.total, {Currency.of(make(role, spec.name))})
                found.append(spec.name)
        return found

    def _pooled(self, wires: Mapping[str, str], values: Mapping[str, Any]) -> dict[str, Any]:
        """Option values, completed by the number of parties, which sets the noise shares and the ring."""
        if not self.parties:
            return dict(values)
        return {**{f"{path}.parties": self.parties for path in _with_parties(wires)}, **values}


def _with_parties(wires: Mapping[str, str]) -> Iterator[str]:
    """Paths that hold an oracle which asks how many parties there are."""
    for path, name in wires.items():
        for spec in _oracles(name):
            if "parties" in options_of(registry().load(spec)):
                yield path


def _oracles(name: str) -> Iterable[Any]:
    with suppress(CloisterError):
        return [s for s in registry().find(name) if s.role in ("FrequencyOracle", "VectorSumOracle")][:1]
    return ()
