"""A check of the conformance kit, and the role that a component's shape gives it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias, final, get_args

import attrs

from cloister.core.registry.components import options_of
from cloister.plugin import InvalidInput, MissingExtra, Role, UnknownName

Kind: TypeAlias = Role | Literal["Bucketing", "Vectors"]
"""The registry's roles, and the bucketings and vectors that methods build questions from."""

MADE_BY_FUNCTION: frozenset[str] = frozenset({"Population", "Bucketing", "Vectors"})
"""Kinds that are tested through a function: ``rows -> population``, ``(domain, rng) -> bucketing`` or ``vectors``."""

KINDS: tuple[str, ...] = (*get_args(Role), "Bucketing", "Vectors")


@final
@attrs.frozen
class InRole:
    """Oracle that fills both roles, checked in one of them."""

    oracle: Any
    role: str

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # pickle and copy ask before `oracle` is set
            raise AttributeError(name)
        return getattr(self.oracle, name)


def role_of(component: Any) -> str:
    """Return the role of a component, found by its methods; the first one if an oracle fills both.

    Raises:
        InvalidInput: the component has the shape of no role.
    """
    return component.role if isinstance(component, InRole) else roles_of(component)[0]


def roles_of(component: Any) -> tuple[str, ...]:
    """Return all roles of a component, found by its methods, since implementations never subclass.

    Raises:
        InvalidInput: the component has the shape of no role.
    """
    if callable(getattr(component, "cluster", None)):
        return ("Method",)
    if callable(getattr(component, "solve", None)):
        return ("NonPrivateSolver",)
    if callable(getattr(component, "open", None)):
        arguments = inspect.signature(component.open).parameters.values()
        if hasattr(component, "measure") and len(arguments) in (3, 4):
            required = sum(a.default is a.empty for a in arguments)
            return ("FrequencyOracle",) * (required == 3) + ("VectorSumOracle",) * (len(arguments) == 4)
        if len(arguments) == 2:
            return ("TreeBuilder",)
    raise InvalidInput(
        f"{component!r} has the shape of no role: a method has cluster(), an oracle open(), variance() and measure, a "
        f"tree builder open(), a solver solve(); for a population, bucketing or vectors give a function and its role, "
        f"as in parametrize(make, role='Population')"
    )


def checked_roles(component: Any, role: str | None) -> tuple[str, ...]:
    """Return the given role, or else those that the component's shape implies.

    Raises:
        UnknownName: there is no such role.
        InvalidInput: the component has the shape of no role, or the role needs a function.
    """
    if role is None:
        return roles_of(component)
    if role not in KINDS:
        raise UnknownName("role", role, KINDS)
    if role in MADE_BY_FUNCTION and not callable(component):
        raise InvalidInput(f"for the role {role} give a function that makes one, not {component!r}")
    return (role,)


def name_of(component: Any) -> str:
    """Return the class's name with its non-default options, or the function's own name."""
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


class ConformanceError(AssertionError):
    """Failure of a component to keep a law.

    Attributes:
        check: name of the check.
        law: the law in words.
        figures: observation that breaks it.
    """

    def __init__(self, check: str, law: str, figures: str) -> None:
        self.check, self.law, self.figures = check, law, figures
        super().__init__(f"{check}: {figures}\n  the law: {law}")


class Violation(Exception):
    """Finding of a check, which becomes a ``ConformanceError`` with the check's name and law."""


def require(holds: object, figures: str) -> None:
    """Raise ``Violation`` with the figures unless the condition holds. Comparisons with NaN never hold."""
    if not holds:
        raise Violation(figures)


def refuses(error: type[Exception], call: Callable[..., object], *args: Any, **kwargs: Any) -> bool:
    """Return True if the call raises the error."""
    try:
        call(*args, **kwargs)
    except error:
        return True
    return False


@contextmanager
def noting_input(description: str) -> Iterator[None]:
    """Add a note on the component's input to any exception raised inside."""
    try:
        yield
    except Exception as error:
        error.add_note(f"given {description}")
        raise


@final
@attrs.frozen
class Check:
    """A testable law: the function's name is the check's, its docstring the law.

    Args:
        run: takes a component; raises ``Violation``, or whatever the component raises, if the law is broken.
        role: role to check an oracle in that fills both; None if it fills one.
    """

    run: Callable[[Any], None]
    role: str | None = None

    @property
    def name(self) -> str:
        return f"{self.run.__name__}_of_sums" if self.role == "VectorSumOracle" else self.run.__name__

    @property
    def law(self) -> str:
        return " ".join((inspect.getdoc(self.run) or "").split())

    def __call__(self, component: Any) -> None:
        """Check a component.

        Raises:
            ConformanceError: the component breaks the law, or fails where the law requires it to work.
            MissingExtra: a library that it needs is not installed.
        """
        try:
            self.run(component if self.role is None else InRole(component, self.role))
        except MissingExtra:
            raise
        except Violation as violation:
            raise ConformanceError(self.name, self.law, str(violation)) from None
        except Exception as error:
            figures = "; ".join([f"it raised {type(error).__name__}: {error}", *getattr(error, "__notes__", ())])
            raise ConformanceError(self.name, self.law, figures) from error
