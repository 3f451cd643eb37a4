"""Public hashes of (user, bucket), computed from a seed and never stored, and local hashing on them.

A user's hash of bucket id v, with low and high 32-bit halves v0 and v1, is

    h(v) = floor(k * top / 2^32),   top = the highest 32 bits of (a0 v0 + a1 v1 + b mod 2^64),

with public 64-bit words a0, a1, b of her own. ``top`` is uniform and pairwise independent over distinct ids, as the
64-bit arithmetic is at least 32 + 32 - 1 bits wide; the oracles' variances need no more. Two ids share a hash value
with probability 1/k, up to a relative (k / 2^32)^2, at most 2^-32. Privacy does not depend on the hash at all.

The server tests whether h(v) = y, that is, whether ``a0 v0 + a1 v1 + b - start(y) mod 2^64`` is below
``start(y + 1) - start(y)``: one addition and one comparison for each of consecutive ids.

Source: Dietzfelbinger 1996; Thorup 2015 (High speed hashing for integers and strings), sections 3 and 4.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, final

import attrs
import numpy as np

from cloister.plugin import AnyArray, Ids, Ints, PublicRng, ReportLaw, hex_key
from cloister.plugins.oracles.local.counts.channel import OneResponse, ResponseProbabilities
from cloister.plugins.oracles.local.fast import run_kernel
from cloister.plugins.oracles.local.randomised_response import Response

BLOCK = 2**13
"""Users per block, so that their words stay in a core's second-level cache."""

HALF = np.uint64(32)
LOW = np.uint64(0xFFFFFFFF)


@final
@attrs.frozen
class Hashes:
    """Public hash functions, one per user, from bucket ids (up to 63 bits) to ``symbols`` values.

    Args:
        seed: public.
        symbols: 2 <= k <= 2^16.
    """

    seed: PublicRng
    symbols: int

    @property
    def bundled(self) -> dict[str, str]:
        """Keys of the words a0, a1 and b, for non-Python clients."""
        return {name: hex_key(self.seed.child(name)) for name in ("low", "high", "shift")}

    def of(self, users: Ids, ids: Ints) -> Ints:
        """Return each user's hash (n,) of her own bucket id (n,)."""
        a0, a1, b = self._words(users)
        keys = ids.astype(np.uint64)
        top = (a0 * (keys & LOW) + a1 * (keys >> HALF) + b) >> HALF
        return ((top * np.uint64(self.symbols)) >> HALF).astype(np.int64)

    def everywhere(self, users: Ids, values: Ints, size: int) -> Ints:
        """Count, for all v < size < 2^32, the users whose hash of bucket v equals their value (n,): (size,)."""
        out = np.zeros(size, np.int64)
        for start in range(0, len(users), BLOCK):
            block = slice(start, start + BLOCK)
            a0, _, offset, width = self._targets(users[block], values[block])
            if run_kernel("hits", len(offset), a0, offset, width, out):
                continue
            inside = np.empty(len(offset), bool)
            for v in range(size):
                np.less(offset, width, out=inside)
                out[v] += np.count_nonzero(inside)
                np.add(offset, a0, out=offset)
        return out

    def at(self, users: Ids, values: Ints, ids: Ints) -> Ints:
        """Count the same for given ids (m,), any 63-bit numbers: (m,). Costs n per id."""
        out, keys = np.zeros(len(ids), np.int64), ids.astype(np.uint64)
        for start in range(0, len(users) if len(ids) else 0, BLOCK):
            block = slice(start, start + BLOCK)
            a0, a1, offset, width = self._targets(users[block], values[block])
            for i, bucket in enumerate(keys):
                moved = a0 * (bucket & LOW) + offset
                if bucket > LOW:
                    moved += a1 * (bucket >> HALF)
                out[i] += np.count_nonzero(moved < width)
        return out

    def _words(self, users: Ids) -> tuple[Ids, Ids, Ids]:
        return (
            self.seed.child("low").of_users(users),
            self.seed.child("high").of_users(users),
            self.seed.child("shift").of_users(users),
        )

    def _targets(self, users: Ids, values: Ints) -> tuple[Ids, Ids, Ids, Ids]:
        """Return a0, a1, and the offset and width of the range in which each user's hash equals her value."""
        a0, a1, b = self._words(users)
        k = np.uint64(self.symbols)
        edges = (((np.arange(self.symbols, dtype=np.uint64) << HALF) + (k - np.uint64(1))) // k) << HALF
        widths = np.append(edges[1:], np.uint64(0)) - edges  # the last edge is 2^64, which is 0
        return a0, a1, b - edges[values], widths[values]


LARGEST = 2**16
"""Maximum number of hash values, so that a payload fits in two bytes."""


@final
@attrs.frozen
class Hashed(OneResponse):
    """Local hashing: randomised response on a public hash of the user's bucket.

    Guarantee (Local; replace one row, or have none): eps-DP, since the hash is public and does not depend on her row,
    and what she sends is ``Response``. A user in no bucket sends a uniform hash value, which equals any bucket's hash
    with probability 1/g.

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
        """Return the most truthful response on so many hash values."""
        return cls(size, Hashes(seed, symbols), Response.within(odds, symbols))

    @classmethod
    def optimised(cls, size: int, odds: Fraction, seed: PublicRng) -> Hashed:
        """Return the one of least variance: g = round(e^eps) + 1 hash values, at most ``LARGEST``."""
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
        """Count the reports of each symbol (g,)."""
        return np.asarray(np.bincount(_symbols(answers), minlength=self.response.symbols), np.int64)

    def laws(self, counted: Ints, reports: int) -> tuple[ReportLaw, ...]:
        """Return the law that all symbols are equally likely, up to the unevenness of multiply-shift on 32 bits.

        A symbol is uniform, or the hash of her bucket by a function that is drawn independently of it.
        """
        g = self.response.symbols
        low, high = 2**32 // g * 2.0**-32, -(-(2**32) // g) * 2.0**-32
        return (ReportLaw.alike("symbol {}".format, counted, reports, low, high),)

    def tally(self, users: Ids, answers: AnyArray) -> Ints:
        return self.hashes.everywhere(users, _symbols(answers), self.size)

    def supports(self, total: Ints, reports: int) -> Ints:
        return total

    def support(self, users: Ids, answers: AnyArray, ids: Ints) -> Ints:
        return self.hashes.at(users, _symbols(answers), ids)


def _symbols(answers: AnyArray) -> Ints:
    return answers[:, 0].astype(np.int64)
