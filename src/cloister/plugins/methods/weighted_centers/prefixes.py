"""Search for the heavy values of a domain that nobody can list: a tree of prefixes, asked in one round.

A value of B bits is a row in one bucket of every level: its prefixes of b_1 < b_2 < ... = B bits. One count question
over these levels, under any frequency oracle that answers by looking (``explicit-histogram``; its levels share the
users), is the whole protocol. The search is post-processing of that one release: keep the prefixes whose count is
significant, look at their extensions, go on. Its privacy is the oracle's.

With n users and T levels every level has n / T users and standard error s = sqrt(T c n). A value with at least
(``deviations`` + 5) s rows is lost with chance under 3e-7 per level. Longer values should be hashed to B bits first.

Source: Bassily, Nissim, Stemmer, Thakurta 2020, TreeHist; Stemmer 2021 (CentersProcedure, step 2) takes it for granted.
"""

from __future__ import annotations

from itertools import pairwise
from typing import final

import attrs
import numpy as np

from cloister.plugin import Counts, Floats, Ints, InvalidInput, Space


@final
@attrs.frozen
class Prefixes:
    """Prefix lengths of a search.

    Args:
        bits: of every level, increasing; the last is the length of a value, at most 62.
    """

    bits: tuple[int, ...]

    def __attrs_post_init__(self) -> None:
        increasing = all(a < b for a, b in pairwise(self.bits))
        if not self.bits or not increasing or not 1 <= self.bits[0] <= self.bits[-1] <= 62:
            raise InvalidInput(f"prefix lengths are increasing numbers from 1 to 62, not {self.bits}")

    @property
    def space(self) -> Space:
        return Space(tuple(2**b for b in self.bits))

    def of(self, values: Ints) -> Ints:
        """Return the prefixes (n, levels) of values (n,); -1 stays -1 at every level."""
        return np.stack([values >> (self.bits[-1] - b) for b in self.bits], axis=1)

    def heavy(self, counts: Counts, max_values: int, deviations: float = 3.0) -> tuple[Ints, Floats]:
        """Values whose every prefix is frequent, with their counts, the most frequent first.

        Args:
            counts: an answer to a question over ``space``.
            max_values: prefixes that are followed at each level, and values that come back.
            deviations: standard errors that a count must have.
        """
        ids, values, n_bits = np.zeros(1, np.int64), np.zeros(0), 0
        for level, b in enumerate(self.bits):
            ids = ((ids << (b - n_bits))[:, None] | np.arange(2 ** (b - n_bits))).ravel()
            values, n_bits = counts.at(ids, level), b
            significant = np.flatnonzero(values > deviations * counts.standard_error(ids, level))
            best = significant[np.argsort(-values[significant], kind="stable")[:max_values]]
            ids, values = ids[best], values[best]
        return ids, values
