"""A data holder's half of a round, and how summaries come together. Imports NumPy and attrs only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from typing import Any, TypeVar

import numpy as np

from cloister.core.lattice import shrink
from cloister.core.questions import Part, Placed, Round
from cloister.core.randomness import NoiseRng
from cloister.core.roles import Mixing
from cloister.core.shuffling import asked as whom
from cloister.core.shuffling import numbers
from cloister.core.types import AnyArray, Bools, Ids, Ints

P = TypeVar("P")
V = TypeVar("V")


def chunk_rows(dimension: int) -> int:
    """How many rows of this dimension to encode at once: what stays in a core's second-level cache."""
    return max(256, min(16_384, 131_072 // dimension))


def encode_rows(round: Round[Any], rows: AnyArray, users: Ids, rng: NoiseRng) -> tuple[Any, ...]:
    """Raw rows (n, d) to one report per question: clip, put on the lattice, locate, encode.

    Rows with a cell that is not a finite number are dropped, by a rule that looks at each row alone.
    """
    rows, users = finite_rows(rows, users)
    return encode_lattice(round, round.domain.snap(rows), users, rng)


def finite_rows(rows: AnyArray, users: Ids) -> tuple[AnyArray, Ids]:
    """Those rows (n, d), with their users (n,), whose cells are all finite numbers."""
    whole = np.isfinite(rows).all(axis=1) if rows.dtype.kind == "f" else np.ones(len(rows), bool)
    return (rows, users) if whole.all() else (rows[whole], users[whole])


def encode_lattice(round: Round[Any], rows: Ints, users: Ids, rng: NoiseRng) -> tuple[Any, ...]:
    """Lattice rows (n, d) to one report per question. Each distinct bucketing is located once, for those whom it is asked of."""
    return tuple(report for report, _ in encode_for(round, rows, users, rng))


def encode_for(round: Round[Any], rows: Ints, users: Ids, rng: NoiseRng) -> Iterator[tuple[Any, Ids]]:
    """The same, each report with those of the users who were asked, in its order. Under Shuffled trust that is for the envelope alone:
    no number of theirs is in the report."""
    for part, items, them, names, mine in _answering(round, rows, users, rng):
        yield part.channel.encode(items, names, mine), them


def summarise(round: Round[Any], rows: Ints, users: Ids, rng: NoiseRng) -> tuple[Any, ...]:
    """Lattice rows (n, d) to one summary per question: what ``absorb`` makes of ``encode_lattice``, and where users send several
    messages each, the same in law without making the messages (``Mixing.pooled``). What rows in one place are gathered by."""
    found = list[Any]()
    for part, items, _, names, mine in _answering(round, rows, users, rng):
        channel = part.channel
        if isinstance(channel, Mixing):
            found.append(channel.pooled(items, names, mine))
        else:
            found.append(channel.absorb(channel.encode(items, names, mine)))
    return tuple(found)


def _answering(
    round: Round[Any], rows: Ints, users: Ids, rng: NoiseRng
) -> Iterator[tuple[Part, Ints | Placed, Ids, Ids, NoiseRng]]:
    """Every question with what is said of whom: (part, items, users asked, the numbers that they go by, noise)."""
    fresh = numbers(round, users, rng)
    asked = whom(round, fresh)
    located = _located(round, asked, rows)
    for number, (part, who, names) in enumerate(zip(round.parts, asked, fresh, strict=True)):
        buckets, mine, them = located[id(part.cells)], rows, users
        if who is not None:
            buckets, mine, them, names = buckets[who], rows[who], users[who], names[who]
        items: Ints | Placed = buckets
        if part.vectors is not None:
            items = Placed(buckets, shrink(part.vectors.values(mine, buckets), part.vectors.bound))
        yield part, items, them, names, rng.child("encode", round.index, number)


def _located(round: Round[Any], asked: list[Bools | None], rows: Ints) -> dict[int, Ints]:
    """Bucket ids (n, levels) by bucketing; -1 where nobody asks."""
    needed: dict[int, Bools | None] = {}
    for part, who in zip(round.parts, asked, strict=True):
        before = needed.get(id(part.cells), who)
        needed[id(part.cells)] = None if who is None or before is None else before | who
    located: dict[int, Ints] = {}
    for part in round.parts:
        if id(part.cells) not in located:
            who = needed[id(part.cells)]
            if who is None:
                located[id(part.cells)] = part.cells.locate(rows)
            else:
                located[id(part.cells)] = ids = np.full((len(rows), part.cells.space.levels), -1)
                ids[who] = part.cells.locate(rows[who])
    return located


def absorb(round: Round[Any], reports: tuple[Any, ...]) -> tuple[Any, ...]:
    """The server's half: reports to summaries, which merge."""
    return tuple(part.channel.absorb(report) for part, report in zip(round.parts, reports, strict=True))


def merge_summaries(one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
    """Question by question."""
    return tuple(a.merge(b) for a, b in zip(one, other, strict=True))


def map_merge(
    parts: Iterable[P], fn: Callable[[P], V], merge: Callable[[V, V], V],
    run: Callable[[Callable[[P], V], Iterable[P]], Iterable[V]] = map,
) -> V:  # fmt: skip
    """The one contract of populations that spread over processes or machines.

    Laws: ``fn`` is pure and draws no central noise (a lost task may run twice); ``merge`` is associative and commutative and
    changes neither side; a part that cannot be read raises, so that no partial sum is ever returned.

    Args:
        parts: at least one.
        run: gives each part's value exactly once, in any order, or raises; by default here and now, one after the other.
    """
    return reduce(merge, run(fn, parts))
