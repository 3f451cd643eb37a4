"""Between a round's questions and a party's words: the hard cap of rows, and whose share of the noise is whose."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from cloister.core.aggregated import RingVector, to_integers
from cloister.core.buckets import QuestionContext, Space
from cloister.core.budget import Budget
from cloister.core.domains import Box
from cloister.core.errors import InvalidInput
from cloister.core.questions import OpenedQuestion, Round
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.trust import Aggregated
from cloister.core.types import Ids
from cloister.federated.protocol.vectors import coordinator_noise, outline, party_words
from cloister.plugins.oracles.aggregated.masked_gaussian import MaskedGaussian
from cloister.plugins.oracles.aggregated.skellam import SkellamShares

SIZE, CAP = 4000, 100
BUDGET, SETTING = Budget("gaussian", 0.04), QuestionContext(1000, 1.0, PublicRng.from_seed(1))
MASKED, SHARES = MaskedGaussian(parties=3, most_rows=CAP), SkellamShares(parties=3, most_rows=CAP)


def round_of(*oracles: Any, index: int = 0) -> Any:
    parts = tuple(OpenedQuestion(None, None, None, o.open(Space((SIZE,)), BUDGET, SETTING)) for o in oracles)  # type: ignore[arg-type]
    return Round(index, Aggregated, Box((-1.0,), (1.0,)), parts)


def sums(*rows: int) -> tuple[RingVector, ...]:
    return tuple(RingVector(np.zeros(SIZE, np.uint64), n) for n in rows)


@pytest.mark.parametrize("oracle", [MASKED, SHARES], ids=["masked-gaussian", "skellam"])
def test_a_party_with_more_rows_than_the_ring_was_proved_for_sends_nothing(oracle: Any) -> None:
    """In any of a round's questions: beyond the cap sums could wrap around the ring, and come out as others."""
    asked, rng = round_of(oracle, oracle), NoiseRng.for_tests(1)
    assert len(party_words(asked, sums(CAP, CAP), 0, 3, rng)) == 2
    for rows in ((CAP + 1, 0), (0, CAP + 1)):
        with pytest.raises(InvalidInput, match=f"more rows than the {CAP} that all agreed on"):
            party_words(asked, sums(*rows), 0, 3, rng)


def correlation(one: Ids, other: Ids, bits: int) -> float:
    return float(np.corrcoef(to_integers(one, bits), to_integers(other, bits))[0, 1])


@pytest.mark.parametrize(("oracle", "shares"), [(SHARES, True), (MASKED, False)], ids=["skellam", "masked-gaussian"])
def test_no_two_parties_questions_or_rounds_share_their_share_of_the_noise(oracle: Any, shares: bool) -> None:
    """Seeded, where children could be confused: 4,000 numbers of independent noises have a correlation below 6 /
    sqrt(4000). Noise that the coordinator draws is drawn once and by no party, and the other way round."""
    rng, drawn, none = NoiseRng.for_tests(2), list[Ids](), list[Ids]()
    for index in range(2):
        asked = round_of(oracle, oracle, index=index)
        for me in range(3):
            (drawn if shares else none).extend(party_words(asked, sums(0, 0), me, 3, rng))
        (none if shares else drawn).extend(coordinator_noise(asked, 3, rng))
    bits = outline(asked, 3)[0].bits
    assert not any(words.any() for words in none)
    assert len(drawn) == (12 if shares else 4)
    assert all(abs(correlation(a, b, bits)) < 6 / SIZE**0.5 for a, b in combinations(drawn, 2))
