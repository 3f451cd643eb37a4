"""Aggregated trust: the vectors of 64-bit words that parties pool, and how noise is added to them.

Words add modulo 2^64. A channel uses the lowest ``bits`` of each, a multiple of 8, chosen so that no sum of rows and
noise can wrap. Since 2^bits divides 2^64, masking, adding and cutting to ``bits`` commute.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, cast, final

import attrs
import numpy as np

from cloister.core.errors import InvalidInput, Refused
from cloister.core.lattice import CAP
from cloister.core.questions import Round
from cloister.core.randomness import NoiseRng
from cloister.core.trust import Aggregated
from cloister.core.types import Ids, Ints

WORD = 64


@final
@attrs.frozen(eq=False)
class RingVector:
    """Words of a report, of a party's summary, or of the sum over all parties, with or without noise.

    Args:
        vector: words (m,).
        rows: number of encoded rows, for the party's own check of the hard cap; never sent.
        noised: whether it contains the whole noise. Only then may it be decoded.
    """

    vector: Ids = attrs.field(repr=False)
    rows: int = attrs.field(default=0, repr=False)
    noised: bool = False

    def merge(self, other: RingVector) -> RingVector:
        """Return the sum of both, before any noise.

        Raises:
            Refused: one of them contains its noise already.
        """
        if self.noised or other.noised:
            raise Refused("a sum that contains its noise was merged: merge all sums first, then add the noise once")
        return RingVector(self.vector + other.vector, self.rows + other.rows)

    def released(self, noise: Ids) -> RingVector:
        """Return this sum with the whole noise added.

        Raises:
            Refused: it contains its noise already.
        """
        if self.noised:
            raise Refused("this sum contains its noise already: noise is added once")
        return RingVector(self.vector + noise, self.rows, True)


class Pooled(Protocol):
    """Channel under Aggregated trust, whose noise a coordinator draws, or the parties in shares.

    Laws: reports are ``RingVector``. Neither ``encode`` nor ``decode`` draws; ``decode`` refuses a sum without its
    noise.
    """

    @property
    def shares(self) -> int:
        """Number of noise shares: 1 if the coordinator draws, else the number of parties, each drawing one."""
        ...

    @property
    def bits(self) -> int:
        """Bits per word that a message needs: a multiple of 8, at most 64."""
        ...

    @property
    def size(self) -> int:
        """Words per message."""
        ...

    @property
    def most_rows(self) -> int:
        """Hard cap on one party's rows, which the proof of the ring's size assumes."""
        ...

    @property
    def parties(self) -> int:
        """Largest number of parties (with shares: the exact number), which the proof of the ring's size assumes."""
        ...

    def noise(self, rng: NoiseRng, share: int = 0, of: int = 1) -> Ids:
        """Draw the words to add: the whole noise, or one party's share of it."""
        ...


def pooled(channel: Any, parties: int) -> Pooled:
    """Return the channel, if this many parties can pool its answers.

    Raises:
        InvalidInput: it is of another trust model, or was opened for another number of parties.
    """
    if not hasattr(channel, "shares"):
        raise InvalidInput("only questions of Aggregated trust can be pooled by parties")
    if channel.shares > 1 and channel.shares != parties:
        raise InvalidInput(
            f"the oracle draws noise in {channel.shares} shares, but there are {parties} parties: set its option "
            f"'parties'"
        )
    if parties > channel.parties:
        raise InvalidInput(
            f"the oracle was opened for {channel.parties} parties, but there are {parties}: set its option 'parties'"
        )
    return cast(Pooled, channel)


def pools(population: object) -> bool:
    """Return True if a population pools the rows of parties, none of whom can read another's.

    Such a population has the attribute ``trust = Aggregated``, and only it answers Aggregated trust. Its attribute
    ``simulated`` is True if all parties are in this process, so that whoever runs it sees all rows.

    Laws: every party does its own ``check(most_rows)``.
    """
    return getattr(population, "trust", None) is Aggregated


def most_rows(rounds: Iterable[Round[Any]]) -> int:
    """Return the hard cap on one party's rows in these rounds: the least cap of their questions.

    It is an option of the oracles, so a forecast of the rounds has it too.
    """
    return min((cast(Pooled, part.channel).most_rows for round in rounds for part in round.parts), default=CAP)


def whole_noise(channel: Pooled, rng: NoiseRng) -> Ids:
    """Draw all of a question's noise in one place, for simulations and tests."""
    if channel.shares == 1:
        return channel.noise(rng)
    total = np.zeros(channel.size, np.uint64)
    for share in range(channel.shares):
        total += channel.noise(rng.child("share", share), share, channel.shares)
    return total


def to_words(values: Ints) -> Ids:
    """Return signed integers as words, in two's complement."""
    return values.astype(np.int64, copy=False).view(np.uint64)


def to_integers(words: Ids, bits: int) -> Ints:
    """Return the signed integers in [-2^(bits-1), 2^(bits-1)) that the lowest bits of words stand for."""
    up = np.uint64(WORD - bits)
    return (words << up).view(np.int64) >> np.int64(WORD - bits)
