"""Selection of the checks that apply to a component, and their pytest items."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cloister.core.registry.components import FACTS
from cloister.plugin import InvalidInput, Local, MissingExtra, Shuffled, filled
from cloister.testing.check import MADE_BY_FUNCTION, Check, checked_roles, name_of
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
from cloister.testing.probes import is_central

CHECKS_BY_ROLE: dict[str, tuple[Any, ...]] = {
    "Method": (*METHOD_ANSWERS, *METHODS, *METHOD_OPTIONS, *METHOD_RANGES),
    "TreeBuilder": TREES,
    "NonPrivateSolver": SOLVERS,
    "Population": POPULATIONS,
    "Bucketing": BUCKETINGS,
    "Vectors": VECTORS,
}
"""Checks that depend on the role alone; those of oracles depend on trust and measure too."""


def checks_for(component: Any, role: str | None = None) -> tuple[Check, ...]:
    """Return every check that applies to a component.

    Args:
        component: an instance; for a population a function ``rows (n, d) -> population``, for a bucketing or vectors a
            function ``(domain, rng) -> bucketing``.
        role: by default found by the component's shape; such functions need it.

    Raises:
        InvalidInput: the component has the shape of no role.
    """
    checks, kinds = list[Any](), checked_roles(component, role)
    if kinds[0] not in MADE_BY_FUNCTION:
        checks += DECLARED
    if kinds[0] not in MADE_BY_FUNCTION or isinstance(component, type):
        checks.append(the_registry_says_what_the_class_is)
    if kinds[0] in CHECKS_BY_ROLE:
        return tuple(map(Check, (*checks, *CHECKS_BY_ROLE[kinds[0]])))
    both = len(kinds) > 1
    oracle_checks = [Check(run, kind if both else None) for kind in kinds for run in _oracle_checks(component, kind)]
    return (*map(Check, (*checks, the_guarantee_is_documented)), *oracle_checks)


def _oracle_checks(oracle: Any, role: str) -> tuple[Any, ...]:
    """Return an oracle's checks, by trust model, measure and bias."""
    if missing := [name for name in FACTS if not hasattr(oracle, name)]:
        raise InvalidInput(
            f"{oracle!r} does not declare {', '.join(missing)}: make its class a @component, or declare them"
        )
    central, private = is_central(oracle), oracle.measure != "exact"
    checks: list[Any] = [*EVENTS, *ROWS]
    if central and role == "FrequencyOracle" and oracle.uses_delta:
        return (*checks, *LARGE, *THRESHOLD)
    if central and role == "VectorSumOracle":
        checks += CENTRAL_SUMS
    checks += BIASED if oracle.biased else NOISE if private else EXACT
    if central:
        checks += LARGE
    if central and not oracle.biased:
        checks += (*(LARGE_NOISE if private else LARGE_EXACT), *NESTED)
    if central and private:
        extra = (
            (*CENTRAL_BIASED, *LARGE_BIASED, *NESTED_BIASED)
            if oracle.biased
            else (*CENTRAL_NOISE, *NESTED_NOISE, *SIGNS)
        )
        checks += (*extra, *PRIVACY)
    if central and oracle.measure == "gaussian":
        checks += GAUSSIAN
    if oracle.trust is Local:
        checks += (*LOCAL, *((*LOCAL_PURE, *COINS) if oracle.measure == "pure" else ()))
    if oracle.trust is Shuffled:
        checks += MESSAGES if oracle.asks_all_users else LOCAL_PURE
    return tuple(checks)


def check_component(component: Any, role: str | None = None) -> None:
    """Run every check that applies, up to the first that fails.

    Raises:
        ConformanceError: the component breaks a law.
    """
    for check in checks_for(component, role):
        check(component)


def parametrize(*components: Any, role: str | None = None, named: Mapping[str, Any] | None = None) -> Any:
    """Return a pytest decorator that makes one item of each component and check that applies to it.

        @parametrize(RoundedCounts(), RoundedCounts(step=1))
        def test_conformance(component, check):
            check(component)

    Args:
        components: as for ``checks_for``; a class stands for its component with default options and preferred slots
            (``cloister.plugin.filled``).
        role: as for ``checks_for``.
        named: more components, by the name that their items get.

    Raises:
        MissingExtra: pytest is not installed.
        InvalidInput: a component has the shape of no role.
    """
    try:
        import pytest
    except ImportError:
        raise MissingExtra("pytest", "test", "cloister.testing.parametrize") from None
    made = [filled(c) if isinstance(c, type) and role not in MADE_BY_FUNCTION else c for c in components]
    named_components = [(name_of(c), c) for c in made] + list((named or {}).items())
    items = [
        pytest.param(component, check, id=f"{name}-{check.name}")
        for name, component in named_components
        for check in checks_for(component, role)
    ]
    return pytest.mark.parametrize(("component", "check"), items)
