"""``cloister predict``: the nearest centre of each of the caller's own rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, final

import attrs
import typer

from cloister.commands.cli_option import OUTPUT, SQL, cli_option
from cloister.commands.common import (
    ADDRESS_HELP,
    GroupNames,
    SavedResult,
    print_json,
    say,
    show,
    tell_columns,
)
from cloister.commands.names import split_names
from cloister.commands.option_groups import excludes, option_groups, result_from
from cloister.commands.options import OutputOptions
from cloister.commands.program import ending, printing
from cloister.core.errors import InvalidInput
from cloister.rows.options import Reading
from cloister.showing.progress import progress

if TYPE_CHECKING:
    from cloister.commands.views import LabelView


@final
@attrs.frozen(kw_only=True)
class LabelOptions:
    """File of labels, and what it holds beside them."""

    out: Path | None = cli_option(
        "File for the labels, one per row in the rows' order: .parquet or .csv (column 'cluster'), or .npy.",
        OUTPUT,
        "-o",
        "--out",
    )
    keep: list[str] | None = cli_option(
        "Columns to copy beside the labels, separated by commas, such as id.",
        OUTPUT,
        kind=str | None,
        read=split_names,
    )
    distances: bool = cli_option(
        "Also write each row's distance to its centre (with --scale, in its scaled units).",
        OUTPUT,
        "--distances",
        default=False,
    )


@final
@attrs.frozen(kw_only=True)
class SqlOptions:
    """Labels that a database computes."""

    sql: bool = cli_option(
        "Print a query that labels the rows of --table; rows that cannot be used get -1.", SQL, "--sql", default=False
    )
    name: str | None = cli_option("With --sql: print the statement that creates a view of this name.", SQL)
    dialect: str | None = cli_option(
        "With --sql and no address: SQL dialect, such as duckdb (default), postgres, pyspark or snowflake.", SQL
    )
    create: str | None = cli_option(
        "Create a view of this name in the database. cloister writes nothing else there.", SQL, metavar="NAME"
    )


@option_groups
def predict(
    result: SavedResult,
    reading: Annotated[
        Reading,
        excludes("the result has the categories, and a label is of one row", "categories", "user_column"),
        excludes("this process computes the labels, in the order of the rows", "engine", "workers", "scheduler"),
        excludes("a view makes no copy of the rows, and no pass over them", "materialise", "passes"),
    ],
    labels: LabelOptions,
    in_sql: SqlOptions,
    printed: Annotated[OutputOptions, excludes("labels have their own files", "out")],
    rows: Annotated[
        list[str] | None, typer.Argument(help=f"{ADDRESS_HELP} An address goes with --sql or --create.")
    ] = None,
    group_names: GroupNames = None,
) -> None:
    """Label rows by their nearest released centre.

    Takes files of any size, or a table in a database. NOT private: labels depend on the rows themselves.
    """
    as_json = bool(printed.as_json)
    if in_sql.sql or in_sql.create is not None:
        _label_in_sql(_view(result, rows, reading, labels, in_sql, group_names), in_sql, as_json)
    else:
        _label_files(result, rows, reading, labels, in_sql, group_names, as_json)


def _view(
    result: Path,
    rows: list[str] | None,
    reading: Reading,
    labels: LabelOptions,
    in_sql: SqlOptions,
    group_names: str | None,
) -> LabelView:
    """Return the view that labels a table. Raises: InvalidInput: some options exclude each other."""
    from cloister.commands.views import LabelView, refuse_with
    from cloister.run.result import Result

    refuse_with(
        {
            "--out": labels.out,
            "--distances": labels.distances,
            **reading.given("columns", "table"),
            "--sql": in_sql.sql and in_sql.create,
            "--name": in_sql.name and in_sql.create,
            "--names": group_names,
            "--dialect": in_sql.dialect and rows,
        },
        "with --sql or --create labels go into no file: the query is printed, or the view is created",
    )
    if reading.table is None:
        raise InvalidInput("no table: give --table NAME")
    address = _address(rows, in_sql.create)
    return LabelView(Result.load(result), reading.table, address, in_sql.dialect, reading.names, labels.keep)


def _label_files(
    result: Path,
    rows: list[str] | None,
    reading: Reading,
    labels: LabelOptions,
    in_sql: SqlOptions,
    group_names: str | None,
    as_json: bool,
) -> None:
    """Write the labels of rows in files. Raises: CloisterError."""
    from cloister.commands.predicting import ENDINGS, NOT_PRIVATE, Labels, rows_of
    from cloister.commands.views import refuse_with
    from cloister.rows.places import is_address, refuse_foreign_address
    from cloister.run.saving import checked_target

    refuse_foreign_address(rows)
    if not rows or any(is_address(path) for path in rows):
        raise InvalidInput(
            "give files of rows; for rows in a database print a query (--sql) or create a view (--create)"
        )
    refuse_with(
        {"--table": reading.table, "--name": in_sql.name, "--dialect": in_sql.dialect},
        "these options go with --sql and labels in a database",
    )
    if labels.out is None:
        raise InvalidInput("no file for the labels: give --out labels.parquet")
    target = checked_target(labels.out, ENDINGS, "labels")
    loaded = result_from(result, group_names)
    with ending(lambda error: "no labels were written: run it again"), progress() as bar:
        population = rows_of(loaded, rows, reading)
        counts = Labels(
            loaded,
            population,
            labels.keep or (),
            labels.distances,
            reading.missing_of(loaded),
            bar.advance,
            reading.threads,
            group_names is not None,
        ).save(target)
    tell_columns(population)
    say(NOT_PRIVATE)
    with printing(lambda: f"the labels are in {target}"):
        if as_json:
            print_json({"private": False, **attrs.asdict(counts), "file": str(target)})
            return
        unused = f", {counts.unused:,} of them -1: they could not be used" if counts.unused else ""
        show(f"{counts.rows:,} labels{unused}, saved to {target}")


def _address(rows: list[str] | None, create: str | None) -> str | None:
    """Return the database's address, if one is given. Raises: InvalidInput: other things are, or it is needed."""
    from cloister.rows.places import is_address

    if rows is not None and (len(rows) > 1 or not is_address(rows[0])):
        raise InvalidInput("labels in SQL need one database: give its address, such as duckdb:///lake.db")
    if create is not None and not rows:
        raise InvalidInput("a view is created in a database: give its address, such as duckdb:///lake.db")
    return rows[0] if rows else None


def _label_in_sql(view: LabelView, in_sql: SqlOptions, as_json: bool) -> None:
    """Print the query of a view, or create it."""
    from cloister.commands.predicting import NOT_PRIVATE

    if (create := in_sql.create) is None:
        query = view.query(in_sql.name)
        say(NOT_PRIVATE)
        print_json({"private": False, "sql": query}) if as_json else print(
            f"{query};", flush=True
        )  # show() would read brackets in names as markup
        return
    view.create(create)
    say(NOT_PRIVATE)
    if as_json:
        print_json({"private": False, "view": create})
    else:
        show(f"created the view {create} in the database: drop it when you no longer need it")
