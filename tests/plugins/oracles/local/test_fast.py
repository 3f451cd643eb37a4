"""Compiled kernels give the same bytes as NumPy, and stand back where they cannot help."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cloister.plugin import (
    AnyArray,
    Bound,
    BucketedVectors,
    Budget,
    Floats,
    Ids,
    NoiseRng,
    PublicRng,
    QuestionContext,
    Space,
)
from cloister.plugins.oracles.local import fast
from cloister.plugins.oracles.local.coins import odds
from cloister.plugins.oracles.local.hadamard_transform import Rotations
from cloister.plugins.oracles.local.hashing import BLOCK, Hashes
from cloister.plugins.oracles.local.vectors.channel import RANDOMISERS
from cloister.plugins.oracles.local.vectors.codebook import Codebook
from cloister.plugins.oracles.local.vectors.unit_randomiser import lifted
from cloister.plugins.oracles.local.vectors.vector_sums import ExplicitHistogramVector, HadamardVector

needs_numba = pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")

L2 = 2**18
SEED = PublicRng.from_seed(900)
NOISE = NoiseRng.for_tests(901)


def never(*_: Any) -> Any:
    raise AssertionError("the plain code ran")


def alike(work: Callable[[], Sequence[AnyArray]], *plain: tuple[Any, str]) -> Sequence[AnyArray]:
    """What work gives with NumPy and, to the last byte, with kernels that run at once. Args: plain (functions that they
    replace, which must not run then)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(fast.PLAIN, "1")
        found = work()
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(fast.PLAIN, raising=False)
        patch.setattr(fast, "ENOUGH", 0)
        for owner, name in plain:
            patch.setattr(owner, name, never)
        again = work()
    assert not fast._broken
    for before, after in zip(found, again, strict=True):
        assert before.dtype == after.dtype
        assert np.array_equal(before, after)
    return found


def opened(oracle: Any, dimension: int, sizes: tuple[int, ...], epsilon: float = 1.0) -> Any:
    context = QuestionContext(rows=5000, unit=1 / L2, seed=SEED)
    return oracle.open(Space(sizes), Budget("pure", epsilon), context, Bound(L2, dimension))


def rows(n: int, dimension: int, sizes: tuple[int, ...]) -> BucketedVectors:
    """Vectors of all lengths up to and beyond the bound, in all directions, and buckets, none among them."""
    g = np.random.default_rng(902 + dimension)
    x = g.standard_normal((n, dimension))
    values = (x * (1.2 * L2 * g.random(n) / np.linalg.norm(x, axis=1))[:, None]).astype(np.int64)
    axes = np.eye(dimension)
    edges = [np.zeros(dimension), axes[0], -axes[-1], np.full(dimension, 1 / math.isqrt(dimension))]
    values[:36] = np.repeat(np.asarray(edges) * L2, 9, axis=0).astype(np.int64)
    return BucketedVectors(np.stack([g.integers(-1, size, n) for size in sizes], axis=1), values)


def numbers(n: int) -> AnyArray:
    return np.random.default_rng(903).integers(0, 2**64, n, dtype=np.uint64)


SHAPES = (1, 0.5), (1, 4.0), (2, 1.0), (63, 4.0), (99, 0.5), (100, 1.0), (127, 0.5), (127, 4.0), (200, 1.0)
EVERY = [pytest.param(3003, *shape, "budget", marks=pytest.mark.thorough) for shape in SHAPES]
TILES = [(n, 100, 1.0, "users") for n in (0, 1, 31, 32, 33, 70)]
LARGE = [(200, 300, 1.0, "users")]
"""A codebook that is encoded plainly, and decoded by a kernel."""


@needs_numba
@pytest.mark.parametrize(("n", "dimension", "epsilon", "share"), [*EVERY, *TILES, *LARGE])
def test_reports_and_sums_are_the_same_bytes(n: int, dimension: int, epsilon: float, share: Any) -> None:
    sizes, users = (5, 8, 64), numbers(n)
    asked = opened(HadamardVector(share=share), dimension, sizes, epsilon)
    items = rows(max(n, 70), dimension, sizes)
    items = BucketedVectors(items.buckets[:n], items.values[:n])

    def work() -> Sequence[AnyArray]:
        report = asked.encode(items, users, NOISE)
        return report.answers, *asked.absorb(report).totals

    turned = [(Rotations, "turn")] if dimension <= 256 else []
    _, *totals = alike(work, (Rotations, "axis"), *turned)
    assert n < 31 or all(total.any() for total in totals)


@needs_numba
@pytest.mark.parametrize("dimension", [127, 255])
def test_a_row_that_is_a_codeword_takes_every_place_once(dimension: int) -> None:
    """Then |w| is the largest that there is, and rounding may put it above 2^30 at D = 256: T must still have k
    codewords."""
    unit, n = Codebook.within(odds(Budget("pure", 1.0)), dimension), 256
    users, bound, places = numbers(n), 2**25, np.arange(n) % unit.size
    axis = np.asarray(Rotations(unit.size).axis(places, np.zeros(n, np.uint64), users, SEED), np.float64)
    axis *= np.where(axis[-1] < 0, -1, 1) / unit.size**1.5
    values, signs = np.ascontiguousarray(np.rint(axis[:-1].T * bound).astype(np.int64)), np.ones(n)
    for place in (0, 1, unit.inside - 1):
        words = np.full((n, 1), place * unit.near, np.uint64)
        units = lifted(values, signs, bound, np.zeros(n, bool))

        def work(words: Ids = words, units: Floats = units) -> Sequence[AnyArray]:
            swift = unit.randomise_by_kernel(values, np.arange(n), signs, bound, users, words, SEED)
            return [unit.randomise(units, users, lambda *_: words, SEED) if swift is None else swift]

        (found,) = alike(work, (Codebook, "randomise"))
        assert place or np.array_equal(found[:, 0] % unit.size, places)


@needs_numba
@pytest.mark.parametrize("randomiser", RANDOMISERS)
@pytest.mark.parametrize("oracle", [HadamardVector, ExplicitHistogramVector])
def test_buckets_asked_one_by_one_and_other_randomisers_are_the_same_bytes(oracle: Any, randomiser: str) -> None:
    items, users = rows(500, 10, (7,)), numbers(500)
    asked = opened(oracle(randomiser=randomiser), 10, (7,))

    def work() -> Sequence[AnyArray]:
        report = asked.encode(items, users, NOISE)
        return report.answers, asked.decode(asked.absorb(report), NOISE).at(np.arange(7))

    alike(work)


@needs_numba
@pytest.mark.parametrize(
    ("n", "symbols"), [(0, 2), (1, 4), (33, 1000), (BLOCK + 5, 2), (BLOCK + 5, 4), (BLOCK + 5, 1000)]
)
def test_hashes_are_counted_the_same(n: int, symbols: int) -> None:
    hashes, users = Hashes(SEED, symbols), numbers(n)
    values = np.random.default_rng(904).integers(0, symbols, n)

    def work() -> Sequence[AnyArray]:
        return [hashes.everywhere(users, values, size) for size in (1, 2, 3, 4, 5, 8, 103)]

    found = alike(work, (np, "count_nonzero"))
    assert n < BLOCK or all(counts.sum() > 0 for counts in found)


def test_a_kernel_waits_until_enough_users_have_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[int] = []
    monkeypatch.delenv(fast.PLAIN, raising=False)
    monkeypatch.setattr(fast, "_kernels", lambda: SimpleNamespace(nothing=called.append))
    monkeypatch.setattr(fast, "_passed", fast.Counter())
    assert not fast.run_kernel("nothing", fast.ENOUGH - 1, 1)
    assert fast.run_kernel("nothing", 1, 2)
    assert fast.run_kernel("nothing", 1, 3)
    monkeypatch.setenv(fast.PLAIN, "1")
    assert not fast.run_kernel("nothing", fast.ENOUGH, 4)
    assert called == [2, 3]


@pytest.mark.parametrize("kernels", [None, SimpleNamespace(), SimpleNamespace(choose=never, point=never, add=never)])
def test_without_numba_or_where_it_fails_numpy_does_the_work(kernels: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, items, users = opened(HadamardVector(), 10, (16,)), rows(40, 10, (16,)), numbers(40)
    monkeypatch.setenv(fast.PLAIN, "1")
    totals = asked.absorb(asked.encode(items, users, NOISE)).totals
    monkeypatch.delenv(fast.PLAIN)
    monkeypatch.setattr(fast, "ENOUGH", 0)
    monkeypatch.setattr(fast, "_broken", set())
    monkeypatch.setattr(fast, "_kernels", lambda: kernels)
    assert np.array_equal(asked.absorb(asked.encode(items, users, NOISE)).totals, totals)
    assert fast._broken == (set() if kernels is None else {"choose", "point", "add"})
