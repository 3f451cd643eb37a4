"""K-ary randomised response on exact coins."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, final

import attrs
import numpy as np

from cloister.plugin import Ids, Ints
from cloister.plugins.oracles.local.coins import WORDS, multiply_shift, truthful_words


@final
@attrs.frozen
class Response:
    """K-ary randomised response: send your symbol with some probability, else a uniform one of all ``symbols``.

    Guarantee (Local; replace one row, or have none): eps-DP, where ``odds`` <= e^eps. With t = keep / 2^64 and u_y the
    exact probability of a uniform symbol (floor or ceil of 2^64 / k words), y has probability (1 - t) u_y + t [y = x]
    from input x, and u_y from a person in no bucket. This is ``truthful_words`` with inside = min u_y, which accounts
    for the unevenness of multiply-shift. In the limit it is the usual law: e^eps / (e^eps + k - 1) against
    1 / (e^eps + k - 1).

    Args:
        symbols: k >= 2, below 2^32.
        keep: words (of 2^64) on which the true symbol is sent.

    Source: Warner 1965; Kairouz, Bonawitz, Ramage 2016.
    """

    symbols: int
    keep: int

    @classmethod
    def within(cls, odds: Fraction, symbols: int) -> Response:
        """Return the most truthful response whose probabilities differ by a factor of at most ``odds``."""
        return cls(symbols, truthful_words(odds, Fraction(WORDS // symbols, WORDS)))

    @property
    def truth(self) -> float:
        """Probability t by which the true symbol is likelier than as another input's."""
        return self.keep / WORDS

    @property
    def bundled(self) -> dict[str, Any]:
        """Parameters for non-Python clients."""
        return {"symbols": self.symbols, "keep": str(self.keep)}

    def randomise(self, values: Ints, words: Ids) -> Ints:
        """Return the sent symbols (n,) for symbols (n,), -1 for none, and secret words (n, 2)."""
        true = (words[:, 0] < np.uint64(self.keep)) & (values >= 0)
        return np.where(true, values, multiply_shift(words[:, 1], self.symbols))
