"""``cloister data`` and ``cloister sample``: rows that are not secret, and synthetic rows from a result alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cloister.commands.common import AsJson, GroupNames, SavedResult, parse_whole, plain, print_json, show
from cloister.commands.option_groups import result_from
from cloister.commands.program import Commands
from cloister.commands.progress import bar
from cloister.core.errors import InvalidInput, UnknownName

if TYPE_CHECKING:
    from cloister.lab.tables import NamedTable

data_app = typer.Typer(cls=Commands, no_args_is_help=True, help="Get public data sets, or generate tables.")

FORMS = "npz", "csv", "parquet"
"""Files that ``get`` writes."""

Rows = Annotated[int, typer.Option("--rows", parser=parse_whole, metavar="<int>", help="Number of rows.")]
Seed = Annotated[int, typer.Option(help="Seed: the same one gives the same table.")]
Out = Annotated[
    Path,
    typer.Option(
        "-o",
        "--out",
        help="File for the table: .csv, .parquet, .npy or .npz. CSV and Parquet keep the columns' names, and get a "
        "file of public bounds beside them.",
    ),
]
Labels = Annotated[Path | None, typer.Option(help="Also save the true group of each row: .npy.")]


@data_app.command("list")
def list_sets(as_json: AsJson = False) -> None:
    """List the public data sets, with size, licence and source.

    Reads nothing from the network.
    """
    from cloister.lab.catalogue import catalogue

    if as_json:
        print_json([entry.as_dict() for entry in catalogue().values()])
        return
    for entry in catalogue().values():
        show(f"{entry.name}: {entry.title}. {entry.rows:,} rows, {entry.columns} columns, k = {entry.k}")
        show(f"  licence: {entry.licence}\n  source: {entry.where}")


@data_app.command()
def get(
    sets: Annotated[list[str], typer.Argument(help="Names of data sets, as 'cloister data list' prints them.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder to save to; made if it does not exist.")] = Path(),
    form: Annotated[str, typer.Option("--format", help="Format of the files: npz, csv or parquet.")] = "npz",
) -> None:
    """Download public data sets, and check their contents.

    Connects to the servers of their sources.
    """
    from cloister.lab.catalogue import entry_of
    from cloister.lab.download import rows_of
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
    k: Annotated[int, typer.Option("-k", "--k", help="Number of groups, at least 2.")] = 8,
    rows: Rows = 10_000,
    columns: Annotated[int, typer.Option(help="Number of columns, at least 2.")] = 2,
    separation: Annotated[
        float,
        typer.Option(
            help="Separation of each group from its nearest neighbour, from -1 to 1: 0.01 is close, 0.21 separated, "
            "0.34 well separated."
        ),
    ] = 0.21,
    unequal: Annotated[
        bool, typer.Option("--unequal", help="Make groups of unequal sizes, as 1 : 2 : ... : k.")
    ] = False,
    outliers: Annotated[int, typer.Option(help="Number of additional rows, far and near.")] = 0,
    seed: Seed = 0,
    labels: Labels = None,
) -> None:
    """Generate Gaussian groups in [-1, 1]."""
    from cloister.lab.generated import blobs

    targets = _targets(out, labels)
    table = blobs(rows, columns, k, separation=separation, unequal=unequal, outliers=outliers, seed=_seed(seed))
    _save(table, *targets)


@make_app.command("moons")
def make_moons(out: Out, rows: Rows = 1000, seed: Seed = 0, labels: Labels = None) -> None:
    """Generate two half circles, which centres cannot separate."""
    from cloister.lab.generated import moons

    targets = _targets(out, labels)
    _save(moons(rows, seed=_seed(seed)), *targets)


@make_app.command("hospital")
def make_hospital(out: Out, rows: Rows = 20_000, seed: Seed = 0, labels: Labels = None) -> None:
    """Generate the table of an invented hospital.

    It has an id, a date, a ward, an emergency flag and eight numbers, of seven groups of patients.
    """
    from cloister.lab.hospital import hospital

    targets = _targets(out, labels)
    _save(hospital(rows, _seed(seed)), *targets)


def sample(
    result: SavedResult,
    out: Annotated[
        Path,
        typer.Option(
            "-o", "--out", help="File for the rows: .csv or .parquet, with a column 'synthetic' that is true."
        ),
    ],
    rows: Annotated[
        int, typer.Option("-n", "--rows", parser=parse_whole, metavar="<int>", help="Number of rows.")
    ] = 10_000,
    seed: Annotated[int, typer.Option(help="Seed, which is public: the same one gives the same rows.")] = 0,
    names: GroupNames = None,
) -> None:
    """Draw synthetic rows from a result.

    Draws groups by their sizes, and columns by each group's histograms or else around its centre. Uses released values
    only: reads no rows, and spends nothing.
    """
    from cloister.lab import sampling
    from cloister.lab.tables import NAMED
    from cloister.run.saving import checked_target

    target, loaded = checked_target(out, NAMED, "synthetic rows"), result_from(result, names)
    table, omitted = sampling.sample(loaded, rows, _seed(seed), names is not None)
    table.save(target)
    if omitted:
        show(
            plain(f"left out: {', '.join(omitted)}: nothing released says how groups spread in them (--describe would)")
        )
    show(f"{rows:,} synthetic rows of {len(table.columns)} columns saved to {target}")
    show(f"drawn from released values alone, at no cost: the result's promise is theirs\n{loaded.privacy.headline}")


def _seed(seed: int) -> int:
    if seed < 0:
        raise InvalidInput(f"--seed is {seed}: give 0 or more")
    return seed


def _targets(out: Path, labels: Path | None) -> tuple[Path, Path | None]:
    """Return the files to save to, checked before anything is made."""
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
    """Return the file of bounds beside a table."""
    return target.with_suffix(".bounds.toml")


def _save(table: NamedTable, target: Path, labels: Path | None) -> None:
    from cloister.lab.tables import NAMED

    with bar(f"{target.name} (rows)") as advance:
        table.save(target, advance)
    show(f"{len(table.labels):,} rows of {len(table.columns)} columns saved to {target}")
    if target.suffix in NAMED:
        bounds = _bounds_of(target)
        table.save_bounds(bounds)
        show(f"their public bounds saved to {bounds}")
    if labels is not None:
        table.save_labels(labels)
        show(f"the group of each row saved to {labels}")
