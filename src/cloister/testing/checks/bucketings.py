"""Checks of bucketings and vectors, which are functions of each row alone on exact integers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np

from cloister.core.plain_data import digest
from cloister.plugin import Ball, Box, Domain, Floats, Ints, InvalidInput, PublicRng
from cloister.testing.check import require
from cloister.testing.stubs import digest_in_another_process

Maker: TypeAlias = Any

DOMAINS: tuple[Domain, ...] = (
    Box((0.0,), (1.0,)),
    Box((-1.0, 0.0, 5.0), (1.0, 10.0, 5.5)),
    Ball((0.0, 0.0), 1.0),
    Box((-1.0,) * 12, (1.0,) * 12),
)
"""Domains of one column, of columns of different widths, of a ball, and of many columns."""


def made_bucketings(make: Maker) -> Iterator[tuple[Domain, Any, Ints]]:
    """Yield the kit's domains with their bucketings and lattice rows, but for domains that the maker refuses."""
    refused = 0
    for i, domain in enumerate(DOMAINS):
        try:
            cells = make(domain, PublicRng.from_seed(50).child(i))
        except InvalidInput:
            refused += 1
            continue
        yield domain, cells, rows_of(domain, cells)
    require(refused < len(DOMAINS), "it refuses every domain of the kit")


def rows_of(domain: Domain, cells: Any) -> Ints:
    """Return lattice rows (n, d): scattered, at the border, on a coarse grid with ties, and where buckets meet."""
    g = np.random.default_rng(51)
    scattered = domain.snap(domain.sample(g, 1500, 0.0))
    grid = domain.snap(domain.real(g.integers(-4, 4, (600, domain.dimension), endpoint=True) * (domain.sides // 8)))
    border = domain.snap(domain.middle + g.standard_normal((100, domain.dimension)) * domain.diameter * 10)
    middle = np.zeros((1, domain.dimension), np.int64)
    return np.concatenate([scattered, border, middle, grid, _close(cells, scattered)])


def _close(cells: Any, rows: Ints) -> Ints:
    """Return neighbouring lattice points in different buckets, by bisection between two rows."""
    low, high = np.concatenate([rows] * 3), np.concatenate([np.roll(rows, i, axis=0) for i in (1, 2, 3)])
    ids = cells.locate(low)
    apart = np.flatnonzero((ids != cells.locate(high)).any(axis=1))[:1000]
    low, high, ids = low[apart], high[apart], ids[apart]
    for _ in range(22):
        middle = (low + high) // 2
        same = (cells.locate(middle) == ids).all(axis=1)
        low[same], high[~same] = middle[same], middle[~same]
    return np.concatenate([low, high])


def check_inside(label: str, kind: str, points: Floats, domain: Domain) -> None:
    """Raise unless points (n, d), of the kind named, are finite and inside the domain."""
    require(np.isfinite(points).all(), f"{label}: a {kind} is not finite")
    out = float(np.abs(domain.truncate(points) - points).max())
    require(out <= 1e-9 * domain.diameter, f"{label}: a {kind} is {out:.4g} outside the domain")


def ids_are_within_the_space(make: Maker) -> None:
    """``locate`` gives int64 ids for every row and level: 0 <= id < size, or -1 for no bucket.

    No rows give no ids.
    """
    for domain, cells, rows in made_bucketings(make):
        check_ids(str(domain), cells, rows)
        require((cells.locate(rows) >= 0).any(), f"{domain}: no row is in any bucket")


def check_ids(label: str, cells: Any, rows: Ints) -> None:
    """Raise unless ids are int64 (n, levels) and of existing buckets."""
    ids, sizes = cells.locate(rows), cells.space.sizes
    _check_shape(ids, len(rows), len(sizes))
    _check_shape(cells.locate(rows[:0]), 0, len(sizes))
    for level, size in enumerate(sizes):
        low, high = int(ids[:, level].min()), int(ids[:, level].max())
        require(low >= -1 and high < size, f"{label}, level {level}: ids are {low} .. {high}, the size is {size}")


def nested_levels_are_halves(make: Maker) -> None:
    """Rows' ids in a ``nested`` space are those of the next level shifted right by one bit, or -1 at both."""
    for domain, cells, rows in made_bucketings(make):
        if cells.space.nested:
            check_nested(str(domain), cells, rows)


def check_nested(label: str, cells: Any, rows: Ints) -> None:
    """Raise unless each row's bucket is in its parent."""
    ids = cells.locate(rows)
    wrong = int((ids[:, 1:] >> 1 != ids[:, :-1]).any(axis=1).sum())
    require(not wrong, f"{label}: {wrong} of {len(rows)} rows are in a bucket that is not in its parent")


def _check_shape(ids: Any, n: int, levels: int) -> None:
    require(
        isinstance(ids, np.ndarray) and ids.shape == (n, levels) and ids.dtype == np.int64,
        f"{n} rows give ids of shape {np.shape(ids)} and type {getattr(ids, 'dtype', type(ids))}, not ({n}, {levels}) "
        f"of int64",
    )


def a_row_falls_in_the_same_bucket_in_any_batch(make: Maker) -> None:
    """Rows' buckets depend on each row alone, bit for bit: alone, in any chunk, order or company.

    A floating-point matrix product breaks this near ties, and so does any statistic of the batch.
    """
    for domain, cells, rows in made_bucketings(make):
        check_row_by_row(str(domain), cells.locate, rows, "fall in another bucket")
        again = make(domain, PublicRng.from_seed(50).child(DOMAINS.index(domain)))
        check_no_memory(str(domain), cells.locate, again.locate, rows, "fall in another bucket")


def check_no_memory(label: str, of_rows: Any, again: Any, rows: Ints, failure: str) -> None:
    """Raise if earlier rows change the result: ``again`` is a fresh twin, which is given other rows first."""
    far = np.argsort(-np.abs(rows).max(axis=1))[: max(1, len(rows) // 4)]
    again(rows[far])
    moved = (again(rows) != of_rows(rows)).any(axis=1)
    require(not moved.any(), f"{label}: after other rows were seen first, {int(moved.sum())} rows {failure}")


def check_row_by_row(label: str, of_rows: Any, rows: Ints, failure: str, small_chunk_rows: int = 2600) -> None:
    """Raise unless the result for rows (n, d) depends on each row alone and leaves them unchanged.

    Small chunks are made of the last ``small_chunk_rows`` rows only, to save time.
    """
    original, expected = rows.copy(), of_rows(rows)
    require(np.array_equal(rows, original), f"{label}: the input rows were modified")
    for name, order, other in _batches(of_rows, rows, small_chunk_rows):
        moved = (other != expected[order]).any(axis=1)
        require(not moved.any(), f"{label}: {name}, {int(moved.sum())} of {len(order)} rows {failure}")


def _batches(of_rows: Any, rows: Ints, small_chunk_rows: int) -> Iterator[tuple[str, Ints, Ints]]:
    """Yield what was done to the rows, their positions, and the result for them."""
    n, g = len(rows), np.random.default_rng(52)
    everyone = np.arange(n)
    for size in (1, 2, 3, 7, 64):
        # of small chunks every third, of the last rows: those are on the grid or close to where buckets meet
        starts = range(0, n, size) if size > 7 else range(max(0, n - small_chunk_rows), n, 3 * size)
        chunks = [everyone[i : i + size] for i in starts]
        yield f"in chunks of {size}", np.concatenate(chunks), np.concatenate([of_rows(rows[c]) for c in chunks])
    order = g.permutation(n)
    yield "in another order", order, of_rows(rows[order])
    order = everyone[::-1]
    yield "backwards, from memory with strides", order, of_rows(rows[::-1])
    yield "in columns", everyone, of_rows(np.asfortranarray(rows))
    yield "with as many others", everyone, of_rows(np.concatenate([rows[order], rows]))[n:]
    far = np.argsort(-np.abs(rows).max(axis=1))[: n // 4]
    yield "without three quarters of the rows", far, of_rows(rows[far])


def ids_are_those_of_the_nearest_centers(make: Maker) -> None:
    """Bucketings with lattice ``centers`` (k, d) choose the nearest by exact integer distance, ties to the lowest id.

    Beyond ``within`` a row is in no bucket.
    """
    for domain, cells, rows in made_bucketings(make):
        centers = getattr(cells, "centers", None)
        if not isinstance(centers, np.ndarray) or centers.dtype != np.int64 or cells.space.levels != 1:
            continue
        squares = np.stack([((rows - center) ** 2).sum(axis=1) for center in centers], axis=1)
        nearest = squares.argmin(axis=1)
        within = getattr(cells, "within", None)
        if within is not None:
            nearest[squares.min(axis=1) > within**2] = -1
        wrong = cells.locate(rows)[:, 0] != nearest
        ties = (squares == squares.min(axis=1, keepdims=True)).sum(axis=1) > 1
        require(
            not wrong.any(),
            f"{domain}: {int(wrong.sum())} of {len(rows)} rows are misplaced ({int((wrong & ties).sum())} of "
            f"{int(ties.sum())} ties)",
        )


def its_digest_travels(make: Maker) -> None:
    """Bucketings are plain public data: made twice from one key they have one digest, in another process too."""
    for i, (domain, cells, _) in enumerate(made_bucketings(make)):
        again = make(domain, PublicRng.from_seed(50).child(DOMAINS.index(domain)))
        require(digest(cells) == digest(again), f"{domain}: made twice, it has two digests")
        if i == 1:
            require(
                digest_in_another_process(cells) == digest(cells), f"{domain}: another process computes another digest"
            )


def vectors_are_bounded_and_of_their_row_alone(make: Maker) -> None:
    """Vectors are int64, depend on their row alone, and are within the bound for every row in a bucket."""
    for (domain, vectors), (_, again) in zip(_made_vectors(make), _made_vectors(make), strict=True):
        check_vectors(str(domain), vectors, again, rows_of(domain, vectors.cells))


def check_vectors(label: str, vectors: Any, again: Any, rows: Ints, small_chunk_rows: int = 2600) -> None:
    """Raise unless vectors are int64 (n, dimension), of each row alone, and bounded for rows in a bucket.

    Args:
        label: start of the messages.
        vectors: vectors under test.
        again: equal vectors that have seen no row.
        rows: lattice rows (n, d).
        small_chunk_rows: see ``check_row_by_row``.
    """

    def of_rows(batch: Ints, kind: Any = vectors) -> Any:
        return kind.values(batch, kind.cells.locate(batch))

    values, bound, expected_shape = of_rows(rows), vectors.bound, (len(rows), vectors.bound.dimension)
    actual = f"{getattr(values, 'dtype', type(values))} {np.shape(values)}"
    fits = isinstance(values, np.ndarray) and values.shape == expected_shape and values.dtype == np.int64
    require(fits, f"{label}: values are {actual}, expected int64 {expected_shape}")
    check_row_by_row(label, of_rows, rows, "have another vector", small_chunk_rows)
    check_no_memory(label, of_rows, lambda batch: of_rows(batch, again), rows, "have another vector")
    placed = values[(vectors.cells.locate(rows) >= 0).any(axis=1)]
    squares = int((placed**2).sum(axis=1).max(initial=0))
    lengths = int(np.abs(placed).sum(axis=1).max(initial=0))
    require(squares <= bound.l2**2, f"{label}: a vector has the L2 norm {squares**0.5:.6g}, the bound is {bound.l2}")
    require(lengths <= bound.l1, f"{label}: a vector has the L1 norm {lengths}, the bound is {bound.l1}")


def _made_vectors(make: Maker) -> Iterator[tuple[Domain, Any]]:
    for i, domain in enumerate(DOMAINS):
        yield domain, make(domain, PublicRng.from_seed(54).child(i))


BUCKETINGS = (
    ids_are_within_the_space,
    nested_levels_are_halves,
    a_row_falls_in_the_same_bucket_in_any_batch,
    ids_are_those_of_the_nearest_centers,
    its_digest_travels,
)
VECTORS = (vectors_are_bounded_and_of_their_row_alone,)
