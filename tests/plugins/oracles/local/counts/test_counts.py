"""All local count oracles: as noisy as published, as another library's formulas say and as their reports say; for any
ids; which randomiser is taken where; which reports are refused, or sent as none."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
import pytest
from scipy.stats import binom

from cloister.core.registry.registry import built_in
from cloister.plugin import Budget, InvalidInput, NoiseRng, PublicRng, QuestionContext, Refused, Space
from cloister.plugins.oracles.local.coins import WORDS, words_per_integer
from cloister.plugins.oracles.local.counts.adaptive_response import AdaptiveResponse
from cloister.plugins.oracles.local.counts.channel import Direct
from cloister.plugins.oracles.local.counts.hadamard_response import HadamardResponse
from cloister.plugins.oracles.local.counts.local_hashing import (
    AskedLocalHashing,
    ExplicitHistogram,
    OptimisedLocalHashing,
)
from cloister.plugins.oracles.local.counts.optimised_unary import OptimisedUnary
from cloister.plugins.oracles.local.counts.subset_selection import SubsetSelection
from cloister.plugins.oracles.local.hashing import Hashed, Hashes
from cloister.plugins.oracles.local.packed_sets import packed, unpacked
from cloister.plugins.oracles.local.randomised_response import Response
from cloister.plugins.oracles.local.reports import Reports

LOCAL = [spec for spec in built_in().specs("FrequencyOracle") if spec.trust == "Local"]
CLASSES = [cls for cls in map(built_in().load, LOCAL) if cls is not AskedLocalHashing]
"""Classes of the oracles that add reports up: all but the one that keeps them."""

ORACLES = [cls(share=share) for cls in CLASSES for share in ("users", "budget")]
each_oracle = pytest.mark.parametrize("oracle", ORACLES, ids=lambda o: f"{type(o).__name__}-{o.share}")
each_class = pytest.mark.parametrize("cls", CLASSES)


def exact_table(response: Response) -> list[list[Fraction]]:
    """The probabilities of all symbols for each input and, last, for no bucket."""
    k, t = response.symbols, Fraction(response.keep, WORDS)
    uniform = [Fraction(count, WORDS) for count in words_per_integer(k)]
    return [*([(1 - t) * u + (t if y == x else 0) for y, u in enumerate(uniform)] for x in range(k)), uniform]


def opened(oracle: Any, sizes: tuple[int, ...], epsilon: float = 1.0, n: int = 1000, seed: int = 7) -> Any:
    return oracle.open(Space(sizes), Budget("pure", epsilon), QuestionContext(n, 1.0, PublicRng.from_seed(seed)))


def numbered(n: int) -> np.ndarray:
    return np.arange(n, dtype=np.uint64) * np.uint64(3) + np.uint64(11)


def released(channel: Any, items: np.ndarray, seed: int = 5) -> Any:
    rng = NoiseRng.for_tests(seed)
    return channel.decode(channel.absorb(channel.encode(items, numbered(len(items)), rng)), rng)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_chances_and_variances_are_the_published_ones_and_another_library_s(epsilon):
    """multi-freq-ldpy (Arcolezi et al. 2022), an independent implementation; subsets: Ye and Barg 2018, Theorem III.1,
    the best of all."""
    symbols, e = 33, math.exp(epsilon)  # one more than buckets, for users in none
    g, k = round(e) + 1, max(1, round(symbols / (e + 1)))
    z = k * e + symbols - k
    published = {
        OptimisedLocalHashing: (e / (e + g - 1), 1 / g),
        OptimisedUnary: (1 / 2, 1 / (e + 1)),
        HadamardResponse: (e / (e + 1), 1 / 2),
        ExplicitHistogram: (e / (e + 1), 1 / 2),
        SubsetSelection: (k * e / z, (k * (k - 1) * e + (symbols - k) * k) / ((symbols - 1) * z)),
    }
    each = {cls: opened(cls(), (32,), epsilon).asked for cls in published}
    for cls, (p, q) in published.items():
        assert (each[cls].chances(0).p, each[cls].chances(0).q) == pytest.approx((p, q), rel=1e-9)
    assert each[SubsetSelection].variance < each[OptimisedUnary].variance <= each[OptimisedLocalHashing].variance
    theirs = pytest.importorskip("multi_freq_ldpy.pure_frequency_oracles.Variance_PURE").VAR_Pure
    for cls, chances in published.items():
        assert each[cls].variance == pytest.approx(1000**2 * theirs(*chances, 1000, 0.0), rel=1e-6)


@each_class
@pytest.mark.parametrize("came", [0, 40, 4000])
def test_standard_errors_are_those_of_the_reports_that_came(cls, came):
    """T parts of N users, each counted T-fold: N T times a report's noise, over the public coins that part them."""
    channel = opened(cls(share="users"), (5, 5, 5, 5), n=1000)
    table = released(channel, np.zeros((came, 4), np.int64))
    for level in range(4):
        noise = channel.asked.chances(level).noise
        assert table.standard_error(np.array([1, 2]), level) == pytest.approx([math.sqrt(4 * max(1, came) * noise)] * 2)


@pytest.mark.parametrize("cls", [c for c in CLASSES if c is not ExplicitHistogram])
def test_spaces_that_are_too_large_are_refused_with_a_way_out(cls):
    with pytest.raises(InvalidInput, match=r"at most \d+ buckets, not \d+: use '"):
        opened(cls(), (2, 2**60))


@pytest.mark.parametrize(
    ("epsilon", "size", "kind"), [(1.0, 8, Direct), (1.0, 256, Hashed), (6.0, 1024, Direct), (6.0, 2000, Hashed)]
)
def test_few_buckets_are_named_and_many_are_hashed(epsilon, size, kind):
    channel = opened(AdaptiveResponse(), (size,), epsilon)
    assert isinstance(channel.asked.levels[0], kind)
    assert channel.asked.variance <= opened(OptimisedLocalHashing(), (size,), epsilon).asked.variance * 1.02


@pytest.mark.parametrize(
    ("oracle", "sizes", "epsilon", "values"),
    [
        (AdaptiveResponse(), (16,), 4.0, 17),
        (AdaptiveResponse(), (16, 8), 4.0, 9),
        (AdaptiveResponse(share="budget"), (16, 8), 4.0, None),
        (OptimisedLocalHashing(), (16,), 2.0, 8),
        (SubsetSelection(), (16,), 2.0, None),
    ],
)
def test_a_channel_says_whether_it_is_plain_response(oracle, sizes, epsilon, values):
    assert opened(oracle, sizes, epsilon).response_values == values


def sent(channel: Any) -> Reports:
    return channel.encode(np.random.default_rng(1).integers(-1, 3, (40, 2)), numbered(40), NoiseRng.for_tests(1))


@each_class
def test_answers_that_no_encoder_sends_are_refused(cls):
    """Other types and shapes: the conformance kit."""
    channel = opened(cls(), (3, 20))
    good = sent(channel)
    channel.absorb(good)
    for changes in (
        {"users": np.concatenate([good.users[:1], good.users[:-1]])},  # two reports of one user
        {"answers": np.full_like(good.answers, 255)},
        {"question": good.question ^ 1},
    ):
        with pytest.raises(Refused):
            channel.absorb(attrs.evolve(good, **changes))


@pytest.mark.parametrize(("epsilon", "size"), [(0.5, 4), (0.5, 4096), (1.0, 256), (4.0, 4), (4.0, 4096)])
def test_a_unary_report_supports_no_more_buckets_than_honest_ones_do(epsilon, size):
    """Else one who lies sets all bits and is worth a person in every bucket at once. The limit is exceeded with a
    chance below e^-32."""
    channel = opened(OptimisedUnary(), (size,), epsilon)
    (level,) = channel.asked.levels
    assert binom.sf(level.max_bits, size, level.chances.q) < np.exp(-32)
    assert binom.sf(level.max_bits - 1, size - 1, level.chances.q) < np.exp(-32)
    if size >= 256:
        assert level.max_bits < 0.65 * size
    bits = np.zeros((10, size), bool)
    bits[:, : level.max_bits] = True
    channel.absorb(Reports(numbered(10), packed(bits), channel.asked.stamp))
    if level.max_bits < size:
        bits[3, level.max_bits] = True
        with pytest.raises(Refused, match="no encoder sends"):
            channel.absorb(Reports(numbered(10), packed(bits), channel.asked.stamp))


def test_a_unary_report_of_too_many_buckets_is_sent_as_none():
    channel = opened(OptimisedUnary(), (256,))
    (level,) = channel.asked.levels
    words = np.full((3, 256), 2**63, np.uint64)
    for user, number in enumerate((level.max_bits - 1, level.max_bits, level.max_bits + 1)):
        words[user, :number] = 0
    sets = unpacked(level.randomise(np.full(3, -1), numbered(3), words), 256)
    assert sets.sum(axis=1).tolist() == [level.max_bits - 1, level.max_bits, 0]


def test_padding_beyond_a_level_s_answer_is_refused():
    """Level 0 takes one byte of the three that level 1 takes."""
    channel = opened(OptimisedUnary(), (3, 20))
    good = sent(channel)
    answers = good.answers.copy()
    answers[channel.asked.sharing.answers(good.users)[0][0], 2] = 1
    with pytest.raises(Refused, match="level 0"):
        channel.absorb(attrs.evolve(good, answers=answers))


def test_looking_a_hash_up_agrees_with_computing_it():
    """The comparison with a moving interval, over all buckets and at some, against the hash itself, in every value."""
    users = numbered(9000)
    for symbols in (2, 400, 2**16):
        hashes, values = Hashes(PublicRng.from_seed(symbols), symbols), np.arange(9000) % symbols
        values[100:] = np.where(np.arange(8900) % 2, hashes.of(users[100:], np.full(8900, 4)), values[100:])
        ids = [*range(7), 2**61 + 5, 2**32]
        brute = [int((hashes.of(users, np.full(9000, v)) == values).sum()) for v in ids]
        assert hashes.at(users, values, np.array(ids)).tolist() == brute
        assert hashes.everywhere(users, values, 7).tolist() == brute[:7]
