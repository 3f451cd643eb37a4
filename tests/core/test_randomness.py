"""Public coins that every machine draws alike, and noise that nobody can repeat."""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterator

import numpy as np
import pytest
from scipy import stats

from cloister.core import exact_noise, randomness
from cloister.core.errors import InvalidInput
from cloister.core.exact_noise import Law
from cloister.core.randomness import NoiseRng, PublicRng, unit_floats
from cloister.core.types import Ids
from tests.alarms import Alarm
from tests.reference_client.normals import gaussians
from tests.reference_client.words import Words

KEY = PublicRng(b"k" * 32)


def test_public_coins_are_the_same_in_every_version() -> None:
    """Golden: a plan that was published must be replayed by machines that are not yet built."""
    assert PublicRng.from_seed(7).key.hex() == "8e5830e454f646c2361de3ad101b664940b1c3b79f264d9a192cd5039305fe92"
    assert KEY.child("a", 1).key.hex() == "cb5ef4f8c55222a121f0b82530f81d256e3b3f74fd505744c748c2181fbfca7c"
    assert KEY.generator().integers(0, 2**63, 2).tolist() == [899792309608473430, 3474652317101954624]
    assert KEY.generator().random(2).tolist() == [0.09755567768632556, 0.37672255908337304]
    users = np.array([0, 1, 2**64 - 1], np.uint64)
    assert KEY.of_users(users).tolist() == [11246770686422895051, 15994454234686953202, 617828448130938131]


@pytest.mark.parametrize(("beyond", "kept"), [(-1e-14, True), (1e-14, False)])
def test_skellam_keeps_a_candidate_by_the_ratio_of_the_two_laws(
    monkeypatch: pytest.MonkeyPatch, beyond: float, kept: bool
) -> None:
    """Just below exp((z^4 - 6 z^2 - 37240) / 24 V) it is kept, just above it another is drawn; 0, one standard
    deviation and the cut at 14 among them."""
    variance, z = 2.0**32, np.array([0.0, 2.0**-16, 1.0, 3.0, -8.0, 14.0, 15.0])
    cut, drawn = np.minimum(np.abs(z), 14.0), (z * 2**16).astype(np.int64)
    chance = np.exp((cut**4 - 6 * cut**2 - 37240) / (24 * variance))
    candidates, coins = iter([drawn, np.full(len(z), 7)]), iter([chance + beyond, 0 * z])
    monkeypatch.setattr(NoiseRng, "discrete_gaussian", lambda self, scale, size: next(candidates))
    monkeypatch.setattr(randomness, "unit_floats", lambda words: next(coins))
    assert NoiseRng.for_tests(1).skellam(variance, len(z)).tolist() == (drawn.tolist() if kept else [7] * len(z))


def test_seeded_noise_is_the_same_in_every_version() -> None:
    noise = NoiseRng.for_tests(3)
    assert noise.discrete_laplace(5.0, 8).tolist() == [2, -1, 8, -1, -13, -1, 7, -3]
    assert noise.discrete_gaussian(5.0, 8).tolist() == [2, -1, 10, -1, -16, -2, -3, 5]
    assert noise.spherical(5.0, 2, 3).tolist() == [[-5, -11], [1, -10], [4, -5]]
    assert noise.skellam(2.0**40, 4).tolist() == [774039, -1251984, -162699, 1737497]
    assert noise.words(np.array([0, 2**63], np.uint64), 2).tolist() == [
        [17002424683659851951, 845731280262717661],
        [15922755085991297916, 7529089084615932899],
    ]


def uniform(alarm: Alarm, words: Ids) -> None:
    """Chi-square over 64 cells of the high and of the low bits."""
    for cells in (words >> np.uint64(58), words & np.uint64(63)):
        alarm.fits(stats.chisquare(np.bincount(cells.astype(int), minlength=64)).pvalue, of=2)


@pytest.mark.alarm(1e-8)
def test_words_of_users_are_uniform_and_follow_the_user_alone(alarm: Alarm) -> None:
    users = np.arange(64_000, dtype=np.uint64)
    words = KEY.of_users(users)
    assert np.array_equal(KEY.of_users(users[::-1]), words[::-1])
    assert len(np.unique(words)) == len(words)
    uniform(alarm, words)
    assert unit_floats(np.array([0, 2**63, 2**64 - 1], np.uint64)).tolist() == [0.0, 0.5, 1 - 2.0**-53]


@pytest.mark.alarm(1e-8)
def test_secret_words_of_users_are_uniform(alarm: Alarm) -> None:
    uniform(alarm, NoiseRng.secret().words(np.arange(5_000, dtype=np.uint64), 4).ravel())


def test_keys_are_not_shown_and_not_too_short() -> None:
    assert "107" not in repr(KEY)
    assert "kkk" not in repr(KEY)
    assert "seed" not in repr(NoiseRng.for_tests(3)).lower().replace("_seed", "")
    assert PublicRng.fresh() != PublicRng.fresh()
    with pytest.raises(ValueError, match="16"):
        PublicRng(b"short")


def test_secret_noise_differs_from_draw_to_draw() -> None:
    """64 wide draws repeat with a probability below 2^-1000; children and copies are no exception."""
    noise = NoiseRng.secret()
    copy = pickle.loads(pickle.dumps(noise))
    assert (noise.seeded, copy.seeded) == (False, False)
    for draw in (
        lambda r: r.discrete_gaussian(2.0**57, 64),
        lambda r: r.discrete_laplace(2.0**57, 64),
        lambda r: r.words(np.zeros(8, np.uint64), 8).ravel(),
    ):
        drawn = [tuple(draw(source).tolist()) for source in (noise, noise, noise.child("a"), noise.child("a"), copy)]
        assert len(set(drawn)) == len(drawn)
        assert all(len(set(one)) == 64 for one in drawn)


def test_seeded_noise_repeats_and_its_children_do_not() -> None:
    noise = NoiseRng.for_tests(1)
    child = noise.child("decode", 0, 1)
    one = child.discrete_gaussian(1e6, 64)
    for same in (NoiseRng.for_tests(1).child("decode", 0, 1), pickle.loads(pickle.dumps(child))):
        assert same.seeded
        assert np.array_equal(same.discrete_gaussian(1e6, 64), one)
    others = noise.child("decode", 1, 0), noise.child("decode", 0, 2), NoiseRng.for_tests(2).child("decode", 0, 1)
    for other in others:
        assert (other.discrete_gaussian(1e6, 64) != one).sum() > 60


def test_noise_of_no_width_or_beyond_64_bits_is_refused_and_no_noise_is_an_empty_array() -> None:
    for noise in (NoiseRng.secret(), NoiseRng.for_tests(1)):
        for draw in (noise.discrete_laplace, noise.discrete_gaussian):
            for width in (0.0, -1.0, float("nan"), float("inf"), 2.0**62):
                with pytest.raises(InvalidInput, match="outside"):
                    draw(width, 3)
            none = draw(3.0, 0)
            assert (none.shape, none.dtype) == ((0,), np.int64)
        assert noise.words(np.zeros(0, np.uint64), 3).shape == (0, 3)
        assert noise.words(np.zeros(3, np.uint64), 0).shape == (3, 0)


def test_seeded_words_belong_to_the_user_alone() -> None:
    """A report must be the same from her alone, in any chunk and in any order, for tests to see."""
    users = np.random.default_rng(0).integers(0, 2**64, 300, dtype=np.uint64)
    noise = NoiseRng.for_tests(4).child("encode", 0, 1)
    words = noise.words(users, 5)
    assert (words.shape, words.dtype) == ((300, 5), np.uint64)
    assert np.array_equal(noise.words(users[::-1], 5), words[::-1])
    assert np.array_equal(noise.words(users[7:8], 5), words[7:8])
    assert np.array_equal(noise.words(users, 3), words[:, :3])
    assert len(np.unique(words)) == words.size
    assert not (noise.child("other").words(users, 5) == words).any()


def recorded(words: list[int], taken: list[int]) -> Iterator[int]:
    """Words, and beside them those that were taken."""
    for word in words:
        taken.append(word)
        yield word


def test_replayed_words_come_once_in_their_order_whoever_draws() -> None:
    user = np.array([77], np.uint64)
    noise = NoiseRng.replayed(range(10))
    assert noise.words(user, 2).tolist() == [[0, 1]]
    assert noise.child("other", 3).words(user, 1).tolist() == [[2]]
    assert noise.words(user[:0], 5).shape == (0, 5)
    assert noise.words(user, 7).tolist() == [[3, 4, 5, 6, 7, 8, 9]]
    with pytest.raises(InvalidInput, match="have run out"):
        noise.words(user, 1)


def test_replayed_noise_counts_as_seeded_and_is_of_one_user_and_is_never_copied() -> None:
    noise = NoiseRng.replayed(range(10))
    assert noise.seeded
    assert noise.child("a").seeded
    for draw in (
        lambda: noise.words(np.arange(2, dtype=np.uint64), 1),
        lambda: noise.discrete_gaussian_per_user(np.arange(2, dtype=np.uint64), 5.0, 1),
    ):
        with pytest.raises(InvalidInput, match="for one user at a time, not for 2"):
            draw()
    with pytest.raises(TypeError, match="cannot be copied"):
        pickle.dumps(noise)
    assert noise.words(np.arange(1, dtype=np.uint64), 1).tolist() == [[0]]


HARD = [0, 1, 2**40 - 1, 2**63, 2**64 - 1]
"""Words that the filter, or 64 bits, may leave undecided."""


@pytest.mark.parametrize("sigma", [1.5, 300.7, 2.0**22 + 0.3])
def test_replayed_gaussians_are_drawn_candidate_by_candidate_in_integers(sigma: float) -> None:
    """As a client in another language does: three words, and more of one where they do not decide."""
    g, mine = np.random.default_rng(11), list[int]()
    words = g.integers(0, 2**64, 4000, dtype=np.uint64).tolist()
    for at in g.integers(0, 600, 60).tolist():
        words[at] = HARD[at % len(HARD)]
    numbers = NoiseRng.replayed(recorded(words, mine)).discrete_gaussian_per_user(np.array([5], np.uint64), sigma, 200)
    left = Words(words)
    assert numbers.tolist() == [gaussians(sigma, 200, left)]
    assert len(mine) == left.taken


@pytest.mark.parametrize("moved", [-0.05, 0.05])
def test_where_one_begins_to_look_changes_no_word_that_is_taken(moved: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of words that begin in the far tail, where 64 bits leave many steps open; moved by up to 25 steps."""
    law, plain = Law(300.7, squared=True), math.log

    def drawn(a: int, low: int) -> tuple[int | None, list[int]]:
        """A candidate, and the words beyond its own that it took."""
        taken, more = list[int](), np.random.default_rng(a).integers(0, 2**64, 50, dtype=np.uint64).tolist()
        left = recorded([low, *more], taken)
        return law.exactly((a, 12345, 0), lambda column: lambda: next(left)), taken

    cases = [(a, low) for a in (0, 1, 5, 2**30, 2**63) for low in (0, 2**64 - 1)]
    right = [drawn(*case) for case in cases]
    assert any(taken for _, taken in right)
    monkeypatch.setattr(exact_noise.math, "log", lambda x: plain(x) - moved)
    assert [drawn(*case) for case in cases] == right
