"""Rows put on the lattice in SQL: the domains of ``docs/reference/format_questions.md``, operation for operation.

Some engines refuse a difference, product or quotient that is beyond all doubles, or so small that it becomes zero,
where IEEE gives infinity and zero. Rows are moved before that, to where they are snapped to the same point; why that is
so stands at each kind.

Vectors that are no longer than their bound, in SQL: ``shrink`` of ``docs/reference/format_questions.md``.
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
"""Factor just below 1: with it rounding in a product cannot cross an integer."""


def shrunk(stage: Stage, bound: Bound, longest: int) -> Stage:
    """Rows of integers that may be beyond a bound, made to keep it. Args: longest, their largest norm.

    Nothing is divided by zero, whichever branch an engine works out.

    Raises: NotCompiled: their squared lengths are not exact in doubles.
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


def keeps(vectors: Bound, bound: Bound) -> bool:
    """Whether no vector of one bound is beyond another, so that ``shrink`` leaves all of them as they are."""
    return vectors.l2 <= bound.l2 and (bound.l1 == bound.implied or vectors.l1 <= bound.l1)


FAR = 2.0**80
"""Lattice steps that a row's column may be away from the middle of a ball."""


def snapped(stage: Stage, domain: Description) -> Stage:
    """Rows of features to lattice rows. Raises: NotCompiled: there is no SQL for such a domain."""
    if domain["kind"] not in KINDS:
        raise NotCompiled(f"a domain of kind '{domain['kind']}' has no form in SQL")
    return KINDS[domain["kind"]](stage, domain)


def _box(stage: Stage, domain: Description) -> Stage:
    """x = clip(round((clip(row, lower, upper) - middle) / unit), -sides, sides).

    round(a / unit) is the nearest multiple of the unit, over the unit: of powers of two all quotients are exact, and
    nothing that is divided is smaller than the unit, unless it is zero. All steps grow with the row: where the ends of
    a column come to lie within its sides, all rows do.
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
    """a = clip((row - middle) / unit, -2^80, 2^80); f = min(1, R / max(1, |a_0|, ...)); x = shrink(round(a f), R).

    Differences are clipped before they are divided by the unit, which is exact. Those below a quarter of the unit are
    taken for 0: f is at most 1, so that they are rounded to 0, and they are not the largest of 1 and the others.
    """
    unit, reach = float(domain["unit"]), int(domain["max_norm"])
    stage = _differences(stage, domain["middle"], [FAR * unit] * len(stage.row))
    stage = stage.moved([_without_tiny(x, unit / 4) * number(1 / unit) for x in stage.x])
    stage, (factor,) = stage.add(number(reach) / ibis.greatest(number(reach), *(x.abs() for x in stage.x)))
    stage = stage.moved([rounded(x * stage[factor]) for x in stage.x])
    bound = Bound(reach, len(stage.row))
    return attrs.evolve(shrunk(stage, bound, bound.implied + 1), bound=bound)


def _reframed(stage: Stage, domain: Description) -> Stage:
    """The cube's lattice row of q = (row - offset) / scale, which the cube clips to -1 .. 1.

    So differences may be clipped to -scale .. scale: scale / scale is 1, and quotients grow with what is divided. Those
    below scale / 2^60 are taken for 0, which the cube snaps both to: its middle is 0, and its unit above 2^-40.
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
    """The grade of a = |row[j]|, 256 i + floor(256 (a / 2^(i - 64) - 1)) in octave i, 2^(i - 64) <= a < 2^(i - 63).

    a 2^64 is halved 64, 32, ..., 1 times, whenever it stays at least 1: what is left is a / 2^(i - 64). All products
    are exact, of powers of two with a number that is not near either end of the doubles.
    """
    raw, columns = stage.row, domain["columns"]
    other_columns = snapped(stage, domain["others"])
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
    return snapped(attrs.evolve(stage, row=stage.row[: len(stage.row) - domain["beside"]]), domain["first"])


def _differences(stage: Stage, middles: list[float], reaches: list[float]) -> Stage:
    """clip(x - middle, -most, most). x is moved first to where that is beyond most already, if it is farther: rounded
    differences grow with x too."""
    ends = list(zip(middles, reaches, strict=True))
    stage = stage.moved(
        [
            clipped(x, -_beyond(-middle, far), _beyond(middle, far)) - number(middle)
            for x, (middle, far) in zip(stage.x, ends, strict=True)
        ]
    )
    return stage.moved([clipped(x, -far, far) for x, (_, far) in zip(stage.x, ends, strict=True)])


def _beyond(middle: float, reach: float) -> float:
    """A number whose difference from the middle is at least ``reach``, and finite; or else the largest of all."""
    step, end = reach, min(middle + reach, LARGEST)
    while end - middle < reach and end < LARGEST:
        step *= 2
        end = min(middle + step, LARGEST)
    if not math.isfinite(end - middle):
        raise NotCompiled("bounds of this size have no form in SQL")
    return end


def _without_tiny(x: Expr, threshold: float) -> Expr:
    """x, or 0 where it is nearer to 0 than this."""
    return ibis.ifelse(x.abs() < number(threshold), number(0), x)


KINDS: dict[str, Callable[[Stage, Description], Stage]] = {
    "box": _box,
    "ball": _ball,
    "reframed": _reframed,
    "graded": _graded,
    "without": _without,
}
"""How each kind of domain is compiled."""
