"""The oracle that a layer counts with: one of its method's own, or of the same trust."""

from __future__ import annotations

from collections.abc import Iterator

from cloister.core.registry.compose import Composed
from cloister.run.layers.layer import Scope


def count_oracle(composed: Composed, scope: Scope) -> Composed | None:
    """Return the oracle for many small counts beside a method's questions: one of its own. None: it counts nothing.

    Where these are pure and Gaussian it is the first of a curator's, since many add up best in Gaussian noise.
    """
    if composed.trust != "Central" or scope.whole(composed).budget.measure != "zcdp":
        return next(_own(composed), None)
    return scope.kit.counters[0].composed()


def _own(composed: Composed) -> Iterator[Composed]:
    """Yield the count oracles in a method's slots, its own first."""
    yield from (part for part in composed.inner.values() if part.spec.role == "FrequencyOracle" and not part.uses_delta)
    for part in composed.inner.values():
        if part.spec.role == "Method":
            yield from _own(part)
