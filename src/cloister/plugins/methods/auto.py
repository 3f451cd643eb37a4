"""Auto: the method that predicts the least error for the problem at hand.

Candidates are all installed methods of one objective that predict their errors (``Spec.objective``,
``core.capabilities.PredictsError``), a stranger's too. Errors are predicted from public figures alone: k, the domain,
the public number of rows and the budget. So the choice tells nothing about any row, it is made before anything is
asked, and it costs nothing; neighbouring data sets get the same one.

Guarantee: that of the method picked, which asks all the questions and has all of the budget. Trust model and measure
are those of its oracles. A run by name (``cloister fit``, ``Request``) decides earlier, before any budget is known:
each candidate is then judged under the budget that (epsilon, delta) buys for its own oracles, and the method picked
stands in the run's plan by its own name, so that a plan means the same wherever it is read
(``cloister.run.method_selection``).

No candidate shrinks its centres less than its noise asks for; where even the least error is that of one centre at the
domain's middle it still runs, and says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic

from cloister.core.capabilities import predicted_error
from cloister.core.registry.components import choices
from cloister.plugin import Clustering, InvalidInput, Method, Problem, PublicRng, Session, T, chooses_k, component


@component
class Auto(Generic[T]):
    """The candidate with the least predicted error, run as it is."""

    candidates: Mapping[str, Method[T]] = choices("k-means", help="every method that predicts its error")

    def cluster(self, problem: Problem, session: Session[T], rng: PublicRng) -> Clustering:
        errors = self.errors(problem)
        picked = min(errors, key=lambda name: (errors[name], name))
        clustering = self.candidates[picked].cluster(problem, session, rng)
        return Clustering(
            clustering.centers, clustering.weights, {**clustering.details, "picked": picked, "predicted errors": errors}
        )

    @property
    def chooses_k(self) -> bool:
        return any(map(chooses_k, self.candidates.values()))

    def errors(self, problem: Problem) -> dict[str, float]:
        """Return the predicted error of every candidate that can solve the problem.

        Raises:
            InvalidInput: none can.
        """
        predicted, reasons = dict[str, float](), list[str]()
        for name, method in self.candidates.items():
            try:
                if problem.fewest is not None and not chooses_k(method):
                    raise InvalidInput("it cannot choose k")
                predicted[name] = predicted_error(method, problem)
            except InvalidInput as error:
                reasons.append(f"{name}: {error}")
        if not predicted:
            raise InvalidInput(f"no candidate can solve this problem: {'; '.join(reasons)}")
        return predicted

    def expected_error(self, problem: Problem) -> float:
        """Return the predicted error of the candidate picked."""
        return min(self.errors(problem).values())
