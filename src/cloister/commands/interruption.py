"""What cuts a program off, Ctrl-C, a full disk or a refusal, as one line that says what is left open and how to go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer

from cloister.commands import plain, say
from cloister.core.errors import CloisterError

CTRL_C = 130
"""The exit code of a program that was interrupted, as shells have it: 128 + SIGINT."""


@contextmanager
def going_on(how: Callable[[BaseException], str]) -> Iterator[None]:
    """Whatever ends the block early ends the program, with one line.

    Args:
        how: says what is open when this ends it, and the options that go on with it; or nothing, if nothing is.

    Raises:
        typer.Exit: with code 130 after Ctrl-C, 2 after an error. BrokenPipeError: whoever reads the output has gone.
    """
    try:
        yield
    except KeyboardInterrupt as error:
        raise _ended("interrupted", how(error), CTRL_C) from None
    except BrokenPipeError:
        raise
    except (CloisterError, OSError) as error:
        what = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise _ended(what, how(error), 2) from error


def _ended(what: str, how: str, code: int) -> typer.Exit:
    say(plain(f"cloister: {what}{'. ' if how else ''}{how}"))
    return typer.Exit(code)
