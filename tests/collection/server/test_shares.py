"""Numbers that were given out blindly are never doubted; numbers that were chosen are, by question, by kind and by
level."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np
import pytest

from cloister.collection.server import laws
from cloister.collection.server.laws import doubts
from cloister.core.buckets import QuestionContext
from cloister.core.budget import Budget
from cloister.core.encoding import absorb, encode_rows
from cloister.core.lattice import Bound
from cloister.core.questions import OpenedQuestion, Round, Rows
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.reports import SIGNIFICANCE, Proportion
from cloister.core.trust import Local
from cloister.plugins.oracles.local.counts.hadamard_response import HadamardResponse
from cloister.plugins.oracles.local.counts.local_hashing import ExplicitHistogram
from cloister.plugins.oracles.local.vectors.ldp_average import LdpAverage
from cloister.plugins.oracles.local.vectors.vector_sums import HadamardVector
from cloister.plugins.oracles.shuffled.amplified import AmplifiedCounts
from tests.core.core_fakes import BOX, SEED, Strips

N = 4000
NOISE, BOUND = NoiseRng.for_tests(0), Bound(BOX.max_norm, 2)
AMPLIFIED = AmplifiedCounts(report=HadamardResponse())


SHARES = (0.025, 0.025, 0.025, 0.025, 0.45, 0.45)


def a_round(seed: int = 0, oracle: Any = None, trust: Any = Local) -> Round[Any]:
    """Four questions for counts and two for sums, of levels that share the users."""
    key, cells, vectors = PublicRng.from_seed(seed), Strips(BOX.max_norm), Rows(Strips(BOX.max_norm), BOUND)
    parts = list[OpenedQuestion]()
    for number, spend in enumerate(Budget("pure", 2.0, delta=1e-4).split_users(key, *SHARES)):
        context = QuestionContext(int(N * spend.fraction), BOX.unit, key.child("q", number), N)
        if number < 4:
            channel: Any = (oracle or HadamardResponse()).open(cells.space, spend, context)
        else:
            channel = HadamardVector().open(cells.space, spend, context, BOUND)
        parts.append(OpenedQuestion(cells, None if number < 4 else vectors, spend.user_share, channel))
    return Round(0, trust, BOX, tuple(parts))


def came(round: Round[Any], users: np.ndarray) -> tuple[list[int], tuple[Any, ...]]:
    reports = encode_rows(round, np.zeros((len(users), 2)), users, NOISE)
    return [len(report.users) for report in reports], absorb(round, reports)


def asked_of(round: Round[Any], users: np.ndarray, *questions: int) -> np.ndarray:
    """Which of the users one of the questions asks."""
    shares = [round.parts[j].user_share for j in questions]
    return np.logical_or.reduce([share.holds(users) for share in shares if share is not None])


def users(n: int, start: int = 0) -> np.ndarray:
    return np.arange(start, start + n, dtype=np.uint64)


def test_numbers_in_a_row_or_at_random_are_not_doubted() -> None:
    """5 keys, four ways to give numbers out. Each reading doubts honest numbers once in 10^8 rounds or less."""
    for seed in range(5):
        round, g = a_round(seed), np.random.default_rng(seed)
        for some in (users(N), users(17, 10**12), users(N)[::2], g.integers(0, 2**63, N).astype(np.uint64)):
            assert doubts(round, *came(round, np.unique(some))) == []


def test_liars_who_are_all_asked_for_counts_are_found() -> None:
    """600 beside 40,000; where four questions for counts have a quarter of them each, too few for any and too many for
    all together."""
    round = a_round()
    free = users(10**5, 10**6)
    one, all_four = (
        np.concatenate([users(40_000), free[asked_of(round, free, *questions)][:600]])
        for questions in ((0,), (0, 1, 2, 3))
    )
    (worst, *_), together = doubts(round, *came(round, one)), doubts(round, *came(round, all_four))
    assert worst.startswith("question 1 has 1,")
    planned = (
        "of 40,600 answers, where 1,015 are planned: so far off comes by chance in less than one of 1,000,000,000 "
    )
    assert f"{planned}rounds" in worst
    assert [found.partition(" has ")[0] for found in together] == ["the questions for counts together"]
    few = np.concatenate([users(40_000), free[asked_of(round, free, 0, 1, 2, 3)][:100]])
    assert doubts(round, *came(round, few)) == []


def test_as_few_who_chose_as_chance_explains_go_unseen() -> None:
    """150 beside 40,000, who count for six times as many: within the 7 sqrt(n p / (1 - p)) of the page."""
    round, free = a_round(), users(10**5, 10**6)
    few = np.concatenate([users(40_000), free[asked_of(round, free, 0)][:150]])
    assert doubts(round, *came(round, few)) == []


LEVELS = {
    "hadamard-response": HadamardResponse(),
    "explicit-histogram": ExplicitHistogram(),
    "ldp-average": LdpAverage(),
    "amplified-counts": AMPLIFIED,
}


def of_all(oracle: Any, share: str) -> Round[Any]:
    """One question of everybody."""
    cells, inner = Strips(BOX.max_norm), {"share": share}
    if isinstance(oracle, AmplifiedCounts):
        inner = {"report": attrs.evolve(oracle.report, share=share)}
    sums = "Vector" in type(oracle).__name__ or isinstance(oracle, LdpAverage)
    context = QuestionContext(10**6, BOX.unit, SEED), *((BOUND,) if sums else ())
    channel = attrs.evolve(oracle, **inner).open(cells.space, Budget("pure", 1.0, delta=1e-6), *context)
    return Round(0, Local, BOX, (OpenedQuestion(cells, Rows(cells, BOUND) if sums else None, None, channel),))


@pytest.mark.parametrize("oracle", LEVELS.values(), ids=LEVELS)
def test_people_who_chose_their_level_are_found(oracle: Any) -> None:
    """Levels that everybody answers are not chosen."""
    round, everybody = of_all(oracle, "users"), users(3000)
    channel = round.parts[0].channel
    assert doubts(round, *came(round, everybody)) == []
    first = [channel.answered(came(round, everybody[i : i + 1])[1][0]) == (1, 0) for i in range(120)]
    chosen = everybody[:120][first]
    assert 30 < len(chosen) < 90
    found = doubts(round, *came(round, chosen))
    assert {text.partition(" has ")[0] for text in found} == {"level 1 of question 1", "level 2 of question 1"}
    round = of_all(oracle, "budget")
    assert round.parts[0].channel.answered(came(round, users(50))[1][0]) == ()
    assert doubts(round, *came(round, users(50))) == []


def test_the_significance_is_that_of_the_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many questions there are: the test of each is as much stricter."""
    for many in (2, 50):
        for found in range(5000, 5600, 3):
            one = Proportion("", found, 10_000, 0.5)
            monkeypatch.setattr(laws, "_proportions", lambda *_, every=[one] * many: every)
            unlikely = one.log_chance() <= math.log(SIGNIFICANCE / 2 / many)
            assert len(doubts(a_round(), (), ())) == many * unlikely
