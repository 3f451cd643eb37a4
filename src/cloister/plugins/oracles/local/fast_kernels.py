"""Kernels of ``fast``: loops for numba, imported only where it is installed.

They share one file because numba's cache notices changes of the kernel's own file only. Users are processed ``TILE`` at
a time, one per column of a tile in the first-level cache. Inner loops run over contiguous slices without index
arithmetic, so that the compiler can vectorise them.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

import numpy as np

from cloister.plugin import AnyArray, Bools, Floats, Ids, Ints
from cloister.plugins.oracles.local.hadamard_transform import TILE

numba: Any = import_module("numba")  # an extra: type checkers must do without it

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile a kernel at its first call, to run without the interpreter's lock, and cache it on disk if possible.

    numba caches beside this file or, if that is read-only, in the user's own cache; with neither it raises
    RuntimeError.
    """
    options = {"nogil": True, "boundscheck": False, "fastmath": False}
    try:
        compiled: F = numba.njit(cache=True, **options)(function)
    except RuntimeError:
        compiled = numba.njit(**options)(function)
    return compiled


def inline(function: F) -> F:
    """Compile a part of kernels."""
    compiled: F = numba.njit(nogil=True)(function)
    return compiled


@inline
def words(users: Ids, states: Ids, out: Ids) -> None:
    """Compute ``PublicRng.of_users`` for every seed: (seeds, TILE). Columns without a user stay as they are."""
    for i in range(states.shape[1]):
        added, flipped = states[0, i], states[1, i]
        for u in range(users.size):
            z = users[u] * np.uint64(0x9E3779B97F4A7C15) + added
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            out[i, u] = z ^ (z >> np.uint64(31)) ^ flipped


@inline
def halves(words: Ids, out: AnyArray) -> None:
    """Split words (m, TILE) into uint32 halves (2 m, TILE), the low one first, to fit 32-bit lanes."""
    for i in range(words.shape[0]):
        for u in range(TILE):
            out[2 * i, u] = np.uint32(words[i, u])
            out[2 * i + 1, u] = np.uint32(words[i, u] >> np.uint64(32))


@inline
def flip(tile: AnyArray, bits: AnyArray) -> None:
    """Negate row j of a tile (D * TILE,) where bit j is 1."""
    for j in range(tile.size // TILE):
        row, flips, shift = tile[j * TILE : (j + 1) * TILE], bits[j >> 5], j & 31
        for u in range(TILE):
            minus = -((flips[u] >> shift) & 1)
            row[u] = (row[u] ^ minus) - minus


@inline
def transform(tile: AnyArray) -> None:
    """Replace every column x by H x."""
    half = TILE
    while half < tile.size:
        for start in range(0, tile.size, 2 * half):
            upper, lower = tile[start : start + half], tile[start + half : start + 2 * half]
            for k in range(half):
                a, b = upper[k], lower[k]
                upper[k], lower[k] = a + b, a - b
        half *= 2


@inline
def at_place(keys: AnyArray, place: int) -> np.int32:
    """Return the key with ``place`` of the distinct keys (D,) above it, by bisection in at most 31 steps."""
    # Not from 2^30: initial rounding may put |w| of a row that is a codeword just above it (D = 256). A missed key
    # would give another key two places, and its row a probability that the privacy proof does not allow.
    low, high, above = np.int32(0), np.int32(2147483647), np.int32(0)
    for _ in range(31):
        if above == place:
            break
        edge = np.int32((low + high) >> 1)
        count = np.int32(0)
        for j in range(keys.size):
            count = np.int32(count + (keys[j] >= edge))
        if count > place:
            low = edge
        else:
            high, above = edge, count
    best = np.int32(0)
    for j in range(keys.size):
        best = max(best, np.int32(keys[j] if keys[j] < high else 0))
    return best


@inline
def lift(values: Ints, positions: Ints, signs: Floats, bound: float, buffer: Floats) -> None:
    """Lift rows of values (N, d) to unit vectors (d + 1, TILE), one per column, as ``unit_randomiser.lifted`` does.

    ``positions`` holds the row of each user's vector, -1 for the zero vector, and ``bound`` is l2^2. Numbers are
    rounded as NumPy rounds them: squares and their sum are exact.
    """
    d = values.shape[1]
    scales = np.ones(TILE)  # columns without a user stay as they are
    for u in range(positions.size):
        if positions[u] < 0:
            for i in range(d):
                buffer[i, u] = 0
        else:
            row = values[positions[u]]
            for i in range(d):
                buffer[i, u] = row[i]
    last = buffer[d]
    last[:] = 0
    for i in range(d):
        line = buffer[i]
        for u in range(TILE):
            last[u] += line[u] * line[u]
    for u in range(positions.size):
        scales[u] = max(last[u], bound)
        scale = signs[u] / np.sqrt(scales[u])
        last[u] = scale * np.sqrt(scales[u] - last[u])
        scales[u] = scale
    for i in range(d):
        line = buffer[i]
        for u in range(TILE):
            line[u] *= scales[u]


@kernel
def choose(
    values: Ints,
    positions: Ints,
    signs: Floats,
    bound: float,
    users: Ids,
    states: Ids,
    unit: float,
    places: Ints,
    opposite: Bools,
    size: int,
    out: AnyArray,
) -> None:
    """Choose codewords (n,) for rows of values as ``Codebook.randomise`` does.

    ``lift`` them, turn them as ``Rotations.turn`` does at 2^bits = ``unit``, then select by place and sign.
    """
    d = values.shape[1]
    buffer, tile, keys = np.zeros((d + 1, TILE)), np.empty(size * TILE, np.int32), np.empty(size, np.int32)
    public, bits = np.zeros((states.shape[1], TILE), np.uint64), np.empty((2 * states.shape[1], TILE), np.uint32)
    per_round, last = size // 32, size - 1
    for start in range(0, users.size, TILE):
        end = min(start + TILE, users.size)
        words(users[start:end], states, public)
        halves(public, bits)
        lift(values, positions[start:end], signs[start:end], bound, buffer)
        tile[(d + 1) * TILE :] = 0
        for i in range(d + 1):
            row, line = tile[i * TILE : (i + 1) * TILE], buffer[i]
            for u in range(TILE):
                row[u] = np.int32(np.rint(line[u] * unit))
        for first in range(0, bits.shape[0], per_round):
            flip(tile, bits[first : first + per_round])
            transform(tile)
        for u in range(end - start):
            for j in range(size):
                keys[j] = (abs(tile[j * TILE + u]) & ~last) | (last - j)
            axis = last - (at_place(keys, places[start + u]) & last)
            minus = (tile[axis * TILE + u] < 0) != opposite[start + u]
            out[start + u] = axis + (size if minus else 0)


@kernel
def point(codewords: AnyArray, users: Ids, states: Ids, rows: Ids, tile: AnyArray, out: Ints) -> None:
    """Compute the first d coordinates (n, d) of D^1.5 times codewords (n,), as ``Codebook.estimates`` does.

    ``rows`` of the Hadamard matrix are bits (D / 64, D). ``tile`` (D * TILE,) is work space, 16 bits for D = 128, else
    32.
    """
    size, d = rows.shape[1], out.shape[1]
    per_round = rows.shape[0]
    public, bits = np.zeros((states.shape[1], TILE), np.uint64), np.empty((2 * states.shape[1], TILE), np.uint32)
    for start in range(0, users.size, TILE):
        size_of_tile = min(TILE, users.size - start)
        words(users[start : start + size_of_tile], states, public)
        for u in range(size_of_tile):
            codeword = np.int64(codewords[start + u])
            minus = np.uint64(0xFFFFFFFFFFFFFFFF) if codeword >= size else np.uint64(0)
            for i in range(per_round):
                public[2 * per_round + i, u] ^= rows[i, codeword & (size - 1)] ^ minus
        halves(public, bits)
        tile[:] = 1
        flip(tile, bits[4 * per_round :])
        transform(tile)
        flip(tile, bits[2 * per_round : 4 * per_round])
        transform(tile)
        flip(tile, bits[: 2 * per_round])
        for u in range(size_of_tile):
            vector = out[start + u]
            for i in range(d):
                vector[i] = tile[i * TILE + u]


@kernel
def add(values: Ints, cells: Ints, out: Ints) -> None:
    """Add vectors (n, d) to the rows (m, d) of their cells (n,)."""
    for i in range(values.shape[0]):
        total, value = out[cells[i]], values[i]
        for j in range(value.size):
            total[j] += value[j]


@kernel
def hits(steps: Ids, offsets: Ids, widths: Ids, out: Ints) -> None:
    """Add to out[v] the number of users with offset + v * step (mod 2^64) below their width. Changes the offsets.

    See ``Hashes.everywhere``.
    """
    for v in range(0, out.size - out.size % 4, 4):
        a = b = c = d = 0
        for u in range(steps.size):
            step, width = steps[u], widths[u]
            first = offsets[u]
            second = first + step
            third = second + step
            fourth = third + step
            a += first < width
            b += second < width
            c += third < width
            d += fourth < width
            offsets[u] = fourth + step
        out[v] += a
        out[v + 1] += b
        out[v + 2] += c
        out[v + 3] += d
    for v in range(out.size - out.size % 4, out.size):
        a = 0
        for u in range(steps.size):
            a += offsets[u] < widths[u]
            offsets[u] += steps[u]
        out[v] += a
