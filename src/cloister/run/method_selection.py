"""Choices that a request leaves open, decided from public figures alone, before any row is read.

* Which oracles: under a trust model that the caller names, those that ``core.registry.oracle_resolver`` finds, the
  first that can be paid with (epsilon, delta) and that open in a forecast of the whole run.
* Which method: of ``auto``'s candidates the one that predicts the least error, each under the budget that its own
  oracles get; then which law of noise, of those that it offers (``Spec.alternatives``). It then stands in the plan by
  its own name, so that a plan, a resumed run and every party mean the same method, whatever else is installed where
  they are.
* Which number of centres: of a range, one run with one budget is planned for the largest, and chooses by what it has
  released (``core.capabilities.chooses_k``). Only a curator's methods do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from numbers import Integral
from typing import Any, TypeAlias

import attrs

from cloister.accounting.budgeting import budget_of
from cloister.core.capabilities import (
    chooses_k,
    loss_upper_bound,
    predicted_loss,
    relative_loss,
    tells_narrow_columns,
)
from cloister.core.clustering import Problem
from cloister.core.errors import CloisterError, InvalidInput
from cloister.core.registry.components import own_number
from cloister.core.registry.compose import Composed
from cloister.core.registry.draft import Draft, Kit
from cloister.run.layers.layer import Scope

HOW = "give a whole number, or a range such as 2..20"


def number_of_centers(value: Any) -> Any:
    """Return a number as it is, or a range (fewest, most) from a pair or from text such as "2..20".

    Raises:
        InvalidInput: a pair or a text that is no range of at least two numbers from 2 on.
    """
    if isinstance(value, str):
        ends = re.fullmatch(r"\s*(\d{1,9})\s*\.\.\s*(\d{1,9})\s*", value, re.ASCII)
        if ends is None:
            raise InvalidInput(f"k is {value!r}: {HOW}")
        return _range(int(ends[1]), int(ends[2]))
    if not isinstance(value, (tuple, list)):
        return own_number(value)
    if len(value) != 2 or not all(isinstance(end, Integral) and not isinstance(end, bool) for end in value):
        raise InvalidInput(f"k is {value!r}: {HOW}, as a pair (2, 20)")
    return _range(int(value[0]), int(value[1]))


def _range(fewest: int, largest: int) -> tuple[int, int]:
    if fewest < 2:
        raise InvalidInput(f"k is {fewest}..{largest}: a range begins at 2, since one group is parted from none")
    if fewest >= largest:
        raise InvalidInput(f"k is {fewest}..{largest}: a range goes from a smaller to a larger number, such as 2..20")
    return fewest, largest


def check_chooses(composed: Composed, fewest: int, scope: Scope) -> None:
    """Raise InvalidInput if the method as composed cannot choose the number of centres, from fewest to scope's k."""
    name = composed.spec.name
    if composed.trust not in (None, "Central"):
        raise InvalidInput(
            f"only a curator's run chooses k, and '{name}' as composed is {composed.trust}: give one number for k, not "
            f"{fewest}..{scope.k}"
        )
    if not chooses_k(composed.value):
        raise InvalidInput(
            f"'{name}' cannot choose k in {fewest}..{scope.k}: give one number, or a method that can: "
            f"{', '.join(choosers(scope.kit))}"
        )


def choosers(kit: Kit) -> list[str]:
    """Return the names of the methods that can choose k with their default components."""
    names = list[str]()
    for method in kit.methods:
        with suppress(CloisterError):
            if method.spec.private and chooses_k(method.composed().value):
                names.append(method.spec.name)
    return names


def notes_on_k(problem: Problem, details: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the statement's notes on the chosen k."""
    if problem.fewest is None:
        return ()
    k = details["curve"]["suggested"]
    return (
        f"k = {k} was chosen among {problem.fewest}..{problem.k} by what the run released, at no further cost. A fit "
        f"with another k is another run, with a budget of its own.",
    )


def suggested(problem: Mapping[str, Any], details: Mapping[str, Any]) -> str:
    """Return a result's line on the chosen k; empty if none was chosen."""
    if "curve" not in details or "k_range" not in problem:
        return ""
    (fewest, largest), curve = problem["k_range"], details["curve"]
    return f"Of {fewest} to {largest} groups, {curve['suggested']} are suggested: {curve['why']}."


HOPELESS = (
    "that of one centre at the middle of the bounds: expect hardly better. More rows, more epsilon, fewer centres, "
    "fewer columns or narrower bounds would help"
)
"""Warning on a predicted error of ``NO_BETTER`` or more."""

NO_BETTER = relative_loss(1.0)

PREDICTED = "Errors are predicted from public figures alone"


def in_words(part: float) -> str:
    """Return a predicted error as text, with its upper bound."""
    return (
        f"predicted error {part:.2g} of a single centre's cost (at most {loss_upper_bound(part):.2g} in nine data sets "
        f"of ten)"
    )


@attrs.frozen
class Candidate:
    """Method that could be picked.

    Args:
        method: its name.
        error: ``predicted_loss``; None: it cannot run.
        why: reason why it cannot run.
        components: alternatives in slots that the request does not name (``Spec.alternatives``).
    """

    method: str
    error: float | None
    why: str = ""
    components: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def name(self) -> str:
        """Display name: the method, and its alternative components."""
        alternatives = ", ".join(f"{slot}={component}" for slot, component in self.components.items())
        return f"{self.method} ({alternatives})" if alternatives else self.method


@attrs.frozen
class MethodSelection:
    """Choice among the candidates of a requested method (auto).

    Args:
        method: name of the requested method.
        picked: name of the picked candidate.
        candidates: the least error first.
        names: what a run with other plugins may have picked, each candidate alone and with its alternatives.
    """

    method: str
    picked: str
    candidates: tuple[Candidate, ...]
    names: tuple[str, ...] = ()

    @property
    def error(self) -> float:
        """Predicted error of the picked candidate."""
        return next(c.error for c in self.candidates if c.name == self.picked and c.error is not None)

    @property
    def words(self) -> str:
        """Line on what was picked and why."""
        runners_up = [c for c in self.candidates if c.error is not None and c.name != self.picked]
        following = "".join(f"; next: {c.name} {c.error:.2g}" for c in runners_up[:1])
        return f"{self.method} picked {self.picked}: {in_words(self.error)}{following}"

    @property
    def note(self) -> str:
        """Note for the statement and the plan, with the candidates that cannot run, and why."""
        unable = "; ".join(f"{c.name}: {c.why}" for c in self.candidates if c.error is None)
        beside = f" Candidates that cannot run here: {unable}." if unable else ""
        return f"{self.words}. {PREDICTED}.{beside}"

    @property
    def warning(self) -> str:
        """Warning if no candidate predicts an error below that of one centre; else empty."""
        return "" if self.error < NO_BETTER else f"even the least predicted error is {HOPELESS}"

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, with the sentences for people."""
        taken = next(c for c in self.candidates if c.name == self.picked)
        plain = [attrs.asdict(c) | {"components": dict(c.components)} for c in self.candidates]
        candidates = [{"name": c.pop("method"), **c} for c in plain]
        return {
            "picked": taken.method,
            "components": dict(taken.components),
            "candidates": candidates,
            "words": self.words,
            "warning": self.warning,
        }


def ways_of(name: str, draft: Draft) -> list[str]:
    """Return the display names of a candidate, alone and with each of its alternatives."""
    return [name, *(Candidate(name, None, "", other).name for other in draft.spec.alternatives)]


Planned: TypeAlias = tuple[Composed, Problem, MethodSelection | None]
"""Method to run, its problem, and how it was picked, if it was."""


@attrs.frozen
class MethodSelector:
    """Selector of the method that a run takes.

    Args:
        scope: public figures of the run; if priced jointly, the picked candidate is also judged with the noise
            distributions of ``Spec.alternatives``.
        fewest: of a range of k; None: k is one number.
        shared: True for a method if a layer around it asks questions, too.
    """

    scope: Scope
    fewest: int | None = None
    shared: Callable[[Composed], bool] = lambda method: False

    def chosen(self, draft: Draft, composed: Composed, only: str | None = None) -> Planned:
        """Return the plan of a run.

        Args:
            draft: of the requested method.
            composed: the same, before anything is chosen.
            only: the candidate to take, whatever it predicts.

        Raises:
            InvalidInput, WrongComposition: nothing fits.
        """
        if not draft.chooses:
            return *self.scope.filled(draft), None
        scope = attrs.evolve(self.scope, trust=self.scope.trust or "Central")
        Problem(scope.k, scope.domain, scope.rows, budget_of(scope.total, ()))  # refuses what no candidate can do, once
        judged = [Candidate(name, None, why) for name, why in composed.unable.items()]
        drafts = {name: draft.candidate(name, part) for name, part in composed.inner.items()}
        runnable = dict[str, tuple[Composed, Problem]]()
        for name, part in composed.inner.items():
            try:
                if self.fewest is not None and not chooses_k(part.value):
                    raise InvalidInput("it cannot choose k")
                if scope.narrow and not tells_narrow_columns(part.value):
                    raise InvalidInput("its cells are too wide for a category, or for another column that is narrow")
                runnable[name] = scope.filled(drafts[name], lazily=True)
                judged.append(Candidate(name, self.predicted(*runnable[name])))
            except CloisterError as error:
                judged.append(Candidate(name, None, str(error)))
        judged.sort(key=lambda c: (c.error is None, c.error, c.name))
        names = tuple(name for c in judged if c.error is not None for name in ways_of(c.method, drafts[c.method]))
        for candidate in list(judged):
            name = candidate.name
            if candidate.error is None or (only or name).partition(" ")[0] != name:
                continue
            try:
                scope.check(runnable[name][0])
            except CloisterError as error:
                judged.remove(candidate)
                judged.append(Candidate(name, None, str(error)))
                continue
            ways = self.ways(scope, name, drafts[name], runnable[name][0])
            for other, way in sorted(ways, key=lambda pair: pair[0].error or 0.0):
                if only == other.name or (only is None and (other.error or 0.0) < candidate.error):
                    return *way, MethodSelection(draft.spec.name, other.name, (other, *judged), names)
            return *runnable[name], MethodSelection(draft.spec.name, name, tuple(judged), names)
        reasons = "; ".join(f"{c.name}: {c.why}" for c in judged if c.why)
        raise InvalidInput(f"no candidate of '{draft.spec.name}' can run: {reasons}")

    def ways(
        self, scope: Scope, name: str, draft: Draft, part: Composed
    ) -> Iterator[tuple[Candidate, tuple[Composed, Problem]]]:
        """Yield a method's alternatives, in slots that its draft leaves open, that can run.

        Only the picked method is judged with them: predictions for one method under two noise distributions compare
        more surely than those of two methods.
        """
        # without delta, or without a curator, there is one noise distribution only
        if not scope.jointly or scope.trust != "Central" or not scope.total.delta or part.unregistered:
            return
        for other in draft.spec.alternatives:
            if not draft.names.keys() & other.keys():
                with suppress(CloisterError):
                    way = scope.filled(draft.given(other))
                    # what a frame, a description or a comparison asks costs least in Gaussian noise
                    if way[1].budget.measure == "pure" and self.shared(part):
                        continue
                    scope.check(way[0])
                    yield Candidate(name, self.predicted(*way), "", other), way

    @staticmethod
    def predicted(composed: Composed, problem: Problem) -> float:
        """Return the predicted error of a composed method."""
        return predicted_loss(composed.value, problem, composed.spec.objective)
