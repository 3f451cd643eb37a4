"""Sizes and centres of a result as text with their standard errors, for every table, page and notebook."""

from __future__ import annotations

import numpy as np

from cloister.core.decimals import resolved
from cloister.core.types import Floats
from cloister.run.estimates import Estimate, rounded_centers, table_in, widths_of
from cloister.run.result import Result


def center_texts(result: Result) -> list[list[str]]:
    """Return a result's centres (k, d) as text, with their stated standard errors, or else to six digits.

    Coordinates of one-hot columns are shares.
    """
    values, errors = as_shares(result)
    mixed = {j for places in category_places(result).values() for j in places}
    widths = widths_of(result.centers, result.details, result.domain) if errors is None else []

    def text(i: int, j: int) -> str:
        value, error = float(values[i, j]), None if errors is None else float(errors[i, j])
        if j in mixed:
            return Estimate.of_share(value, error).text
        return resolved(value, widths[j], 6) if error is None else Estimate(value, error).text

    k, d = values.shape
    return [[text(i, j) for j in range(d)] for i in range(k)]


def size_texts(result: Result) -> list[str] | None:
    """Return the released sizes (k,) as text, with their standard errors; None if there are none."""
    if result.weights is None:
        return None
    errors = table_in(result.details, "weights_error", result.weights.shape)
    stated = [None] * len(result.weights) if errors is None else errors.tolist()
    return [Estimate.of_size(*size).text for size in zip(result.weights.tolist(), stated, strict=True)]


def category_places(result: Result) -> dict[str, list[int]]:
    """Return the positions of each category's one-hot columns, for categories that have all of theirs."""
    places, by_category = {name: j for j, name in enumerate(result.columns)}, dict[str, list[int]]()
    for name, (column, _) in result.one_hot.items():
        by_category.setdefault(column, []).append(places.get(name, -1))
    return {column: positions for column, positions in by_category.items() if min(positions) >= 0}


def as_shares(result: Result) -> tuple[Floats, Floats | None]:
    """Return the centres (k, d) for display, and their stated errors (k, d), or None.

    A one-hot coordinate is the share of rows with that value: negative ones become 0, and if a category's sum exceeds
    1, its shares and errors are divided by it. An error is at most the distance to the farthest possible share.
    """
    errors = table_in(result.details, "centers_error", result.centers.shape)
    centers = (
        rounded_centers(result.centers, result.details, result.domain) if errors is None else result.centers.copy()
    )
    errors = None if errors is None else errors.copy()
    for places in category_places(result).values():
        shares = np.maximum(centers[:, places], 0.0)
        totals = np.maximum(shares.sum(axis=1, keepdims=True), 1.0)
        centers[:, places] = shares / totals
        if errors is not None:
            farthest = np.maximum(centers[:, places], 1 - centers[:, places])
            errors[:, places] = np.minimum(errors[:, places] / totals, farthest)
    return centers, errors
