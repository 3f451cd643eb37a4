"""Warnings about a run: from public figures before anything is spent, and from released figures afterwards.

* Rows beyond the intervals of a zoomed run were clipped to an interval's end. The run cannot see how many there are: no
  size, centre or standard error covers that bias.
* A cell with an unlisted value of its category counts as no value, and never makes a run refuse
  (``rows.categories``), so nobody learns of it before. Afterwards the centres show it: up to noise, a cluster's
  coordinates in a category's features add up to the share of its rows that have a listed value.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from cloister.core.domains import Box
from cloister.core.errors import PrivacyWarning, UtilityWarning
from cloister.core.frames import GROUP
from cloister.core.types import Bools, Floats
from cloister.run.estimates import table_in
from cloister.run.request import PreparedRun
from cloister.run.result import Result
from cloister.run.statement import large_delta

LOUD = 10.0
"""Epsilon above which little is hidden: the guarantee is a factor of e^epsilon, here 22,026."""

HARDLY_ANY = 0.01
"""Share of the average noisy size below which a centre holds hardly any rows."""


def before(plan: PreparedRun) -> Iterator[UserWarning]:
    """Yield warnings from public figures, before a row is read.

    Those that depend on a number of rows which is still to be counted are left to ``after`` and the statement.
    """
    if not plan.composed.private:
        return
    epsilon, delta = plan.total.epsilon, plan.total.delta
    if epsilon > LOUD:
        times = f"e^{epsilon:g}" + (f" = {math.exp(epsilon):,.0f}" if epsilon < 20 else "")
        yield PrivacyWarning(
            f"epsilon = {epsilon:g} hides little: a result may be {times} times as likely with a person's row as "
            f"without it. At most 1 protects well, above {LOUD:g} hardly"
        )
    if plan.rows is None:
        return
    if text := large_delta(delta, plan.rows):
        yield PrivacyWarning(text)
    yield from map(UtilityWarning, plan.warnings)


def after(result: Result) -> Iterator[UserWarning]:
    """Yield warnings about the released centres, from released figures."""
    for text in (*untrusted(result), *at_bounds(result), *beyond(result), *misjudged(result), *unsettled(result)):
        yield UtilityWarning(text)
    if text := result.details.get("auto", {}).get("warning"):
        yield UtilityWarning(text)
    for text in unlisted(result):
        yield UtilityWarning(text)


UNSURE = 3.0
"""Standard errors from zero within which a released size is not to be trusted."""


def untrusted(result: Result) -> list[str]:
    """Return sentences on centres whose errors say not to trust their size or place; each centre is in at most one."""
    empty = hardly_any(result)
    doubtful = np.column_stack([small_sizes(result), lost_places(result)]) & ~empty[:, None]
    texts = list[str]()
    if empty.any():
        texts.append(
            f"{empty.sum()} of {len(empty)} centres hold hardly any rows by their noisy counts: fewer centres, "
            f"narrower bounds or more budget would use them better"
        )
    if doubtful.any():
        why = ("size", "place")
        which = [
            f"{i} ({' and '.join(word for word, is_so in zip(why, row, strict=True) if is_so)})"
            for i, row in enumerate(doubtful)
            if row.any()
        ]
        texts.append(
            f"not to be trusted: centre {_named(which)}. A size is within {UNSURE:g} stated errors of zero, or a "
            f"place is off by more than the distance to the next centre by its stated errors: ask for fewer centres, "
            f"or give narrower bounds or more budget"
        )
    return texts


def hardly_any(result: Result) -> Bools:
    """Return the mask (k,) of centres that hold hardly any rows by their released sizes."""
    if result.weights is None:
        return np.zeros(len(result.centers), np.bool_)
    return np.asarray(result.weights <= max(0.0, HARDLY_ANY * result.weights.mean()))


def small_sizes(result: Result) -> Bools:
    """Return the mask (k,) of centres whose released size may be noise alone."""
    errors = table_in(result.details, "weights_error", (len(result.centers),))
    if result.weights is None or errors is None:
        return np.zeros(len(result.centers), np.bool_)
    return np.asarray(result.weights <= UNSURE * errors)


def lost_places(result: Result) -> Bools:
    """Return the mask (k,) of centres whose stated error, in the run's units, exceeds the gap to the next centre."""
    errors, k = table_in(result.details, "centers_error", result.centers.shape), len(result.centers)
    if errors is None or k < 2:
        return np.zeros(k, np.bool_)
    units = 1.0 if result.units is None else result.units
    centers, lengths = result.centers / units, np.linalg.norm(errors / units, axis=1)
    next_one = [np.linalg.norm(np.delete(centers, i, axis=0) - centers[i], axis=1).min() for i in range(k)]
    return np.asarray(lengths > np.array(next_one))


MOVED = 0.25
"""Fraction of the distance to the next centre beyond which a centre was still moving in the last round."""


def unsettled(result: Result) -> list[str]:
    """Return a sentence that names the centres still moving in the last round, if any."""
    moves = table_in(result.details, "last_moves", (len(result.centers),))
    if moves is None or not (moves > MOVED).any():
        return []
    which = _named([f"{i} ({moves[i]:.0%})" for i in np.flatnonzero(moves > MOVED)])
    return [
        f"still moving in the last round, in parts of the way to the next centre: centre {which}. Its size and place "
        f"may be wrong by more than their stated errors: give more budget, fewer centres, or another method"
    ]


MANY = 2.0
"""Multiple of the public number of rows beyond which the released sizes contradict it."""


def misjudged(result: Result) -> list[str]:
    """Return a sentence if the released sizes clearly add up to far more rows than the public number."""
    errors, rows = table_in(result.details, "weights_error", (len(result.centers),)), result.privacy.rows
    if result.weights is None or errors is None or result.privacy.count_share:
        return []
    total = float(result.weights.sum())
    if total - CERTAIN * float(np.abs(errors).sum()) <= MANY * rows:
        return []
    return [
        f"the released sizes add up to about {total:,.0f} rows, and {rows:,} were said to be there: what was planned "
        f"by that number suits fewer rows. Give a round public figure of the right size (--rows, rows=), or none"
    ]


BORDER = 0.01
"""Fraction of the declared range within which a centre counts as at an end."""


def at_bounds(result: Result) -> list[str]:
    """Return a sentence if every centre lies at an end of the declared bounds, as if all rows were beyond.

    Lower ends of 0 do not count, since amounts and counts begin there, unless all of a centre's coordinates are at
    ends; nor do the features of categories. Balls are skipped: normalised rows (embeddings) lie on their border.
    """
    domain, spread = result.domain, result.one_hot
    numeric = [j for j, name in enumerate(result.columns) if name not in spread]
    if not isinstance(domain, Box) or domain.dimension != len(result.columns) or not numeric:
        return []
    lower, upper = np.array(domain.lower)[numeric], np.array(domain.upper)[numeric]
    margin, centers = BORDER * (upper - lower), result.centers[:, numeric]
    low, high = centers <= lower + margin, centers >= upper - margin
    telling = (low & (lower != 0)) | high
    if not (telling.any(axis=1) | (low | high).all(axis=1)).all():
        return []
    names = _named([result.columns[numeric[j]] for j in np.flatnonzero((low | high).any(axis=0))])
    return [
        f"every centre lies at an end of the declared bounds ({names}): rows beyond an end are clipped to it. Check "
        f"that the bounds are those of these columns, one pair (lower, upper) each and in the columns' units"
    ]


NEAR = 0.05
"""Fraction of an interval: its margin at each end, outside of where rows were clearly seen."""

CERTAIN = 5.0
"""Standard errors beyond which noise is ruled out."""

CLEAR = 2.0
"""Standard errors within which a centre counts as at an end."""

SHOWN = 6
"""Limit of columns, or centres, that a warning names."""


def beyond(result: Result) -> list[str]:
    """Return a sentence (without full stop) on centres that clipped rows may have moved, if any."""
    cut = ends_cut(result)
    at_end = np.zeros(result.centers.shape, np.bool_) if cut is None else centers_at_ends(result, cut)
    if not at_end.any():
        return []
    which = _named([f"{i} ({_columns(result, row)})" for i, row in enumerate(at_end) if row.any()])
    return [
        f"at an end of the interval that zoom narrowed a column to: centre {which}. Rows of such a group may lie "
        f"beyond: they were clipped, and its standard errors do not cover how far that moved the centre. Narrower "
        f"bounds that hold the group would tell, or a run without zoom"
    ]


def unproved(result: Result) -> list[str]:
    """Return a sentence on what zoom cannot see where it cut bounds, if any.

    It follows from public figures and is stated before the run, unlike the faults of this run (``beyond``).
    """
    cut = ends_cut(result)
    if cut is None or not cut.any() or (share := _share(result)) <= GROUP:
        return []
    limit = (
        "how many cannot be told" if share >= 1 else f"groups of less than {share:.1%} of the rows may be unseen there"
    )
    return [
        f"zoom narrowed the bounds of {_columns(result, cut[:, 0] | cut[:, 1])} to where it saw rows. Rows beyond were "
        f"clipped, which no size, centre or standard error shows, and {limit}. Narrower bounds or more "
        f"budget would tell"
    ]


def ends_cut(result: Result) -> Bools | None:
    """Return the mask (d, 2) of interval ends within the bounds; None if the run released no intervals."""
    d, intervals = len(result.columns), _intervals(result)
    bounds = result.problem.get("bounds")
    if intervals is None or not isinstance(bounds, dict) or "lower" not in bounds:
        return None
    lower, upper = np.asarray(bounds["lower"], np.float64), np.asarray(bounds["upper"], np.float64)
    if lower.shape != (d,) or upper.shape != (d,):
        return None
    return np.column_stack([intervals[:, 0] > lower, intervals[:, 1] < upper])


def centers_at_ends(result: Result, cut: Bools) -> Bools:
    """Return the mask (k, d) of centres at, or beyond, an end that was cut (d, 2)."""
    intervals = _intervals(result)
    assert intervals is not None
    errors = table_in(result.details, "centers_error", result.centers.shape)
    margin = np.maximum(NEAR * (intervals[:, 1] - intervals[:, 0]), 0.0 if errors is None else CLEAR * errors)
    low, high = result.centers - margin <= intervals[:, 0], result.centers + margin >= intervals[:, 1]
    return np.asarray((low & cut[:, 0]) | (high & cut[:, 1]), np.bool_)


def _intervals(result: Result) -> Floats | None:
    paid = "unseen" in result.details
    return table_in(result.details, "intervals", (len(result.columns), 2)) if paid else None


def _share(result: Result) -> float:
    """Return the share of the rows that zoom may have missed, as it states."""
    share = result.details["unseen"]
    return float(share) if isinstance(share, (int, float)) and 0 <= share <= 1 else 1.0


def _columns(result: Result, which: Bools) -> str:
    return _named([result.columns[j] for j in np.flatnonzero(which)])


def _named(names: Sequence[str]) -> str:
    ending = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + ending


LISTED = 0.2
"""Share of rows with listed values that is warned of. Noise raises a share of 0, since centres lie in the box."""

NAMED = 8
"""Limit of values that a warning names."""


def unlisted(result: Result) -> tuple[str, ...]:
    """Return a sentence for each category whose listed values hardly any row seems to have. Released values only."""
    weights = np.ones(len(result.centers)) if result.weights is None else np.maximum(result.weights, 0.0)
    weights = weights if weights.any() else np.ones(len(result.centers))
    places, values = {name: j for j, name in enumerate(result.columns)}, dict[str, list[str]]()
    shares = dict[str, float]()
    for name, (column, value) in result.one_hot.items():
        if name in places:
            part = np.average(np.clip(result.centers[:, places[name]], 0.0, 1.0), weights=weights)
            shares[column] = shares.get(column, 0.0) + float(part)
            values.setdefault(column, []).append(value)
    return tuple(
        f"by the released centres about {share:.0%} of the rows hold a listed value of category '{column}' "
        f"({', '.join(values[column][:NAMED])}{', ...' if len(values[column]) > NAMED else ''}): rows with another "
        f"are none of them. Check that all values are listed, and spelt as in the rows"
        for column, share in shares.items()
        if share < LISTED
    )
