"""Local hashing: a user sends randomised response on a public hash of her bucket."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, final

import attrs
import numpy as np

from cloister.core.randomness import PublicRng
from cloister.core.reports import ReportLaw
from cloister.core.types import AnyArray, Ids, Ints
from cloister.plugins.oracles.local.counts.support import Chances
from cloister.plugins.oracles.local.hashing import Hashes
from cloister.plugins.oracles.local.randomised_response import OneResponse, Response

LARGEST = 2**16
"""Most hash values: payloads stay within two bytes."""


@final
@attrs.frozen
class Hashed(OneResponse):
    """A user's hash of her bucket, by randomised response on the hash values.

    Guarantee (Local; replace one row, or have none): eps-DP: the hash is public and the same whatever her row is, and
    what she sends is ``Response``. A user in no bucket sends a uniform hash value, which any bucket's hash is with
    chance 1/g.

    A report supports the buckets whose hash it is: p = t + (1 - t) / g, q = 1 / g, over the hash.

    Args:
        size: buckets of this level.
        hashes: public.
        response: on hash values.
    """

    size: int
    hashes: Hashes
    response: Response

    @classmethod
    def into(cls, symbols: int, size: int, odds: Fraction, seed: PublicRng) -> Hashed:
        return cls(size, Hashes(seed, symbols), Response.within(odds, symbols))

    @classmethod
    def optimised(cls, size: int, odds: Fraction, seed: PublicRng) -> Hashed:
        """Into g = round(e^eps) + 1 values, at most ``LARGEST``: where the noise of local hashing is least."""
        return cls.into(min(math.floor(odds + Fraction(1, 2)) + 1, LARGEST), size, odds, seed)

    @property
    def chances(self) -> Chances:
        g, t = self.response.symbols, self.response.truth
        return Chances(t + (1 - t) / g, 1 / g)

    def symbols(self, ids: Ints, users: Ids) -> Ints:
        return np.where(ids >= 0, self.hashes.of(users, ids), -1)

    def bundled(self) -> dict[str, Any]:
        return {"randomiser": "hashed", "size": self.size, **self.response.bundled, **self.hashes.bundled}

    def counted(self, answers: AnyArray) -> Ints:
        """How many reports send each symbol (g,)."""
        return np.asarray(np.bincount(_symbols(answers), minlength=self.response.symbols), np.int64)

    def laws(self, counted: Ints, reports: int) -> tuple[ReportLaw, ...]:
        """Every symbol is as likely as any other, but for the unevenness of multiply-shift on 32 bits: it is a hash of
        her bucket by a hash function that is hers and does not know her bucket, or uniform."""
        g = self.response.symbols
        least, most = 2**32 // g * 2.0**-32, -(-(2**32) // g) * 2.0**-32
        return (ReportLaw.alike("symbol {}".format, counted, reports, least, most),)

    def tally(self, users: Ids, answers: AnyArray) -> Ints:
        return self.hashes.everywhere(users, _symbols(answers), self.size)

    def supports(self, total: Ints, reports: int) -> Ints:
        return total

    def support(self, users: Ids, answers: AnyArray, ids: Ints) -> Ints:
        return self.hashes.at(users, _symbols(answers), ids)


def _symbols(answers: AnyArray) -> Ints:
    return answers[:, 0].astype(np.int64)
