"""Options, each declared once: its name, its type, its words, its heading and what it goes with.

An option is a field (``said``) of a frozen class of options. The command line's flags, the keys of a config file and
the names in Python follow from it (``commands.options``), and so does the table of commands in docs/reference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias, final

import attrs

Source: TypeAlias = Literal["files", "databases"]
"""Places where rows may be."""

ROWS, PRIVACY, METHOD, LEDGER, OUTPUT = "Rows", "Privacy", "Method", "Ledger", "Output"
HEADINGS = ROWS, PRIVACY, METHOD, LEDGER, OUTPUT
"""Headings of ``--help``, in order."""


@final
@attrs.frozen
class Said:
    """The words of an option.

    Args:
        help: for people, in one or two sentences.
        heading: one of ``HEADINGS``.
        flags: on the command line; empty: the field's name, in kebab case. Long ones are names in config files too.
        only: where rows must be for it to apply; None: anywhere.
        kind: type on the command line; None: the field's own.
        read: what makes the field's value of the command line's; None: nothing needs to.
        metavar: what stands for the value in ``--help``; None: the type's name.
        parser: what the command line's parser calls with the text, in place of the type.
        in_config: whether a config file may have it.
    """

    help: str
    heading: str
    flags: tuple[str, ...] = ()
    only: Source | None = None
    kind: Any = None
    read: Callable[[Any], Any] | None = None
    metavar: str | None = None
    parser: Callable[[str], Any] | None = None
    in_config: bool = True

    @property
    def words(self) -> str:
        """The help, with what it applies to."""
        return self.help if self.only is None else f"{self.help} For {self.only} alone."


def said(help: str, heading: str, *flags: str, default: Any = None, **more: Any) -> Any:
    """A field that is an option. Args: as of ``Said``; default (None: not given)."""
    return attrs.field(default=default, metadata={"said": Said(help, heading, flags, **more)})


def declared(kind: type) -> dict[str, Said]:
    """The options of a class, by name."""
    return {field.name: field.metadata["said"] for field in attrs.fields(kind)}


@final
@attrs.frozen(kw_only=True)
class Reading:
    """Place of the rows and how they are read: what ``run.fit.source`` takes. None: not given."""

    columns: list[str] | None = said(
        "Columns to use, separated by commas: names, or patterns such as '*', which take numbers that are neither "
        "id-like nor dates. Default: those of the result or the plan, or else those that --bounds and --category name; "
        "of NPY and NPZ all.",
        ROWS,
        kind=str | None,
        read=lambda text: [name.strip() for name in text.split(",")],
    )
    categories: Mapping[str, Any] | None = said(
        "Public values of a column of categories, as in ward=A,B,C; one with a comma in double quotes: "
        "'ward=\"A, B\",C'. Repeatable.",
        ROWS,
        "--category",
        kind=list[str] | None,
    )
    missing: str | None = said("Rows with missing or infinite cells: refuse (default) or drop.", ROWS)
    user_column: str | None = said(
        "Column that names each row's user. The promise is then about users, and needs --rows-per-user; where people "
        "report for themselves, it numbers them.",
        ROWS,
    )
    delimiter: str | None = said("What parts the cells of CSV: ';', tab, ... Default: ','.", ROWS, only="files")
    encoding: str | None = said("Of CSV: utf-8 (default), latin-1, utf-16, ...", ROWS, only="files")
    table: str | None = said(
        "The table or view at the address: NAME, SCHEMA.NAME or CATALOG.SCHEMA.NAME.", ROWS, only="databases"
    )
    materialise: bool | None = said(
        "Copy the table's columns into a temporary table first, so that every pass sees the same rows.",
        ROWS,
        "--materialise",
        only="databases",
    )
    engine: str | None = said("Where rows are read: serial (default), processes or dask.", ROWS, only="files")
    workers: int | None = said("Processes, each on one core; default: one per core.", ROWS, only="files")
    scheduler: str | None = said("Address of a running Dask scheduler.", ROWS, only="files")
    threads: int | None = said("Threads that work on the rows; default: as many as BLAS may take.", ROWS)

    def arguments(self) -> dict[str, Any]:
        """Arguments of ``source`` by name."""
        found = {field.name: getattr(self, field.name) for field in attrs.fields(Reading)}
        found["users"], found["materialise"] = found.pop("user_column"), bool(self.materialise)
        return found | {"missing": "refuse" if self.missing is None else self.missing}

    @property
    def of_a_source(self) -> list[str]:
        """Names of the options given that apply to files or to databases alone."""
        return [name for name, each in declared(Reading).items() if each.only and getattr(self, name) is not None]
