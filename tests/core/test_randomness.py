"""Public coins that every machine draws alike, and noise that nobody can repeat."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from cloister.core.errors import InvalidInput
from cloister.core.randomness import NoiseRng, PublicRng, unit_floats

KEY = PublicRng(b"k" * 32)


def test_public_coins_are_the_same_in_every_version() -> None:
    """Golden: a plan that was published must be replayed by machines that are not yet built."""
    assert PublicRng.from_seed(7).key.hex() == "8e5830e454f646c2361de3ad101b664940b1c3b79f264d9a192cd5039305fe92"
    assert KEY.child("a", 1).key.hex() == "cb5ef4f8c55222a121f0b82530f81d256e3b3f74fd505744c748c2181fbfca7c"
    assert KEY.generator().integers(0, 2**63, 2).tolist() == [899792309608473430, 3474652317101954624]
    assert KEY.generator().random(2).tolist() == [0.09755567768632556, 0.37672255908337304]
    users = np.array([0, 1, 2**64 - 1], np.uint64)
    assert KEY.of_users(users).tolist() == [11246770686422895051, 15994454234686953202, 617828448130938131]
    assert unit_floats(np.array([0, 2**63, 2**64 - 1], np.uint64)).tolist() == [0.0, 0.5, 1 - 2.0**-53]


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


def test_every_path_has_its_own_key() -> None:
    paths = [(), ("a",), ("a", "b"), ("ab",), ("a", 1), ("a", "1"), (1,), (11,), (1, 1), ("a", "b", 0)]
    keys = [KEY.child(*path).key for path in paths]
    keys += [KEY.key, KEY.child("a").child("b").key, PublicRng(b"j" * 32).child("a").key]
    assert len(set(keys)) == len(keys)
    assert KEY.child("a", 1) == KEY.child("a", np.int64(1))  # type: ignore[arg-type]


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
        lambda r: r.discrete_gaussian(2.0**40, 64),
        lambda r: r.discrete_laplace(2.0**40, 64),
        lambda r: r.words(np.zeros(8, np.uint64), 8).ravel(),
    ):
        drawn = [tuple(draw(source).tolist()) for source in (noise, noise, noise.child("a"), noise.child("a"), copy)]
        assert len(set(drawn)) == len(drawn)
        assert all(len(set(one)) == 64 for one in drawn)


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


def test_seeded_words_belong_to_the_user_alone_and_secret_ones_to_nobody() -> None:
    """A report must be the same from her alone, in any chunk and in any order, for tests to see; and else repeatable by
    no one."""
    users = np.random.default_rng(0).integers(0, 2**64, 300, dtype=np.uint64)
    noise = NoiseRng.for_tests(4).child("encode", 0, 1)
    words = noise.words(users, 5)
    assert np.array_equal(noise.words(users[7:9][::-1], 3), words[7:9, :3][::-1])
    assert len(np.unique(words)) == words.size
    assert not (noise.child("other").words(users, 5) == words).any()
    secret = NoiseRng.secret().words(np.zeros(300, np.uint64), 5)
    assert len(np.unique(secret)) == secret.size == words.size


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
        lambda: noise.discrete_gaussian_each(np.arange(2, dtype=np.uint64), 5.0, 1),
    ):
        with pytest.raises(InvalidInput, match="for one user at a time, not for 2"):
            draw()
    with pytest.raises(TypeError, match="cannot be copied"):
        pickle.dumps(noise)
    assert noise.words(np.arange(1, dtype=np.uint64), 1).tolist() == [[0]]
