"""The program around the commands: it parses words, and whatever ends it early is one line and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from cloister.commands.common import mute, plain, say, steady
from cloister.commands.endings import INTERRUPTED, REFUSED, UNPRINTED, reason
from cloister.core.errors import CloisterError, UnknownName
from cloister.run.options import HEADINGS

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


def run(app: typer.Typer, words: Sequence[str]) -> int:
    """Run a command line, and return its exit code. A refusal is one line and exit code 2, and so is any failure of a
    file or of the output. Args: words (what follows the program's name)."""
    # products of a chunk of rows and a few centres are small: threads of a BLAS cost more than they bring
    # (docs/scale.md)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    steady()
    try:
        return _ended(app, words)
    except KeyboardInterrupt:
        mute(sys.stdout)
        return _told("interrupted", INTERRUPTED)
    except CloisterError as error:
        return _told(str(error), REFUSED)
    except OSError as error:
        mute(sys.stdout)
        code = UNPRINTED if error.filename is None else REFUSED
        if isinstance(error, BrokenPipeError):
            return code
        return _told(f"{'cannot write the output: ' if error.filename is None else ''}{reason(error)}", code)
    except MemoryError:
        return _told("there is not enough memory for this: ask for fewer centres, or fewer columns", REFUSED)


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
    return get_command(app)


def _misunderstood(error: Any) -> str:
    """What the parser did not understand, and where help is."""
    if hasattr(error, "possibilities") and error.ctx is not None:
        known = [flag for option in error.ctx.command.get_params(error.ctx) for flag in option.opts]
        return str(UnknownName("option", error.option_name, (flag for flag in known if flag.startswith("-"))))
    text = " ".join(error.format_message().split()).rstrip(".")
    hint = "" if error.ctx is None else f": '{error.ctx.command_path} --help' shows how"
    return f"{text[:1].lower()}{text[1:]}{hint}"


def _told(why: str, code: int) -> int:
    say(plain(f"cloister: {why}"))
    return code
