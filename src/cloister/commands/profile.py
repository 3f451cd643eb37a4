"""``cloister profile``: a description of the clusters of a result."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cloister.commands.cli_option import OUTPUT, ROWS
from cloister.commands.common import (
    GroupNames,
    SavedResult,
    console,
    notes_once,
    plain,
    print_json,
    print_table,
    show,
    tell_columns,
)
from cloister.commands.evaluate import EXCLUDED, NOT_PRIVATE, which_rows
from cloister.commands.option_groups import excludes, option_groups, result_from
from cloister.commands.options import OutputOptions
from cloister.commands.program import ending, printing
from cloister.core.errors import InvalidInput
from cloister.rows.options import Reading
from cloister.showing.progress import progress

if TYPE_CHECKING:
    from rich.table import Table

    from cloister.commands.grouping import GroupsOfRows
    from cloister.run.result import Result
    from cloister.showing.profile import ClusterProfile, Profile


ENDINGS, WIDTH = (".json", ".txt"), 100
"""Files of profiles, and characters of a line in one of text."""


@option_groups
def profile(
    result: SavedResult,
    reading: Annotated[Reading, excludes(*EXCLUDED)],
    printed: Annotated[OutputOptions, excludes("a profile has files of its own", "out")],
    rows: Annotated[
        list[str] | None,
        typer.Option(
            "--rows",
            help="Rows that you may see, summarised per cluster too, which is NOT private: files, a pattern in quotes, "
            "or a database's address with --table. Repeatable.",
            rich_help_panel=ROWS,
        ),
    ] = None,
    names: GroupNames = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            help="Save the profile: .json for programs, or .txt as it is printed. With --rows the file is NOT private.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
) -> None:
    """Describe clusters: sizes, centres, differences.

    Also prints silhouette and cost, all with standard errors. Uses released values only, and reads no rows without
    --rows.
    """
    from cloister.run.saving import checked_target
    from cloister.showing.profile import profile_of

    target = None if out is None else checked_target(out, ENDINGS, "profiles")
    loaded = result_from(result, names)
    released = profile_of(loaded)
    if rows is None and reading.given():
        raise InvalidInput("there are no rows to read: give --rows, or leave out the options that say how to read them")
    groups = None if rows is None else _groups(loaded, rows, reading)
    facts = released.as_dict() | ({} if groups is None else {"of_rows": groups.as_dict()})
    if target is not None:
        _save(target, facts, released, loaded, groups)
    with printing(lambda: "print it again" if target is None else f"the profile is in {target}"):
        if printed.as_json:
            print_json(facts)
            return
        for part in _parts(released, loaded, groups):
            show(part) if isinstance(part, str) else print_table(part, console())
        if target is not None:
            show(f"\nsaved to {target}")


def _parts(profile: Profile, result: Result, groups: GroupsOfRows | None) -> Iterator[str | Table]:
    """Yield what is printed: tables, and lines between them."""
    yield _overview(profile)
    yield from (_centre(profile, cluster) for cluster in profile.by_size)
    yield "\n".join([*profile.keyword_lines, *profile.estimate_lines, *profile.notes])
    if groups is not None:
        yield f"\n{NOT_PRIVATE}\n{which_rows(groups, result)}"
        yield from (_of_rows(profile, cluster, groups) for cluster in profile.by_size)


def _save(target: Path, facts: dict[str, Any], profile: Profile, result: Result, groups: GroupsOfRows | None) -> None:
    """Write the profile as JSON, or as it is printed."""
    from rich.console import Console

    from cloister.run.saving import put

    if target.suffix == ".json":
        put(target, (json.dumps(facts, indent=1) + "\n").encode())
        return
    page = Console(file=io.StringIO(), width=WIDTH, markup=False, emoji=False, highlight=False, color_system=None)
    with page.capture() as captured:
        for part in _parts(profile, result, groups):
            page.print(plain(part, keep="\n") if isinstance(part, str) else part, soft_wrap=isinstance(part, str))
    put(target, captured.get().encode())


def _groups(result: Result, rows: list[str], reading: Reading) -> GroupsOfRows:
    """Return the rows of each cluster, read as ``evaluate`` reads them. NOT private."""
    from cloister.commands.grouping import grouped
    from cloister.commands.predicting import rows_of

    with (
        ending(lambda error: "nothing was added up: run it again"),
        progress() as bar,
        closing(rows_of(result, rows, reading, notes_once(), bar.advance)) as population,
    ):
        tell_columns(population)
        return grouped(result, population, reading.missing_of(result))


def _of_rows(profile: Profile, cluster: ClusterProfile, groups: GroupsOfRows) -> Table:
    from rich.table import Table

    from cloister.core.decimals import resolved

    i = cluster.number
    table = Table(title=f"cluster {cluster.called}: {groups.sizes[i]:,} rows, NOT private")
    names = ["centre (released)", "mean", "spread", *(["mean, not clipped"] if groups.clipped else [])]
    table.add_column("column")
    for name in names:
        table.add_column(name, justify="right")
    columns = [groups.means[i], groups.spreads[i], *([groups.unclipped[i]] if groups.clipped else [])]
    for j, (name, center) in enumerate(zip(profile.columns, cluster.coordinates, strict=True)):
        width = float(groups.spreads[i][j])
        table.add_row(plain(name), center, *("-" if math.isnan(c[j]) else resolved(c[j], width) for c in columns))
    return table


def _overview(profile: Profile) -> Table:
    from rich.table import Table

    table = Table(title=f"{len(profile.clusters)} clusters, from released values alone")
    table.add_column("cluster", justify="right")
    table.add_column("rows (noisy)", justify="right")
    table.add_column("share", justify="right")
    table.add_column("what sets it apart")
    for cluster in profile.by_size:
        table.add_row(cluster.called, cluster.size_text, cluster.share_text, plain(", ".join(cluster.apart) or "-"))
    return table


def _centre(profile: Profile, cluster: ClusterProfile) -> Table:
    from rich.table import Table

    table = Table(title=f"cluster {cluster.called}")
    table.add_column("column")
    table.add_column("centre", justify="right")
    for column, shares in cluster.mixtures.items():
        table.add_row(plain(column), plain(shares))
    for name, text in zip(profile.columns, cluster.coordinates, strict=True):
        if name not in cluster.mixed:
            table.add_row(plain(name), text)
    for name, text in cluster.held.items():
        table.add_row(plain(name), plain(text))
    return table
