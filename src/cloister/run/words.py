"""Words that tell groups apart: how a run gets them, what they cost, and what was released, by lift.

A method is put into the one that counts words last, around its frame and its description.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, final

import attrs
import numpy as np

from cloister.accounting.privacy_target import PrivacyTarget
from cloister.core.clustering import Problem
from cloister.core.errors import Damaged, InvalidInput
from cloister.core.registry.compose import Composed, compose
from cloister.core.registry.registry import registry
from cloister.rows.keywords import Texts
from cloister.rows.selection import Selection
from cloister.run.estimates import Estimate

if TYPE_CHECKING:
    from cloister.run.result import Result


RARE = 0.25
"""Thresholds above this part of an average group are warned of."""


def check(table: Selection, asked: Sequence[Any], total: PrivacyTarget, composed: Composed, trust: str | None) -> None:
    """Raises: InvalidInput: words are asked where they cannot be counted. Args: table, as the population reads it;
    asked, what the request describes groups by; trust, that the caller named: a method that asks nothing has none."""
    known = composed.trust or trust
    if list(table.texts) != [each for each in asked if isinstance(each, Texts)]:
        raise InvalidInput(
            "the words that are asked for are not those that the rows are read with: give the source the same column "
            "(described=[Texts(NAME)], --describe-words NAME)"
        )
    if table.texts and known not in (None, "Central"):
        raise InvalidInput(
            f"words are counted by a curator (trust central), and the method as composed is {known}: leave out "
            f"--describe-words (describe_words=)"
        )
    if table.texts and not (total.delta and total.rows_per_user in (None, 1)):
        raise InvalidInput(
            "words are shown above a threshold, whose delta is proved for one row of a person: give delta > 0 (1e-6, "
            "say), and no more than one row per user"
        )


def worded(composed: Composed, table: Selection, share: float) -> Composed:
    """A method put into the one that counts its groups' words. Args: share, of the budget."""
    spec = registry().wrapper("words")
    options = {"slots": table.texts[0].most, "share": share}
    return compose(registry(), "Method", spec.name, {}, options, {spec.wraps: composed})


def counts(composed: Composed) -> bool:
    """Whether a run's method counts words."""
    return composed.spec.adds == "words" and bool(composed.value.slots)


def price(composed: Composed, problem: Problem, table: Selection) -> str:
    """Share of the budget that words take, and when one is shown; empty if none are asked. Reads no rows."""
    if not counts(composed):
        return ""
    channel, (texts,) = composed.value.opened(problem), table.texts
    return (
        f"Words: {composed.value.share:.1%} of the budget counts words of '{texts.column}', at most {texts.most} of a "
        f"row: one is shown if more than {channel.threshold.above:,} rows of a group have it, by a count with a "
        f"standard error of {channel.deviation:,.3g} rows."
    )


def warning(composed: Composed, problem: Problem) -> str:
    """Warning of a threshold that few words of an average group exceed; else empty. By public figures."""
    above = composed.value.opened(problem).threshold.above if counts(composed) else 0
    if above <= RARE * problem.rows / problem.k:
        return ""
    return (
        f"a word is shown if more than {above:,} rows of a group have it, and {problem.k} groups of {problem.rows:,} "
        f"rows have about {problem.rows / problem.k:,.0f} each: give more of the budget (--describe-share), or count "
        f"fewer words of a row (--most-words)"
    )


def notes(composed: Composed, problem: Problem, table: Selection) -> tuple[str, ...]:
    """A statement's words on a run's words."""
    told = price(composed, problem, table)
    return (f"{told} That one person's word alone is shown has at most the chance delta.",) if told else ()


@final
@attrs.frozen
class Word:
    """A word of a group.

    Args: word, by its first ten characters; rows, of the group that have it (noisy), with their standard error; lift,
    how many times as often a row of the group has it as one of all groups.
    """

    word: str
    rows: float
    error: float
    lift: float

    @property
    def text(self) -> str:
        return f"{self.word} ({self.lift:.1f} times as often, {Estimate(self.rows, self.error).text} rows)"


def words_of(result: Result) -> list[list[Word]]:
    """The words of each group, those of the most lift first; empty where none were counted.

    A word that is below the threshold in other groups counts as none there, so that its lift is an upper bound.

    Raises: Damaged: they are none.
    """
    if "words" not in result.details:
        return []
    try:
        found = [[(str(w), float(n), float(e)) for w, n, e in each] for each in result.details["words"]["of"]]
        if len(found) != len(result.centers):
            raise ValueError("groups")
    except (KeyError, TypeError, ValueError):
        raise Damaged("the result's words are damaged: run the fit again") from None
    sizes = np.ones(len(found)) if result.weights is None else np.maximum(result.weights, 1.0)
    everywhere = dict[str, float]()
    for word, rows, _ in (each for group in found for each in group):
        everywhere[word] = everywhere.get(word, 0.0) + rows
    told = [
        [Word(w, n, e, n / float(size) / (everywhere[w] / float(sizes.sum()))) for w, n, e in group]
        for group, size in zip(found, sizes, strict=True)
    ]
    return [sorted(group, key=lambda word: (-word.lift, -word.rows)) for group in told]
