"""A check of the conformance kit, and how it fails.

Which role a component plays: found by its shape, since implementations never subclass.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias, final, get_args

import attrs

from cloister.core.errors import InvalidInput, MissingExtra, UnknownName
from cloister.core.registry.components import Role, options_of

Kind: TypeAlias = Role | Literal["Bucketing", "Vectors"]
"""The registry's roles, and what methods make their questions of."""

MADE: frozenset[str] = frozenset({"Population", "Bucketing", "Vectors"})
"""Kinds that the kit is given a maker of: ``rows -> population``, ``(domain, rng) -> bucketing`` or ``vectors``."""

KINDS: tuple[str, ...] = (*get_args(Role), "Bucketing", "Vectors")


@final
@attrs.frozen
class InRole:
    """An oracle that fills both roles, in one of them."""

    oracle: Any
    role: str

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what pickle and copy ask for before there is an oracle
            raise AttributeError(name)
        return getattr(self.oracle, name)


def role_of(component: Any) -> str:
    """The role of a component, by its methods; the first one of an oracle that fills both.

    Raises:
        InvalidInput: it has the shape of no role, or of one that the kit is given a maker of.
    """
    return component.role if isinstance(component, InRole) else roles_of(component)[0]


def roles_of(component: Any) -> tuple[str, ...]:
    """All roles of a component, by its methods. Raises: see ``role_of``."""
    if callable(getattr(component, "cluster", None)):
        return ("Method",)
    if callable(getattr(component, "solve", None)):
        return ("NonPrivateSolver",)
    if callable(getattr(component, "open", None)):
        arguments = inspect.signature(component.open).parameters.values()
        if hasattr(component, "measure") and len(arguments) in (3, 4):
            needed = sum(a.default is a.empty for a in arguments)
            return ("FrequencyOracle",) * (needed == 3) + ("VectorSumOracle",) * (len(arguments) == 4)
        if len(arguments) == 2:
            return ("TreeBuilder",)
    raise InvalidInput(
        f"{component!r} has the shape of no role: a method has cluster(), an oracle open(), variance() and measure, a "
        f"tree builder open(), a solver solve(). For a population, bucketing or vectors give a function that makes "
        f"one, and its role, as in parametrize(make, role='Population')"
    )


def checked_roles(component: Any, role: str | None) -> tuple[str, ...]:
    """The role that was given, or else those that the shape tells.

    Raises:
        UnknownName, InvalidInput: no such role, or no maker where one is needed.
    """
    if role is None:
        return roles_of(component)
    if role not in KINDS:
        raise UnknownName("role", role, KINDS)
    if role in MADE and not callable(component):
        raise InvalidInput(f"for the role {role} give a function that makes one, not {component!r}")
    return (role,)


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


class ConformanceError(AssertionError):
    """A component breaks a law.

    Attributes: check (its name), law (one sentence), figures (what was found).
    """

    def __init__(self, check: str, law: str, figures: str) -> None:
        self.check, self.law, self.figures = check, law, figures
        super().__init__(f"{check}: {figures}\n  the law: {law}")


class Broken(Exception):
    """A check's finding. Becomes a ``ConformanceError`` with the check's name and law."""


def require(holds: object, figures: str) -> None:
    """Raise ``Broken`` with the figures unless the condition holds. A NaN in a comparison never does."""
    if not holds:
        raise Broken(figures)


@contextmanager
def given(what: str) -> Iterator[None]:
    """Whatever is raised in here says what the component was given."""
    try:
        yield
    except Exception as error:
        error.add_note(f"given {what}")
        raise


@final
@attrs.frozen
class Check:
    """A law that can be tested. The function's name is the check's, the first paragraph of its docstring the law.

    Args:
        run: takes a component; raises ``Broken``, or whatever the component itself raises, when the law is broken.
        role: in which an oracle is looked at that fills both; None: it has but one.
    """

    run: Callable[[Any], None]
    role: str | None = None

    @property
    def name(self) -> str:
        return f"{self.run.__name__}_of_sums" if self.role == "VectorSumOracle" else self.run.__name__

    @property
    def law(self) -> str:
        return " ".join((inspect.getdoc(self.run) or "").partition("\n\n")[0].split())

    def __call__(self, component: Any) -> None:
        """Check a component.

        Raises:
            ConformanceError: it breaks the law, or it fails where the law says that it works.
            MissingExtra: a library that it needs is not installed.
        """
        try:
            self.run(component if self.role is None else InRole(component, self.role))
        except MissingExtra:
            raise
        except Broken as found:
            raise ConformanceError(self.name, self.law, str(found)) from None
        except Exception as error:
            figures = "; ".join([f"it raised {type(error).__name__}: {error}", *getattr(error, "__notes__", ())])
            raise ConformanceError(self.name, self.law, figures) from error
