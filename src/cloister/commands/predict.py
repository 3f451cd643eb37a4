"""``cloister predict``: the nearest centre of each of the caller's own rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cloister.commands.common import ADDRESS_HELP, GroupNames, names, print_json, say, show, tell_columns
from cloister.commands.option_groups import excludes, option_groups, result_from
from cloister.commands.options import OUTPUT, Printed
from cloister.commands.program import ending, printing
from cloister.core.errors import InvalidInput
from cloister.rows.options import Reading
from cloister.showing.progress import progress

if TYPE_CHECKING:
    from cloister.commands.views import LabelView


@option_groups
def predict(
    result: Annotated[Path, typer.Argument(help="A result that fit, decode, advance or join saved.")],
    reading: Annotated[
        Reading,
        excludes("the result says which they are", "categories", "user_column"),
        excludes("labels come in the order of the rows, by this process alone", "engine", "workers", "scheduler"),
        excludes("a view is of rows that stay", "materialise", "passes"),
    ],
    printed: Annotated[Printed, excludes("labels have their own files", "out")],
    rows: Annotated[
        list[str] | None, typer.Argument(help=f"{ADDRESS_HELP} An address goes with --sql or --create.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            help="File of the labels, a row for each row, in their "
            "order: .parquet or .csv with a column 'cluster', or .npy.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    keep: Annotated[
        str | None, typer.Option(help="Columns to copy along, separated by commas, such as id.", rich_help_panel=OUTPUT)
    ] = None,
    group_names: GroupNames = None,
    distances: Annotated[
        bool,
        typer.Option(
            "--distances",
            help="Add each row's distance to its centre, in the run's units where it scaled columns.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    sql: Annotated[
        bool,
        typer.Option(
            "--sql",
            help="Print a query that labels the rows of --table where they are; rows that cannot be used get -1.",
        ),
    ] = False,
    name: Annotated[
        str | None, typer.Option("--name", help="With --sql: print what creates a view of this name.")
    ] = None,
    dialect: Annotated[
        str | None,
        typer.Option(
            "--dialect",
            help="With --sql and no address: whose words, duckdb (default), postgres, pyspark, snowflake, ...",
        ),
    ] = None,
    create: Annotated[
        str | None,
        typer.Option(
            "--create",
            metavar="NAME",
            help="Create the view in the database: the one thing that cloister ever writes there.",
        ),
    ] = None,
) -> None:
    """Label rows by their nearest released centre, files of any size. NOT private: labels tell about the rows."""
    from cloister.commands.predicting import ENDINGS, NOT_PRIVATE, Labels, rows_of
    from cloister.commands.views import LabelView, refuse_with
    from cloister.run.result import Result
    from cloister.run.saving import checked_target

    as_json, table = bool(printed.as_json), reading.table
    if sql or create is not None:
        refuse_with(
            {
                "--out": out,
                "--distances": distances,
                **reading.given("columns", "table"),
                "--sql": sql and create,
                "--name": name and create,
                "--names": group_names,
                "--dialect": dialect and rows,
            },
            "labels in SQL go into no file, and are printed, or created at an address",
        )
        if table is None:
            raise InvalidInput("the rows' table has no name: give --table NAME")
        view = LabelView(Result.load(result), table, _address(rows, create), dialect, reading.names, names(keep))
        _as_view(view, name, create, as_json)
        return
    from cloister.run.places import is_address, refuse_foreign_address

    refuse_foreign_address(rows)
    if not rows or any(is_address(path) for path in rows):
        raise InvalidInput(
            "give files of rows; for rows in a database print a query (--sql) or create a view (--create)"
        )
    refuse_with(
        {"--table": table, "--name": name, "--dialect": dialect}, "these options go with --sql and labels in a database"
    )
    if out is None:
        raise InvalidInput("the labels have no file: give --out labels.parquet")
    target = checked_target(out, ENDINGS, "labels")
    loaded = result_from(result, group_names)
    with ending(lambda error: "no labels were written: run it again"), progress() as bar:
        population = rows_of(loaded, rows, reading)
        labels = Labels(
            loaded,
            population,
            names(keep) or (),
            distances,
            reading.missing_of(loaded),
            bar.advance,
            reading.threads,
            group_names is not None,
        )
        counts = labels.save(target)
    tell_columns(population)
    say(NOT_PRIVATE)
    with printing(lambda: f"the labels are in {target}"):
        if as_json:
            print_json(
                {
                    "private": False,
                    "rows": counts.rows,
                    "unused": counts.unused,
                    "sizes": counts.sizes,
                    "file": str(target),
                }
            )
            return
        rest = f", {counts.unused:,} of them -1: they could not be used" if counts.unused else ""
        show(f"{counts.rows:,} labels{rest}, saved to {target}")


def _address(rows: list[str] | None, create: str | None) -> str | None:
    """The database's address, if one was given. Raises: InvalidInput: other things were, or it is needed."""
    from cloister.run.places import is_address

    if rows is not None and (len(rows) > 1 or not is_address(rows[0])):
        raise InvalidInput("labels in SQL are of one database's rows: give its address, such as duckdb:///lake.db")
    if create is not None and not rows:
        raise InvalidInput("a view is created in a database: give its address, such as duckdb:///lake.db")
    return rows[0] if rows else None


def _as_view(view: LabelView, name: str | None, create: str | None, as_json: bool) -> None:
    from cloister.commands.predicting import NOT_PRIVATE

    if create is None:
        query = view.query(name)
        say(NOT_PRIVATE)
        print_json({"private": False, "sql": query}) if as_json else print(f"{query};", flush=True)  # names as they are
        return
    view.create(create)
    say(NOT_PRIVATE)
    if as_json:
        print_json({"private": False, "view": create})
    else:
        show(f"created the view {create} in the database: drop it when you need it no more")
