"""Conversions between a session's rounds and the protocol's vectors. Public facts and a party's own sums; no keys."""

from __future__ import annotations

from typing import Any

import numpy as np

from cloister.core.aggregated import Pooled, RingVector, pooled
from cloister.core.errors import InvalidInput
from cloister.core.questions import Round
from cloister.core.randomness import NoiseRng
from cloister.core.types import Ids
from cloister.federated.protocol.ring import Shape, VectorShape


def channels_of(round: Round[Any], parties: int) -> tuple[Pooled, ...]:
    """The round's questions, all of Aggregated trust. Raises: InvalidInput: this many parties cannot pool them."""
    return tuple(pooled(part.channel, parties) for part in round.parts)


def outline(round: Round[Any], parties: int) -> Shape:
    """The shape of this round's messages. It is the same for all answers (law 2), so that the coordinator knows it from
    a forecast."""
    return tuple(VectorShape(c.size, c.bits) for c in channels_of(round, parties))


def coordinator_noise(round: Round[Any], parties: int, rng: NoiseRng) -> tuple[Ids, ...]:
    """The noise that the coordinator adds: none where parties draw shares. Its children of ``rng`` are those with which
    a Central session decodes, so that seeded tests can compare."""
    return tuple(
        c.noise(rng.child("decode", round.index, i)) if c.shares == 1 else np.zeros(c.size, np.uint64)
        for i, c in enumerate(channels_of(round, parties))
    )


def party_words(
    round: Round[Any], summaries: tuple[RingVector, ...], me: int, parties: int, rng: NoiseRng
) -> tuple[Ids, ...]:
    """One party's words: its exact sums, with its share of the noise where parties draw it.

    Raises:
        InvalidInput: it has more rows than the ring was proved for. Only this party is told, but all see it leave: a
            last defence of the ring, behind the validation pass, which decides the same before the party joins.
    """
    words = []
    for i, (channel, summary) in enumerate(zip(channels_of(round, parties), summaries, strict=True)):
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
    """Unmasked sums, noise included, in the form that channels decode."""
    return tuple(RingVector(vector, noised=True) for vector in sums)
