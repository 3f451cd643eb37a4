"""Public hashes of (user, bucket): seeded, computed when they are needed, never stored.

A user's hash of bucket id v, with low and high 32-bit halves v0 and v1, is

    h(v) = floor(k * top / 2^32),   top = the highest 32 bits of (a0 v0 + a1 v1 + b mod 2^64),

with public 64-bit words a0, a1, b of her own. ``top`` is uniform, and over two distinct ids pairwise independent, as
the 64-bit arithmetic is at least 32 + 32 - 1 bits wide: all that the oracles' variances need. Two ids share a hash
value with probability 1/k, up to a relative (k / 2^32)^2, at most 2^-32. Privacy does not depend on the hash at all.

The server asks the other way round, whether h(v) = y. That is whether ``a0 v0 + a1 v1 + b - start(y) mod 2^64`` is
below ``start(y + 1) - start(y)``: over ids in a row, one addition and one comparison for each.

Source: Dietzfelbinger 1996; Thorup 2015 (High speed hashing for integers and strings), sections 3 and 4.

Local hashing, in which a user sends randomised response on a public hash of her bucket, is ``Hashed``.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, final

import attrs
import numpy as np

from cloister.core.buckets import key
from cloister.core.randomness import PublicRng
from cloister.core.reports import ReportLaw
from cloister.core.types import AnyArray, Ids, Ints
from cloister.plugins.oracles.local.counts.channel import OneResponse, ResponseProbabilities
from cloister.plugins.oracles.local.fast import ran
from cloister.plugins.oracles.local.randomised_response import Response

BLOCK = 2**13
"""Users who are looked at together: their words stay in a core's second-level cache."""

HALF = np.uint64(32)
LOW = np.uint64(0xFFFFFFFF)


@final
@attrs.frozen
class Hashes:
    """One public hash function per user, from bucket ids (up to 63 bits) to ``symbols`` values.

    Args:
        seed: public.
        symbols: 2 <= k <= 2^16.
    """

    seed: PublicRng
    symbols: int

    @property
    def bundled(self) -> dict[str, str]:
        """For devices that run no Python: the keys of the words a0, a1 and b."""
        return {name: key(self.seed.child(name)) for name in ("low", "high", "shift")}

    def of(self, users: Ids, ids: Ints) -> Ints:
        """Each user's hash (n,) of her own bucket id (n,)."""
        a0, a1, b = self._words(users)
        keys = ids.astype(np.uint64)
        top = (a0 * (keys & LOW) + a1 * (keys >> HALF) + b) >> HALF
        return ((top * np.uint64(self.symbols)) >> HALF).astype(np.int64)

    def everywhere(self, users: Ids, values: Ints, size: int) -> Ints:
        """How many users' hash of bucket v is the value (n,) that is hers, for all v < size < 2^32: (size,)."""
        out = np.zeros(size, np.int64)
        for start in range(0, len(users), BLOCK):
            some = slice(start, start + BLOCK)
            a0, _, offset, width = self._targets(users[some], values[some])
            if ran("hits", len(offset), a0, offset, width, out):
                continue
            inside = np.empty(len(offset), bool)
            for v in range(size):
                np.less(offset, width, out=inside)
                out[v] += np.count_nonzero(inside)
                np.add(offset, a0, out=offset)
        return out

    def at(self, users: Ids, values: Ints, ids: Ints) -> Ints:
        """The same for some ids (m,), which may be any 63-bit numbers: (m,). Costs n per id."""
        out, keys = np.zeros(len(ids), np.int64), ids.astype(np.uint64)
        for start in range(0, len(users) if len(ids) else 0, BLOCK):
            some = slice(start, start + BLOCK)
            a0, a1, offset, width = self._targets(users[some], values[some])
            for i, asked in enumerate(keys):
                moved = a0 * (asked & LOW) + offset
                if asked > LOW:
                    moved += a1 * (asked >> HALF)
                out[i] += np.count_nonzero(moved < width)
        return out

    def _words(self, users: Ids) -> tuple[Ids, Ids, Ids]:
        return (
            self.seed.child("low").of_users(users),
            self.seed.child("high").of_users(users),
            self.seed.child("shift").of_users(users),
        )

    def _targets(self, users: Ids, values: Ints) -> tuple[Ids, Ids, Ids, Ids]:
        """Words a0, a1, and where the hash of each user must fall to be her value: offset and width."""
        a0, a1, b = self._words(users)
        k = np.uint64(self.symbols)
        edges = (((np.arange(self.symbols, dtype=np.uint64) << HALF) + (k - np.uint64(1))) // k) << HALF
        widths = np.append(edges[1:], np.uint64(0)) - edges  # the last edge is 2^64, which is 0
        return a0, a1, b - edges[values], widths[values]


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
    def chances(self) -> ResponseProbabilities:
        g, t = self.response.symbols, self.response.truth
        return ResponseProbabilities(t + (1 - t) / g, 1 / g)

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
