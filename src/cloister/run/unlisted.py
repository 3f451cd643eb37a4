"""Categories whose listed values hardly any row seems to have, by the released centres: a misspelt list, most often.

A cell that is not listed is none of the values, and never decides whether a run goes (``core.categories``), so that
nobody is told of it before. Afterwards the centres tell: a cluster's coordinates in a category's features add up to the
share of its rows that have a listed value, but for noise.
"""

from __future__ import annotations

import numpy as np

from cloister.run.result import Result

HARDLY_ANY = 0.2
"""Least share of rows with listed values that passes: noise adds to a share of none, since centres lie in the box."""

SHOWN = 8
"""Most values that are named."""


def unlisted(result: Result) -> tuple[str, ...]:
    """A sentence for each category whose listed values hardly any row seems to hold. Released values only."""
    weights = np.ones(len(result.centers)) if result.weights is None else np.maximum(result.weights, 0.0)
    weights = weights if weights.any() else np.ones(len(result.centers))
    places, values = {name: j for j, name in enumerate(result.columns)}, dict[str, list[str]]()
    shares = dict[str, float]()
    for name, (column, value) in result.one_hot.items():
        if name in places:
            held = np.average(np.clip(result.centers[:, places[name]], 0.0, 1.0), weights=weights)
            shares[column] = shares.get(column, 0.0) + float(held)
            values.setdefault(column, []).append(value)
    return tuple(
        f"by the released centres about {share:.0%} of the rows hold a listed value of category '{column}' "
        f"({', '.join(values[column][:SHOWN])}{', ...' if len(values[column]) > SHOWN else ''}): rows with another "
        f"are none of them. Check that all values are listed, and spelt as in the rows"
        for column, share in shares.items()
        if share < HARDLY_ANY
    )
