"""Public unit directions, and exact products of rows with them.

Directions are put on a lattice: integers g of norm close to ``NORM`` = 2^30. Rows x are lattice points of norm at most
2^20. By Cauchy and Schwarz every partial sum of <g, x>, in whatever order it is added, is an integer of at most 2^51:
float64 is exact, so that a matrix product gives each row the same numbers alone and in any batch (law 5).

Directions are computed by ``reproducible_math``, so that every machine has the same ones, to the bit.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np

from cloister.core.errors import InvalidInput
from cloister.core.randomness import PublicRng
from cloister.core.reproducible_math import exact_product, lengths, orthonormal, power, row_sums, standard_normals
from cloister.core.types import Floats, Ints

NORM = 2**30
"""Length of a direction, in integers."""

Kind: TypeAlias = Literal["auto", "repelled", "orthogonal", "unit"]

STEPS = 60
"""Steps of the descent that spreads directions."""

REPELLED_UP_TO = 32
"""Dimensions in which spreading pays; above it, orthogonal blocks are as good (measured on Gaussian mixtures)."""

MAX_REPELLED = 2**11
"""Directions that are spread: time and memory grow with their square (seconds and 40 MB here, gigabytes at 2^15)."""

BLOCK = 2**15
"""Numbers that are worked on at once."""


@lru_cache(maxsize=8)
def directions(seed: PublicRng, number: int, dimension: int, kind: Kind = "auto") -> Ints:
    """Public directions (number, dimension), integers of norm about ``NORM``.

    Args:
        kind: unit: independent, uniform on the sphere; orthogonal: in orthonormal blocks; repelled: moved apart by a
            descent on sum over pairs of <g_i, g_j>^16, so that g and -g count as one; auto: repelled in few dimensions,
            if not too many.

    Raises:
        InvalidInput: more directions are to be repelled than ``MAX_REPELLED``.
    """
    if kind == "auto":
        kind = "repelled" if dimension <= REPELLED_UP_TO and number <= MAX_REPELLED else "orthogonal"
    if kind == "repelled" and number > MAX_REPELLED:
        raise InvalidInput(
            f"{number} directions are too many to be repelled from each other, at most {MAX_REPELLED}: "
            "use 'orthogonal', or fewer cells"
        )
    drawn = standard_normals(seed.generator(), number, dimension)
    if kind == "orthogonal":
        found = np.concatenate([orthonormal(drawn[start : start + dimension]) for start in range(0, number, dimension)])
    else:
        found = _unit(drawn)
        found = _repelled(found) if kind == "repelled" and dimension > 1 else found
    lattice: Ints = np.rint(found * NORM).astype(np.int64)
    lattice.flags.writeable = False
    return lattice


def _unit(vectors: Floats) -> Floats:
    units: Floats = vectors / lengths(vectors)[:, None]
    return units


def _repelled(units: Floats) -> Floats:
    """Directions after ``STEPS`` steps away from their nearest neighbours, each of a tenth of the mean distance at
    most. Both products are of integers: a push in steps of 2^-20 of the largest, a direction in steps of 2^-21, and
    pushes of 2^11 directions, so that no sum is above 2^52."""
    reach = 0.5 * power(len(units), -1 / max(units.shape[1] - 1, 1))
    for step in range(STEPS):
        whole = np.rint(units * 2.0**21)
        near = exact_product(whole, whole.T) * 2.0**-42
        np.fill_diagonal(near, 0.0)
        push = exact_product(np.rint(_push(near) * 2.0**20), whole) * 2.0**-41
        push -= row_sums(push * units)[:, None] * units
        largest = float(lengths(push).max())
        if not largest > 0:
            break
        units = _unit(units - push * (reach * (1 - step / STEPS) / largest))
    return units


def _push(near: Floats) -> Floats:
    """near^15, relative to the largest so that nothing underflows; in place, a few rows at a time so that they stay in
    a core's cache."""
    largest = max(float(near.max()), -float(near.min()))
    if not largest > 0:  # one direction, or all orthogonal: nothing pushes
        return near
    step = max(1, BLOCK // near.shape[1])
    for start in range(0, len(near), step):
        block = near[start : start + step]
        block /= largest
        raised = block * block
        for _ in range(3):
            raised *= raised
        block[block == 0] = 1.0
        np.divide(raised, block, out=block)
    return near
