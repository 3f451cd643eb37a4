"""The users' half of a local vector-sum question: who answers which level, signs of buckets, words, checks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import final

import attrs
import numpy as np

from cloister.core.buckets import Placed
from cloister.core.budget import Budget, Event
from cloister.core.digests import stamp
from cloister.core.errors import Refused
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.types import AnyArray, Bools, Floats, Ids, Ints
from cloister.plugins.oracles.local.levels import Sharing
from cloister.plugins.oracles.local.reports import Reports
from cloister.plugins.oracles.local.vectors.codebook import Codebook
from cloister.plugins.oracles.local.vectors.hadamard_transform import parity
from cloister.plugins.oracles.local.vectors.unit_randomiser import Unit, Words, lifted


def block_of(dimension: int) -> int:
    """Users who are encoded or decoded at once. Not a power of two: columns a power of two apart share a cache line's place."""
    return max(256, 2**18 // dimension) - 16


def drawing(secret: NoiseRng, each: int) -> Words:
    """So many words a go."""
    return lambda users, go: (secret.child("go", go) if go else secret).words(users, each)


@final
@attrs.frozen
class VectorAnswers:
    """One randomised unit vector per user and level that she answers.

    The sign of bucket v for a user is s(v) = (-1)^|J & v| with a public 64-bit word J of hers: over J, s(v) s(b) has the mean
    [v = b], so that sum_i s_i(v) z_i has the mean of v's rows. Fixed by public coins and the bucket, so that it costs no privacy.

    Args:
        mechanism, budget: what is declared to the accountant.
        rows: the public number of users.
        sizes: buckets per level.
        l2: the largest norm of a vector, in lattice steps.
        unit: of the lattice.
        sharing: how a row in several buckets is paid for.
        randomiser: of one unit vector.
        seeds: public, one per level.
    """

    mechanism: str
    budget: Budget
    rows: int
    sizes: tuple[int, ...]
    dimension: int
    l2: int
    unit: float
    sharing: Sharing
    randomiser: Unit
    seeds: tuple[PublicRng, ...]

    @property
    def events(self) -> tuple[Event, ...]:
        """One report per user, eps-DP as a whole."""
        return (Event(self.mechanism, self.budget),)

    @cached_property
    def stamp(self) -> int:
        """64 bits that tell this question from any other."""
        return stamp(self)

    @property
    def layout(self) -> tuple[slice, ...]:
        return self.sharing.layout((self.randomiser.width,) * len(self.sizes))

    @property
    def value(self) -> float:
        """What an integer of the randomiser's estimates adds to a sum, in the caller's units."""
        return self.randomiser.scale * self.sharing.factor * self.l2 * self.unit

    @property
    def variance(self) -> float:
        """Of one coordinate of a sum, in the caller's units squared: what rows of other buckets put there, at n users.

        A user who answers adds the mean square ``moment`` (over coordinates) to every bucket but her own; to that one, less by
        the square of her own vector's coordinate. With T levels sharing users each answers n / T times and counts T-fold;
        that adds (T - 1) sum x^2 over the bucket's own rows, which this figure leaves out.
        """
        return self.rows * self.sharing.factor * self.randomiser.moment * (self.l2 * self.unit) ** 2

    @property
    def error(self) -> float:
        return math.sqrt(self.variance)

    def blocks(self, positions: Ints) -> Iterator[Ints]:
        step = block_of(self.dimension)
        return (positions[start : start + step] for start in range(0, len(positions), step))

    def encode(self, items: Placed, users: Ids, rng: NoiseRng) -> Reports:
        answers = np.zeros((len(users), self.layout[-1].stop), self.randomiser.dtype)
        for level, (seed, at) in enumerate(zip(self.seeds, self.layout, strict=True)):
            secret = rng.child("level", level)
            for some in self.blocks(self.sharing.answering(users, level)):
                who, ids = users[some], items.buckets[some, level]
                signs, words = self.signs(ids, who, level), drawing(secret, self.randomiser.each)
                answers[some, at] = self._randomised(items.values, some, ids < 0, signs, who, words, seed)
        return Reports(users, answers, self.stamp)

    def _randomised(
        self, values: Ints, some: Ints, nowhere: Bools, signs: Floats, users: Ids, words: Words, seed: PublicRng
    ) -> AnyArray:
        """Answers (n, width) of the rows (N, d) at some positions (n,)."""
        if isinstance(self.randomiser, Codebook):
            where = np.where(nowhere, -1, some)
            made = self.randomiser.swiftly(values, where, signs, self.l2, users, words, seed)
            if made is not None:
                return made
        units = lifted(values[some], signs, self.l2, nowhere)
        return self.randomiser.randomise(units, users, words, seed)

    def words(self, users: Ids, level: int) -> Ids:
        """Each user's public word J (n,)."""
        return self.seeds[level].child("bucket").of_users(users)

    def signs(self, ids: Ints, users: Ids, level: int) -> Floats:
        """Each user's sign (n,) of her bucket (n,); where she is in none, of a coin that belongs to no bucket."""
        nobody = self.seeds[level].child("nobody").of_users(users) >> np.uint64(63)
        minus = np.where(ids < 0, nobody, parity(self.words(users, level) & ids.astype(np.uint64)))
        return 1.0 - 2.0 * minus

    def checked(self, reports: Reports) -> Reports:
        """Itself, if an encoder could have sent it.

        Raises:
            Refused: none could.
        """
        reports.checked(self.stamp, self.layout[-1].stop, self.randomiser.dtype)
        for level in range(len(self.sizes)):
            if not self.randomiser.possible(self.of_level(reports, level)[1]):
                raise Refused(f"a report of '{self.mechanism}' has an answer at level {level} that no encoder sends")
        return reports

    def of_level(self, reports: Reports, level: int) -> tuple[Ids, AnyArray]:
        """Who answers this level, and what."""
        mine = self.sharing.answering(reports.users, level)
        return reports.users[mine], reports.answers[mine, self.layout[level]]

    def estimates(self, users: Ids, answers: AnyArray, level: int) -> Ints:
        """Answers (n, width) to what they add up, integers (n, d), before the sign of any bucket."""
        return self.randomiser.estimates(answers, users, self.seeds[level])
