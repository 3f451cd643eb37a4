"""Buckets by the directions of rows, in SQL: ``directions``, ``signs``, ``shells``.

Products of rows and directions are integers below 2^53, exact in doubles.
"""

from __future__ import annotations

import attrs
import ibis
import numpy as np

from cloister.core.types import Ints
from cloister.sql.arithmetic import Expr, integer, number, product, squared, total
from cloister.sql.bundles import Described, Description
from cloister.sql.centers import norm, within_edges
from cloister.sql.located import Located, longest, one_level, refuse_inexact, refuse_long
from cloister.sql.stage import Stage


def by_direction(stage: Stage, cells: Description, known: Described) -> Located:
    return one_level(*_direction(stage, longest(stage), known.array(cells["around"])))


def _direction(stage: Stage, reach: int, around: Ints) -> tuple[Stage, Expr]:
    """The cell of a row x of norm at most ``reach``: 2 j, j the lowest of the directions (m, d) with the largest |<a,
    x>|, and 1 more if the product is negative.

    The largest is found in pairs, pairs of pairs and so on, each of them a column, and then followed down again.
    """
    refuse_long(stage, around.size)
    refuse_inexact(norm(around) * reach)
    stage, products = stage.add(*(product(a, stage.x) for a in around))
    rounds = [products]
    stage, sizes = stage.add(*(stage[name].abs() for name in products))
    rounds.append(sizes)
    while len(rounds[-1]) > 1:
        last = rounds[-1]
        pairs = [last[i : i + 2] for i in range(0, len(last), 2)]
        stage, made = stage.add(*(ibis.greatest(*(stage[name] for name in pair)) for pair in pairs if len(pair) > 1))
        rounds.append(made + [pair[0] for pair in pairs if len(pair) == 1])
    return stage, _followed(stage, rounds, len(rounds) - 1, 0)


def _followed(stage: Stage, rounds: list[list[str]], height: int, at: int) -> Expr:
    """The cell below this entry of a round, which holds the largest product of all."""
    if height == 1:
        return ibis.ifelse(stage[rounds[0][at]] < 0, integer(2 * at + 1), integer(2 * at))
    left = _followed(stage, rounds, height - 1, 2 * at)
    if 2 * at + 1 == len(rounds[height - 1]):
        return left
    right = _followed(stage, rounds, height - 1, 2 * at + 1)
    return ibis.ifelse(stage[rounds[height - 1][2 * at]] == stage[rounds[height][at]], left, right)


def by_signs(stage: Stage, cells: Description, known: Described) -> Located:
    around = known.array(cells["around"])
    refuse_long(stage, around.size)
    refuse_inexact(norm(around) * longest(stage))
    levels = len(around)
    bits = [
        ibis.ifelse(product(a, stage.x) < 0, number(1 << (levels - 1 - level)), number(0))
        for level, a in enumerate(around)
    ]
    stage, names = stage.add(total(bits).cast("int64"))
    return Located(stage, tuple(names), tuple((0, levels - 1 - level) for level in range(levels)))


def by_shell(stage: Stage, cells: Description, known: Described) -> Located:
    middle, edges = np.array(cells["middle"], np.int64), np.array(cells["edges"], np.int64)
    reach = longest(stage) + norm(middle[None])
    refuse_inexact(reach**2)
    moved = stage.moved([x - number(m) for x, m in zip(stage.x, middle, strict=True)])
    moved, (squares,) = moved.add(squared(moved.x))
    moved, cell = _direction(moved, reach, known.array(cells["around"]))
    shell = within_edges(moved[squares], edges)
    return one_level(attrs.evolve(moved, row=stage.row), cell * (len(edges) + 1) + shell)
