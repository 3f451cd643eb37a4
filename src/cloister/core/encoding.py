"""The data holder's half of a round, and merging summaries. Imports NumPy and attrs only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from typing import Any, TypeAlias, TypeVar, final

import attrs
import numpy as np

from cloister.core.buckets import BucketedVectors, Bucketing, Vectors
from cloister.core.errors import InvalidInput
from cloister.core.lattice import shrink
from cloister.core.questions import OpenedQuestion, Round
from cloister.core.randomness import NoiseRng
from cloister.core.roles import Channel
from cloister.core.shuffling import in_messages, selected_users, user_numbers
from cloister.core.trust import Trust
from cloister.core.types import AnyArray, Bools, Ids, Ints

P = TypeVar("P")
V = TypeVar("V")
Progress: TypeAlias = Callable[[int], None]
"""Callback that takes the number of rows, or reports, read since the last call."""


def chunk_rows(dimension: int) -> int:
    """Return the number of rows of this dimension to encode at once: 4 MB of float64.

    Calls then take long enough for other threads to get the interpreter's lock meanwhile. Code that must stay in a
    core's cache works on blocks of a chunk.
    """
    return max(256, min(65_536, 524_288 // dimension))


def keep_memory() -> None:
    """Make glibc keep the memory of one chunk for the next one. Elsewhere it does nothing.

    glibc would map, zero and unmap arrays of a chunk's size each time, a quarter of a round's time.
    """
    # glibc's thresholds follow the largest block ever freed; no page of this block is touched
    np.empty(2**25 - 2**16, np.uint8)


def encode_rows(round: Round[Any], rows: AnyArray, users: Ids, rng: NoiseRng) -> tuple[Any, ...]:
    """Encode raw rows (n, d) into one report per question: clip, put on the lattice, locate, encode.

    Rows with a missing or infinite cell are treated as ``everybody_reports`` says, each by itself.
    """
    points, who, nowhere = _snapped(round, rows, users)
    return encode_lattice(round, points, who, rng, nowhere)


def encode_lattice(
    round: Round[Any], rows: Ints, users: Ids, rng: NoiseRng, nowhere: Bools | None = None
) -> tuple[Any, ...]:
    """Encode lattice rows (n, d) into one report per question, locating each distinct bucketing once.

    Args:
        round: the opened questions.
        rows: lattice points (n, d).
        users: their user numbers (n,).
        rng: noise.
        nowhere: mask (n,) of rows to put in no bucket, whatever they hold.
    """
    inputs = _channel_inputs(round, rows, users, rng, nowhere)
    return tuple(part.channel.encode(items, who, coins) for part, items, who, coins, _ in inputs)


def everybody_reports(round: Round[Any]) -> bool:
    """Return True if the owner of an unusable row reports too, as a row in no bucket.

    She does under replace-one: neighbouring data sets have the same number of reports, and an absent report would
    reveal for certain that a cell is missing. Under add-or-remove, unusable rows are dropped.
    """
    trust: type[Trust] = round.trust
    return trust.relation == "replace one row"


@final
@attrs.frozen(eq=False)
class OwnedReport:
    """Report of several users, with its senders.

    Args:
        report: as the channel encoded it.
        rows: positions (m,) of the users who are asked.
        numbers: their numbers (m,), public or freshly drawn (``shuffling.user_numbers``).
    """

    report: Any
    rows: Ints
    numbers: Ids


def encode_owned(round: Round[Any], rows: AnyArray, users: Ids, rng: NoiseRng) -> tuple[OwnedReport, ...]:
    """Encode raw rows (n, d) into one report per question, with its senders: for the senders themselves.

    A row with a missing or infinite cell is in no bucket, and its sender reports as everybody does
    (``everybody_reports``).
    """
    points, nowhere = _placed(round, rows)
    return tuple(
        OwnedReport(
            part.channel.encode(items, them, coins), np.arange(len(users)) if who is None else np.flatnonzero(who), them
        )
        for part, items, them, coins, who in _channel_inputs(round, points, users, rng, nowhere)
    )


def summarise_rows(round: Round[Any], rows: AnyArray, users: Ids, rng: NoiseRng) -> tuple[Any, ...]:
    """Summarise raw rows (n, d) in this process: one summary per question, as ``encode_rows`` and ``absorb``."""
    points, who, nowhere = _snapped(round, rows, users)
    return summarise_lattice(round, points, who, rng, nowhere)


def summarise_lattice(
    round: Round[Any], rows: Ints, users: Ids, rng: NoiseRng, nowhere: Bools | None = None
) -> tuple[Any, ...]:
    """Summarise lattice rows (n, d) in this process, without making messages only to add them up.

    Arguments are those of ``encode_lattice``.
    """
    summaries = list[Any]()
    for part, items, who, coins, _ in _channel_inputs(round, rows, users, rng, nowhere):
        summaries.append(_summary(part.channel, items, who, coins))
    return tuple(summaries)


def _summary(channel: Channel[Any, Any, Any, Any], items: Ints | BucketedVectors, users: Ids, rng: NoiseRng) -> Any:
    several = in_messages(channel)
    return channel.absorb(channel.encode(items, users, rng)) if several is None else several.pooled(items, users, rng)


def finite(rows: AnyArray) -> Bools:
    """Return a mask (n,) of the rows without a missing or infinite cell."""
    cells = np.isfinite(rows)
    return np.ones(len(rows), bool) if cells.all() else np.asarray(cells.all(axis=1))


def _snapped(round: Round[Any], rows: AnyArray, users: Ids) -> tuple[Ints, Ids, Bools | None]:
    """Return the lattice rows of those who report, their users, and a mask of those in no bucket (None: no row)."""
    if everybody_reports(round):
        points, nowhere = _placed(round, rows)
        return points, users, nowhere
    usable = finite(rows)
    if not usable.all():
        rows, users = rows[usable], users[usable]
    return round.domain.snap(rows), users, None


def _placed(round: Round[Any], rows: AnyArray) -> tuple[Ints, Bools | None]:
    """Return all rows (n, d) on the lattice, and a mask of those in no bucket (None: no row)."""
    usable = finite(rows)
    if usable.all():
        return round.domain.snap(rows), None
    return round.domain.snap(np.where(usable[:, None], rows, 0.0)), ~usable


def _channel_inputs(
    round: Round[Any], rows: Ints, users: Ids, rng: NoiseRng, nowhere: Bools | None = None
) -> Iterator[tuple[OpenedQuestion, Ints | BucketedVectors, Ids, NoiseRng, Bools | None]]:
    """Yield each channel's input: items, user numbers, noise, and a mask (n,) of the users asked (None: all)."""
    names = user_numbers(round, users, rng)
    selected = selected_users(round, names)
    located = _bucket_ids(round, selected, rows)
    if nowhere is not None:
        located = {cells: np.where(nowhere[:, None], -1, ids) for cells, ids in located.items()}
    for number, (part, who) in enumerate(zip(round.parts, selected, strict=True)):
        buckets, points, senders = located[id(part.cells)], rows, names[number]
        if who is not None:
            buckets, points, senders = buckets[who], rows[who], senders[who]
        items: Ints | BucketedVectors = buckets
        if part.vectors is not None:
            items = BucketedVectors(
                buckets, shrink(_checked_vectors(part.vectors, points, buckets), part.vectors.bound)
            )
        yield part, items, senders, rng.child("encode", round.index, number), who


def _bucket_ids(round: Round[Any], selected: list[Bools | None], rows: Ints) -> dict[int, Ints]:
    """Return bucket ids (n, levels) by the id() of each bucketing; -1 where no question asks the row's user."""
    needed: dict[int, Bools | None] = {}
    for part, who in zip(round.parts, selected, strict=True):
        previous = needed.get(id(part.cells), who)
        needed[id(part.cells)] = None if who is None or previous is None else previous | who
    located: dict[int, Ints] = {}
    for part in round.parts:
        if id(part.cells) not in located:
            who = needed[id(part.cells)]
            if who is None:
                located[id(part.cells)] = _checked_ids(part.cells, part.cells.locate(rows), len(rows))
            else:
                located[id(part.cells)] = ids = np.full((len(rows), part.cells.space.levels), -1)
                ids[who] = _checked_ids(part.cells, part.cells.locate(rows[who]), int(who.sum()))
    return located


def _checked_ids(cells: Bucketing, ids: Ints, rows: int) -> Ints:
    """Return bucket ids (rows, levels), each -1 or of an existing bucket, as the proof of every oracle assumes.

    Given another id, a randomiser might send a report that belongs to no bucket of the plan and reveals the row: so
    nothing is encoded. Under Central and Aggregated trust one row can thereby end the run. That such a row exists is
    outside the guarantee, and the message reveals nothing else of it. The test kit finds such bucketings
    (``ids_are_within_the_space``).

    Raises:
        InvalidInput: some id is outside its level, or the result is no array of ids.
    """
    sizes = cells.space.sizes
    if not (
        ids.dtype.kind == "i"
        and ids.shape == (rows, len(sizes))
        and int(ids.min(initial=-1)) >= -1
        and all(int(level.max(initial=-1)) < size for level, size in zip(ids.T, sizes, strict=True))
    ):
        raise InvalidInput(
            f"the bucketing {type(cells).__name__} returned an id outside its space (ids of a level must be "
            f"-1 <= id < its size): report this to the author of its plugin. Nothing was encoded"
        )
    return ids


def _checked_vectors(vectors: Vectors, rows: Ints, buckets: Ints) -> Ints:
    """Return the vectors (n, dimension) of the rows, checked against their bound.

    Raises:
        InvalidInput: they have another shape or type.
    """
    values, dimension = vectors.values(rows, buckets), vectors.bound.dimension
    if not (isinstance(values, np.ndarray) and values.shape == (len(rows), dimension) and values.dtype == np.int64):
        # the number of vectors may depend on the rows: the message leaves it out
        first, *trailing = np.shape(values) or ("no n",)
        shape = ", ".join(["n" if first == len(rows) else "not n", *map(str, trailing)])
        raise InvalidInput(
            f"{type(vectors).__name__}.values of n rows has shape ({shape}) and type "
            f"{getattr(values, 'dtype', type(values).__name__)}; its bound promises (n, {dimension}) of int64: report "
            f"this to the author of its plugin. Nothing was encoded"
        )
    return values


def absorb(round: Round[Any], reports: tuple[Any, ...]) -> tuple[Any, ...]:
    """Turn reports into summaries, which merge: the server's half of a round."""
    return tuple(part.channel.absorb(report) for part, report in zip(round.parts, reports, strict=True))


def merge_summaries(one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
    """Merge two tuples of summaries, question by question."""
    return tuple(a.merge(b) for a, b in zip(one, other, strict=True))


def map_merge(
    parts: Iterable[P],
    fn: Callable[[P], V],
    merge: Callable[[V, V], V],
    run: Callable[[Callable[[P], V], Iterable[P]], Iterable[V]] = map,
) -> V:
    """Map parts and merge the values: the contract of populations that spread over processes or machines.

    Laws: ``fn`` is pure and draws no central noise (a lost task may run twice); ``merge`` is associative and
    commutative and changes neither side; a part that cannot be read raises, so that no partial sum is ever returned.

    Args:
        parts: at least one.
        fn: computes a part's value.
        merge: merges two values.
        run: gives each part's value exactly once, in any order, or raises; by default sequential, in this process.
    """
    return reduce(merge, run(fn, parts))
