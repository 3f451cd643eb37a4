"""What a check is, and how it fails."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, final

import attrs

from cloister.core.errors import MissingExtra


class ConformanceError(AssertionError):
    """A component breaks a law.

    Attributes: check (its name), law (one sentence), figures (what was found).
    """

    def __init__(self, check: str, law: str, figures: str) -> None:
        self.check, self.law, self.figures = check, law, figures
        super().__init__(f"{check}: {figures}\n  the law: {law}")


class Broken(Exception):
    """What a check found. Becomes a ``ConformanceError`` with the check's name and law."""


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
    """

    run: Callable[[Any], None]

    @property
    def name(self) -> str:
        return self.run.__name__

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
            self.run(component)
        except MissingExtra:
            raise
        except Broken as found:
            raise ConformanceError(self.name, self.law, str(found)) from None
        except Exception as error:
            figures = "; ".join([f"it raised {type(error).__name__}: {error}", *getattr(error, "__notes__", ())])
            raise ConformanceError(self.name, self.law, figures) from error
