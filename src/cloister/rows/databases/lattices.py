"""Domains of ``docs/reference/format_questions.md`` in SQL, operation for operation: rows are snapped to the lattice.

Some engines raise where IEEE 754 overflows to infinity or underflows to zero. Rows are clipped before that, to values
that snap to the same point; each kind says why.

Also ``shrink`` of the same document: vectors that exceed their bound are scaled to keep it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import attrs
import ibis
import numpy as np

from cloister.core.frames import GRADES, OCTAVES, STEPS
from cloister.core.lattice import EXACT, Bound
from cloister.rows.databases.stage import (
    LARGEST,
    Description,
    Expr,
    NotCompiled,
    Stage,
    clipped,
    floored,
    number,
    rounded,
    squared,
    total,
    truncated,
)

UNDER = 1 - 2.0**-30
"""Factor just below 1, so that rounding in a product cannot cross an integer."""


def shrink(stage: Stage, bound: Bound, longest: int) -> Stage:
    """Shrink integer rows with norms of at most ``longest`` to a bound.

    No branch divides by zero, since an engine may evaluate all of them.

    Raises:
        NotCompiled: squared lengths are not exact in doubles.
    """
    if longest**2 >= EXACT:
        raise NotCompiled("squared lengths of such vectors are not exact in doubles")
    stage, (squares,) = stage.add(squared(stage.x))
    stage, (length,) = stage.add(ibis.greatest(stage[squares], number(bound.l2**2)))
    stage = _scaled(stage, stage[squares] > number(bound.l2**2), number(bound.l2) / stage[length].sqrt())
    if bound.l1 < bound.implied:
        stage, (sums,) = stage.add(total([x.abs() for x in stage.x]))
        beyond = stage[sums] > number(bound.l1)
        stage = _scaled(stage, beyond, number(bound.l1) / ibis.greatest(stage[sums], number(bound.l1)))
    return stage


def _scaled(stage: Stage, which: Expr, factor: Expr) -> Stage:
    stage, (scale,) = stage.add(ibis.ifelse(which, factor * number(UNDER), number(1)))
    return stage.moved([truncated(x * stage[scale]) for x in stage.x])


def is_within(vectors: Bound, bound: Bound) -> bool:
    """Return True if every vector within one bound is within the other, so that ``shrink`` changes none."""
    return vectors.l2 <= bound.l2 and (bound.l1 == bound.implied or vectors.l1 <= bound.l1)


FAR = 2.0**80
"""Maximum distance of a row's column from the middle of a ball, in lattice steps."""


def snap_rows(stage: Stage, domain: Description) -> Stage:
    """Snap rows of features to the lattice; raise NotCompiled if there is no SQL for the domain."""
    if domain["kind"] not in KINDS:
        raise NotCompiled(f"a domain of kind '{domain['kind']}' has no form in SQL")
    return KINDS[domain["kind"]](stage, domain)


def _box(stage: Stage, domain: Description) -> Stage:
    """Snap to a box: x = clip(round((clip(row, lower, upper) - middle) / unit), -sides, sides).

    round(a / unit) is computed as the nearest multiple of the unit, divided by the unit: quotients by powers of two are
    exact, and no dividend is smaller than the unit, unless it is zero. All steps are monotone in the row: if the ends
    of a column map to within its sides, all rows do.
    """
    unit, sides = float(domain["unit"]), domain["sides"]
    ends = list(zip(domain["lower"], domain["upper"], domain["middle"], sides, strict=True))
    stage = stage.moved(
        [
            rounded(clipped(x, low, high) - number(middle), unit) * number(1 / unit)
            for x, (low, high, middle, _) in zip(stage.x, ends, strict=True)
        ]
    )
    beyond = {
        j
        for j, (low, high, middle, side) in enumerate(ends)
        if round((high - middle) / unit) > side or round((low - middle) / unit) < -side
    }
    if beyond:
        clips = [clipped(x, -sides[j], sides[j]) if j in beyond else x for j, x in enumerate(stage.x)]
        stage = stage.moved(clips)
    return attrs.evolve(stage, bound=_of_box(sides))


def _of_box(sides: list[int]) -> Bound:
    norm = Bound(math.isqrt(sum(side**2 for side in sides) - 1) + 1 if any(sides) else 1, len(sides))
    return attrs.evolve(norm, l1=max(1, min(norm.implied, sum(sides))))


def _ball(stage: Stage, domain: Description) -> Stage:
    """Snap to a ball, with R = max_norm.

    a = clip((row - middle) / unit, -2^80, 2^80); f = min(1, R / max(1, |a_0|, ...)); x = shrink(round(a f), R).

    Differences are clipped before the exact division by the unit. Those below a quarter of the unit are set to 0: since
    f is at most 1 they round to 0, and they do not affect the maximum of 1 and the others.
    """
    unit, reach = float(domain["unit"]), int(domain["max_norm"])
    stage = _differences(stage, domain["middle"], [FAR * unit] * len(stage.row))
    stage = stage.moved([_without_tiny(x, unit / 4) * number(1 / unit) for x in stage.x])
    stage, (factor,) = stage.add(number(reach) / ibis.greatest(number(reach), *(x.abs() for x in stage.x)))
    stage = stage.moved([rounded(x * stage[factor]) for x in stage.x])
    bound = Bound(reach, len(stage.row))
    return attrs.evolve(shrink(stage, bound, bound.implied + 1), bound=bound)


def _reframed(stage: Stage, domain: Description) -> Stage:
    """Snap q = (row - offset) / scale by the cube, which clips q to -1 .. 1.

    So differences may be clipped to -scale .. scale: scale / scale is 1, and quotients are monotone in the dividend.
    Those below scale / 2^60 are set to 0, since the cube snaps both to 0: its middle is 0, and its unit above 2^-40.
    """
    then, d = domain["then"], len(domain["offset"])
    if not (
        then["kind"] == "box"
        and then["unit"] > 2.0**-40
        and list(then["middle"]) == [0.0] * d
        and list(then["lower"]) == [-1.0] * d
        and list(then["upper"]) == [1.0] * d
        and min(domain["scale"]) > 0
    ):
        raise NotCompiled("rows in frames of other domains than the cube have no form in SQL")
    scales = domain["scale"]
    stage = _differences(stage, domain["offset"], scales)
    stage = stage.moved(
        [_without_tiny(x, scale * 2.0**-60) / number(scale) for x, scale in zip(stage.x, scales, strict=True)]
    )
    return _box(stage, then)


def _graded(stage: Stage, domain: Description) -> Stage:
    """Return the grade of a = |row[j]| in its octave i, where 2^(i - 64) <= a < 2^(i - 63).

    It is 256 i + floor(256 (a / 2^(i - 64) - 1)). a 2^64 is halved 64, 32, ..., 1 times, whenever it stays at least 1:
    what remains is a / 2^(i - 64). All products are exact: powers of two times a number far from both ends of the
    doubles.
    """
    raw, columns = stage.row, domain["columns"]
    other_columns = snap_rows(stage, domain["others"])
    assert other_columns.bound is not None
    magnitudes = attrs.evolve(other_columns, row=tuple(raw[j] for j in columns))
    magnitudes = magnitudes.moved([x.abs() for x in magnitudes.x])
    largest = float(np.nextafter(2.0**OCTAVES, 0))
    magnitudes = magnitudes.moved([clipped(x, 2.0**-OCTAVES, largest) * number(2.0**OCTAVES) for x in magnitudes.x])
    octaves: list[list[tuple[str, int]]] = [[] for _ in columns]
    for halved in (64, 32, 16, 8, 4, 2, 1):
        magnitudes, large = magnitudes.add(*(x >= number(2.0**halved) for x in magnitudes.x))
        magnitudes = magnitudes.moved(
            [
                ibis.ifelse(magnitudes[big], x * number(2.0**-halved), x)
                for big, x in zip(large, magnitudes.x, strict=True)
            ]
        )
        for terms, big in zip(octaves, large, strict=True):
            terms.append((big, halved))
    magnitudes = magnitudes.moved(
        [
            floored((x - number(1)) * number(STEPS))
            + total([ibis.ifelse(magnitudes[big], number(STEPS * halved), number(0)) for big, halved in terms])
            for x, terms in zip(magnitudes.x, octaves, strict=True)
        ]
    )
    magnitudes = magnitudes.moved(
        [ibis.ifelse(magnitudes[raw[j]] < 0, number(-1) - x, x) for j, x in zip(columns, magnitudes.x, strict=True)]
    )
    graded = dict(zip(columns, magnitudes.row, strict=True))
    longest = math.isqrt(other_columns.bound.l2**2 + len(columns) * GRADES**2) + 1
    row = tuple(graded.get(j, name) for j, name in enumerate(other_columns.row))
    return attrs.evolve(magnitudes, row=row, bound=Bound(longest, len(raw)))


def _without(stage: Stage, domain: Description) -> Stage:
    return snap_rows(attrs.evolve(stage, row=stage.row[: len(stage.row) - domain["beside"]]), domain["first"])


def _differences(stage: Stage, middles: list[float], reaches: list[float]) -> Stage:
    """Return clip(x - middle, -reach, reach).

    x is first clipped to where the difference already exceeds the reach, since far away the subtraction could overflow;
    rounded differences are monotone in x, so the result is unchanged.
    """
    ends = list(zip(middles, reaches, strict=True))
    stage = stage.moved(
        [
            clipped(x, -_beyond(-middle, far), _beyond(middle, far)) - number(middle)
            for x, (middle, far) in zip(stage.x, ends, strict=True)
        ]
    )
    return stage.moved([clipped(x, -far, far) for x, (_, far) in zip(stage.x, ends, strict=True)])


def _beyond(middle: float, reach: float) -> float:
    """Return a finite number whose difference from the middle is at least ``reach``, or else the largest double."""
    step, end = reach, min(middle + reach, LARGEST)
    while end - middle < reach and end < LARGEST:
        step *= 2
        end = min(middle + step, LARGEST)
    if not math.isfinite(end - middle):
        raise NotCompiled("bounds of this size have no form in SQL")
    return end


def _without_tiny(x: Expr, threshold: float) -> Expr:
    """Return x, or 0 if |x| is below the threshold."""
    return ibis.ifelse(x.abs() < number(threshold), number(0), x)


KINDS: dict[str, Callable[[Stage, Description], Stage]] = {
    "box": _box,
    "ball": _ball,
    "reframed": _reframed,
    "graded": _graded,
    "without": _without,
}
"""Compiler of each kind of domain."""
