"""``cloister data``: rows that are not secret, to try things on.

``cloister sample``: synthetic rows, from a result alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cloister.commands.common import AsJson, GroupNames, plain, print_json, show, whole
from cloister.commands.option_groups import result_from
from cloister.commands.program import Commands
from cloister.commands.progress import bar
from cloister.core.errors import InvalidInput, UnknownName

if TYPE_CHECKING:
    from cloister.lab.tables import NamedTable

data_app = typer.Typer(cls=Commands, no_args_is_help=True, help="Public data sets by name, and generated tables.")

FORMS = "npz", "csv", "parquet"
"""Files that ``get`` writes."""

Rows = Annotated[int, typer.Option("--rows", parser=whole, metavar="<int>", help="How many rows.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same table.")]
Out = Annotated[
    Path,
    typer.Option(
        "-o",
        "--out",
        help="The table: .csv, .parquet, .npy or .npz; the first two keep "
        "names of columns and have a file of bounds beside them.",
    ),
]
Labels = Annotated[Path | None, typer.Option(help="Save the group of each row too: .npy.")]


@data_app.command("list")
def list_sets(as_json: AsJson = False) -> None:
    """Which public sets are known, with size, licence and source. Reads nothing from the network."""
    from cloister.lab.public_sets import catalogue

    if as_json:
        print_json([entry.as_dict() for entry in catalogue().values()])
        return
    for entry in catalogue().values():
        show(f"{entry.name}: {entry.title}. {entry.rows:,} rows, {entry.columns} columns, k = {entry.k}")
        show(f"  licence: {entry.licence}\n  source: {entry.where}")


@data_app.command()
def get(
    sets: Annotated[list[str], typer.Argument(help="Names of sets, as 'cloister data list' prints them.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder to save to; made if it is not there.")] = Path(),
    form: Annotated[str, typer.Option("--format", help="Form of the files: npz, csv or parquet.")] = "npz",
) -> None:
    """Get public sets from their sources, and check that they are what they were. Tells a server that you asked."""
    from cloister.lab.public_sets import entry_of, rows_of
    from cloister.lab.tables import NamedTable
    from cloister.run.saving import checked_target

    if form not in FORMS:
        raise UnknownName("format", form, FORMS)
    entries = [entry_of(name) for name in sets]
    if not out.exists():
        out.mkdir(parents=True)
    targets = [checked_target(out / f"{entry.name}.{form}", (f".{form}",), "sets") for entry in entries]
    for entry, target in zip(entries, targets, strict=True):
        if target.exists():
            show(f"{entry.name}: {target} is there already, and was left as it is")
            continue
        with bar(f"{entry.name} (bytes)") as advance:
            rows = rows_of(entry, advance)
        NamedTable.plain(rows).save(target)
        show(f"{entry.name}: {len(rows):,} rows, {entry.columns} columns, k = {entry.k}, saved to {target}")
        show(f"  licence: {entry.licence}\n  source: {entry.where}\n  SHA-256 of the rows checked: {entry.sha256}")


make_app = typer.Typer(cls=Commands, no_args_is_help=True, help="Generate a table with known groups.")
data_app.add_typer(make_app, name="make")


@make_app.command("blobs")
def make_blobs(
    out: Out,
    k: Annotated[int, typer.Option("-k", "--k", help="How many groups; at least 2.")] = 8,
    rows: Rows = 10_000,
    columns: Annotated[int, typer.Option(help="How many columns; at least 2.")] = 2,
    separation: Annotated[
        float,
        typer.Option(
            help="Of each group from its nearest neighbour, between -1 and 1: 0.01 "
            "is close, 0.21 separated, 0.34 well separated."
        ),
    ] = 0.21,
    unequal: Annotated[bool, typer.Option("--unequal", help="Sizes as 1 : 2 : ... : k.")] = False,
    outliers: Annotated[int, typer.Option(help="So many rows more, far and near.")] = 0,
    seed: Seed = 0,
    labels: Labels = None,
) -> None:
    """Gaussian groups in [-1, 1]."""
    from cloister.lab.made import blobs

    targets = _targets(out, labels)
    made = blobs(rows, columns, k, separation=separation, unequal=unequal, outliers=outliers, seed=_seed(seed))
    _saved(made, *targets)


@make_app.command("moons")
def make_moons(out: Out, rows: Rows = 1000, seed: Seed = 0, labels: Labels = None) -> None:
    """Two half circles in the plane, which no centres can tell apart."""
    from cloister.lab.made import moons

    targets = _targets(out, labels)
    _saved(moons(rows, seed=_seed(seed)), *targets)


@make_app.command("hospital")
def make_hospital(out: Out, rows: Rows = 20_000, seed: Seed = 0, labels: Labels = None) -> None:
    """An invented hospital's table: id, date, ward, emergency, and eight numbers of seven groups of patients."""
    from cloister.lab.made import hospital

    targets = _targets(out, labels)
    _saved(hospital(rows, _seed(seed)), *targets)


def sample(
    result: Annotated[Path, typer.Argument(help="A result that fit, decode, advance or join saved.")],
    out: Annotated[
        Path, typer.Option("-o", "--out", help="The rows: .csv or .parquet, with a column 'synthetic' that is true.")
    ],
    rows: Annotated[int, typer.Option("-n", "--rows", parser=whole, metavar="<int>", help="How many.")] = 10_000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same rows; it is public, as the draw is.")] = 0,
    names: GroupNames = None,
) -> None:
    """Draw synthetic rows: groups by size, columns by what describes each group, or around its centre. Released values
    only: reads no rows, and costs nothing."""
    from cloister.lab import sampling
    from cloister.lab.tables import NAMED
    from cloister.run.saving import checked_target

    target, loaded = checked_target(out, NAMED, "synthetic rows"), result_from(result, names)
    made, left = sampling.sample(loaded, rows, _seed(seed), names is not None)
    made.save(target)
    if left:
        show(plain(f"left out: {', '.join(left)}: nothing released says how groups spread in them (--describe would)"))
    show(f"{rows:,} synthetic rows of {len(made.columns)} columns saved to {target}")
    show(f"drawn from released values alone, at no cost: the result's promise is theirs\n{loaded.privacy.headline}")


def _seed(seed: int) -> int:
    if seed < 0:
        raise InvalidInput(f"--seed is {seed}: give 0 or more")
    return seed


def _targets(out: Path, labels: Path | None) -> tuple[Path, Path | None]:
    """The places to save to, checked before anything is made."""
    from cloister.lab.tables import ENDINGS, NAMED
    from cloister.run.saving import checked_target

    target = checked_target(out, ENDINGS, "tables")
    if target.suffix in NAMED:
        checked_target(_bounds_of(target), (".toml",), "bounds")
    if labels is None:
        return target, None
    if labels.absolute() == target.absolute():
        raise InvalidInput(f"{labels} cannot hold the table and its labels: give --labels another file")
    return target, checked_target(labels, (".npy",), "labels")


def _bounds_of(target: Path) -> Path:
    """The file of bounds beside a table."""
    return target.with_suffix(".bounds.toml")


def _saved(made: NamedTable, target: Path, labels: Path | None) -> None:
    from cloister.lab.tables import NAMED

    with bar(f"{target.name} (rows)") as advance:
        made.save(target, advance)
    show(f"{len(made.labels):,} rows of {len(made.columns)} columns saved to {target}")
    if target.suffix in NAMED:
        bounds = _bounds_of(target)
        made.save_bounds(bounds)
        show(f"their public bounds saved to {bounds}")
    if labels is not None:
        made.save_labels(labels)
        show(f"the group of each row saved to {labels}")
