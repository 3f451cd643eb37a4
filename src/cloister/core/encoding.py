"""A data holder's half of a round, and how summaries come together. Imports NumPy and attrs only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from typing import Any, TypeAlias, TypeVar, final

import attrs
import numpy as np

from cloister.core.buckets import BucketedVectors, Bucketing, Vectors
from cloister.core.capabilities import MultiMessageChannel
from cloister.core.errors import InvalidInput
from cloister.core.lattice import shrink
from cloister.core.questions import OpenedQuestion, Round
from cloister.core.randomness import NoiseRng
from cloister.core.roles import Channel
from cloister.core.shuffling import asked as whom, numbers
from cloister.core.types import AnyArray, Bools, Ids, Ints

P = TypeVar("P")
V = TypeVar("V")
Progress: TypeAlias = Callable[[int], None]
"""Told how many rows, or reports, were read since the last time."""


def chunk_rows(dimension: int) -> int:
    """How many rows of this dimension to encode at once: what stays in a core's second-level cache."""
    return max(256, min(16_384, 131_072 // dimension))


def keep_memory() -> None:
    """Make glibc keep the memory of one chunk for the next one.

    A chunk's arrays are of a size that is mapped, zeroed and unmapped again each time, which was a quarter of a round.
    The thresholds follow the largest block that was ever freed; no page of this one is touched. Elsewhere it does
    nothing.
    """
    np.empty(2**25 - 2**16, np.uint8)


def encode_rows(round: Round[Any], rows: AnyArray, users: Ids, rng: NoiseRng) -> tuple[Any, ...]:
    """Raw rows (n, d) to one report per question: clip, put on the lattice, locate, encode.

    Rows with a cell that is not a finite number are dropped, by a rule that looks at each row alone.
    """
    return encode_lattice(round, *_snapped(round, rows, users), rng)


def encode_lattice(round: Round[Any], rows: Ints, users: Ids, rng: NoiseRng) -> tuple[Any, ...]:
    """Lattice rows (n, d) to one report per question. Each distinct bucketing is located once, for those whom it is
    asked of."""
    return tuple(
        part.channel.encode(items, who, coins) for part, items, who, coins, _ in _asked(round, rows, users, rng)
    )


@final
@attrs.frozen(eq=False)
class Owned:
    """A report of several users, and whose it is.

    Args:
        report: what the channel made.
        rows: (m,) positions of the users who are asked.
        numbers: (m,) what stands for their numbers.
    """

    report: Any
    rows: Ints
    numbers: Ids


def encode_owned(round: Round[Any], rows: AnyArray, users: Ids, rng: NoiseRng) -> tuple[Owned, ...]:
    """Finite raw rows (n, d) to one report per question, for whoever must know whose message is whose: the people
    themselves."""
    snapped = round.domain.snap(rows)
    return tuple(
        Owned(
            part.channel.encode(items, them, coins), np.arange(len(users)) if who is None else np.flatnonzero(who), them
        )
        for part, items, them, coins, who in _asked(round, snapped, users, rng)
    )


def summarise_rows(round: Round[Any], rows: AnyArray, users: Ids, rng: NoiseRng) -> tuple[Any, ...]:
    """Raw rows (n, d) that are all here to one summary per question."""
    return summarise_lattice(round, *_snapped(round, rows, users), rng)


def summarise_lattice(round: Round[Any], rows: Ints, users: Ids, rng: NoiseRng) -> tuple[Any, ...]:
    """Lattice rows (n, d) that are all here to one summary per question: messages that would only be added up are not
    made."""
    return tuple(
        _summary(part.channel, items, who, coins) for part, items, who, coins, _ in _asked(round, rows, users, rng)
    )


def _summary(channel: Channel[Any, Any, Any, Any], items: Ints | BucketedVectors, users: Ids, rng: NoiseRng) -> Any:
    if isinstance(channel, MultiMessageChannel):
        return channel.pooled(items, users, rng)
    return channel.absorb(channel.encode(items, users, rng))


def _snapped(round: Round[Any], rows: AnyArray, users: Ids) -> tuple[Ints, Ids]:
    """The usable rows on the lattice, with their users."""
    whole = np.isfinite(rows).all(axis=1) if rows.dtype.kind == "f" else np.ones(len(rows), bool)
    if not whole.all():
        rows, users = rows[whole], users[whole]
    return round.domain.snap(rows), users


def _asked(
    round: Round[Any], rows: Ints, users: Ids, rng: NoiseRng
) -> Iterator[tuple[OpenedQuestion, Ints | BucketedVectors, Ids, NoiseRng, Bools | None]]:
    """What each channel encodes: items, users, and where their words come from; and who of the users (n,) these are, if
    not all."""
    names = numbers(round, users, rng)
    asked = whom(round, names)
    located = _located(round, asked, rows)
    for number, (part, who) in enumerate(zip(round.parts, asked, strict=True)):
        buckets, mine, them = located[id(part.cells)], rows, names[number]
        if who is not None:
            buckets, mine, them = buckets[who], rows[who], them[who]
        items: Ints | BucketedVectors = buckets
        if part.vectors is not None:
            items = BucketedVectors(buckets, shrink(_promised(part.vectors, mine, buckets), part.vectors.bound))
        yield part, items, them, rng.child("encode", round.index, number), who


def _located(round: Round[Any], asked: list[Bools | None], rows: Ints) -> dict[int, Ints]:
    """Bucket ids (n, levels) by bucketing; -1 where nobody asks.

    Raises:
        InvalidInput: a bucketing puts a row where its own space has no bucket.
    """
    needed: dict[int, Bools | None] = {}
    for part, who in zip(round.parts, asked, strict=True):
        before = needed.get(id(part.cells), who)
        needed[id(part.cells)] = None if who is None or before is None else before | who
    located: dict[int, Ints] = {}
    for part in round.parts:
        if id(part.cells) not in located:
            who = needed[id(part.cells)]
            if who is None:
                located[id(part.cells)] = _within(part.cells, rows)
            else:
                located[id(part.cells)] = ids = np.full((len(rows), part.cells.space.levels), -1)
                ids[who] = _within(part.cells, rows[who])
    return located


def _within(cells: Bucketing, rows: Ints) -> Ints:
    """Bucket ids (n, levels), each -1 or of a bucket that there is: what the proof of every oracle takes for granted.

    A randomiser that is given another id may send what no bucket of the plan would, which tells the row as it is: so
    nothing is encoded. Under central and aggregated trust the run ends, which one row can bring about: whether there is
    such a row is outside the guarantee, and to be mended in the plugin; the message says nothing else of it. The kit
    finds such bucketings (``ids_are_within_the_space``).

    Raises:
        InvalidInput: one is not, or they are no ids.
    """
    ids, sizes = cells.locate(rows), cells.space.sizes
    if not (
        ids.dtype.kind == "i"
        and ids.shape == (len(rows), len(sizes))
        and all(
            int(level.min(initial=-1)) >= -1 and int(level.max(initial=-1)) < size
            for level, size in zip(ids.T, sizes, strict=True)
        )
    ):
        raise InvalidInput(
            f"the bucketing {type(cells).__name__} has given an id that is of no bucket of its space (ids of a level "
            f"are -1 <= id < its size): this is a fault of the plugin that it is from. Nothing was encoded"
        )
    return ids


def _promised(vectors: Vectors, rows: Ints, buckets: Ints) -> Ints:
    """Vectors (n, dimension) of the rows, as their bound promises them.

    Raises:
        InvalidInput: they have another shape or type. How many there are is not said: it may depend on the rows.
    """
    values, dimension = vectors.values(rows, buckets), vectors.bound.dimension
    if not (isinstance(values, np.ndarray) and values.shape == (len(rows), dimension) and values.dtype == np.int64):
        first, *others = np.shape(values) or ("no n",)
        shape = ", ".join(["n" if first == len(rows) else "not n", *map(str, others)])
        raise InvalidInput(
            f"{type(vectors).__name__}.values of n rows has shape ({shape}) and type "
            f"{getattr(values, 'dtype', type(values).__name__)}; its bound promises (n, {dimension}) of int64: this is "
            f"a fault of the plugin that it is from. Nothing was encoded"
        )
    return values


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

    Laws: ``fn`` is pure and draws no central noise (a lost task may run twice); ``merge`` is associative and
    commutative and changes neither side; a part that cannot be read raises, so that no partial sum is ever returned.

    Args:
        parts: at least one.
        run: gives each part's value exactly once, in any order, or raises; by default here and now, one after the
            other.
    """
    return reduce(merge, run(fn, parts))
