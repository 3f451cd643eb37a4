"""Hash values that carry the name of their hash, and blanket messages among them: both halves of
``blanket-histogram``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache, cached_property
from typing import Any, final

import attrs
import numpy as np

from cloister.core.buckets import BundleArrays, Space, integers
from cloister.core.budget import Budget, Event
from cloister.core.errors import Refused
from cloister.core.plain_data import stamp
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.reports import Gain, ReportFacts
from cloister.core.types import AnyArray, Bools, Floats, Ids, Ints
from cloister.noise.channel import LookupTable
from cloister.plugins.oracles.local.hashing import Hashes
from cloister.plugins.oracles.local.randomised_response import below

COLUMNS = {"question": "u8", "level": "u2", "tag": "u8", "value": "u2"}
LISTED = 2**14
"""Levels of up to so many buckets are decoded as a whole when they are first looked at."""


@final
@attrs.frozen(eq=False)
class Tagged:
    """Messages of users: one entry each. Nothing says whose, nor which are blankets.

    Args:
        question: the stamp of the channel that encoded them.
        levels: (messages,) uint16.
        tags: v, (messages,) uint64.
        values: (messages,) uint16.
    """

    question: int
    levels: AnyArray = attrs.field(repr=False)
    tags: Ids = attrs.field(repr=False)
    values: AnyArray = attrs.field(repr=False)

    def columns(self) -> dict[str, AnyArray]:
        """Arrays with one entry per message."""
        question = np.broadcast_to(np.uint64(self.question), len(self.tags))
        return dict(zip(COLUMNS, (question, self.levels, self.tags, self.values), strict=True))

    @classmethod
    def load(cls, columns: Mapping[str, AnyArray]) -> Tagged:
        """Messages from arrays that came from outside, in any order.

        Raises:
            Refused: they are not what ``columns`` gives. Whether they are possible is for ``absorb`` to say.
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
            raise Refused("the messages answer several questions: keep those of each question apart")
        return cls(int(question[0]) if len(question) else 0, columns["level"], columns["tag"], columns["value"])


@final
@attrs.frozen(eq=False)
class Gathered:
    """Merged messages: the messages. What is asked of them depends on no order. Args: pieces, counts (of each
    level)."""

    pieces: tuple[Tagged, ...]
    counts: Ints

    def merge(self, other: Gathered) -> Gathered:
        return Gathered(self.pieces + other.pieces, self.counts + other.counts)


@final
@attrs.frozen
class BlanketChannel(ReportFacts):
    """Every user sends 1 + t messages per level.

    Args:
        mechanism, budget: what is declared to the accountant.
        space: the buckets.
        people: public number of users, all of whom are asked.
        min_honest_users: how many of them are counted on.
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
        """That every user sends."""
        return self.space.levels * (1 + self.blankets)

    @property
    def message_bytes(self) -> int:
        """Bytes of one message: level, tag and value."""
        return 12

    @property
    def events(self) -> tuple[Event, ...]:
        """All of a user's messages at once."""
        return (Event(self.mechanism, self.budget, delta=self.delta),)

    @property
    def deviation(self) -> float:
        """Standard deviation of an empty bucket's count, with the planned users."""
        return math.sqrt(self.people * (1 + self.blankets) / self.values / (1 - 1 / self.values))

    @property
    def gains(self) -> tuple[Gain, ...]:
        """A person's gains: all 1 + t messages of a level may agree with a bucket, or none: N grows by 1 + t, N_x by as
        much or by nothing. She draws their tags herself."""
        each, b = 1 + self.blankets, self.values
        return (Gain(each, each / (b - 1), each, each),) * self.space.levels

    def reported(self, summary: Gathered) -> tuple[int, ...]:
        return tuple((summary.counts // (1 + self.blankets)).tolist())

    @cached_property
    def stamp(self) -> int:
        """64 bits that tell this question from any other."""
        return stamp(self)

    def hashes(self, level: int) -> Hashes:
        return Hashes(self.seed.child("level", level), self.values)

    def bundled(self, arrays: BundleArrays) -> dict[str, Any]:
        sizes = enumerate(integers(self.space.sizes))
        levels = [{"size": size, **self.hashes(level).bundled} for level, size in sizes]
        return {"kind": "blanket", "blankets": self.blankets, "values": self.values, "levels": levels}

    def encode(self, items: Ints, users: Ids, rng: NoiseRng) -> Tagged:
        """Messages of users (n,): tags and values are drawn for all alike, then each user's first one is made her
        own."""
        each, n = 1 + self.blankets, len(users)
        words = rng.child("messages").words(users, 2 * self.messages).reshape(n, self.space.levels, each, 2)
        tags, values = words[..., 0].copy(), below(words[..., 1], self.values)
        for level in range(self.space.levels):
            ids = items[:, level]
            mine = np.flatnonzero(ids >= 0)
            values[mine, level, 0] = self.hashes(level).of(tags[mine, level, 0], ids[mine])
        levels = np.broadcast_to(np.arange(self.space.levels, dtype=np.uint16)[:, None], tags.shape[1:])
        every = np.broadcast_to(levels, tags.shape).reshape(-1)
        return Tagged(self.stamp, every, tags.reshape(-1), values.reshape(-1).astype(np.uint16))

    def absorb(self, report: Tagged) -> Gathered:
        """Themselves, checked: of all users, or some, in any order.

        Raises:
            Refused: no users have sent these.
        """
        levels, tags, values = report.levels, report.tags, report.values
        if (str(levels.dtype), str(tags.dtype), str(values.dtype)) != ("uint16", "uint64", "uint16") or tags.ndim != 1:
            raise Refused(f"messages of '{self.mechanism}' are lines of uint16, uint64 and uint16")
        if not levels.shape == tags.shape == values.shape:
            raise Refused(f"the parts of messages of '{self.mechanism}' differ in length")
        if len(tags) and report.question != self.stamp:
            raise Refused("these messages answer another question: another plan, seed, space or budget")
        if len(tags) and int(values.max()) >= self.values:
            raise Refused(f"a message of '{self.mechanism}' has a value of {int(values.max())}: no encoder sends that")
        if len(levels) and int(levels.max()) >= self.space.levels:
            raise Refused(f"a message of '{self.mechanism}' is of level {int(levels.max())}: there is none")
        counts = np.bincount(levels, minlength=self.space.levels).astype(np.int64, copy=False)
        return Gathered((report,), counts)

    def whole(self, report: Tagged) -> Bools:
        """Which users (n,) sent the right number of messages for every level, with possible values, to this
        question."""
        users = len(report.tags) // self.messages
        if report.question != self.stamp:
            return np.zeros(users, bool)
        levels = np.sort(report.levels.reshape(users, self.messages), axis=1)
        right = levels == np.repeat(np.arange(self.space.levels, dtype=levels.dtype), 1 + self.blankets)
        return np.asarray((right & (report.values.reshape(users, self.messages) < self.values)).all(axis=1))

    def pooled(self, items: Ints, users: Ids, rng: NoiseRng) -> Gathered:
        """What ``absorb`` makes of the shuffled messages of all these users: the order that is lost says nothing to
        it."""
        return self.absorb(self.encode(items, users, rng))

    def decode(self, summary: Gathered, rng: NoiseRng) -> LookupTable:
        """Counts from how many messages a bucket's hash agrees with. Draws nothing.

        Raises:
            Refused: messages of whole users are missing.
        """
        each, b, sent = 1 + self.blankets, self.values, int(summary.counts[0])
        if (summary.counts != sent).any() or sent % each:
            raise Refused(
                f"every user sends {each} messages for each of {self.space.levels} levels: some are missing, or some "
                f"too many"
            )
        listed = cache(lambda level: self._agreeing(summary, level, None))

        def look(ids: Ints, level: int) -> Floats:
            small = self.space.sizes[level] <= LISTED
            agreeing = listed(level)[ids] if small else self._agreeing(summary, level, ids)
            return np.asarray((agreeing - sent / b) / (1 - 1 / b), np.float64)

        return LookupTable(look, [self.deviation] * self.space.levels)

    def _agreeing(self, summary: Gathered, level: int, ids: Ints | None) -> Ints:
        """How many messages agree with each of these buckets (m,), or of all the level has: costs n per bucket."""
        size, hashes = self.space.sizes[level], self.hashes(level)
        total = np.zeros(size if ids is None else len(ids), np.int64)
        for piece in summary.pieces:
            mine = piece.levels == level
            tags, values = piece.tags[mine], piece.values[mine].astype(np.int64)
            total += hashes.everywhere(tags, values, size) if ids is None else hashes.at(tags, values, ids)
        return total
