"""Channel of Aggregated oracles on enumerable buckets: integer tensors whose noise is not drawn by ``decode``.

Totals, clipping, scaling and the table are those of the Central oracles (``channel``), so that parties who pool their
rows release what a curator of all rows would have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import attrs
import numpy as np

from cloister.core.aggregated import WORD, RingVector, to_integers, to_words
from cloister.core.buckets import BucketedVectors
from cloister.core.budget import Event
from cloister.core.errors import InvalidInput, Refused
from cloister.core.randomness import NoiseRng
from cloister.core.reproducible_math import ceil_log2
from cloister.core.types import Ids, Ints
from cloister.noise.channel import LookupTable, TensorChannel


@final
@attrs.frozen
class RingChannel:
    """Both halves of a question on enumerable buckets, pooled by parties.

    The ring cannot wrap: with M parties of at most n rows each, vectors of norm at most B (1 for counts) and totals
    scaled up by 2^shift, every number is at most M n 2^shift B plus the noise; ``bits`` is the least multiple of 8 for
    which that is below 2^(bits - 1) with a noise of 64 standard deviations (less probable than e^-1000, for either
    law).

    Args:
        tensor: buckets, bound, noise law and scale.
        parties: M, at most; exactly, if they draw shares.
        most_rows: n, a hard cap that every party checks before it sends.
        ratio: ratio of the noise that the guarantee relies on (see ``core.budget.Event``).
    """

    tensor: TensorChannel
    parties: int
    most_rows: int
    ratio: float = 0.0

    def __attrs_post_init__(self) -> None:
        if self.largest >= 2.0 ** (WORD - 1):
            raise InvalidInput(
                f"'{self.tensor.mechanism}' could overflow {WORD} bits with {self.parties} parties of {self.most_rows} "
                "rows: lower the options parties or most_rows, or give this question another share of the budget"
            )

    @property
    def largest(self) -> float:
        """Upper bound on every number, before and after the noise."""
        t = self.tensor
        rows = float(self.parties) * self.most_rows * (t.bound.l2 if t.bound else 1) * 2.0**t.shift
        return (rows + 64 * (t.law.deviation if t.law else 0.0)) * (1 + 2.0**-40)

    @property
    def bits(self) -> int:
        """Bits of the ring."""
        return 8 * -(-(ceil_log2(self.largest * (1 + 2.0**-30)) + 1) // 8)

    @property
    def size(self) -> int:
        return sum(self.tensor.space.sizes) * self.tensor.width

    @property
    def shares(self) -> int:
        return self.tensor.law.drawers if self.tensor.law else 1

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(attrs.evolve(event, ratio=self.ratio) for event in self.tensor.events)

    @property
    def deviation(self) -> float:
        """Standard deviation of each released number, in its own unit."""
        return self.tensor.deviation

    def encode(self, items: Ints | BucketedVectors, users: Ids, rng: NoiseRng) -> RingVector:
        report = self.tensor.encode(items, users, rng)
        rows = len(items.buckets if isinstance(items, BucketedVectors) else items)
        return RingVector(to_words(self.tensor.scaled(report)), rows)

    def totalled(self, levels: Sequence[tuple[Ints, Ints]], rows: int) -> RingVector:
        return self.absorb(RingVector(to_words(self.tensor.scaled(self.tensor.totalled(levels, rows))), rows))

    def absorb(self, report: RingVector) -> RingVector:
        self.tensor.refuse_other(report.vector, np.uint64, self.size)
        return report

    def noise(self, rng: NoiseRng, share: int = 0, of: int = 1) -> Ids:
        """Draw the words to add: the whole noise, or one party's share of it.

        Raises:
            Refused: there is no such share.
        """
        if of != self.shares or not 0 <= share < of or self.tensor.law is None:
            raise Refused(f"noise share {share} of {of} was asked for, but this question's noise has {self.shares}")
        return to_words(self.tensor.law.draw(self.size, rng))

    def decode(self, summary: RingVector, rng: NoiseRng) -> LookupTable:
        """Decode a sum without a draw.

        Raises:
            Refused: the sum does not contain its noise yet.
        """
        if not summary.noised:
            raise Refused(
                f"'{self.tensor.mechanism}' was given a sum without its noise: under Aggregated trust ask through "
                "parties (population 'parties', or 'cloister coordinate' and 'cloister join')"
            )
        return self.tensor.table(to_integers(self.absorb(summary).vector, self.bits))
