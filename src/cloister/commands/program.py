"""Program around the commands: parsing, help, exit codes, and what is said of a run that ends early.

Ctrl-C, a full disk and a failing output end a program with one line, which says what was done and how to go on.

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

from cloister.commands.cli_option import HEADINGS
from cloister.commands.common import harden_outputs, mute, plain, say
from cloister.commands.option_groups import why_excluded
from cloister.commands.options import WAYS
from cloister.core.doubles import as_float
from cloister.core.errors import CloisterError, InvalidInput, Unavailable, UnknownName, cause

if TYPE_CHECKING:
    from cloister.run.account import Account
    from cloister.run.result import Result


SHOW_WARNING = warnings.showwarning
"""Python's own way to show warnings."""

_USAGE: Any = typer.BadParameter.__mro__[1]
"""Errors of the parser: click's, or those of the copy of click that newer versions of typer carry."""


class Commands(TyperGroup):
    """Group of commands, whose help lists them by heading, a line each."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that the arguments begin with. Raises: UnknownName: there is none; has near names."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            raise UnknownName("command", args[0], self.list_commands(ctx))
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands, those of a heading together."""
        return [name for names in self._by_heading().values() for name in names]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands with the first sentences of their helps, whole, by heading."""
        width = max(map(len, self.commands))
        for heading, names in self._by_heading().items():
            with formatter.section(heading):
                formatter.write_dl(
                    [(name.ljust(width), self.commands[name].get_short_help_str(limit=1000)) for name in names]
                )

    def _by_heading(self) -> dict[str, list[str]]:
        headings = dict[str, list[str]]()
        for name, command in self.commands.items():
            headings.setdefault(getattr(command, "rich_help_panel", None) or "Commands", []).append(name)
        return headings


class Headed(TyperCommand):
    """Command whose help shows its options by heading, those without one last."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, then options by heading."""
        sections = dict[str, list[tuple[str, str]]]({"Arguments": [], **{heading: [] for heading in HEADINGS}})
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            argument = parameter.param_type_name == "argument"
            heading = "Arguments" if argument else getattr(parameter, "rich_help_panel", None) or "Options"
            if record is not None:
                sections.setdefault(heading, []).append(record)
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)
        if {"engine", "table"} <= {parameter.name for parameter in self.get_params(ctx)}:
            with formatter.section("Fastest way to read rows, by where they are"):
                formatter.write_dl(WAYS)


def run(app: typer.Typer, arguments: Sequence[str]) -> int:
    """Run a command line, and return its exit code.

    A refusal is one line and exit code 2, and so is any failure of a file or of the output.

    Args:
        app: the commands.
        arguments: what follows the program's name.
    """
    # BLAS's own threads cost more than they bring: products are small, and threads of ours work on the rows
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    harden_outputs()
    warnings.showwarning = _show_warning  # type: ignore[assignment]  # passes its other arguments on
    try:
        return _exit_code(app, arguments)
    except KeyboardInterrupt:
        mute(sys.stdout)
        return _refuse("interrupted", INTERRUPTED)
    except CloisterError as error:
        return _refuse(str(error), UNAVAILABLE if isinstance(error, Unavailable) else REFUSED)
    except OSError as error:
        mute(sys.stdout)
        code = UNPRINTED if error.filename is None else REFUSED
        if isinstance(error, BrokenPipeError):
            return code
        return _refuse(f"{'cannot write the output: ' if error.filename is None else ''}{reason(error)}", code)
    except MemoryError:
        return _refuse("there is not enough memory for this: ask for fewer centres, or fewer columns", REFUSED)


def _show_warning(message: Warning | str, category: type[Warning], *location: Any) -> None:
    """Show a warning of cloister's in one line, and others as Python does."""
    if category.__module__.startswith("cloister."):
        say(f"note: {message}")
    else:
        SHOW_WARNING(message, category, *location)


def _exit_code(app: typer.Typer, arguments: Sequence[str]) -> int:
    """Run a command, and return its exit code, also that of a command line that is not understood."""
    command = _parser(app)
    try:
        command._main_shell_completion({}, "cloister")  # ends here if a shell asks for completions
        with command.make_context("cloister", list(arguments)) as context:
            command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except _USAGE as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            say(error.format_message())
            return REFUSED
        return _refuse(_misunderstood(error), REFUSED)
    return 0


@cache
def _parser(app: typer.Typer) -> Any:
    """Return the parser of all commands, made once in a process, since it takes a tenth of a second."""
    command = get_command(app)
    _make_strict(command)
    return command


def _make_strict(command: Any) -> None:
    """Let the parser reject numbers that are not finite, and leave files to the commands."""
    # the parser would say only that a file is not readable; ``cause`` also says whose it is
    for parameter in command.params:
        if hasattr(parameter.type, "readable"):
            parameter.type.readable = False
        if parameter.type.name.partition(" ")[0] in ("float", "int") and parameter.callback is None:
            parameter.callback = _finite
    for inner in getattr(command, "commands", {}).values():
        _make_strict(inner)


def _finite(context: Any, parameter: Any, value: Any) -> Any:
    """Return the value of an option. Raises: typer.BadParameter: it is a number that is not finite."""
    if isinstance(value, int | float) and not math.isfinite(as_float(value)):
        raise typer.BadParameter("give a finite number", ctx=context, param=parameter)
    return value


def _misunderstood(error: Any) -> str:
    """Return what the parser did not understand, and where help is."""
    if hasattr(error, "possibilities") and error.ctx is not None:
        if why := why_excluded(str(error.ctx.command.name), error.option_name):
            return why
        flags = [flag for option in error.ctx.command.get_params(error.ctx) for flag in option.opts]
        places = [argument.name for argument in error.ctx.command.params if argument.param_type_name == "argument"]
        if error.option_name.lstrip("-") in places:
            return f"no option '{error.option_name}': give {' and '.join(places)} without a flag, in this order"
        return str(UnknownName("option", error.option_name, (flag for flag in flags if flag.startswith("-"))))
    text = " ".join(error.format_message().split()).rstrip(".")
    hint = "" if error.ctx is None else f": '{error.ctx.command_path} --help' shows how"
    return f"{text[:1].lower()}{text[1:]}{hint}"


def _refuse(why: str, code: int) -> int:
    """Say why the program ends, and return its exit code."""
    say(plain(f"cloister: {why}"))
    return code


INTERRUPTED, UNPRINTED, REFUSED, UNAVAILABLE = 130, 1, 2, 4
"""Exit codes: after Ctrl-C (as in shells), if the output cannot be written, for every other failure, and for one that
may pass by itself (``Unavailable``)."""

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
"""Error numbers of a disk that is full or broken."""


@contextmanager
def ending(next_step: Callable[[BaseException], str], open: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Run a block of work, and say how to go on if Ctrl-C, a full disk or a lack of memory ends it.

    Args:
        next_step: returns what was done, and how to go on; empty if there is nothing to say.
        open: returns True if any failure now leaves something to resume, such as a run that is open in a ledger.
    """
    try:
        yield
    except KeyboardInterrupt as error:
        _end("interrupted", next_step(error), INTERRUPTED)
    except OSError as error:
        _end(reason(error), next_step(error), REFUSED)
    except MemoryError as error:
        _end("there is not enough memory for this: ask for fewer centres, or fewer columns", next_step(error), REFUSED)
    except CloisterError as error:
        if not (open() or _is_full(error.__cause__)):
            raise
        _end(str(error), next_step(error), REFUSED)


@contextmanager
def printing(location: Callable[[], str], only: bool = False) -> Iterator[None]:
    """Print finished work, and if that fails say where the result is, or how to print it again.

    Args:
        location: returns the text for a failure.
        only: the result goes nowhere else. Otherwise a reader who closes the pipe has seen enough, and the program ends
            quietly.
    """
    try:
        yield
        sys.stdout.flush()
    except KeyboardInterrupt:
        mute(sys.stdout)
        _end("interrupted", location(), INTERRUPTED)
    except OSError as error:
        mute(sys.stdout)
        if isinstance(error, BrokenPipeError) and not only:
            raise typer.Exit(UNPRINTED) from None
        _end(f"cannot write the output: {reason(error)}", location(), UNPRINTED)


def reason(error: OSError) -> str:
    """Return the cause of an error, with its file if that is known."""
    why = cause(error)
    return why if error.filename is None else f"{error.filename}: {why}"


def _end(why: str, next_step: str, code: int) -> NoReturn:
    say(plain(f"cloister: {why}{'; ' if next_step else ''}{next_step}"))
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
        """Store the id under which the ledger has reserved the run's budget."""
        self.run = run

    def keep(self, result: Result) -> None:
        """Save the result, if a target was given, before the run is closed."""
        if self.target is not None:
            result.save(self.target)
            self.saved = True

    def open(self) -> bool:
        """Return True if budget is reserved and there is no result yet."""
        return self.run is not None and self.result is None

    def next_step(self, error: BaseException) -> str:
        """Say how to go on with this run after it was interrupted."""
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
        """Say where the result of a finished run is that could not be printed."""
        if self.saved:
            return f"the result is in {self.target}"
        if self.account is not None:
            return (
                f"run {self.run} is finished, and nothing is lost: "
                f"{shlex.join(['cloister', 'ledger', 'result', str(self.account.ledger), str(self.run)])} prints it "
                f"again at no cost"
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
