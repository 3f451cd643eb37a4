"""The contract of a layer, and the public figures that it decides by."""

from __future__ import annotations

from typing import Protocol, final

import attrs

from cloister.accounting.accountant import Accountant
from cloister.accounting.budgeting import problem_of
from cloister.accounting.privacy_target import PrivacyTarget
from cloister.core.clustering import Problem
from cloister.core.domains import Domain
from cloister.core.errors import plugin_errors
from cloister.core.randomness import ANY_KEY
from cloister.core.registry.compose import Composed
from cloister.core.registry.draft import Draft, Kit
from cloister.core.registry.oracle_resolver import OracleResolver
from cloister.core.session import forecast


@final
@attrs.frozen
class Scope:
    """Public figures of a run, as a method or a layer at some depth of the stack has them.

    Args:
        total: of the whole run.
        k: number of centres.
        domain: of the columns that are seen at this depth.
        rows: their public number.
        kit: drafts of what may be needed beside the method.
        trust: the trust model that the caller named; None: as composed.
        parties: that pool their rows; 0: not said.
        jointly: whether pure and Gaussian questions are priced together (``accounting.privacy_target.problem_of``).
        left: part of the budget that the layers outside leave.
        narrow: whether a column is much narrower than others, as those of categories are.
    """

    total: PrivacyTarget
    k: int
    domain: Domain
    rows: int
    kit: Kit
    trust: str | None = None
    parties: int = 0
    jointly: bool = True
    left: float = 1.0
    narrow: bool = False

    def whole(self, composed: Composed) -> Problem:
        """Return a method's problem with the whole budget."""
        return problem_of(composed, self.total, self.k, self.domain, self.rows, self.jointly)

    def problem(self, composed: Composed) -> Problem:
        """Return a method's problem with the part of the budget that is left for it."""
        whole = self.whole(composed)
        return whole if self.left == 1 else whole.split(self.left)[0]

    def check(self, composed: Composed) -> None:
        """Forecast a run. Raises: CloisterError: a question does not open, or all together cost too much."""
        problem = self.problem(composed)
        with plugin_errors(f"the method '{composed.spec.name}' as composed does not run"):
            rounds = forecast(composed.value, problem, ANY_KEY)
        Accountant(self.total, problem.budget).forecast([round.events for round in rounds])

    def filled(self, draft: Draft, lazily: bool = False) -> tuple[Composed, Problem]:
        """Return a method with its open slots filled by the trust model's oracles, and its problem.

        Args: draft; lazily: a method that fits as it is is not forecast.

        Raises: InvalidInput, WrongComposition: nothing fits.
        """
        if self.trust is None:
            composed = draft.composed()
        else:
            resolver = OracleResolver(self.trust, self.parties, pays=self.problem, runs=self.check)
            composed = resolver.filled(draft, lazily)
        return composed, self.problem(composed)


class Layer(Protocol):
    """Component that a request asks for around its method.

    Laws: it hides the last columns only; at most one layer has a frame, and those that group rows stand outside it; it
    obeys the trust that the caller named.
    """

    @property
    def part(self) -> float:
        """Part of the run's budget that it takes; 0 if it takes a share of its method's budget."""
        ...

    def seen(self, scope: Scope) -> Scope:
        """Return the figures of what it wraps, or raise InvalidInput if the domain does not suit it."""
        ...

    def around(self, method: Composed, scope: Scope, share: float) -> Composed:
        """Return the method with the layer around it, or unchanged if the layer adds nothing.

        Args: scope, figures outside the layer; share, of the budget that is left there. Raises: InvalidInput: the
        request asks for a layer that there cannot be.
        """
        ...
