"""Public unit directions, and exact products of rows with them.

Directions are integers g of norm close to ``NORM`` = 2^30, rows x lattice points of norm at most 2^20. By Cauchy and
Schwarz every partial sum of <g, x>, in any order of addition, is an integer of at most 2^51: float64 is exact, so that
a matrix product gives each row the same numbers alone and in any batch (law 5).

They are computed by ``reproducible_math``, so that they are equal to the bit on every machine.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np

from cloister.core.reproducible_math import exact_product, lengths, orthonormal, power, row_sums, standard_normals
from cloister.plugin import Floats, Ints, InvalidInput, PublicRng

NORM = 2**30
"""Length of a direction, in integers."""

Kind: TypeAlias = Literal["auto", "repelled", "orthogonal", "unit"]

STEPS = 60
"""Steps of the descent that spreads directions apart."""

REPELLED_UP_TO = 32
"""Dimension up to which spreading pays; above it, orthogonal blocks are as good (measured on Gaussian mixtures)."""

MAX_REPELLED = 2**11
"""Limit of spread directions: time and memory are quadratic (seconds and 40 MB here, gigabytes at 2^15)."""

BLOCK = 2**15
"""Numbers per batch."""


@lru_cache(maxsize=8)
def directions(seed: PublicRng, number: int, dimension: int, kind: Kind = "auto") -> Ints:
    """Return public directions (number, dimension), integers of norm about ``NORM``.

    Args:
        seed: public.
        number: of directions.
        dimension: of the rows.
        kind: unit: independent, uniform on the sphere; orthogonal: in orthonormal blocks; repelled: moved apart by a
            descent on the sum over pairs of <g_i, g_j>^16, so that g and -g count as one; auto: repelled up to
            ``REPELLED_UP_TO`` dimensions and ``MAX_REPELLED`` directions, else orthogonal.

    Raises:
        InvalidInput: kind is repelled and there are more than ``MAX_REPELLED`` directions.
    """
    if kind == "auto":
        kind = "repelled" if dimension <= REPELLED_UP_TO and number <= MAX_REPELLED else "orthogonal"
    if kind == "repelled" and number > MAX_REPELLED:
        raise InvalidInput(
            f"at most {MAX_REPELLED} directions can be repelled from each other, not {number}: use 'orthogonal', or "
            "fewer cells"
        )
    drawn = standard_normals(seed.generator(), number, dimension)
    if kind == "orthogonal":
        units = np.concatenate([orthonormal(drawn[start : start + dimension]) for start in range(0, number, dimension)])
    else:
        units = _unit(drawn)
        units = _repelled(units) if kind == "repelled" and dimension > 1 else units
    lattice: Ints = np.rint(units * NORM).astype(np.int64)
    lattice.flags.writeable = False
    return lattice


def _unit(vectors: Floats) -> Floats:
    units: Floats = vectors / lengths(vectors)[:, None]
    return units


def _repelled(units: Floats) -> Floats:
    """Return directions after ``STEPS`` steps away from their nearest neighbours.

    Both products are of integers, so that they are exact: pushes in steps of 2^-20 of the largest one, directions in
    steps of 2^-21, and sums over at most 2^11 directions, hence below 2^52.
    """
    reach = 0.5 * power(len(units), -1 / max(units.shape[1] - 1, 1))
    for step in range(STEPS):
        rounded = np.rint(units * 2.0**21)
        products = exact_product(rounded, rounded.T) * 2.0**-42
        np.fill_diagonal(products, 0.0)
        push = exact_product(np.rint(_push(products) * 2.0**20), rounded) * 2.0**-41
        push -= row_sums(push * units)[:, None] * units
        largest = float(lengths(push).max())
        if not largest > 0:
            break
        units = _unit(units - push * (reach * (1 - step / STEPS) / largest))
    return units


def _push(products: Floats) -> Floats:
    """Replace products by their 15th powers, relative to the largest one so that nothing underflows."""
    largest = max(float(products.max()), -float(products.min()))
    if not largest > 0:  # one direction, or all orthogonal: nothing pushes
        return products
    step = max(1, BLOCK // products.shape[1])  # rows that stay in a core's cache
    for start in range(0, len(products), step):
        block = products[start : start + step]
        block /= largest
        raised = block * block
        for _ in range(3):
            raised *= raised
        block[block == 0] = 1.0
        np.divide(raised, block, out=block)
    return products
