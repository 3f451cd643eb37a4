"""Rows in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cloister.core.domains import Domain
from cloister.core.encoding import absorb, chunk_rows, encode_lattice, map_merge, merge_summaries
from cloister.core.questions import Round
from cloister.core.randomness import NoiseRng
from cloister.core.types import AnyArray


class Arrays:
    """A curator's or a simulator's rows, put on the lattice once and kept there (int32, half of float64's size).

    Rows with a cell that is not a finite number are dropped. User i is the row's position plus ``first``.

    Args:
        rows: (n, d) numbers.
        first: number of the first user.
        progress: told how many rows were just encoded.
    """

    def __init__(self, rows: AnyArray, first: int = 0, progress: Callable[[int], None] | None = None) -> None:
        self._rows, self._first, self._progress = rows, first, progress
        self._lattice: NDArray[np.int32] | None = None
        self._domain: Domain | None = None

    def gather(self, round: Round[Any], rng: NoiseRng) -> tuple[Any, ...]:
        lattice = self._snapped(round.domain)
        size = chunk_rows(round.domain.dimension)

        def encoded(start: int) -> tuple[Any, ...]:
            some = lattice[start : start + size].astype(np.int64)
            users = self._users[start : start + size]
            report = absorb(round, encode_lattice(round, some, users, rng.child("chunk", start)))
            if self._progress is not None:
                self._progress(len(some))
            return report

        return map_merge(range(0, max(len(lattice), 1), size), encoded, merge_summaries)

    def _snapped(self, domain: Domain) -> NDArray[np.int32]:
        if self._lattice is None or self._domain != domain:
            whole = [
                np.isfinite(c).all(axis=1) if c.dtype.kind == "f" else np.ones(len(c), bool) for c in self._chunks()
            ]
            keep = np.concatenate(whole) if whole else np.zeros(0, bool)
            self._users = np.flatnonzero(keep).astype(np.uint64) + np.uint64(self._first)
            self._lattice = np.empty((len(self._users), domain.dimension), np.int32)
            start = 0
            for chunk, fine in zip(self._chunks(), whole, strict=True):
                stop = start + int(fine.sum())
                self._lattice[start:stop] = domain.snap(chunk[fine])
                start = stop
            self._domain = domain
        return self._lattice

    def _chunks(self) -> Iterator[AnyArray]:
        size = chunk_rows(self._rows.shape[1])
        return (self._rows[i : i + size] for i in range(0, len(self._rows), size))
