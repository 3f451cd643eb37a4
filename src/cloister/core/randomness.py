"""Public coins and secret noise, which must never mix.

``PublicRng`` is a key with named children: anybody may know it, and every machine draws the same coins from it, in any
order. ``NoiseRng`` is secret: privacy rests on its draws. They are different types, so that a seed can never become
noise and noise can never be replayed by accident.
"""

from __future__ import annotations

import hashlib
import math
import os
import secrets
from collections.abc import Iterable
from itertools import count
from typing import TYPE_CHECKING, Any, final

import attrs
import numpy as np

from cloister.core import plain_data
from cloister.core.errors import InvalidInput
from cloister.core.exact_noise import WORDS, Law, WordSource
from cloister.core.exact_vectors import VectorLaw

if TYPE_CHECKING:
    from collections.abc import Callable

    from cloister.core.types import Floats, Ids, Ints


@final
@attrs.frozen
class PublicRng:
    """Public key of 32 bytes, not a stream: ``child`` names a purpose, ``generator`` draws for it."""

    key: bytes = attrs.field(repr=False, validator=attrs.validators.min_len(16))

    @classmethod
    def fresh(cls) -> PublicRng:
        """Return an unpredictable key (which everybody may know from now on)."""
        return cls(os.urandom(32))

    @classmethod
    def from_seed(cls, seed: int) -> PublicRng:
        """Return the key of a seed, for runs with repeatable public choices."""
        return cls(hashlib.sha256(b"cloister public seed" + str(int(seed)).encode()).digest())

    def child(self, *path: str | int) -> PublicRng:
        """Return the key for a named purpose below this one; different names give independent keys.

        It is SHA-256 of this key and the path as text (``plain_data.path``).
        """
        return PublicRng(hashlib.sha256(self.key + plain_data.path(path).encode()).digest())

    def generator(self) -> np.random.Generator:
        """Return a NumPy generator seeded with this key; call it once per named purpose."""
        return np.random.Generator(np.random.Philox(key=int.from_bytes(self.key[:16], "little")))

    def of_users(self, users: Ids) -> Ids:
        """Return one public 64-bit word per user number (n,), the same on every machine, in any order (SplitMix64)."""
        z: Ids = users * np.uint64(0x9E3779B97F4A7C15) + np.uint64(int.from_bytes(self.key[:8], "little"))
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31)) ^ np.uint64(int.from_bytes(self.key[8:16], "little"))


ANY_KEY = PublicRng(bytes(32))
"""Key of questions that are only priced, never asked: nothing is drawn with it."""


@final
@attrs.frozen
class NoiseRng:
    """Secret noise on integers, drawn exactly by ``exact_noise`` from the system's entropy.

    Seeded noise is for tests and benchmarks: the same laws from repeatable words, and its run states ``not private:
    seeded``. It starts over at every draw: use a ``child`` for each level or tensor. Replayed noise gives back given
    words, and counts as seeded.
    """

    _seed: PublicRng | None = attrs.field(repr=False)
    _given: _GivenWords | None = attrs.field(default=None, repr=False)

    @classmethod
    def secret(cls) -> NoiseRng:
        """Return noise that cannot be repeated, for every real run."""
        return cls(None)

    @classmethod
    def for_tests(cls, seed: int) -> NoiseRng:
        """Return repeatable noise, which protects nobody."""
        return cls(PublicRng.from_seed(seed).child("noise"))

    @classmethod
    def replayed(cls, words: Iterable[int]) -> NoiseRng:
        """Return noise that gives these 64-bit words, each once, in order, whichever child draws.

        It repeats the draws of one device, for one user at a time: more words or users are an error.
        """
        return cls(None, _GivenWords(words))

    @property
    def seeded(self) -> bool:
        """Whether the noise can be repeated."""
        return self._seed is not None or self._given is not None

    def child(self, *path: str | int) -> NoiseRng:
        """Return the noise of a named purpose: independent draws when secret, repeatable ones when seeded."""
        return self if self._seed is None else NoiseRng(self._seed.child(*path))

    def __reduce__(self) -> Any:
        if self._given is not None:
            raise TypeError("replayed noise cannot be copied: each of its words is given once")
        return NoiseRng, (self._seed,)

    def words(self, users: Ids, per_user: int) -> Ids:
        """Draw uniform 64-bit words (n, per_user), a fixed number per user, for every user's own randomiser.

        Secret words come from the system's entropy. Seeded ones depend on the user's number only, so that a test sees
        the same report of a user alone, in any chunk and in any order.
        """
        if self._given is not None:
            return self._given.for_one_user(users).take(len(users) * per_user).reshape(len(users), per_user)
        if self._seed is None:
            return np.frombuffer(secrets.token_bytes(8 * len(users) * per_user), np.uint64).reshape(
                len(users), per_user
            )
        drawn = np.empty((len(users), per_user), np.uint64)
        for i in range(per_user):
            drawn[:, i] = self._seed.child(i).of_users(users)
        return drawn

    def discrete_gaussian_per_user(self, users: Ids, sigma: float, per_user: int) -> Ints:
        """Draw discrete Gaussian integers (n, per_user), a fixed number per user, for users who add their own noise.

        Secret and replayed ones are ``discrete_gaussian``. Seeded ones, for tests only, depend on the user's number
        only, like ``words``: rounded normal variates (Box and Muller 1958).
        """
        if self._given is not None:
            self._given.for_one_user(users)
        if self._seed is None:
            return self.discrete_gaussian(sigma, len(users) * per_user).reshape(len(users), per_user)
        ids = np.add.outer(self._seed.of_users(users), np.arange(2 * per_user, dtype=np.uint64)).astype(np.uint64)
        u = (unit_floats(self._seed.child("numbers").of_users(ids)) + 2.0**-54).reshape(len(users), 2, per_user)
        normals = np.sqrt(-2 * np.log(u[:, 0])) * np.cos(2 * math.pi * u[:, 1])
        return np.asarray(np.rint(normals * sigma), np.int64)

    def discrete_laplace(self, scale: float, size: int) -> Ints:
        """Draw integers with P(x) proportional to exp(-|x| / scale): eps-DP for L1 sensitivity ``scale * eps``.

        Raises:
            InvalidInput: the scale is out of range, or a number is: above 2^63 with probability e^(-2^63 / scale).

        Source: Ghosh, Roughgarden, Sundararajan 2009; sampler: ``exact_noise``.
        """
        if not 0 < scale < 2.0**62:
            raise InvalidInput(f"noise scale {scale} is outside (0, 2^62)")
        return Law(float(scale), squared=False).draw(size, self._source())

    def discrete_gaussian(self, sigma: float, size: int) -> Ints:
        """Draw integers with P(x) proportional to exp(-x^2 / 2 sigma^2): (D / sigma)^2 / 2 - zCDP for L2 sensitivity D.

        Raises:
            InvalidInput: sigma is out of range, or a number is: above 2^63 with probability below e^(-2^125 / sigma^2).

        Source: Canonne, Kamath, Steinke 2020, Theorem 4; sampler: ``exact_noise``.
        """
        if not 0 < sigma < 2.0**61:
            raise InvalidInput(f"noise sigma {sigma} is outside (0, 2^61)")
        return Law(float(sigma), squared=True).draw(size, self._source())

    def spherical(self, scale: float, width: int, size: int) -> Ints:
        """Draw integer vectors (size, width) with P(x) proportional to exp(-|x| / scale), |x| the Euclidean length.

        They give eps-DP for L2 sensitivity ``scale * eps``.

        Raises:
            InvalidInput: the scale, the width (up to 16) or a number is out of range.

        Source: Hardt and Talwar 2010 (the K-norm mechanism); sampler: ``exact_vectors``.
        """
        if not 1 <= width <= 16:
            raise InvalidInput(f"vectors of noise have 1 to 16 columns, not {width}")
        if self._given is not None:
            raise InvalidInput(
                "noise on whole vectors cannot be replayed word by word: it is a curator's, not a device's"
            )
        law = VectorLaw(float(scale), width)
        return law.draw(
            size,
            lambda attempt, n: self.child("candidates", attempt).discrete_laplace(law.around, n),
            lambda attempt: self.child("coins", attempt)._source(),
        )

    def skellam(self, variance: float, size: int) -> Ints:
        """Draw integers of Skellam's law (a difference of two Poisson numbers) with variance V, at least 2^32.

        They are drawn by rejection from the exact discrete Gaussian of the same variance. With z^2 = x^2 / V, the
        logarithm of Skellam's law over the Gaussian's is (z^4 - 6 z^2 + 3) / 24 V up to O(1 / V^2) (Edgeworth; its
        cumulants are 0 and V), so a candidate is kept with probability exp((z^4 - 6 z^2 - 37240) / 24 V), at most 1 for
        |z| <= 14, where z is cut off. That lies between exp(-``skellam_ratio(V)``) and 1 whatever x is and however
        floats round, so the law drawn is within e^(+-skellam_ratio) of the discrete Gaussian *everywhere*: accounting
        relies on nothing else.
        """
        if not 2.0**32 <= variance < 2.0**122:
            raise InvalidInput(f"noise variance {variance} is outside [2^32, 2^122)")
        out, turn = np.zeros(0, np.int64), 0
        while len(out) < size:
            rng, turn = self.child("skellam", turn), turn + 1
            candidates = rng.discrete_gaussian(math.sqrt(variance), size - len(out))
            z2 = np.minimum(candidates.astype(np.float64) ** 2 / variance, 196.0)
            keep = unit_floats(rng.child("keep").words(np.arange(len(candidates), dtype=np.uint64), 1)[:, 0])
            out = np.concatenate([out, candidates[keep < np.exp((z2 * z2 - 6 * z2 - 37240.0) / (24 * variance))]])
        return out

    def _source(self) -> WordSource:
        """Return the source of words for one draw."""
        if self._given is not None:
            return self._given
        return _SecretWords() if self._seed is None else _SeededWords(self._seed)


def skellam_ratio(variance: float) -> float:
    """Return the largest |log| ratio, anywhere, of the law of ``NoiseRng.skellam`` to the discrete Gaussian.

    The kept share lies in [exp(-37249 / 24 V), 1] (the least is at z^2 = 3), and so does its mean, which normalises the
    law; 37249 / 24 < 1553, and the rest pays for rounding.
    """
    return 1560.0 / variance + 1e-14


class _SecretWords:
    """Words of the system's entropy, drawn anew each time: nothing is kept that a fork or a thread could reuse."""

    def words(self, size: int) -> Ids:
        return np.frombuffer(secrets.token_bytes(8 * WORDS * size), np.uint64).reshape(size, WORDS)

    def beyond(self, candidate: int, column: int) -> Callable[[], int]:
        return lambda: secrets.randbits(64)


class _SeededWords:
    """Words that follow from a key, for tests only; words beyond a candidate's depend on that candidate alone."""

    def __init__(self, seed: PublicRng) -> None:
        self._seed, self._stream = seed, seed.generator().bit_generator

    def words(self, size: int) -> Ids:
        return np.asarray(self._stream.random_raw(WORDS * size), np.uint64).reshape(size, WORDS)

    def beyond(self, candidate: int, column: int) -> Callable[[], int]:
        keys = (self._seed.child("beyond", candidate, column, i).key for i in count())
        return lambda: int.from_bytes(next(keys)[:8], "little")


class _GivenWords:
    """Given words, each once, in the order of the draws."""

    def __init__(self, words: Iterable[int]) -> None:
        self._words = iter(words)

    def __call__(self) -> int:
        for word in self._words:
            return word
        raise InvalidInput("the words to replay have run out")

    def take(self, size: int) -> Ids:
        return np.array([self() for _ in range(size)], np.uint64)

    def for_one_user(self, users: Ids) -> _GivenWords:
        """Return itself.

        Raises:
            InvalidInput: there are several users, whose words would be mixed up.
        """
        if len(users) > 1:
            raise InvalidInput(f"words are replayed for one user at a time, not for {len(users)}")
        return self

    def words(self, size: int) -> Ids:
        """Return the words of one candidate, whatever ``size`` is: the next one's follow the words beyond its own."""
        return self.take(WORDS).reshape(1, WORDS)

    def beyond(self, candidate: int, column: int) -> Callable[[], int]:
        return self


def unit_floats(words: Ids) -> Floats:
    """Return public 64-bit words as numbers in [0, 1), 53 bits each."""
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
