"""Clustering with keywords: counts above a threshold of the rows of each group that have a word.

1. The method in the slot clusters the rows by all but their words, with the rest of the budget.
2. One question: a row is in one bucket of each of m levels, that of its group (its nearest centre) and of the word in
   its slot (``rows.keywords``), or in none. There are 38^10 words, and no list of them is needed: it is released which
   counts exceed a threshold, with these counts. A released bucket says itself which word it is.

Guarantee (Central; add-or-remove one row): the measures of the oracles in the slots, composed by the accountant. A row
changes at most one count of each level by one, by the bucketing, whatever its cell holds: with m levels the L2
sensitivity is sqrt(m), which is what the oracle pays for. Where centres lie is released before; m, the share and the
buckets' number are public: the schedule is the same whatever is answered.

A word that no other row of the group has appears with a chance of at most the question's delta, which is a part of the
run's: that is for all of a row's words together (``thresholded-gaussian``).

Source: Korolova, Kenthapadi, Mishra, Ntoulas 2009 (words above a threshold); Urania (arXiv 2506.04681; keywords of
private groups).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, final

import attrs
import numpy as np

from cloister.core.domains import first_columns
from cloister.core.frames import KeepIntegers, cube
from cloister.core.wrappers import ColumnNames
from cloister.plugin import (
    ANY_KEY,
    Clustering,
    FrequencyOracle,
    Ints,
    InvalidInput,
    Method,
    NearestCenter,
    Problem,
    PublicRng,
    Session,
    Space,
    T,
    component,
    count,
    option,
    slot,
)
from cloister.plugins.methods.grouping import Frame
from cloister.rows.keywords import HALF, WHOLE, word_of

GROUPS = 2**62 // WHOLE
"""Maximum of groups: buckets of a level are numbered below 2^62."""

RARE = 0.25
"""Thresholds above this part of an average group are warned of."""


@final
@attrs.frozen(eq=False)
class WordsOfGroups:
    """Bucketing of a row by its group and by the word in each of its slots.

    Args:
        near: groups by the first columns.
        groups: number of groups that have buckets.
        slots: pairs of last columns, each a word (0: none).
    """

    near: NearestCenter
    groups: int
    slots: int

    @property
    def space(self) -> Space:
        return Space((self.groups * WHOLE,) * self.slots)

    def locate(self, rows: Ints) -> Ints:
        group = self.near.locate(rows[:, : self.near.centers.shape[1]])
        halves = rows[:, -2 * self.slots :]
        words = halves[:, 0::2] * HALF + halves[:, 1::2]
        return np.where(words > 0, group * WHOLE + words, -1)


@component
class Worded(Generic[T]):
    """A method whose groups are told by words that many of their rows have."""

    method: Method[T] = slot("hst-means", help="clusters the rows by all but their words")
    counts: FrequencyOracle[T] = slot("thresholded-gaussian", help="how many rows of each group have each word")
    slots: int = option(
        default=0, low=0, high=64, help="words of a row: so many pairs of its last columns; 0: none are counted"
    )
    share: float = option(default=0.15, low=0.0, high=0.9, above=True, help="of the budget, for the words")

    def cluster(self, problem: Problem, session: Session[T], rng: PublicRng) -> Clustering:
        look, remaining = self.parts(problem, rng)
        clustering = self.method.cluster(remaining, session.on_first_columns(remaining.domain), rng.child("method"))
        if not self.slots:
            return clustering
        frame = Frame.of(remaining.domain, clustering.details, clustering.centers.shape[1])
        words = KeepIntegers(frame.lattice, 2 * self.slots, HALF - 1)
        view = session.framed(words, cube(words.dimension))
        cells = WordsOfGroups(frame.near(clustering.centers, problem.k, view), problem.k, self.slots)
        answer: Any
        (answer,) = view.ask(count(cells, oracle=self.counts, budget=look.budget))
        words_of_groups: list[list[Any]] = [[] for _ in clustering.centers]
        for level in range(self.slots):
            ids, rows = answer.listed(level)
            errors = answer.standard_error(ids, level)
            for group, word, *figures in zip(ids // WHOLE, ids % WHOLE, rows, errors, strict=True):
                words_of_groups[int(group)].append([word_of(int(word)), *map(float, figures)])
        ordered = [sorted(group_words, key=lambda word: (-word[1], word[0])) for group_words in words_of_groups]
        spoken = {"above": self.opened(problem).threshold.above, "of": ordered}
        return attrs.evolve(clustering, details={**clustering.details, "words": spoken})

    def parts(self, problem: Problem, rng: PublicRng) -> tuple[Problem, Problem]:
        """Split the problem into the words' and the method's, whose domain is the other columns."""
        if self.slots and problem.k > GROUPS:
            raise InvalidInput(f"k is {problem.k}, and words are counted in at most {GROUPS} groups: ask for fewer")
        look, remaining = problem.split(self.share if self.slots else 0.0)
        return look, attrs.evolve(remaining, domain=first_columns(problem.domain, 2 * self.slots))

    def opened(self, problem: Problem) -> Any:
        """Return the question's channel, with its threshold and the deviation of its noise in rows."""
        look, _ = self.parts(problem, ANY_KEY)
        channel = self.counts.open(Space((problem.k * WHOLE,) * self.slots), look.budget, look.context(look.budget))
        if getattr(channel, "threshold", None) is None:
            raise InvalidInput("words need counts above a threshold: fill the slot with thresholded-gaussian")
        return channel

    has_frame = False

    def share_of(self, problem: Problem) -> float:
        return self.share if self.slots else 0.0

    def inner(self, problem: Problem) -> Problem:
        return self.parts(problem, ANY_KEY)[1]

    def price(self, problem: Problem, columns: ColumnNames, part: float) -> str:
        """Return the share of the budget that words take, and when one is shown; empty if none are counted."""
        if not self.slots:
            return ""
        channel = self.opened(problem)
        return (
            f"Words: {part * self.share:.1%} of the budget counts words of '{columns.words}', at most {self.slots} of "
            f"a row: one is shown if more than {channel.threshold.above:,} rows of a group have it, by a count with a "
            f"standard error of {channel.deviation:,.3g} rows."
        )

    def warning(self, problem: Problem) -> str:
        """Return a warning of a threshold that few words of an average group exceed; else empty."""
        above = self.opened(problem).threshold.above if self.slots else 0
        if above <= RARE * problem.rows / problem.k:
            return ""
        return (
            f"a word is shown if more than {above:,} rows of a group have it, and {problem.k} groups of "
            f"{problem.rows:,} rows have about {problem.rows / problem.k:,.0f} each: give more of the budget "
            f"(--describe-share), or count fewer words of a row (--most-words)"
        )

    def notes(self, problem: Problem, columns: ColumnNames, part: float, details: Mapping[str, Any]) -> tuple[str, ...]:
        paid = self.price(problem, columns, part)
        return (f"{paid} That one person's word alone is shown has at most the chance delta.",) if paid else ()

    def facts(self, columns: ColumnNames) -> dict[str, Any]:
        return {"words": {"column": columns.words, "most": self.slots}} if self.slots else {}
