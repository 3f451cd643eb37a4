"""``cloister profile``: what the clusters of a result are like."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cloister.commands.common import AsJson, console, plain, print_json, print_table, show

if TYPE_CHECKING:
    from rich.table import Table

    from cloister.showing.profile import ClusterProfile, Profile


def profile(
    result: Annotated[Path, typer.Argument(help="A result that fit, decode, advance or join saved.")],
    as_json: AsJson = False,
) -> None:
    """Sizes, centres, what sets clusters apart, silhouette and cost, with standard errors. Released values only: reads
    no rows."""
    from cloister.run.result import Result
    from cloister.showing.profile import profile_of

    found = profile_of(Result.load(result))
    if as_json:
        print_json(found.as_dict())
        return
    terminal = console()
    print_table(_overview(found), terminal)
    for cluster in found.clusters:
        print_table(_centre(found, cluster), terminal)
    show("\n".join([*found.figures, *found.notes]))


def _overview(found: Profile) -> Table:
    from rich.table import Table

    table = Table(title=f"{len(found.clusters)} clusters, from released values alone")
    table.add_column("cluster", justify="right")
    table.add_column("rows (noisy)", justify="right")
    table.add_column("share", justify="right")
    table.add_column("what sets it apart")
    for cluster in found.clusters:
        share = "-" if cluster.share is None else f"{cluster.share:.1%}"
        table.add_row(str(cluster.number), cluster.size_text, share, plain(", ".join(cluster.apart) or "-"))
    return table


def _centre(found: Profile, cluster: ClusterProfile) -> Table:
    from rich.table import Table

    table = Table(title=f"cluster {cluster.number}")
    table.add_column("column")
    table.add_column("centre", justify="right")
    for column, shares in cluster.mixtures.items():
        table.add_row(plain(column), plain(shares))
    for name, estimate in zip(found.columns, cluster.coordinates, strict=True):
        if name not in cluster.mixed:
            table.add_row(plain(name), estimate.text)
    return table
