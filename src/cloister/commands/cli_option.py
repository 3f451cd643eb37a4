"""Declaration of an option: help, heading, flags and parsing, in one place.

An option of several commands is a field (``cli_option``) of a frozen class of options (``commands.options``). The
flags, the keys of a config file and the names in Python follow from it (``commands.option_groups``), and so does the
table of commands in docs/reference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, final

import attrs
import typer

from cloister.commands.names import split_names
from cloister.core.errors import InvalidInput
from cloister.rows.options import Reading, Where, options_of_rows

ROWS, PRIVACY, METHOD, LEDGER, OUTPUT = "Rows", "Privacy", "Method", "Ledger", "Output"
SQL, REPORTS, SESSION, NETWORK, LIMITS = "Labels in SQL", "Reports", "Session", "Network", "Limits"
HEADINGS = ROWS, PRIVACY, METHOD, LEDGER, REPORTS, SESSION, NETWORK, LIMITS, SQL, OUTPUT
"""Headings of ``--help``, in order."""


@final
@attrs.frozen
class CliOption:
    """Declaration of an option.

    Args:
        help: text for people, in one or two sentences.
        heading: one of ``HEADINGS``, or empty for none.
        flags: on the command line; empty: the field's name, in kebab case. Long ones are names in config files too.
        only: where rows must be for it to apply; None: anywhere.
        kind: type on the command line; None: the field's own.
        read: conversion of the command line's value to the field's; None: the same value.
        metavar: placeholder of the value in ``--help``; None: the type's name.
        parser: replacement of the type, called with the text.
        in_config: whether a config file may have it.
        min: least number that is taken; None: any.
        max: largest number that is taken; None: any.
    """

    help: str
    heading: str
    flags: tuple[str, ...] = ()
    only: Where | None = None
    kind: Any = None
    read: Callable[[Any], Any] | None = None
    metavar: str | None = None
    parser: Callable[[str], Any] | None = None
    in_config: bool = True
    min: int | None = None
    max: int | None = None

    @property
    def words(self) -> str:
        """The help, with the places of rows that it applies to."""
        return self.help if self.only is None else f"{self.help} {self.only.capitalize()} only."

    def with_default(self, words: str) -> CliOption:
        """Return this option with another default in its help; empty: none."""
        return attrs.evolve(self, help=self.help.split(" Default: ")[0] + (f" Default: {words}." if words else ""))

    @property
    def option(self) -> Any:
        """The option as typer takes it."""
        return typer.Option(
            *self.flags,
            help=self.words,
            rich_help_panel=self.heading or None,
            metavar=self.metavar,
            parser=self.parser,
            min=self.min,
            max=self.max,
            show_default="default" not in self.words.lower(),
        )


def cli_option(help: str, heading: str, *flags: str, default: Any = None, **facts: Any) -> Any:
    """Declare a field that is a ``CliOption``, with a default; ``attrs.NOTHING``: it must be given."""
    return attrs.field(default=default, metadata={"cli_option": CliOption(help, heading, flags, **facts)})


ROW_OPTION_TYPES: Mapping[str | None, dict[str, Any]] = {
    None: {},
    "list": {"kind": str | None, "read": split_names},
    "table": {"kind": list[str] | None},
}
"""Types of options of rows on the command line, by ``RowOption.written``."""


def declared(kind: type) -> dict[str, CliOption]:
    """Return the options of a class by name, each with its flags."""
    if kind is Reading:
        return {
            name: CliOption(
                option.help,
                ROWS,
                (option.flag,),
                option.only,
                metavar=option.metavar,
                **ROW_OPTION_TYPES[option.written],
            )
            for name, option in options_of_rows().items()
        }
    options = {field.name: field.metadata["cli_option"] for field in attrs.fields(kind)}
    kebab = {name: (f"--{name.replace('_', '-')}",) for name in options}
    return {name: attrs.evolve(option, flags=option.flags or kebab[name]) for name, option in options.items()}


def by_itself(kind: type, name: str, default: str | None = None, heading: str = "") -> CliOption:
    """Return an option of a class, with another default or heading, for a command that takes few of the others."""
    option = declared(kind)[name] if default is None else declared(kind)[name].with_default(default)
    return attrs.evolve(option, heading=heading, only=None)


def borrowed(kind: type, name: str, heading: str, default: Any = None) -> Any:
    """Declare a field that is an option of another class, under another heading."""
    return attrs.field(default=default, metadata={"cli_option": by_itself(kind, name, heading=heading)})


def typed(value: Any, kind: Callable[[Any], Any], name: str) -> Any:
    """Convert a number by ``kind`` without changing its value. Raises: InvalidInput."""
    try:
        if isinstance(value, (bool, str)):
            raise TypeError
        if kind is int and int(value) != value:
            raise InvalidInput(f"{name} is {value!r}: give a whole number")
        return kind(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{name} is {value!r}, which is not a number") from None
