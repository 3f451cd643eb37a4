"""Keywords that tell groups apart (``--describe-words``): how a run gets them, and what was released, by lift.

A method is put into the wrapper that counts words last, around its frame and its histograms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import attrs
import numpy as np

from cloister.core.domains import first_columns
from cloister.core.errors import Damaged, InvalidInput
from cloister.core.registry.compose import Composed
from cloister.core.wrappers import METHOD
from cloister.rows.keywords import Texts
from cloister.rows.selection import Selection
from cloister.run.estimates import Estimate
from cloister.run.layers.histograms import share_of
from cloister.run.layers.layer import Scope

if TYPE_CHECKING:
    from cloister.run.result import Result


@final
@attrs.frozen
class KeywordLayer:
    """Keywords that a request asks for. Args: texts (the column), part (of the budget)."""

    texts: Texts
    part: float

    def seen(self, scope: Scope) -> Scope:
        return attrs.evolve(scope, domain=first_columns(scope.domain, len(self.texts.features)))

    def around(self, method: Composed, scope: Scope, share: float) -> Composed:
        """Return the method with its groups' words counted.

        Raises: InvalidInput: nobody may count them under this trust model.
        """
        trust = method.trust or scope.trust
        if trust not in (None, "Central"):
            raise InvalidInput(
                f"words are counted by a curator (trust central), and the method as composed is {trust}: leave out "
                f"--describe-words (describe_words=)"
            )
        options = {"slots": self.texts.most, "share": share}
        return scope.kit.wrapper("words").given(options=options, parts={METHOD: method}).composed()


def read(request: Any, table: Selection) -> tuple[Any, KeywordLayer | None]:
    """Return the keywords that a request asks for.

    Raises: InvalidInput: the rows are read with other words, or the request's promise allows no threshold.
    """
    if list(table.texts) != [column for column in request.described if isinstance(column, Texts)]:
        raise InvalidInput(
            "the words that are asked for are not those that the rows are read with: give the source the same column "
            "(described=[Texts(NAME)], --describe-words NAME)"
        )
    if not table.texts:
        return request, None
    if not (request.delta and request.rows_per_user in (None, 1)):
        raise InvalidInput(
            "words are shown above a threshold, whose delta is proved for one row of a person: give delta > 0 (1e-6, "
            "say), and no more than one row per user"
        )
    (texts,), share = table.texts, share_of(request)
    return request, KeywordLayer(texts, share / 2 if table.described else share)


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
    """Return the words of each group, those of the most lift first; empty if none were counted.

    A word that is below the threshold in other groups counts as none there, so that its lift is an upper bound.

    Raises: Damaged: they are none.
    """
    if "words" not in result.details:
        return []
    try:
        listed = [[(str(w), float(n), float(e)) for w, n, e in each] for each in result.details["words"]["of"]]
        if len(listed) != len(result.centers):
            raise ValueError("groups")
    except (KeyError, TypeError, ValueError):
        raise Damaged("the result's words are damaged: run the fit again") from None
    sizes = np.ones(len(listed)) if result.weights is None else np.maximum(result.weights, 1.0)
    everywhere = dict[str, float]()
    for word, rows, _ in (each for group in listed for each in group):
        everywhere[word] = everywhere.get(word, 0.0) + rows
    by_group = [
        [Word(w, n, e, n / float(size) / (everywhere[w] / float(sizes.sum()))) for w, n, e in group]
        for group, size in zip(listed, sizes, strict=True)
    ]
    return [sorted(group, key=lambda word: (-word.lift, -word.rows)) for group in by_group]
