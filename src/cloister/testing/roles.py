"""Which role a component plays: found by its shape, since implementations never subclass."""

from __future__ import annotations

import inspect
from typing import Any, Literal, TypeAlias, get_args

import attrs

from cloister.core.errors import InvalidInput, UnknownName
from cloister.core.registry.components import Role, options_of

Kind: TypeAlias = Role | Literal["Bucketing", "Vectors"]
"""The registry's roles, and what methods make their questions of."""

MADE: frozenset[str] = frozenset({"Population", "Bucketing", "Vectors"})
"""Kinds that the kit is given a maker of: ``rows -> population``, ``(domain, rng) -> bucketing`` or ``vectors``."""

KINDS: tuple[str, ...] = (*get_args(Role), "Bucketing", "Vectors")


def role_of(component: Any) -> str:
    """The role of a component, by its methods.

    Raises:
        InvalidInput: it has the shape of no role, or of one that the kit is given a maker of.
    """
    if callable(getattr(component, "cluster", None)):
        return "Method"
    if callable(getattr(component, "solve", None)):
        return "NonPrivateSolver"
    if callable(getattr(component, "open", None)):
        arguments = len(inspect.signature(component.open).parameters)
        if hasattr(component, "measure") and arguments in (3, 4):
            return "FrequencyOracle" if arguments == 3 else "VectorSumOracle"
        if arguments == 2:
            return "TreeBuilder"
    raise InvalidInput(
        f"{component!r} has the shape of no role: a method has cluster(), an oracle open(), variance() and measure, a "
        f"tree builder open(), a solver solve(). For a population, bucketing or vectors give a function that makes "
        f"one, and its role, as in parametrize(make, role='Population')"
    )


def checked_role(component: Any, role: str | None) -> str:
    """The role that was given, or else the one that the shape tells.

    Raises:
        UnknownName, InvalidInput: no such role, or no maker where one is needed.
    """
    if role is None:
        return role_of(component)
    if role not in KINDS:
        raise UnknownName("role", role, KINDS)
    if role in MADE and not callable(component):
        raise InvalidInput(f"for the role {role} give a function that makes one, not {component!r}")
    return role


def name_of(component: Any) -> str:
    """The class's name with the options that differ from their defaults; a maker's own name."""
    name = getattr(component, "__name__", None)
    if isinstance(name, str):
        return name
    cls = type(component)
    if not attrs.has(cls):
        return cls.__name__
    changed = [
        f"{option}={getattr(component, option)}"
        for option, (_, default) in options_of(cls).items()
        if getattr(component, option) != default
    ]
    return f"{cls.__name__}({','.join(changed)})" if changed else cls.__name__
