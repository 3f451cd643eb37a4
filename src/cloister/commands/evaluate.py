"""``cloister evaluate``: how well a result fits the caller's own rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cloister.commands.common import (
    AsJson,
    Delimiter,
    Encoding,
    Rows,
    names,
    print_json,
    refuse_addresses,
    show,
    tell_columns,
)
from cloister.commands.endings import printing

MEANING = {
    "nicv": "mean squared distance to the nearest centre",
    "k_median": "sum of distances to the nearest centre",
    "silhouette": "of at most 10,000 rows drawn at random; from -1 to 1, the best",
    "davies_bouldin": "spread of clusters over their distances; 0 is the best",
    "center_mse": "mean squared distance from the non-private centres: with --reference",
}


def evaluate(
    result: Annotated[Path, typer.Argument(help="A result that fit, decode, advance or join saved.")],
    rows: Rows,
    columns: Annotated[str | None, typer.Option(help="Columns to use, separated by commas; default: the "
        "result's.")] = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    reference: Annotated[bool, typer.Option(help="Also compare with non-private k-means++ on the same rows.")] = False,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """How well released centres fit rows. NOT private: the figures tell about the rows."""
    from cloister import metrics
    from cloister.commands.predicting import rows_of
    from cloister.run.result import Result

    refuse_addresses(rows)
    loaded = Result.load(result)
    population = rows_of(loaded, rows, names(columns), delimiter=delimiter, encoding=encoding)
    table = population.table()
    tell_columns(population)

    def figures(units: Any) -> dict[str, Any]:
        own = table / units
        other = metrics.reference_centers(own, len(loaded.centers), seed=0) if reference else None
        return metrics.evaluate(own, loaded.centers / units, other).as_dict()

    raw, scaled = figures(1.0), None if loaded.units is None else figures(loaded.units)
    with printing(lambda: "run it again"):
        if as_json:
            print_json({"private": False, **raw, **({} if scaled is None else {"scaled": scaled})})
            return
        show("NOT private: these figures were computed from the rows themselves. Do not publish them with the result.")
        show(_lines(raw))
        if scaled is not None:
            show("In the units that the run took distances in, column by column:")
            show(_lines(scaled))


def _lines(figures: dict[str, Any]) -> str:
    """Figures, a line each."""
    shown = {n: "-" if v is None else v if isinstance(v, str) else f"{v:.6g}" for n, v in figures.items()}
    return "\n".join(f"  {name:<16} {text:<13} {MEANING[name]}" for name, text in shown.items())
