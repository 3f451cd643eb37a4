"""``cloister profile``: what the clusters of a result are like."""

from __future__ import annotations

import math
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cloister.commands.common import (
    GroupNames,
    console,
    plain,
    print_json,
    print_table,
    show,
    tell_columns,
    told_once,
)
from cloister.commands.evaluate import JUDGED_ALIKE, NOT_PRIVATE, which_rows
from cloister.commands.options import ROWS, Printed, Reading
from cloister.commands.program import ending
from cloister.commands.progress import counting
from cloister.commands.taking import lacks, result_from, taking
from cloister.core.errors import InvalidInput

if TYPE_CHECKING:
    from rich.table import Table

    from cloister.commands.evaluating import GroupsOfRows
    from cloister.run.result import Result
    from cloister.showing.profile import ClusterProfile, Profile


@taking
def profile(
    result: Annotated[Path, typer.Argument(help="A result that fit, decode, advance or join saved.")],
    reading: Annotated[Reading, lacks(*JUDGED_ALIKE)],
    printed: Annotated[Printed, lacks("a profile is printed", "out")],
    rows: Annotated[
        list[str] | None,
        typer.Option(
            "--rows",
            help="Rows that you may see: files, a pattern in quotes, or a database's address with --table. What they "
            "are in each cluster is then shown, too, and is NOT private. Repeatable.",
            rich_help_panel=ROWS,
        ),
    ] = None,
    names: GroupNames = None,
) -> None:
    """Sizes, centres, what sets clusters apart, silhouette and cost, with standard errors. Released values alone: reads
    no rows unless --rows gives some."""
    from cloister.showing.profile import profile_of

    loaded = result_from(result, names)
    found = profile_of(loaded)
    if rows is None and reading != Reading():
        raise InvalidInput("there are no rows to read: give --rows, or leave out what says how they are read")
    seen = None if rows is None else _seen(loaded, rows, reading)
    if printed.as_json:
        print_json(found.as_dict() | ({} if seen is None else {"of_rows": seen.as_dict()}))
        return
    terminal = console()
    print_table(_overview(found), terminal)
    for cluster in found.by_size:
        print_table(_centre(found, cluster), terminal)
    show("\n".join([*found.spoken, *found.figures, *found.notes]))
    if seen is not None:
        show(f"\n{NOT_PRIVATE}\n{which_rows(seen, loaded)}")
        for cluster in found.by_size:
            print_table(_of_rows(found, cluster, seen), terminal)


def _seen(result: Result, rows: list[str], reading: Reading) -> GroupsOfRows:
    """The rows of each cluster, read as ``evaluate`` reads them. NOT private."""
    from cloister.commands.evaluating import grouped
    from cloister.commands.predicting import rows_of
    from cloister.rows.reading import as_missing

    with (
        ending(lambda error: "nothing was added up: run it again"),
        counting("rows read") as advance,
        closing(rows_of(result, rows, reading, told_once(), advance)) as population,
    ):
        tell_columns(population)
        return grouped(result, population, as_missing(reading.after(result).missing))


def _of_rows(found: Profile, cluster: ClusterProfile, seen: GroupsOfRows) -> Table:
    from rich.table import Table

    i = cluster.number
    table = Table(title=f"cluster {cluster.called}: {seen.sizes[i]:,} rows, NOT private")
    names = ["centre (released)", "mean", "spread", *(["mean, not clipped"] if seen.clipped else [])]
    table.add_column("column")
    for name in names:
        table.add_column(name, justify="right")
    columns = [seen.means[i], seen.spreads[i], *([seen.unclipped[i]] if seen.clipped else [])]
    for j, (name, estimate) in enumerate(zip(found.columns, cluster.coordinates, strict=True)):
        table.add_row(plain(name), estimate.figure, *("-" if math.isnan(c[j]) else f"{c[j]:.4g}" for c in columns))
    return table


def _overview(found: Profile) -> Table:
    from rich.table import Table

    table = Table(title=f"{len(found.clusters)} clusters, from released values alone")
    table.add_column("cluster", justify="right")
    table.add_column("rows (noisy)", justify="right")
    table.add_column("share", justify="right")
    table.add_column("what sets it apart")
    for cluster in found.by_size:
        share = "-" if cluster.share is None else f"{cluster.share:.1%}"
        table.add_row(cluster.called, cluster.size_text, share, plain(", ".join(cluster.apart) or "-"))
    return table


def _centre(found: Profile, cluster: ClusterProfile) -> Table:
    from rich.table import Table

    table = Table(title=f"cluster {cluster.called}")
    table.add_column("column")
    table.add_column("centre", justify="right")
    for column, shares in cluster.mixtures.items():
        table.add_row(plain(column), plain(shares))
    for name, estimate in zip(found.columns, cluster.coordinates, strict=True):
        if name not in cluster.mixed:
            table.add_row(plain(name), estimate.text)
    for name, text in cluster.held.items():
        table.add_row(plain(name), plain(text))
    return table
