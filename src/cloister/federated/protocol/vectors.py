"""Conversions between a run's rounds and the protocol's vectors. Public facts and a party's own sums; no keys.

A session's rounds are the run's, and between them *agreed* rounds, in which all parties take the values that the first
one computed from the answers (centres, radii): a solver's last bit may differ on another processor, and parties whose
next questions differ cannot pool. There the first party's vector holds its values and the others' are zero, under the
masks of any other round, without noise: each party could have computed them by itself, from answers that were paid for,
and the coordinator learns of them what it learns of a sum. A first party that lies moves centres, and nothing else:
what a round costs does not depend on them (law 2).

Words on the wire: the low bytes of 64-bit words, little endian, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias, final

import attrs
import numpy as np

from cloister.core.aggregated import Pooled, RingVector, pooled
from cloister.core.errors import InvalidInput, Refused
from cloister.core.questions import Round
from cloister.core.randomness import NoiseRng
from cloister.core.types import Ids, Ints


@final
@attrs.frozen
class VectorShape:
    """Shape of one masked vector.

    Args:
        size: number of words.
        bits: of the ring: a multiple of 8.
    """

    size: int
    bits: int

    def __attrs_post_init__(self) -> None:
        if self.size < 0 or self.bits not in range(8, 65, 8):
            raise InvalidInput(f"a tensor has words of 8, 16, ... 64 bits, not {self.size} of {self.bits}")

    @property
    def bytes(self) -> int:
        return self.size * self.bits // 8


Shape = tuple[VectorShape, ...]
"""Shapes of one round's vectors, question by question."""


def shape_bytes(shape: Shape) -> int:
    """Return the length in bytes of a round's masked words."""
    return sum(tensor.bytes for tensor in shape)


def pack(vectors: tuple[Ids, ...], shape: Shape) -> bytes:
    """Return words (m,) per tensor as bytes; bits above the ring's are cut off."""
    if tuple(len(v) for v in vectors) != tuple(t.size for t in shape):
        raise InvalidInput(f"vectors of {[len(v) for v in vectors]} words do not fit {shape}")
    parts = []
    for vector, tensor in zip(vectors, shape, strict=True):
        word_bytes = np.ascontiguousarray(vector, "<u8").view(np.uint8).reshape(-1, 8)
        parts.append(np.ascontiguousarray(word_bytes[:, : tensor.bits // 8]).tobytes())
    return b"".join(parts)


def unpack(data: bytes, shape: Shape) -> tuple[Ids, ...]:
    """Return the words (m,) per tensor in these bytes.

    Raises:
        Refused: they have another length.
    """
    if len(data) != shape_bytes(shape):
        raise Refused(f"masked words of {len(data)} bytes, expected {shape_bytes(shape)}")
    vectors, start = [], 0
    for tensor in shape:
        words = np.zeros((tensor.size, 8), np.uint8)
        words[:, : tensor.bits // 8] = np.frombuffer(data, np.uint8, tensor.bytes, start).reshape(tensor.size, -1)
        vectors.append(words.view("<u8").reshape(-1).astype(np.uint64, copy=False))
        start += tensor.bytes
    return tuple(vectors)


AGREED_BITS = 32
"""Bits of a word of an agreed round: its numbers are below 2^22."""

Noise: TypeAlias = Callable[[], tuple[Ids, ...]]
"""Draws the words that the coordinator adds in one round; zeros where parties draw shares."""


@final
@attrs.frozen
class PoolRounds:
    """Rounds of a session, from its forecast.

    Args:
        rounds, settlings: as in ``Session``.
        parties: their number.
    """

    rounds: Sequence[Round[Any]]
    agreed_sizes: Sequence[tuple[int, int]]
    parties: int

    def expected(self, rng: NoiseRng) -> list[tuple[Shape, Noise]]:
        """Return the shape of each round's vectors, and the coordinator's noise."""
        announced = list[tuple[Shape, Noise]]()
        for round in self.rounds:
            announced.append((round_shape(round, self.parties), partial(coordinator_noise, round, self.parties, rng)))
            numbers = (numbers for after, numbers in self.agreed_sizes if after == round.index)
            announced += [(agreed_shape(n), partial(no_noise, agreed_shape(n))) for n in numbers]
        return announced

    def round_at(self, round: int) -> int:
        """Return the number, among the session's rounds, of a run's round."""
        return round + sum(after < round for after, _ in self.agreed_sizes)

    def agreed_at(self, after: int, number: int) -> int:
        """Return the number, among the session's rounds, of an agreed round after a run's round.

        Raises:
            Refused: none was forecast.
        """
        if number >= sum(at == after for at, _ in self.agreed_sizes):
            raise Refused(
                f"no values were to be agreed on after round {after + 1}: the method does not keep to its forecast"
            )
        return self.round_at(after) + 1 + number


def agreed_shape(numbers: int) -> Shape:
    """Return the shape of the messages of an agreed round with so many numbers."""
    return (VectorShape(numbers, AGREED_BITS),)


def no_noise(shape: Shape) -> tuple[Ids, ...]:
    return tuple(np.zeros(tensor.size, np.uint64) for tensor in shape)


def agreed_words(values: Ints, me: int) -> tuple[Ids, ...]:
    """Return one party's words of an agreed round, from the values that it computed."""
    flat = np.ascontiguousarray(values, np.int64).ravel()
    return ((flat if me == 0 else np.zeros_like(flat)).view(np.uint64),)


def agreed_numbers(sums: tuple[Ids, ...], like: Ints) -> Ints:
    """Return the integers that all take, from the unmasked sums of an agreed round, in the shape of ``like``."""
    (words,) = sums
    return words.astype(np.uint32).view(np.int32).astype(np.int64).reshape(like.shape)


def channels_of(round: Round[Any], parties: int) -> tuple[Pooled, ...]:
    """Return the channels of the round's questions, all of Aggregated trust.

    Raises:
        InvalidInput: this many parties cannot pool them.
    """
    return tuple(pooled(part.channel, parties) for part in round.parts)


def round_shape(round: Round[Any], parties: int) -> Shape:
    """Return the shape of this round's messages.

    It is the same for all answers (law 2), so that the coordinator knows it from a forecast.
    """
    return tuple(VectorShape(c.size, c.bits) for c in channels_of(round, parties))


def coordinator_noise(round: Round[Any], parties: int, rng: NoiseRng) -> tuple[Ids, ...]:
    """Return the noise that the coordinator adds: none where parties draw shares.

    Its children of ``rng`` are those with which a Central session decodes, so that seeded tests can compare.
    """
    return tuple(
        c.noise(rng.child("decode", round.index, i)) if c.shares == 1 else np.zeros(c.size, np.uint64)
        for i, c in enumerate(channels_of(round, parties))
    )


def party_words(
    round: Round[Any], summaries: tuple[RingVector, ...], me: int, parties: int, rng: NoiseRng
) -> tuple[Ids, ...]:
    """Return one party's words: its exact sums, with its share of the noise where parties draw it.

    Raises:
        InvalidInput: it has more rows than the ring was proved for.
    """
    words = []
    for i, (channel, summary) in enumerate(zip(channels_of(round, parties), summaries, strict=True)):
        # Only this party is told, but all see it leave: a last defence of the ring, behind the validation pass, which
        # decides the same before the party joins.
        if summary.rows > channel.most_rows:
            raise InvalidInput(
                f"this party has more rows than the {channel.most_rows} that all agreed on: raise the option "
                f"most_rows in the plan"
            )
        vector = summary.vector
        if channel.shares > 1:
            vector = vector + channel.noise(rng.child("decode", round.index, i).child("share", me), me, parties)
        words.append(vector)
    return tuple(words)


def released(sums: tuple[Ids, ...]) -> tuple[RingVector, ...]:
    """Return unmasked sums, noise included, in the form that channels decode."""
    return tuple(RingVector(vector, noised=True) for vector in sums)
