"""k-ary randomised response, on exact coins."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any, final

import attrs
import numpy as np

from cloister.core.portions import ReportLaw
from cloister.core.types import AnyArray, Ids, Ints
from cloister.plugins.oracles.local.exact_probability import WORDS, below, hits, truthful_words


@final
@attrs.frozen
class Response:
    """Send your symbol with some probability, else a uniform one of all ``symbols``.

    Guarantee (Local; replace one row, or have none): eps-DP, where ``odds`` <= e^eps. With t = keep / 2^64 and u_y the
    exact chance of a uniform symbol (floor or ceil of 2^64 / k words), y has chance (1 - t) u_y + t [y = x] from input
    x, and u_y from a person in no bucket. This is ``exact_probability.truthful_words`` with inside = min u_y: the
    multiply-shift's unevenness is inside the bound, not beside it. In the limit it is the usual law: e^eps / (e^eps + k
    - 1) against 1 / (e^eps + k - 1).

    Args:
        symbols: k >= 2, below 2^32.
        keep: words (of 2^64) on which the true symbol is sent.

    Source: Warner 1965; Kairouz, Bonawitz, Ramage 2016.
    """

    symbols: int
    keep: int

    @classmethod
    def within(cls, odds: Fraction, symbols: int) -> Response:
        """The most truthful response whose chances differ by a factor of at most ``odds``."""
        return cls(symbols, truthful_words(odds, Fraction(WORDS // symbols, WORDS)))

    @property
    def truth(self) -> float:
        """t: by which the true symbol is likelier than if it were another one."""
        return self.keep / WORDS

    @property
    def bundled(self) -> dict[str, Any]:
        """For devices that run no Python."""
        return {"symbols": self.symbols, "keep": str(self.keep)}

    def randomise(self, values: Ints, words: Ids) -> Ints:
        """Symbols (n,), -1 for none, and words (n, 2) to sent symbols (n,)."""
        true = (words[:, 0] < np.uint64(self.keep)) & (values >= 0)
        return np.where(true, values, below(words[:, 1], self.symbols))

    def table(self) -> list[list[Fraction]]:
        """Exact chances of every symbol, for each input and, last, for a person in no bucket. For small k."""
        t, uniform = Fraction(self.keep, WORDS), [Fraction(count, WORDS) for count in hits(self.symbols)]
        rows = [
            [(1 - t) * u + (t if y == x else 0) for y, u in enumerate(uniform)] for x in range(self.symbols)
        ]  # fmt: skip
        return [*rows, uniform]


class OneResponse(ABC):
    """A count mechanism whose answer is one symbol, a function of the bucket and public coins, by ``Response``: eps-DP.

    Args:
        size: buckets of this level.
        response: on the symbols.
    """

    size: int
    response: Response

    each, width, at_once = 2, 1, 1

    @property
    def dtype(self) -> str:
        return "u1" if self.response.symbols <= 2**8 else "u2" if self.response.symbols <= 2**16 else "u4"

    @abstractmethod
    def symbols(self, ids: Ints, users: Ids) -> Ints:
        """The symbols (n,) of users in these buckets (n,), -1 for none (which stays -1, or has a symbol)."""

    def randomise(self, ids: Ints, users: Ids, words: Ids) -> AnyArray:
        return self.response.randomise(self.symbols(ids, users), words).astype(self.dtype)[:, None]

    def possible(self, answers: AnyArray) -> bool:
        return bool((answers < self.response.symbols).all())

    def counted(self, answers: AnyArray) -> Ints:
        """Nothing: where symbols have a bucket of their own, how often they are sent is how often it is supported."""
        return np.zeros(0, np.int64)

    def laws(self, counted: Ints, reports: int) -> tuple[ReportLaw, ...]:
        return ()
