"""Descriptions: the groups of a run told by counts, in columns that it was clustered by and in others.

A method is put into the one that describes its groups (``Spec.adds``) after its frame, before anything is planned, so
that ledgers, plans and digests see an ordinary composition. Described columns come last among the rows' columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cloister.core.capabilities import Describing
from cloister.core.clustering import Problem
from cloister.core.errors import InvalidInput
from cloister.core.randomness import ANY_KEY
from cloister.core.registry.compose import Composed
from cloister.core.registry.registry import registry
from cloister.rows.categories import categories_of
from cloister.rows.selection import Selection

SHARE = 0.15
"""Of the budget, for a description, unless the caller says how much."""

LARGEST = 0.9
"""Most of the budget that may be for a description: the groups must be found, too."""

BOOLEAN = "true"
"""The one value that a column of booleans lists: others are false."""

VAGUE = 0.1
"""Standard errors of a count above this part of an average group are warned of."""


def describes(composed: Composed) -> bool:
    """Whether a run's method describes its groups."""
    return bool(composed.spec.wraps) and composed.spec.adds == "description"


def description(composed: Composed, counts: Composed | None, table: Selection, share: float) -> Composed:
    """A method put into the one that describes its groups.

    Args: counts, the oracle of the description; table, whose ``described`` columns are meant; share, of the budget.
    Raises: InvalidInput: the method counts no rows, so that no oracle of its trust is known; or as the component says.
    """
    if counts is None:
        raise InvalidInput(
            f"'{composed.spec.name}' as composed ({composed.trust} trust) has no oracle for such counts, and cannot "
            f"describe its groups: take another method or trust model, or leave out --describe (describe=)"
        )
    spec, listed = registry().wrapper("description"), list[str]()
    for name in table.described:
        category = table.category(name)
        values = len(category.values) if category is not None else int(name in table.booleans)
        listed.append(f"{table.place(name)}:{values}" if values else str(table.place(name)))
    beside = len(table.features) - len(table.clustered.features)
    parts = {spec.wraps: composed, "counts": counts}
    options: dict[str, Any] = {"columns": ",".join(listed), "beside": beside, "share": share}
    value = registry().load(spec)(**{name: part.value for name, part in parts.items()}, **options)
    return Composed(value, spec, parts, composed.trust)


def clustered(composed: Composed, problem: Problem) -> tuple[Composed, Problem]:
    """The method that clusters, in its frame, and its own problem: without what describes the groups."""
    return inside(composed, problem, "words", "description")


def inside(composed: Composed, problem: Problem, *added: str) -> tuple[Composed, Problem]:
    """The method without what adds these to it, and its own problem."""
    while composed.spec.adds in added:
        composed, problem = composed.inner[composed.spec.wraps], composed.value.parts(problem, ANY_KEY)[1]
    return composed, problem


def told(composed: Composed, columns: Sequence[str], categories: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """The values that each described column lists, none for numbers, in the order of a result's counts.

    Args: columns, names of all features; categories, public values by column.
    """
    composed = composed.inner[composed.spec.wraps] if composed.spec.adds == "words" else composed
    if not describes(composed):
        return {}
    firsts = {category.features[0]: category for category in categories_of(categories)}
    method: Describing = composed.value
    found = dict[str, list[str]]()
    for place, values in method.places or tuple((j, 0) for j in range(len(columns))):
        category = firsts.get(columns[place]) if values else None
        found[columns[place] if category is None else category.column] = (
            list(category.values) if category is not None else [BOOLEAN] * values
        )
    return found


def price(composed: Composed, problem: Problem, columns: Sequence[str], categories: Mapping[str, Sequence[str]]) -> str:
    """Share of the budget that a description takes, and how exact it is; empty if there is none. Reads no rows."""
    part = 1 - composed.value.share if composed.spec.adds == "words" else 1.0
    composed, problem = inside(composed, problem, "words")
    if not describes(composed):
        return ""
    names, of = list(told(composed, columns, categories)), "people" if composed.trust == "Local" else "budget"
    most = composed.value.most
    few = f" Of these columns the {most} that tell the groups apart best are released." if len(names) > most else ""
    return (
        f"Description: {part * composed.value.share:.1%} of the {of} counts what each group's rows hold in "
        f"{', '.join(names)}: a count has a standard error of {composed.value.error(problem):,.3g} rows.{few}"
    )


def warning(composed: Composed, problem: Problem) -> str:
    """Warning of counts that say little of an average group; else empty. By public figures."""
    composed, problem = inside(composed, problem, "words")
    if not describes(composed):
        return ""
    error, group = composed.value.error(problem), problem.rows / problem.k
    if error <= VAGUE * group:
        return ""
    return (
        f"counts of the description have a standard error of {error:,.3g} rows, and {problem.k} groups of "
        f"{problem.rows:,} rows have about {group:,.0f} each: describe fewer columns, or give more of the budget "
        f"(--describe-share)"
    )
