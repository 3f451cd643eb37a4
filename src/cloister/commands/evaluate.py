"""``cloister evaluate``: how well a result fits the caller's own rows."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cloister.commands.common import GroupNames, RowsOrAddress, plain, print_json, show, tell_columns, told_once
from cloister.commands.option_groups import excludes, option_groups, result_from
from cloister.commands.options import Printed
from cloister.commands.program import ending, printing
from cloister.rows.options import Reading
from cloister.showing.progress import progress

if TYPE_CHECKING:
    from cloister.commands.evaluating import EvaluationReport, GroupsOfRows
    from cloister.run.result import Result

MEANING = {
    "nicv": "mean squared distance to the nearest centre",
    "unclipped_nicv": "the same of the rows as they are, not clipped to the bounds",
    "k_median": "sum of distances to the nearest centre",
    "unclipped_k_median": "the same of the rows as they are, not clipped to the bounds",
    "silhouette": "of at most 10,000 rows drawn at random; from -1 to 1, the best",
    "davies_bouldin": "spread of clusters over their distances; 0 is the best",
    "center_mse": "mean squared distance from the non-private centres",
    "reference_nicv": "mean squared distance to the nearest non-private centre",
    "ratio": "nicv over that",
}

NOT_PRIVATE = "NOT private: these figures were computed from the rows themselves. Do not publish them with the result."

JUDGED_ALIKE = "the result says which they are", "categories", "user_column"


@option_groups
def evaluate(
    result: Annotated[Path, typer.Argument(help="A result that fit, decode, advance or join saved.")],
    rows: RowsOrAddress,
    reading: Annotated[Reading, excludes(*JUDGED_ALIKE)],
    printed: Annotated[Printed, excludes("figures that are not private are printed alone", "out")],
    reference: Annotated[
        bool, typer.Option(help="Compare with scikit-learn's k-means, which is not private, on the same rows.")
    ] = True,
    names: GroupNames = None,
) -> None:
    """How well released centres fit rows, clipped as the run clipped them. NOT private: the figures tell about the
    rows."""
    from cloister.commands.evaluating import judged
    from cloister.commands.predicting import rows_of
    from cloister.rows.selection import few

    loaded = result_from(result, names)
    with (
        ending(lambda error: "nothing was measured: run it again"),
        progress() as bar,
        closing(rows_of(loaded, rows, reading, told_once(), bar.advance)) as population,
    ):
        tell_columns(population)
        found = judged(loaded, population, reading.missing_of(loaded), reference)
    with printing(lambda: "run it again"):
        if printed.as_json:
            print_json(_plain(found, loaded))
            return
        show(NOT_PRIVATE)
        show(_rows(found, loaded, reference))
        sizes = [f"{called}: {size:,}" for called, size in zip(loaded.called, found.sizes, strict=True)]
        show(plain(f"Rows by nearest centre: {few(sizes)}"))
        if found.scaled is not None:
            show("In the units that the run took distances in, column by column:")
            show(_lines(found.scaled.as_dict(found.clipped)))
            show("In the columns' own units, in which the widest columns weigh most:")
        show(_lines(found.raw.as_dict(found.clipped)))


def _plain(found: EvaluationReport, result: Result) -> dict[str, Any]:
    scaled = {} if found.scaled is None else {"scaled": found.scaled.as_dict(found.clipped)}
    counts = {"rows": found.rows, "left_out": found.left_out, "clipped": found.clipped, "sampled": found.sampled}
    groups = [{"group": called, "rows": size} for called, size in zip(result.called, found.sizes, strict=True)]
    return {"private": False, **counts, "groups": groups, **found.raw.as_dict(found.clipped), **scaled}


def which_rows(found: EvaluationReport | GroupsOfRows, result: Result) -> str:
    """Which rows the figures are of, and where the run read others."""
    left = f", {found.left_out:,} left out for missing or infinite cells" if found.left_out else ""
    moved = f", {found.clipped:,} of them clipped to the run's bounds, as the run clipped them" if found.clipped else ""
    most, problem = result.privacy.rows_per_user, result.problem
    beside = set(problem.get("described", ())).difference(result.columns, problem.get("categories", ()))
    others = [
        *([] if most is None else [f"the run kept at most {most:,} of each user"]),
        *(["the run left out those with missing cells in columns that are only described, too"] if beside else []),
    ]
    return f"{found.rows:,} rows{moved}{left}." + "".join(f" These are all rows: {words}." for words in others)


def _rows(found: EvaluationReport, result: Result, reference: bool) -> str:
    text = which_rows(found, result)
    if not reference:
        return text
    if found.raw.reference is None:
        return f"{text} They are fewer than the centres: there is no reference."
    sample = "these rows" if found.sampled == found.rows else f"{found.sampled:,} of these rows, drawn at random"
    return f"{text} Reference: the best of 10 starts of scikit-learn's k-means on {sample}, NOT private."


def _lines(figures: dict[str, Any]) -> str:
    """Figures, a line each."""
    shown = {n: v if isinstance(v, str) else f"{v:.6g}" for n, v in figures.items() if v is not None}
    ordered = sorted(shown, key=list(MEANING).index)
    return "\n".join(f"  {name:<18} {shown[name]:<13} {MEANING[name]}" for name in ordered)
