"""Messages of ``blanket-histogram``, hash values tagged with their hash function, and both halves of its question."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache, cached_property
from typing import Any, final

import attrs
import numpy as np

from cloister.plugin import (
    AnyArray,
    Bools,
    Budget,
    BundleArrays,
    Event,
    Floats,
    Gain,
    Ids,
    Ints,
    LookupTable,
    NoiseRng,
    PublicRng,
    Refused,
    ReportFacts,
    Space,
    json_integers,
    stamp,
)
from cloister.plugins.oracles.local.coins import multiply_shift
from cloister.plugins.oracles.local.hashing import Hashes

COLUMNS = {"question": "u8", "level": "u2", "tag": "u8", "value": "u2"}
LISTED = 2**14
"""Levels of up to this many buckets are decoded as a whole at the first look-up."""


@final
@attrs.frozen(eq=False)
class Tagged:
    """Messages of users. Nothing links them to users, or tells which are blankets.

    Args:
        question: stamp of the channel that encoded them.
        levels: (messages,) uint16.
        tags: v, (messages,) uint64.
        values: (messages,) uint16.
    """

    question: int
    levels: AnyArray = attrs.field(repr=False)
    tags: Ids = attrs.field(repr=False)
    values: AnyArray = attrs.field(repr=False)

    def columns(self) -> dict[str, AnyArray]:
        """Return arrays with one entry per message."""
        question = np.broadcast_to(np.uint64(self.question), len(self.tags))
        return dict(zip(COLUMNS, (question, self.levels, self.tags, self.values), strict=True))

    @classmethod
    def load(cls, columns: Mapping[str, AnyArray]) -> Tagged:
        """Return messages from untrusted arrays, in any order. ``absorb`` checks later whether they are possible.

        Raises:
            Refused: names, types or shapes are not those that ``columns`` gives.
        """
        if sorted(columns) != sorted(COLUMNS):
            raise Refused(f"messages have the columns {', '.join(COLUMNS)}, not {', '.join(sorted(columns))}")
        for name, kind in COLUMNS.items():
            if columns[name].dtype != np.dtype(kind) or columns[name].shape != (len(columns["tag"]),):
                raise Refused(
                    f"the column '{name}' of messages has type {columns[name].dtype} and shape {columns[name].shape}: "
                    f"no encoder sends that"
                )
        question = columns["question"]
        if len(question) and (question != question[0]).any():
            raise Refused("the messages answer several questions: load those of each question separately")
        return cls(int(question[0]) if len(question) else 0, columns["level"], columns["tag"], columns["value"])


@final
@attrs.frozen(eq=False)
class Gathered:
    """Summary of messages: the messages themselves, in any order, and their ``counts`` by level."""

    pieces: tuple[Tagged, ...]
    counts: Ints

    def merge(self, other: Gathered) -> Gathered:
        return Gathered(self.pieces + other.pieces, self.counts + other.counts)


@final
@attrs.frozen
class BlanketChannel(ReportFacts):
    """Channel in which every user sends 1 + t messages per level.

    Args:
        mechanism, budget: declared to the accountant.
        space: the buckets.
        people: public number of users, all of whom are asked.
        min_honest_users: number of users who must send their blankets.
        blankets: t.
        values: b, 2 <= b <= 2^16.
        delta: at the budget's epsilon.
        seed: of the public hashes.
    """

    mechanism: str
    budget: Budget
    space: Space
    people: int
    min_honest_users: int
    blankets: int
    values: int
    delta: float
    seed: PublicRng

    @property
    def messages(self) -> int:
        """Number of messages from every user."""
        return self.space.levels * (1 + self.blankets)

    @property
    def message_bytes(self) -> int:
        """Bytes of one message: level, tag and value."""
        return 12

    @property
    def events(self) -> tuple[Event, ...]:
        """One event: all of a user's messages."""
        return (Event(self.mechanism, self.budget, delta=self.delta),)

    @property
    def deviation(self) -> float:
        """Standard deviation of an empty bucket's count, with the planned users."""
        return math.sqrt(self.people * (1 + self.blankets) / self.values / (1 - 1 / self.values))

    @property
    def gains(self) -> tuple[Gain, ...]:
        """Gain of each level: N grows by 1 + t, and N_x by as much or by nothing, since users choose their tags."""
        per_level, b = 1 + self.blankets, self.values
        return (Gain(per_level, per_level / (b - 1), per_level, per_level),) * self.space.levels

    def reported(self, summary: Gathered) -> tuple[int, ...]:
        return tuple((summary.counts // (1 + self.blankets)).tolist())

    @cached_property
    def stamp(self) -> int:
        """Fingerprint of the question, 64 bits."""
        return stamp(self)

    def hashes(self, level: int) -> Hashes:
        return Hashes(self.seed.child("level", level), self.values)

    def bundled(self, arrays: BundleArrays) -> dict[str, Any]:
        sizes = enumerate(json_integers(self.space.sizes))
        levels = [{"size": size, **self.hashes(level).bundled} for level, size in sizes]
        return {"kind": "blanket", "blankets": self.blankets, "values": self.values, "levels": levels}

    def encode(self, items: Ints, users: Ids, rng: NoiseRng) -> Tagged:
        """Draw all tags and values of users (n,), then replace the value of each user's first message by her hash."""
        per_level, n = 1 + self.blankets, len(users)
        words = rng.child("messages").words(users, 2 * self.messages).reshape(n, self.space.levels, per_level, 2)
        tags, values = words[..., 0].copy(), multiply_shift(words[..., 1], self.values)
        for level in range(self.space.levels):
            ids = items[:, level]
            inside = np.flatnonzero(ids >= 0)
            values[inside, level, 0] = self.hashes(level).of(tags[inside, level, 0], ids[inside])
        levels = np.broadcast_to(np.arange(self.space.levels, dtype=np.uint16)[:, None], tags.shape[1:])
        levels = np.broadcast_to(levels, tags.shape).reshape(-1)
        return Tagged(self.stamp, levels, tags.reshape(-1), values.reshape(-1).astype(np.uint16))

    def absorb(self, report: Tagged) -> Gathered:
        """Check messages, of any part of the users, in any order.

        Raises:
            Refused: no encoder sends these.
        """
        levels, tags, values = report.levels, report.tags, report.values
        if (str(levels.dtype), str(tags.dtype), str(values.dtype)) != ("uint16", "uint64", "uint16") or tags.ndim != 1:
            raise Refused(f"messages of '{self.mechanism}' are not arrays of uint16, uint64 and uint16")
        if not levels.shape == tags.shape == values.shape:
            raise Refused(f"the columns of messages of '{self.mechanism}' differ in length")
        if len(tags) and report.question != self.stamp:
            raise Refused("these messages answer another question: another plan, seed, space or budget")
        if len(tags) and int(values.max()) >= self.values:
            raise Refused(f"a message of '{self.mechanism}' has a value of {int(values.max())}: no encoder sends that")
        if len(levels) and int(levels.max()) >= self.space.levels:
            raise Refused(f"a message of '{self.mechanism}' is of level {int(levels.max())}: there is none")
        counts = np.bincount(levels, minlength=self.space.levels).astype(np.int64, copy=False)
        return Gathered((report,), counts)

    def whole(self, report: Tagged) -> Bools:
        """Return True (n,) for users who sent the right number of messages per level, with possible values."""
        users = len(report.tags) // self.messages
        if report.question != self.stamp:
            return np.zeros(users, bool)
        levels = np.sort(report.levels.reshape(users, self.messages), axis=1)
        right = levels == np.repeat(np.arange(self.space.levels, dtype=levels.dtype), 1 + self.blankets)
        return np.asarray((right & (report.values.reshape(users, self.messages) < self.values)).all(axis=1))

    def pooled(self, items: Ints, users: Ids, rng: NoiseRng) -> Gathered:
        """Return what ``absorb`` returns for the shuffled messages of these users: their order does not matter."""
        return self.absorb(self.encode(items, users, rng))

    def decode(self, summary: Gathered, rng: NoiseRng) -> LookupTable:
        """Return a table of counts, from the numbers of messages that agree with a bucket. Draws nothing.

        Raises:
            Refused: some users' messages are incomplete.
        """
        per_level, b, sent = 1 + self.blankets, self.values, int(summary.counts[0])
        if (summary.counts != sent).any() or sent % per_level:
            raise Refused(
                f"every user sends {per_level} messages for each of {self.space.levels} levels: some are missing, or "
                f"some too many"
            )
        listed = cache(lambda level: self._agreeing(summary, level, None))

        def look(ids: Ints, level: int) -> Floats:
            small = self.space.sizes[level] <= LISTED
            agreeing = listed(level)[ids] if small else self._agreeing(summary, level, ids)
            return np.asarray((agreeing - sent / b) / (1 - 1 / b), np.float64)

        return LookupTable(look, [self.deviation] * self.space.levels)

    def _agreeing(self, summary: Gathered, level: int, ids: Ints | None) -> Ints:
        """Count the messages that agree with each of these buckets (m,), or all of the level: costs n per bucket."""
        size, hashes = self.space.sizes[level], self.hashes(level)
        total = np.zeros(size if ids is None else len(ids), np.int64)
        for piece in summary.pieces:
            on_level = piece.levels == level
            tags, values = piece.tags[on_level], piece.values[on_level].astype(np.int64)
            total += hashes.everywhere(tags, values, size) if ids is None else hashes.at(tags, values, ids)
        return total
