"""Reports that encoders made are never doubted, whatever the rows are; those of liars are, where their law gives them
away."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np
import pytest
from scipy.stats import binom

from cloister.collection.server.laws import unlikely
from cloister.core.encoding import absorb, encode_rows
from cloister.core.questions import Round
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.reports import SIGNIFICANCE, Proportion, ReportFacts, ReportLaw
from cloister.plugins.oracles.local.counts.adaptive_response import AdaptiveResponse
from cloister.plugins.oracles.local.counts.hadamard_response import HadamardResponse
from cloister.plugins.oracles.local.counts.local_hashing import ExplicitHistogram, OptimisedLocalHashing
from cloister.plugins.oracles.local.counts.optimised_unary import OptimisedUnary
from cloister.plugins.oracles.local.counts.subset_selection import SubsetSelection
from cloister.plugins.oracles.local.randomised_response import packed
from cloister.plugins.oracles.local.reports import Reports
from cloister.plugins.oracles.local.vectors.unit_randomiser import sent
from cloister.plugins.oracles.local.vectors.vector_sums import ExplicitHistogramVector, HadamardVector
from cloister.plugins.oracles.shuffled.amplified import AmplifiedCounts
from tests.collection.server.test_shares import of_all
from tests.core.core_fakes import BOX

N = 6000
DUCHI = HadamardVector(randomiser="duchi")
BLOCKS: dict[str, Any] = {
    "hadamard-response": HadamardResponse(),
    "explicit-histogram": ExplicitHistogram(),
    "optimised-local-hashing": OptimisedLocalHashing(),
    "optimised-unary": OptimisedUnary(),
    "adaptive-response": AdaptiveResponse(),
    "subset-selection": SubsetSelection(),
    "one-byte": HadamardVector(),
    "duchi": DUCHI,
    "duchi, kept": ExplicitHistogramVector(),
    "amplified-counts": AmplifiedCounts(report=HadamardResponse()),
}
each_block = pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)


@pytest.mark.parametrize("among", [1, 7, 400, 10**6])
def test_a_number_within_its_bounds_is_no_wonder_and_others_have_at_most_the_chance_that_is_said(among: int) -> None:
    """Against exact tails of coins of either bound: of all coins between them, those make it likeliest. What is said is
    right but for a factor of sqrt(n)."""
    for least, most in ((0.03, 0.5), (1e-6, 1e-3), (0.9, 0.95), (1e-4, 1e-4), (0.03, 0.03), (0.5, 0.5), (0.9, 0.9)):

        def log_chance(found: int, among: int = among, least: float = least, most: float = most) -> float:
            return Proportion("", found, among, least, most).log_chance()

        for p, sign in ((least, -1), (most, 1)):
            spread = math.sqrt(among * p * (1 - p)) + 1
            for off in np.linspace(0, 9, 19):
                found = int(np.clip(round(among * p + sign * off * spread), 0, among))
                exact = binom.logcdf(found, among, p) if sign < 0 else binom.logsf(found - 1, among, p)
                said = log_chance(found)
                assert said >= min(math.log(2) + exact, 0) - 1e-6 * among**0.5, (least, most, found)
                limit = math.log(2) + min(exact, 0) + math.log(8 * spread)
                assert said <= limit or least < found / among < most, (least, most, found)
        for found in (math.ceil(among * least), math.floor(among * most)):
            if least <= found / among <= most:
                assert log_chance(found) == pytest.approx(math.log(2))
        assert log_chance(0, 0) == 0.0


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


def users(n: int, start: int = 0) -> np.ndarray:
    return np.arange(start, start + n, dtype=np.uint64)


def rows(how: str, n: int, seed: int) -> np.ndarray:
    """All in the first bucket, or anywhere; vectors of all lengths."""
    g = np.random.default_rng(seed)
    return np.full((n, 2), -BOX.max_norm // 2) if how == "together" else g.integers(-1000, 1000, (n, 2))


@each_block
@pytest.mark.parametrize("share", ["users", pytest.param("budget", marks=pytest.mark.thorough)])
def test_honest_reports_are_never_doubted(block: Any, share: str) -> None:
    """Ten rounds of 6,000 people, wherever they are. A reading doubts them less often than once in 10^9 rounds."""
    round = of_all(block, share)
    for seed in range(5):
        for how in ("together", "anywhere"):
            some = users(N, 10**6 * seed)
            reports = encode_rows(round, rows(how, N, seed), some, NoiseRng.for_tests(seed))
            assert unlikely(round, absorb(round, reports)) == []


def with_liars(round: Round[Any], answers: Any, honest: int, liars: int) -> tuple[Any, ...]:
    """Summaries of honest people all over the place, and of liars who send these answers (width,) or (liars, width)."""
    channel = round.parts[0].channel
    (summary,) = absorb(round, encode_rows(round, rows("anywhere", honest, 0), users(honest), NoiseRng.for_tests(1)))
    lies = np.broadcast_to(np.asarray(answers, channel.asked.dtype), (liars, channel.asked.width)).copy()
    return (summary.merge(channel.absorb(Reports(users(liars, 10**7), lies, channel.asked.stamp))),)


@pytest.mark.parametrize("block", [OptimisedLocalHashing(), ExplicitHistogram(), HadamardResponse()])
def test_liars_who_all_send_one_symbol_are_found(block: Any) -> None:
    """1,200 beside 10,000; of a bit of Hadamard response it must be the one that is not sent for bucket 0."""
    round = of_all(block, "users")
    (worst, *_) = unlikely(round, with_liars(round, [1], 10_000, 1_200))
    assert worst.startswith("question 1, level ")
    assert "whatever the rows are: so far off comes by chance in less than one of 1,000,000,000 rounds" in worst
    assert unlikely(round, with_liars(round, [1], 10_000, 30)) == []


def wide(block: Any) -> Round[Any]:
    """One question of 64 buckets."""
    round = of_all(block, "users")
    (part,) = round.parts
    asked = part.channel.asked
    level = block.level(64, 3, PublicRng.from_seed(4))
    channel = attrs.evolve(
        part.channel, asked=attrs.evolve(asked, levels=(level,), sharing=attrs.evolve(asked.sharing, levels=1))
    )
    return Round(0, round.trust, BOX, (attrs.evolve(part, channel=channel),))


def among(round: Round[Any], liars: int, usual: bool = False) -> list[str]:
    """What is said of 20,000 people in buckets 40 to 63 and of liars who all support the same first buckets: as many as
    are taken at once, or as is usual for honest people."""
    (part,) = round.parts
    channel, level = part.channel, part.channel.asked.levels[0]
    items = np.random.default_rng(0).integers(40, 64, (20_000, 1))
    chosen = np.zeros((liars, level.width * 8), bool)
    chosen[:, : math.floor(level.size * level.chances.other + 1) if usual else level.at_once] = True
    lies = Reports(users(liars, 10**7), packed(chosen), channel.asked.stamp)
    honest = channel.absorb(channel.encode(items, users(20_000), NoiseRng.for_tests(3)))
    return unlikely(round, (honest.merge(channel.absorb(lies)),))


def test_a_few_liars_with_the_largest_sets_that_are_taken_are_found() -> None:
    """Of 20,000 people hardly one would send such a set: ten liars are enough. Honest sizes hide 50 of them."""
    round = wide(OptimisedUnary())
    assert among(round, 0) == []
    assert "buckets or more at once: " in among(round, 10)[0]
    assert among(round, 50, usual=True) == []


@pytest.mark.parametrize("block", [OptimisedUnary(), SubsetSelection()])
def test_liars_who_support_the_same_many_buckets_starve_the_others(block: Any) -> None:
    """2,000 of 22,000: buckets where nobody is have fewer supports than noise alone makes."""
    found = among(wide(block), 2_000, usual=True)
    assert any(", bucket " in text or ", no bucket" in text for text in found)


@pytest.mark.parametrize("block", [DUCHI, ExplicitHistogramVector()], ids=["added up", "kept"])
def test_liars_who_pull_along_one_vector_show_it_by_its_signs(block: Any) -> None:
    """1,500 of 7,500, in either direction as the signs of a bucket have it; not if they pull along an axis."""
    round = of_all(block, "users")
    signs = np.where(np.arange(1500) % 2, 1.0, -1.0)
    for to, seen in (((1.0, 1.0), True), ((1.0, -1.0), True), ((math.sqrt(2), 0.0), False)):
        lies = sent(np.array(to)[:, None] * signs)
        found = unlikely(round, with_liars(round, lies, N, 1500))
        assert bool(found) == seen
        assert all("coordinates 0 and 1 with two signs" in text for text in found)


def test_devices_that_all_send_the_same_codeword_are_found() -> None:
    round = of_all(HadamardVector(), "users")
    assert "codeword 7: " in unlikely(round, with_liars(round, [7], N, 300))[0]
