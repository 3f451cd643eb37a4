"""Reports that encoders made are never doubted, whatever the rows are; those of liars are, where their law gives them
away. Nor are numbers that were given out blindly; those that were chosen are, by question, by kind and by level."""

from __future__ import annotations

import math
import re
from typing import Any

import attrs
import numpy as np
import pytest
from scipy.stats import binom

from cloister.collection.server.laws import doubts, unlikely
from cloister.core.buckets import QuestionContext
from cloister.core.budget import Budget
from cloister.core.encoding import absorb, encode_rows
from cloister.core.lattice import Bound
from cloister.core.questions import OpenedQuestion, Round, Rows
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.reports import SIGNIFICANCE, Proportion, ReportFacts, ReportLaw
from cloister.core.trust import Local
from cloister.plugins.oracles.local.counts.adaptive_response import AdaptiveResponse
from cloister.plugins.oracles.local.counts.hadamard_response import HadamardResponse
from cloister.plugins.oracles.local.counts.local_hashing import ExplicitHistogram, OptimisedLocalHashing
from cloister.plugins.oracles.local.counts.optimised_unary import OptimisedUnary
from cloister.plugins.oracles.local.counts.subset_selection import SubsetSelection
from cloister.plugins.oracles.local.packed_sets import packed
from cloister.plugins.oracles.local.reports import Reports
from cloister.plugins.oracles.local.vectors.ldp_average import LdpAverage
from cloister.plugins.oracles.local.vectors.vector_sums import ExplicitHistogramVector, HadamardVector
from cloister.plugins.oracles.shuffled.amplified import AmplifiedCounts
from tests.core.core_fakes import BOX, SEED, Strips

N = 6000
BLOCKS: dict[str, Any] = {
    "hadamard-response": HadamardResponse(),
    "explicit-histogram": ExplicitHistogram(),
    "optimised-local-hashing": OptimisedLocalHashing(),
    "optimised-unary": OptimisedUnary(),
    "adaptive-response": AdaptiveResponse(),
    "subset-selection": SubsetSelection(),
    "one-byte": HadamardVector(),
    "duchi": HadamardVector(randomiser="duchi"),
    "duchi, kept": ExplicitHistogramVector(),
    "amplified-counts": AmplifiedCounts(report=HadamardResponse()),
    "ldp-average": LdpAverage(),
}
NOISE, BOUND = NoiseRng.for_tests(0), Bound(BOX.max_norm, 2)


def users(n: int, start: int = 0) -> np.ndarray:
    return np.arange(start, start + n, dtype=np.uint64)


def of_all(oracle: Any, share: str) -> Round[Any]:
    """One question of everybody."""
    cells, inner = Strips(BOX.max_norm), {"share": share}
    if isinstance(oracle, AmplifiedCounts):
        inner = {"report": attrs.evolve(oracle.report, share=share)}
    sums = "Vector" in type(oracle).__name__ or isinstance(oracle, LdpAverage)
    context = QuestionContext(10**6, BOX.unit, SEED), *((BOUND,) if sums else ())
    channel = attrs.evolve(oracle, **inner).open(cells.space, Budget("pure", 1.0, delta=1e-6), *context)
    return Round(0, Local, BOX, (OpenedQuestion(cells, Rows(cells, BOUND) if sums else None, None, channel),))


@pytest.mark.parametrize("among", [1, 7, 400, 10**6])
@pytest.mark.parametrize(
    ("least", "most"), [(0.03, 0.5), (1e-6, 1e-3), (0.9, 0.95), (1e-4, 1e-4), (0.03, 0.03), (0.5, 0.5), (0.9, 0.9)]
)
def test_a_number_within_its_bounds_is_no_wonder_and_others_have_at_most_the_chance_that_is_said(
    among: int, least: float, most: float
) -> None:
    """Against exact tails of coins of either bound: of all coins between them, those make it likeliest. What is said is
    right but for a factor of sqrt(n)."""
    for p, sign in ((least, -1), (most, 1)):
        spread = math.sqrt(among * p * (1 - p)) + 1
        for off in np.linspace(0, 9, 19):
            found = int(np.clip(round(among * p + sign * off * spread), 0, among))
            exact = binom.logcdf(found, among, p) if sign < 0 else binom.logsf(found - 1, among, p)
            said = Proportion("", found, among, least, most).log_chance()
            assert said >= min(math.log(2) + exact, 0) - 1e-6 * among**0.5, found
            limit = math.log(2) + min(exact, 0) + math.log(8 * spread)
            assert said <= limit or least < found / among < most, found
    for found in (math.ceil(among * least), math.floor(among * most)):
        if least <= found / among <= most:
            assert Proportion("", found, among, least, most).log_chance() == pytest.approx(math.log(2))
    assert Proportion("", 0, 0, least, most).log_chance() == 0.0


@attrs.frozen
class Knowing(ReportFacts):
    """A channel that knows some laws. Args: known."""

    known: tuple[ReportLaw, ...]

    def laws(self, summary: Any) -> tuple[ReportLaw, ...]:
        return self.known


def test_the_significance_is_that_of_the_round_however_many_laws_and_numbers_there_are() -> None:
    """With ``shares`` it adds up to no more than is said, by the union bound: each number has its part."""
    assert SIGNIFICANCE <= 1e-9
    template = of_all(HadamardResponse(), "users")
    for laws, numbers, questions in ((1, 1, 1), (3, 1, 2), (2, 10**6, 1)):
        edge = math.log(SIGNIFICANCE / 2 / (laws * questions * numbers))
        for found in range(5000, 5600, 3):
            one = Proportion("x", found, 10_000, 0.5)
            channel = Knowing((ReportLaw((one,), numbers), *[ReportLaw((), numbers)] * (laws - 1)))
            part = attrs.evolve(template.parts[0], channel=channel)
            round = Round(0, template.trust, BOX, (part,) * questions)
            assert len(unlikely(round, [None] * questions)) == questions * (one.log_chance() <= edge)


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
@pytest.mark.parametrize("share", ["users", pytest.param("budget", marks=pytest.mark.thorough)])
def test_honest_reports_are_never_doubted(block: Any, share: str) -> None:
    """Ten rounds of 6,000 people, wherever they are. A reading doubts them less often than once in 10^9 rounds."""
    round, together = of_all(block, share), np.full((N, 2), -BOX.max_norm // 2)
    for seed in range(5):
        for rows in (together, np.random.default_rng(seed).integers(-1000, 1000, (N, 2))):
            reports = encode_rows(round, rows, users(N, 10**6 * seed), NoiseRng.for_tests(seed))
            assert unlikely(round, absorb(round, reports)) == []


@pytest.mark.parametrize(
    ("liars", "usual", "said"),
    [(0, False, None), (10, False, "buckets or more at once: "), (50, True, None), (2_000, True, ", (no )?bucket")],
)
def test_a_few_liars_with_the_largest_sets_that_are_taken_are_found(liars: int, usual: bool, said: str | None) -> None:
    """Of 20,000 people in buckets 40 to 63 of 64 hardly one would send such a set: ten liars are enough. Sets as large
    as is usual for honest people hide 50 of them; 2,000 starve the other buckets."""
    round = of_all(OptimisedUnary(), "users")
    (part,) = round.parts
    asked, level = part.channel.asked, OptimisedUnary().level(64, 3, PublicRng.from_seed(4))
    asked = attrs.evolve(asked, levels=(level,), sharing=attrs.evolve(asked.sharing, levels=1))
    channel = attrs.evolve(part.channel, asked=asked)
    round = attrs.evolve(round, parts=(attrs.evolve(part, channel=channel),))
    items = np.random.default_rng(0).integers(40, 64, (20_000, 1))
    chosen = np.zeros((liars, level.width * 8), bool)
    chosen[:, : math.floor(level.size * level.chances.q + 1) if usual else level.at_once] = True
    lies = channel.absorb(Reports(users(liars, 10**7), packed(chosen), asked.stamp))
    honest = channel.absorb(channel.encode(items, users(20_000), NoiseRng.for_tests(3)))
    told = unlikely(round, (honest.merge(lies),))
    assert told == [] if said is None else any(re.search(said, text) for text in told)


def a_round(seed: int = 0) -> Round[Any]:
    """Four questions for counts and two for sums, of levels that share the users."""
    key, cells, vectors = PublicRng.from_seed(seed), Strips(BOX.max_norm), Rows(Strips(BOX.max_norm), BOUND)
    parts = list[OpenedQuestion]()
    for number, spend in enumerate(Budget("pure", 2.0, delta=1e-4).split_users(key, *[0.025] * 4, 0.45, 0.45)):
        context = QuestionContext(int(N * spend.fraction), BOX.unit, key.child("q", number), N)
        if number < 4:
            channel: Any = HadamardResponse().open(cells.space, spend, context)
        else:
            channel = HadamardVector().open(cells.space, spend, context, BOUND)
        parts.append(OpenedQuestion(cells, None if number < 4 else vectors, spend.user_share, channel))
    return Round(0, Local, BOX, tuple(parts))


def came(round: Round[Any], users: np.ndarray) -> tuple[list[int], tuple[Any, ...]]:
    reports = encode_rows(round, np.zeros((len(users), 2)), users, NOISE)
    return [len(report.users) for report in reports], absorb(round, reports)


def asked_of(round: Round[Any], users: np.ndarray, *questions: int) -> np.ndarray:
    """Which of the users one of the questions asks."""
    shares = [round.parts[j].user_share for j in questions]
    return np.logical_or.reduce([share.holds(users) for share in shares if share is not None])


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


def test_people_who_leave_a_question_out_are_found() -> None:
    round = a_round()
    left = users(N)[~asked_of(round, users(N), 4)]
    assert doubts(round, *came(round, left))[0].startswith("question 5 has 0 of")


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
def test_people_who_chose_their_level_are_found(block: Any) -> None:
    """Levels that everybody answers are not chosen."""
    round, everybody = of_all(block, "users"), users(3000)
    channel = round.parts[0].channel
    assert doubts(round, *came(round, everybody)) == []
    first = [channel.answered(came(round, everybody[i : i + 1])[1][0]) == (1, 0) for i in range(120)]
    chosen = everybody[:120][first]
    assert 30 < len(chosen) < 90
    found = doubts(round, *came(round, chosen))
    assert {text.partition(" has ")[0] for text in found} == {"level 1 of question 1", "level 2 of question 1"}
    round = of_all(block, "budget")
    assert doubts(round, *came(round, users(50))) == []
