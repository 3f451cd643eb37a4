"""Public unit directions, and exact products of rows with them.

Directions are put on a lattice: integers g of norm close to ``NORM`` = 2^30. Rows x are lattice points of norm at most
2^20. By Cauchy and Schwarz every partial sum of <g, x>, in whatever order it is added, is an integer of at most 2^51:
float64 is exact, so that a matrix product gives each row the same numbers alone and in any batch (law 5).

Directions are computed in float64 and then rounded. A platform whose rounding differs has other directions, hence
another digest of the round, and refuses (law 9).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np

from cloister.core.errors import InvalidInput
from cloister.core.randomness import PublicRng
from cloister.core.types import Floats, Ints

NORM = 2**30
"""Length of a direction, in integers."""

Kind: TypeAlias = Literal["auto", "repelled", "orthogonal", "unit"]

STEPS = 60
"""Of the descent that spreads directions."""

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
    g = seed.generator()
    if kind == "auto":
        kind = "repelled" if dimension <= REPELLED_UP_TO and number <= MAX_REPELLED else "orthogonal"
    if kind == "repelled" and number > MAX_REPELLED:
        raise InvalidInput(
            f"{number} directions are too many to be repelled from each other, at most {MAX_REPELLED}: "
            "use 'orthogonal', or fewer cells"
        )
    if kind == "orthogonal":
        sizes = [min(dimension, number - start) for start in range(0, number, dimension)]
        found = np.concatenate([_orthonormal(g, dimension, size) for size in sizes])
    else:
        found = _unit(g.standard_normal((number, dimension)))
        found = _repelled(found) if kind == "repelled" and dimension > 1 else found
    lattice: Ints = np.rint(found * NORM).astype(np.int64)
    lattice.flags.writeable = False
    return lattice


def _unit(vectors: Floats) -> Floats:
    units: Floats = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return units


def _orthonormal(g: np.random.Generator, d: int, size: int) -> Floats:
    """Random orthonormal vectors (size, d), size <= d: Gram and Schmidt by QR, signs fixed."""
    q, r = np.linalg.qr(g.standard_normal((d, size)))
    basis: Floats = (q * np.where(np.diag(r) < 0, -1.0, 1.0)).T
    return basis


def _repelled(units: Floats) -> Floats:
    """Directions after ``STEPS`` steps away from their nearest neighbours, each of a tenth of the mean distance at
    most."""
    reach = 0.5 * len(units) ** (-1 / max(units.shape[1] - 1, 1))
    for step in range(STEPS):
        near = units @ units.T
        np.fill_diagonal(near, 0.0)
        push = _push(near) @ units
        push -= np.einsum("ij,ij->i", push, units)[:, None] * units
        largest = float(np.linalg.norm(push, axis=1).max())
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
        power = block**2
        for _ in range(3):
            power *= power
        block[block == 0] = 1.0
        np.divide(power, block, out=block)
    return near
