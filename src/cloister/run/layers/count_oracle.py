"""The oracle that a layer counts with: one of its method's own, or of the same trust."""

from __future__ import annotations

from collections.abc import Iterator

from cloister.core.clustering import Problem
from cloister.core.registry.compose import Composed, compose
from cloister.core.registry.registry import registry


def count_oracle(composed: Composed, problem: Problem) -> Composed | None:
    """Return the oracle for many small counts beside a method's questions: one of its own. None: it counts nothing.

    Where these are pure and Gaussian it is the first of a curator's, since many add up best in Gaussian noise.
    """
    if composed.trust != "Central" or problem.budget.measure != "zcdp":
        return next(_own(composed), None)
    (first, *_) = registry().in_order("FrequencyOracle", "Central")
    return compose(registry(), "FrequencyOracle", first.name, {}, {})


def _own(composed: Composed) -> Iterator[Composed]:
    """Yield the count oracles in a method's slots, its own first."""
    yield from (part for part in composed.inner.values() if part.spec.role == "FrequencyOracle" and not part.uses_delta)
    for part in composed.inner.values():
        if part.spec.role == "Method":
            yield from _own(part)
