"""``cloister profile``: what the clusters of a result are like."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from cloister.commands.option_groups import excludes, option_groups, result_from
from cloister.commands.options import OUTPUT, ROWS, Printed
from cloister.commands.program import ending, printing
from cloister.core.errors import InvalidInput
from cloister.rows.options import Reading
from cloister.showing.progress import progress

if TYPE_CHECKING:
    from rich.table import Table

    from cloister.commands.evaluating import GroupsOfRows
    from cloister.run.result import Result
    from cloister.showing.profile import ClusterProfile, Profile


ENDINGS, WIDTH = (".json", ".txt"), 100
"""Files of profiles, and characters of a line in one of text."""


@option_groups
def profile(
    result: Annotated[Path, typer.Argument(help="A result that fit, decode, advance or join saved.")],
    reading: Annotated[Reading, excludes(*JUDGED_ALIKE)],
    printed: Annotated[Printed, excludes("a profile has files of its own", "out")],
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
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            help="Save the profile: .json for programs, .txt as it is printed. With --rows the file is NOT private.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
) -> None:
    """Sizes, centres, what sets clusters apart, silhouette and cost, with standard errors. Released values alone: reads
    no rows unless --rows gives some."""
    from cloister.run.saving import checked_target
    from cloister.showing.profile import profile_of

    target = None if out is None else checked_target(out, ENDINGS, "profiles")
    loaded = result_from(result, names)
    found = profile_of(loaded)
    if rows is None and reading.given():
        raise InvalidInput("there are no rows to read: give --rows, or leave out what says how they are read")
    seen = None if rows is None else _seen(loaded, rows, reading)
    facts = found.as_dict() | ({} if seen is None else {"of_rows": seen.as_dict()})
    if target is not None:
        _save(target, facts, found, loaded, seen)
    with printing(lambda: "print it again" if target is None else f"the profile is in {target}"):
        if printed.as_json:
            print_json(facts)
            return
        for part in _parts(found, loaded, seen):
            show(part) if isinstance(part, str) else print_table(part, console())
        if target is not None:
            show(f"\nsaved to {target}")


def _parts(found: Profile, result: Result, seen: GroupsOfRows | None) -> Iterator[str | Table]:
    """What is printed: tables, and lines between them."""
    yield _overview(found)
    yield from (_centre(found, cluster) for cluster in found.by_size)
    yield "\n".join([*found.spoken, *found.figures, *found.notes])
    if seen is not None:
        yield f"\n{NOT_PRIVATE}\n{which_rows(seen, result)}"
        yield from (_of_rows(found, cluster, seen) for cluster in found.by_size)


def _save(target: Path, facts: dict[str, Any], found: Profile, result: Result, seen: GroupsOfRows | None) -> None:
    """Write the profile as JSON, or as it is printed."""
    from rich.console import Console

    from cloister.run.saving import put

    if target.suffix == ".json":
        put(target, (json.dumps(facts, indent=1) + "\n").encode())
        return
    page = Console(file=io.StringIO(), width=WIDTH, markup=False, emoji=False, highlight=False, color_system=None)
    with page.capture() as captured:
        for part in _parts(found, result, seen):
            page.print(plain(part, keep="\n") if isinstance(part, str) else part, soft_wrap=isinstance(part, str))
    put(target, captured.get().encode())


def _seen(result: Result, rows: list[str], reading: Reading) -> GroupsOfRows:
    """The rows of each cluster, read as ``evaluate`` reads them. NOT private."""
    from cloister.commands.evaluating import grouped
    from cloister.commands.predicting import rows_of

    with (
        ending(lambda error: "nothing was added up: run it again"),
        progress() as bar,
        closing(rows_of(result, rows, reading, told_once(), bar.advance)) as population,
    ):
        tell_columns(population)
        return grouped(result, population, reading.missing_of(result))


def _of_rows(found: Profile, cluster: ClusterProfile, seen: GroupsOfRows) -> Table:
    from rich.table import Table

    from cloister.core.decimals import resolved

    i = cluster.number
    table = Table(title=f"cluster {cluster.called}: {seen.sizes[i]:,} rows, NOT private")
    names = ["centre (released)", "mean", "spread", *(["mean, not clipped"] if seen.clipped else [])]
    table.add_column("column")
    for name in names:
        table.add_column(name, justify="right")
    columns = [seen.means[i], seen.spreads[i], *([seen.unclipped[i]] if seen.clipped else [])]
    for j, (name, center) in enumerate(zip(found.columns, cluster.coordinates, strict=True)):
        width = float(seen.spreads[i][j])
        table.add_row(plain(name), center, *("-" if math.isnan(c[j]) else resolved(c[j], width) for c in columns))
    return table


def _overview(found: Profile) -> Table:
    from rich.table import Table

    table = Table(title=f"{len(found.clusters)} clusters, from released values alone")
    table.add_column("cluster", justify="right")
    table.add_column("rows (noisy)", justify="right")
    table.add_column("share", justify="right")
    table.add_column("what sets it apart")
    for cluster in found.by_size:
        table.add_row(cluster.called, cluster.size_text, cluster.share_text, plain(", ".join(cluster.apart) or "-"))
    return table


def _centre(found: Profile, cluster: ClusterProfile) -> Table:
    from rich.table import Table

    table = Table(title=f"cluster {cluster.called}")
    table.add_column("column")
    table.add_column("centre", justify="right")
    for column, shares in cluster.mixtures.items():
        table.add_row(plain(column), plain(shares))
    for name, text in zip(found.columns, cluster.coordinates, strict=True):
        if name not in cluster.mixed:
            table.add_row(plain(name), text)
    for name, text in cluster.held.items():
        table.add_row(plain(name), plain(text))
    return table
