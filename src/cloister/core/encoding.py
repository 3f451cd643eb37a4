"""A data holder's half of a round, and how summaries come together. Imports NumPy and attrs only."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any, TypeVar

import numpy as np

from cloister.core.lattice import shrink
from cloister.core.questions import Placed, Round
from cloister.core.randomness import NoiseRng
from cloister.core.types import AnyArray, Ids, Ints

P = TypeVar("P")
V = TypeVar("V")


def chunk_rows(dimension: int) -> int:
    """How many rows of this dimension to encode at once: what stays in a core's second-level cache."""
    return max(256, min(16_384, 131_072 // dimension))


def encode_rows(round: Round[Any], rows: AnyArray, users: Ids, rng: NoiseRng) -> tuple[Any, ...]:
    """Raw rows (n, d) to one report per question: clip, put on the lattice, locate, encode.

    Rows with a cell that is not a finite number are dropped, by a rule that looks at each row alone.
    """
    whole = np.isfinite(rows).all(axis=1) if rows.dtype.kind == "f" else np.ones(len(rows), bool)
    if not whole.all():
        rows, users = rows[whole], users[whole]
    return encode_lattice(round, round.domain.snap(rows), users, rng)


def encode_lattice(round: Round[Any], rows: Ints, users: Ids, rng: NoiseRng) -> tuple[Any, ...]:
    """Lattice rows (n, d) to one report per question. Each distinct bucketing is located once."""
    located: dict[int, Ints] = {}
    reports: list[Any] = []
    for number, part in enumerate(round.parts):
        if id(part.cells) not in located:
            located[id(part.cells)] = part.cells.locate(rows)
        buckets, mine, who = located[id(part.cells)], rows, users
        if part.among is not None:
            asked = np.flatnonzero(part.among.holds(users))
            buckets, mine, who = buckets[asked], rows[asked], users[asked]
        items: Ints | Placed = buckets
        if part.vectors is not None:
            items = Placed(buckets, shrink(part.vectors.values(mine, buckets), part.vectors.bound))
        reports.append(part.channel.encode(items, who, rng.child("encode", round.index, number)))
    return tuple(reports)


def absorb(round: Round[Any], reports: tuple[Any, ...]) -> tuple[Any, ...]:
    """The server's half: reports to summaries, which merge."""
    return tuple(part.channel.absorb(report) for part, report in zip(round.parts, reports, strict=True))


def merge_summaries(one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
    """Question by question."""
    return tuple(a.merge(b) for a, b in zip(one, other, strict=True))


def map_merge(parts: Iterable[P], fn: Callable[[P], V], merge: Callable[[V, V], V]) -> V:
    """The one contract of populations that spread over processes or machines; this is the one-process version.

    Laws: ``fn`` is pure and draws no central noise (a lost task may run twice); ``merge`` is associative and commutative and
    changes neither side; a part that cannot be read raises, so that no partial sum is ever returned.
    """
    return reduce(merge, map(fn, parts))
