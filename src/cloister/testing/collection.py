"""Which checks apply to a component, and how pytest gets one item for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cloister.core.errors import InvalidInput, MissingExtra
from cloister.core.registry.components import FACTS
from cloister.core.registry.making import filled
from cloister.core.trust import Aggregated, Central, Local, Shuffled
from cloister.testing.check import MADE, Check, checked_roles, name_of
from cloister.testing.checks.bucketings import BUCKETINGS, VECTORS
from cloister.testing.checks.declarations import (
    DECLARED,
    EVENTS,
    GAUSSIAN,
    the_guarantee_is_documented,
    the_registry_says_what_the_class_is,
)
from cloister.testing.checks.method_options import METHOD_ANSWERS, METHOD_OPTIONS, METHOD_RANGES
from cloister.testing.checks.methods import METHODS
from cloister.testing.checks.oracle_biased import BIASED, CENTRAL_BIASED, THRESHOLD
from cloister.testing.checks.oracle_coins import COINS, SIGNS
from cloister.testing.checks.oracle_local import LOCAL, LOCAL_PURE
from cloister.testing.checks.oracle_messages import MESSAGES
from cloister.testing.checks.oracle_noise import CENTRAL_NOISE, EXACT, NOISE
from cloister.testing.checks.oracle_privacy import PRIVACY
from cloister.testing.checks.oracle_rows import CENTRAL_SUMS, ROWS
from cloister.testing.checks.populations import POPULATIONS
from cloister.testing.checks.solvers import SOLVERS, TREES
from cloister.testing.checks.spaces import (
    LARGE,
    LARGE_BIASED,
    LARGE_EXACT,
    LARGE_NOISE,
    NESTED,
    NESTED_BIASED,
    NESTED_NOISE,
)

OF_ROLE: dict[str, tuple[Any, ...]] = {
    "Method": (*METHOD_ANSWERS, *METHODS, *METHOD_OPTIONS, *METHOD_RANGES),
    "TreeBuilder": TREES,
    "NonPrivateSolver": SOLVERS,
    "Population": POPULATIONS,
    "Bucketing": BUCKETINGS,
    "Vectors": VECTORS,
}
"""Checks that depend on nothing but the role; oracles' depend on trust and measure too."""


def checks_for(component: Any, role: str | None = None) -> tuple[Check, ...]:
    """Every check that applies to a component.

    Args:
        component: an instance; for a population a function ``rows (n, d) -> population``, for a bucketing or vectors a
            function ``(domain, rng) -> bucketing``.
        role: found by the component's shape, except for those functions.

    Raises:
        InvalidInput: it has the shape of no role.
    """
    found, kinds = list[Any](), checked_roles(component, role)
    if kinds[0] not in MADE:
        found += DECLARED
    if kinds[0] not in MADE or isinstance(component, type):
        found.append(the_registry_says_what_the_class_is)
    if kinds[0] in OF_ROLE:
        return tuple(map(Check, (*found, *OF_ROLE[kinds[0]])))
    both = len(kinds) > 1
    own = [Check(run, kind if both else None) for kind in kinds for run in _of_oracle(component, kind)]
    return (*map(Check, (*found, the_guarantee_is_documented)), *own)


def _of_oracle(oracle: Any, role: str) -> tuple[Any, ...]:
    """An oracle's checks: what is drawn where differs by trust model, and exact answers have no noise to look at."""
    if missing := [name for name in FACTS if not hasattr(oracle, name)]:
        raise InvalidInput(
            f"{oracle!r} does not say {', '.join(missing)}: make its class a @component, or declare them"
        )
    central, private = oracle.trust in (Central, Aggregated), oracle.measure != "exact"
    found: list[Any] = [*EVENTS, *ROWS]
    if central and role == "FrequencyOracle" and oracle.uses_delta:
        return (*found, *LARGE, *THRESHOLD)
    if central and role == "VectorSumOracle":
        found += CENTRAL_SUMS
    found += BIASED if oracle.biased else NOISE if private else EXACT
    if central:
        found += LARGE
    if central and not oracle.biased:
        found += (*(LARGE_NOISE if private else LARGE_EXACT), *NESTED)
    if central and private:
        own = (
            (*CENTRAL_BIASED, *LARGE_BIASED, *NESTED_BIASED)
            if oracle.biased
            else (*CENTRAL_NOISE, *NESTED_NOISE, *SIGNS)
        )
        found += (*own, *PRIVACY)
    if central and oracle.measure == "gaussian":
        found += GAUSSIAN
    if oracle.trust is Local:
        found += (*LOCAL, *((*LOCAL_PURE, *COINS) if oracle.measure == "pure" else ()))
    if oracle.trust is Shuffled:
        found += MESSAGES if oracle.asks_all_users else LOCAL_PURE
    return tuple(found)


def check_component(component: Any, role: str | None = None) -> None:
    """Run every check that applies, up to the first that fails.

    Raises:
        ConformanceError: the component breaks a law.
    """
    for check in checks_for(component, role):
        check(component)


def parametrize(*components: Any, role: str | None = None, named: Mapping[str, Any] | None = None) -> Any:
    """A pytest decorator: one item for each component and check that applies to it.

        @parametrize(RoundedCounts(), RoundedCounts(step=1))
        def test_conformance(component, check):
            check(component)

    Args:
        components, role: as ``checks_for`` takes them; of a class, the component with default options whose slots hold
            what they prefer (``cloister.plugin.filled``).
        named: more components, by the name that their items shall have.

    Raises:
        MissingExtra: pytest is not installed.
        InvalidInput: a component has the shape of no role.
    """
    try:
        import pytest
    except ImportError:
        raise MissingExtra("pytest", "test", "cloister.testing.parametrize") from None
    made = [filled(c) if isinstance(c, type) and role not in MADE else c for c in components]
    every = [(name_of(c), c) for c in made] + list((named or {}).items())
    items = [
        pytest.param(component, check, id=f"{name}-{check.name}")
        for name, component in every
        for check in checks_for(component, role)
    ]
    return pytest.mark.parametrize(("component", "check"), items)
