"""Options of rows, each declared once: its help, its place and its value.

The command line, config files and the table of options take them from here (``commands.options.declared``). A
``Reading`` goes whole to the population that obeys it; ``tests/rows/test_options.py`` names an option that none obeys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, final

import attrs

from cloister.core.errors import InvalidInput

Where: TypeAlias = Literal["memory", "files", "databases"]
"""Places of rows."""

Missing: TypeAlias = Literal["refuse", "drop"]
"""Treatment of rows that have a missing or infinite cell."""


def as_missing(value: str) -> Missing:
    """Return the value. Raises: InvalidInput: it is neither 'refuse' nor 'drop'."""
    if value == "drop":
        return "drop"
    if value == "refuse":
        return "refuse"
    raise InvalidInput(f"missing is '{value}': choose refuse or drop")


@final
@attrs.frozen
class RowOption:
    """Declaration of an option of rows.

    Args:
        help: text for people, in one or two sentences.
        only: the one place of rows that it applies to; None: all.
        flag: on the command line; empty: the field's name, in kebab case.
        metavar: stands for the value in ``--help``; None: the type's name.
        written: how several values are written: 'list', separated by commas, or 'table', as repeated name=value; None:
            there is one value.
        decides_rows: whether it decides what a row is made of a table's cells, so that a run that resumes compares it
            (``rows.reading.reading_fingerprints``).
    """

    help: str
    only: Where | None = None
    flag: str = ""
    metavar: str | None = None
    written: Literal["list", "table"] | None = None
    decides_rows: bool = True


def _option(help: str, **declaration: Any) -> Any:
    return attrs.field(default=None, metadata={"option": RowOption(help, **declaration)})


@final
@attrs.frozen(kw_only=True, eq=False)
class Reading:
    """Options of rows, and what their caller adds; None: not given.

    Attributes:
        users: names of the users of rows in memory (n,), in place of ``user_column``.
        bounded: columns that have bounds: which are used where ``columns`` does not say.
        described: columns that groups are described by: those that nothing else names are read beside the others; as
            ``rows.keywords.Texts``, one whose words are counted.
        progress: callback that receives how many more rows of a pass are done.
        told: callback that receives what the holder of rows in a database should know.

    Raises:
        InvalidInput: ``missing`` is neither 'refuse' nor 'drop', or users are named twice.
    """

    columns: Sequence[str | int] | str | None = _option(
        "Columns to use, separated by commas: names (in double quotes if they hold a comma), or patterns such as '*', "
        "which match columns of numbers except ids and dates (in CSV: every column). If a result or plan was made "
        "with other names: list, in its order, the names used in these rows. Default: those of the result, plan or "
        "start, otherwise those that --bounds and --category name; in NPY and NPZ all.",
        written="list",
    )
    categories: Mapping[str, Any] | None = _option(
        "Column of categories with its public values: ward=A,B,C. Values that hold a comma go in double quotes: "
        "'ward=\"A, B\",C'. Repeatable. Default: those of the start.",
        flag="--category",
        written="table",
    )
    missing: str | None = _option(
        "Rows with missing or infinite cells: refuse (stop) or drop. Where people report for themselves, a person with "
        "such a row then reports that she is in no group. Default: as in the run of the result or start, else refuse.",
    )
    user_column: str | None = _option(
        "Column that identifies each row's user. The guarantee then protects users with all their rows, and needs "
        "--rows-per-user. Where people report for themselves, the column holds their user numbers.",
    )
    delimiter: str | None = _option("CSV delimiter: ';', tab, ... Default: ','.", only="files")
    encoding: str | None = _option("CSV encoding: utf-8 (default), latin-1, utf-16, ...", only="files")
    table: str | None = _option(
        "Table or view in the database: NAME, SCHEMA.NAME or CATALOG.SCHEMA.NAME.", only="databases", decides_rows=False
    )
    materialise: bool | None = _option(
        "Copy the columns into a temporary table first, so that every pass reads the same rows.",
        only="databases",
        decides_rows=False,
    )
    passes: str | None = _option(
        "Way to make a pass over the table: stream (send its rows to this process), query (let the database "
        "aggregate) or workers (Spark's, with this version of cloister). Default: the fastest in a trial on made-up "
        "rows.",
        only="databases",
        flag="--pass",
        metavar="<stream, query or workers>",
        decides_rows=False,
    )
    engine: str | None = _option(
        "Engine that does the work: serial (this process; default), processes or dask.",
        only="files",
        decides_rows=False,
    )
    workers: int | None = _option(
        "Number of processes, each on one core. Default: one per core.", only="files", decides_rows=False
    )
    scheduler: str | None = _option("Address of a running Dask scheduler.", only="files", decides_rows=False)
    threads: int | None = _option(
        "Number of threads that process rows. Default: one per core (at most OMP_NUM_THREADS).", decides_rows=False
    )
    users: Any = None
    bounded: Sequence[str] | None = None
    described: Sequence[Any] | None = None
    progress: Callable[[int], None] | None = None
    told: Callable[[str], None] | None = None

    def __attrs_post_init__(self) -> None:
        if self.missing is not None:
            as_missing(self.missing)
        if self.users is not None and self.user_column is not None:
            raise InvalidInput("users are named twice: give user_column, or users, not both")
        if isinstance(self.users, str):
            raise InvalidInput("users are names, one per row: give the column that has them as user_column")

    @property
    def names(self) -> list[str] | None:
        """``columns`` as a list of texts."""
        if self.columns is None or isinstance(self.columns, str):
            return None if self.columns is None else [self.columns]
        return [str(name) for name in self.columns]

    def given(self, *but: str) -> dict[str, Any]:
        """Return the options that are given, by flag. Args: but (names to leave out)."""
        values = {name: getattr(self, name) for name in options_of_rows() if name not in but}
        return {options_of_rows()[name].flag: value for name, value in values.items() if value is not None}

    def elsewhere(self, where: Where | None) -> list[str]:
        """Return the names of options that are given, and apply to rows of another place alone."""
        names = [name for name, option in options_of_rows().items() if option.only not in (None, where)]
        return [name for name in names if getattr(self, name) is not None]

    def missing_of(self, result: Any) -> Any:
        """Return ``missing``; where it is not given, that of a result's run."""
        return result.missing if self.missing is None else self.missing


def options_of_rows() -> dict[str, RowOption]:
    """Return the declarations by name, each with its flag."""
    options = {field.name: field.metadata["option"] for field in attrs.fields(Reading) if field.metadata}
    return {
        name: attrs.evolve(option, flag=option.flag or f"--{name.replace('_', '-')}")
        for name, option in options.items()
    }
