"""The program around the commands: it parses words, and whatever ends it early is one line and an exit code.

How a program ends early: Ctrl-C, a full disk, a failing output. One line says what is done and how to go on.

Nothing that was paid for may be lost, or paid for twice because a message was missing: reserved budget stays spent, and
a run that is open in a ledger is resumed by its id.
"""

from __future__ import annotations

import errno
import math
import os
import shlex
import sqlite3
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, final

import attrs
import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from cloister.commands.common import mute, plain, say, steady
from cloister.commands.option_groups import why_lacking
from cloister.commands.options import HEADINGS, WAYS
from cloister.core.doubles import as_float
from cloister.core.errors import CloisterError, InvalidInput, Unavailable, UnknownName, cause

if TYPE_CHECKING:
    from cloister.run.account import Account
    from cloister.run.result import Result


PLAINLY = warnings.showwarning
"""How Python shows warnings."""

_USAGE: Any = typer.BadParameter.__mro__[1]
"""Errors of the parser: click's, or those of the copy of click that newer versions of typer carry."""


class Commands(TyperGroup):
    """Commands that offer near names for one that does not exist."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that the words begin with. Raises: UnknownName: there is none."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            raise UnknownName("command", args[0], self.list_commands(ctx))
        return super().resolve_command(ctx, args)


class Headed(TyperCommand):
    """A command whose ``--help`` shows options under headings, those without one last."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, then options by heading."""
        found = dict[str, list[tuple[str, str]]]({"Arguments": [], **{heading: [] for heading in HEADINGS}})
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            argument = parameter.param_type_name == "argument"
            heading = "Arguments" if argument else getattr(parameter, "rich_help_panel", None) or "Options"
            if record is not None:
                found.setdefault(heading, []).append(record)
        for heading, records in found.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)
        if {"engine", "table"} <= {parameter.name for parameter in self.get_params(ctx)}:
            with formatter.section("Which way to read, by where rows are"):
                formatter.write_dl(WAYS)


def run(app: typer.Typer, words: Sequence[str]) -> int:
    """Run a command line, and return its exit code. A refusal is one line and exit code 2, and so is any failure of a
    file or of the output. Args: words (what follows the program's name)."""
    # BLAS's own threads cost more than they bring: products are small, and threads of ours work on the rows
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    steady()
    warnings.showwarning = _shown  # type: ignore[assignment]  # passes on what it does not look at
    try:
        return _ended(app, words)
    except KeyboardInterrupt:
        mute(sys.stdout)
        return _told("interrupted", INTERRUPTED)
    except CloisterError as error:
        return _told(str(error), UNAVAILABLE if isinstance(error, Unavailable) else REFUSED)
    except OSError as error:
        mute(sys.stdout)
        code = UNPRINTED if error.filename is None else REFUSED
        if isinstance(error, BrokenPipeError):
            return code
        return _told(f"{'cannot write the output: ' if error.filename is None else ''}{reason(error)}", code)
    except MemoryError:
        return _told("there is not enough memory for this: ask for fewer centres, or fewer columns", REFUSED)


def _shown(message: Warning | str, category: type[Warning], *where: Any) -> None:
    """Say a warning of ours in one line, and others as Python does."""
    if category.__module__.startswith("cloister."):
        say(f"note: {message}")
    else:
        PLAINLY(message, category, *where)


def _ended(app: typer.Typer, words: Sequence[str]) -> int:
    """The exit code of a command that says itself how it ends, or is not understood."""
    command = _built(app)
    try:
        command._main_shell_completion({}, "cloister")  # ends here where a shell asks how words go on
        with command.make_context("cloister", list(words)) as context:
            command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except _USAGE as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            say(error.format_message())
            return REFUSED
        return _told(_misunderstood(error), REFUSED)
    return 0


@cache
def _built(app: typer.Typer) -> Any:
    """The parser of all commands: once in a process, since it takes a tenth of a second."""
    command = get_command(app)
    _made_strict(command)
    return command


def _made_strict(command: Any) -> None:
    """Let no file be tried by the parser, which would say that it is not readable, and not whose it is (``cause``); let
    no number be infinite, NaN, or beyond all doubles."""
    for parameter in command.params:
        if hasattr(parameter.type, "readable"):
            parameter.type.readable = False
        if parameter.type.name.partition(" ")[0] in ("float", "int") and parameter.callback is None:
            parameter.callback = _finite
    for inner in getattr(command, "commands", {}).values():
        _made_strict(inner)


def _finite(context: Any, parameter: Any, value: Any) -> Any:
    """The value of an option that takes a number, or none. Raises: typer.BadParameter: it is not finite."""
    if isinstance(value, int | float) and not math.isfinite(as_float(value)):
        raise typer.BadParameter("give a finite number", ctx=context, param=parameter)
    return value


def _misunderstood(error: Any) -> str:
    """Words that the parser did not understand, and where help is."""
    if hasattr(error, "possibilities") and error.ctx is not None:
        if why := why_lacking(str(error.ctx.command.name), error.option_name):
            return why
        known = [flag for option in error.ctx.command.get_params(error.ctx) for flag in option.opts]
        places = [argument.name for argument in error.ctx.command.params if argument.param_type_name == "argument"]
        if error.option_name.lstrip("-") in places:
            return f"no option '{error.option_name}': give {' and '.join(places)} without a flag, in this order"
        return str(UnknownName("option", error.option_name, (flag for flag in known if flag.startswith("-"))))
    text = " ".join(error.format_message().split()).rstrip(".")
    hint = "" if error.ctx is None else f": '{error.ctx.command_path} --help' shows how"
    return f"{text[:1].lower()}{text[1:]}{hint}"


def _told(why: str, code: int) -> int:
    say(plain(f"cloister: {why}"))
    return code


INTERRUPTED, UNPRINTED, REFUSED, UNAVAILABLE = 130, 1, 2, 4
"""Exit codes: after Ctrl-C (as shells have it), when the output cannot be written, for everything else, and for what
may pass by itself (``Unavailable``)."""

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
"""Error numbers of a disk that takes nothing more."""


@contextmanager
def ending(how: Callable[[BaseException], str], open: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Run a block of work that Ctrl-C, a full disk or a lack of memory may cut off.

    Args:
        how: what is done when the block is cut off, and how to go on; empty if there is nothing to say.
        open: whether any failure now leaves something to resume, such as a run that is open in a ledger.
    """
    try:
        yield
    except KeyboardInterrupt as error:
        _end("interrupted", how(error), INTERRUPTED)
    except OSError as error:
        _end(reason(error), how(error), REFUSED)
    except MemoryError as error:
        _end("there is not enough memory for this: ask for fewer centres, or fewer columns", how(error), REFUSED)
    except CloisterError as error:
        if not (open() or _is_full(error.__cause__)):
            raise
        _end(str(error), how(error), REFUSED)


@contextmanager
def printing(where: Callable[[], str], only: bool = False) -> Iterator[None]:
    """Print finished work. If that fails, say where the result is, or how to print it again.

    Args:
        where: called if the output fails.
        only: whether the result goes nowhere else. Otherwise a reader who closes the pipe has seen enough, and the
            program ends quietly.
    """
    try:
        yield
        sys.stdout.flush()
    except KeyboardInterrupt:
        mute(sys.stdout)
        _end("interrupted", where(), INTERRUPTED)
    except OSError as error:
        mute(sys.stdout)
        if isinstance(error, BrokenPipeError) and not only:
            raise typer.Exit(UNPRINTED) from None
        _end(f"cannot write the output: {reason(error)}", where(), UNPRINTED)


def reason(error: OSError) -> str:
    """The cause of an error, with its file where that is known."""
    why = cause(error)
    return why if error.filename is None else f"{error.filename}: {why}"


def _end(why: str, how: str, code: int) -> NoReturn:
    say(plain(f"cloister: {why}{'; ' if how else ''}{how}"))
    raise typer.Exit(code) from None


def _is_full(cause: BaseException | None) -> bool:
    if isinstance(cause, sqlite3.Error):
        return (getattr(cause, "sqlite_errorname", None) or "").startswith(("SQLITE_FULL", "SQLITE_IOERR"))
    return isinstance(cause, OSError) and cause.errno in FULL


@final
@attrs.define
class RunProgress:
    """Progress of a run that a data holder pays for.

    Args:
        account: the ledger that the run is charged to, if any.
        target: where its result is saved, if anywhere.
        run: its id in the ledger, once the budget is reserved.
        saved: whether the result is saved.
        result: the released result, once the run is finished.
    """

    account: Account | None
    target: Path | None
    run: str | None = None
    saved: bool = False
    result: Result | None = None

    def reserved(self, run: str) -> None:
        """Note that the ledger has reserved the run's budget."""
        self.run = run

    def keep(self, result: Result) -> None:
        """Save the result, if a target was given, before the run is closed."""
        if self.target is not None:
            result.save(self.target)
            self.saved = True

    def open(self) -> bool:
        """Whether budget is spent and the result is not saved yet."""
        return self.run is not None and self.result is None

    def how(self, error: BaseException) -> str:
        """How to go on with this run after it was cut off."""
        if self.result is not None or self.saved:
            return self.where()
        if self.account is None:
            return "nothing was released: start it again"
        if self.run is None:
            return (
                f"no run was opened, unless 'cloister ledger show {self.account.ledger}' has a new one: start it again"
            )
        return (
            f"run {self.run} is open in {self.account.ledger}, and its budget stays reserved: go on with "
            f"{self._again()} and the same options, which pays nothing twice"
        )

    def where(self) -> str:
        """Hint where to find the result of a finished run that could not be printed."""
        if self.saved:
            return f"the result is in {self.target}"
        if self.account is not None:
            return (
                f"run {self.run} is finished, and nothing is lost: "
                f"{shlex.join(['cloister', 'ledger', 'result', str(self.account.ledger), str(self.run)])} prints it "
                f"again for nothing"
            )
        if self.result is None:
            return "nothing was released: start it again"
        path = Path(f"cloister-result-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.json").absolute()
        try:
            self.result.save(path)
            path.chmod(0o600)
        except (InvalidInput, OSError):
            return (
                "the result is lost, since it can be saved nowhere: give --out next time, which saves it before it is "
                "printed"
            )
        return f"the result is in {path}: --out saves it where you want it, before it is printed"

    def _again(self) -> str:
        assert self.account is not None
        return shlex.join(
            ["--ledger", str(self.account.ledger), "--dataset", self.account.dataset, "--resume", str(self.run)]
        )
