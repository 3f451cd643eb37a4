"""``cloister evaluate``: how well the centres of a result fit the caller's own rows."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cloister.commands.common import (
    GroupNames,
    RowsOrAddress,
    SavedResult,
    notes_once,
    plain,
    print_json,
    show,
    tell_columns,
)
from cloister.commands.option_groups import excludes, option_groups, result_from
from cloister.commands.options import OutputOptions
from cloister.commands.program import ending, printing
from cloister.core.registry.records import objective_in
from cloister.rows.options import Reading
from cloister.showing.progress import progress

if TYPE_CHECKING:
    from cloister.commands.evaluating import EvaluationReport
    from cloister.commands.grouping import GroupsOfRows
    from cloister.run.result import Result

MEANING = {
    "nicv": "mean squared distance to the nearest centre",
    "unclipped_nicv": "the same for the rows as they are, not clipped to the bounds",
    "k_median": "sum of distances to the nearest centre",
    "unclipped_k_median": "the same for the rows as they are, not clipped to the bounds",
    "silhouette": "of at most 10,000 rows drawn at random; from -1 to 1, the best",
    "davies_bouldin": "spread of clusters over their distances; 0 is the best",
    "center_mse": "mean squared distance from the non-private centres",
    "reference_nicv": "mean squared distance to the nearest non-private centre",
    "ratio": "nicv over reference_nicv",
}
"""Figures in the order that they are printed, the objective's own first, with their descriptions."""

COSTS = {"k-means": "nicv", "k-median": "k_median"}
"""Figure that a run of each objective minimises."""

NOT_PRIVATE = "NOT private: these figures were computed from the rows themselves. Do not publish them with the result."

EXCLUDED = "the result has the categories, and figures are of rows", "categories", "user_column"
"""Options of rows that a command does not take if it compares rows with a result."""


@option_groups
def evaluate(
    result: SavedResult,
    rows: RowsOrAddress,
    reading: Annotated[Reading, excludes(*EXCLUDED)],
    printed: Annotated[OutputOptions, excludes("figures that are not private are only printed", "out")],
    reference: Annotated[
        bool, typer.Option(help="Compare with scikit-learn's k-means on the same rows, which is not private.")
    ] = True,
    names: GroupNames = None,
) -> None:
    """Measure how well released centres fit rows.

    Rows are clipped as the run clipped them. NOT private: the figures depend on the rows themselves.
    """
    from cloister.commands.evaluating import evaluated
    from cloister.commands.predicting import rows_of
    from cloister.rows.selection import few

    loaded = result_from(result, names)
    with (
        ending(lambda error: "nothing was measured: run it again"),
        progress() as bar,
        closing(rows_of(loaded, rows, reading, notes_once(), bar.advance)) as population,
    ):
        tell_columns(population)
        figures = evaluated(loaded, population, reading.missing_of(loaded), reference)
    with printing(lambda: "run it again"):
        if printed.as_json:
            print_json(_as_dict(figures, loaded))
            return
        show(NOT_PRIVATE)
        show(_objective(figures, loaded))
        show(_rows(figures, loaded, reference))
        sizes = [f"{loaded.called[i]}: {figures.sizes[i]:,}" for i in loaded.by_size]
        show(plain(f"Rows by nearest centre: {few(sizes)}"))
        if figures.scaled is not None:
            show("In the units that the run took distances in, column by column:")
            show(_lines(figures.scaled.as_dict(figures.clipped), loaded))
            show("In the columns' own units, in which the widest columns weigh most:")
        show(_lines(figures.raw.as_dict(figures.clipped), loaded))


def _as_dict(report: EvaluationReport, result: Result) -> dict[str, Any]:
    scaled = {} if report.scaled is None else {"scaled": report.scaled.as_dict(report.clipped)}
    counts = {"rows": report.rows, "left_out": report.left_out, "clipped": report.clipped, "sampled": report.sampled}
    groups = [{"group": called, "rows": size} for called, size in zip(result.called, report.sizes, strict=True)]
    return {"private": False, **counts, "groups": groups, **report.raw.as_dict(report.clipped), **scaled}


def _objective(report: EvaluationReport, result: Result) -> str:
    """Return a line with the cost that the run minimised, in the units that it took distances in."""
    objective = objective_in(result.method)
    name = COSTS[objective]
    figures = (report.raw if report.scaled is None else report.scaled).as_dict(report.clipped)
    units = "" if report.scaled is None else ", in the units of the run"
    ratio = f"; {figures['ratio']:.6g} times the reference's" if name == "nicv" and figures["ratio"] else ""
    return f"{objective} cost, which the run minimised: {figures[name]:.6g} ({MEANING[name]}{units}){ratio}."


def which_rows(report: EvaluationReport | GroupsOfRows, result: Result) -> str:
    """Return a sentence on the rows that the figures are of, and on where the run read others."""
    left_out = f", {report.left_out:,} left out for missing or infinite cells" if report.left_out else ""
    clipped = f", {report.clipped:,} of them clipped to the run's bounds" if report.clipped else ""
    limit, problem = result.privacy.rows_per_user, result.problem
    beside = set(problem.get("described", ())).difference(result.columns, problem.get("categories", ()))
    differences = [
        *([] if limit is None else [f"the run kept at most {limit:,} of each user"]),
        *(["the run also left out those with missing cells in columns that are only described"] if beside else []),
    ]
    return f"{report.rows:,} rows{clipped}{left_out}." + "".join(f" These are all rows: {d}." for d in differences)


def _rows(report: EvaluationReport, result: Result, reference: bool) -> str:
    text = which_rows(report, result)
    if not reference:
        return text
    if report.raw.reference is None:
        return f"{text} They are fewer than the centres: there is no reference."
    sample = "these rows" if report.sampled == report.rows else f"{report.sampled:,} of these rows, drawn at random"
    return f"{text} Reference: the best of 10 starts of scikit-learn's k-means on {sample}, NOT private."


def _lines(figures: dict[str, Any], result: Result) -> str:
    """Return a line per figure, those of the run's objective first."""
    texts = {n: v if isinstance(v, str) else f"{v:.6g}" for n, v in figures.items() if v is not None}
    order, cost = list(MEANING), COSTS[objective_in(result.method)]
    names = sorted(texts, key=lambda name: (not name.endswith(cost) or name.startswith("reference"), order.index(name)))
    return "\n".join(f"  {name:<18} {texts[name]:<13} {MEANING[name]}" for name in names)
