"""How a broken mechanism joins the zoo: the checks of the kit that must catch it are said where it is defined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tests.testing.honest import HonestCounts, HonestSums, Plain

K = TypeVar("K")

SPECIMENS: list[tuple[Any, str | None, str]] = []
"""(a broken component, or what makes it; the role, of makers; the check that catches it)."""


def caught_by(*checks: str, role: str | None = None) -> Callable[[K], K]:
    """For the class of a broken component, or, with a role, for what makes one."""

    def noted(kind: K) -> K:
        specimen = kind if role else bred(kind)
        SPECIMENS.extend((specimen, role, check) for check in checks)
        return kind

    return noted


def bred(kind: Any) -> Any:
    """A specimen of its kind: a method's oracles are honest."""
    return kind(counts=HonestCounts(), sums=HonestSums()) if issubclass(kind, Plain) else kind()


def opened_by(oracle: type[Any], *checks: str, **facts: object) -> Callable[[type[Any]], type[Any]]:
    """For the class of a broken channel: what is defined is an oracle like an honest one, but that it opens this
    channel, and for facts such as ``biased``."""

    def made(channel: type[Any]) -> type[Any]:
        own = {"channel": channel, "__doc__": channel.__doc__, "__module__": channel.__module__}
        return caught_by(*checks)(type(channel.__name__, (oracle,), own | facts))

    return made
