"""Privacy of the vector randomisers: exact tables and exact coins; the laws of the real-valued ones by sampling."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from cloister.core.budget import Budget
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.plugins.oracles.local.hadamard_transform import Rotations
from cloister.plugins.oracles.local.randomised_response import WORDS, odds
from cloister.plugins.oracles.local.vectors.codebook import Codebook
from cloister.plugins.oracles.local.vectors.duchi import Duchi
from cloister.plugins.oracles.local.vectors.unit_randomiser import received

SEED = PublicRng.from_seed(80)
EPSILONS = (1e-3, 0.5, 1.0, 4.0, 12.0, 39.0)


def intervals(unit: Codebook) -> list[tuple[int, int]]:
    """The 2 D sets of words that ``drawn`` is constant on, as it says: first word and length."""
    edge = unit.near * unit.inside
    inner = [(r * unit.near, unit.near) for r in range(unit.inside)]
    return inner + [(edge + r * unit.far, unit.far) for r in range(2 * unit.size - unit.inside)]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_one_byte_draws_every_codeword_from_one_interval_of_words(epsilon: float) -> None:
    unit = Codebook.within(odds(Budget("pure", epsilon)), 100)
    parts = intervals(unit)
    assert sum(length for _, length in parts) == WORDS
    assert all(a + n == b for (a, n), (b, _) in pairwise(parts))
    first, last = (
        unit.drawn(np.array([a for a, _ in parts], np.uint64)),
        unit.drawn(np.array([a + n - 1 for a, n in parts], np.uint64)),
    )
    assert np.array_equal(first, last)
    outcomes = list(zip(*(part.tolist() for part in first), strict=True))
    assert len(set(outcomes)) == 2 * unit.size
    assert set(outcomes[: unit.inside]) == {(place, False) for place in range(unit.inside)}
    assert all(0 <= place < unit.size for place, _ in outcomes)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_one_byte_has_two_probabilities_whose_ratio_is_below_the_odds(epsilon: float) -> None:
    most = odds(Budget("pure", epsilon))
    unit = Codebook.within(most, 100)
    assert unit.near * unit.inside + unit.far * (2 * unit.size - unit.inside) == WORDS
    assert 1 < Fraction(unit.near, unit.far) <= most
    if epsilon <= 4:
        assert Fraction(unit.near, unit.far) > most * (1 - Fraction(1, 10**9))


def test_the_whole_table_of_one_byte_keeps_the_law_for_every_pair_of_inputs() -> None:
    """By enumeration: each codeword's exact chance for inputs of every kind (ties too), against brute force for T."""
    most, n = odds(Budget("pure", 1.0)), 256
    unit = Codebook.within(most, 100)
    words = np.array([a for a, _ in intervals(unit)], np.uint64)[:, None]
    chances = np.array([length for _, length in intervals(unit)], object)
    users = np.full(n, 5, np.uint64)
    g = np.random.default_rng(81).standard_normal((101, 4))
    inputs = [*(g / np.linalg.norm(g, axis=0)).T, np.eye(101)[0], -np.eye(101)[100], np.full(101, 101**-0.5)]
    table = []
    for u in inputs:
        answers = unit.randomise(np.repeat(u[:, None], n, axis=1), users, lambda *_: words, SEED)[:, 0]
        assert sorted(answers) == list(range(n))  # every codeword, once
        row = np.empty(n, object)
        row[answers] = chances
        table.append(row)
        w = Rotations(128).turn(u[:, None], users[:1], SEED)[:, 0].astype(object)
        order = sorted(range(128), key=lambda j: (-(abs(int(w[j])) // 128), j))
        inside = {j + 128 * (w[j] < 0) for j in order[: unit.inside]}
        assert {c for c in range(n) if row[c] == unit.near} == inside
    for one in table:
        for other in table:
            assert all(Fraction(a, b) <= most for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_coin_of_the_half_sphere_is_on_the_safe_side_and_close(epsilon: float) -> None:
    most = odds(Budget("pure", epsilon))
    unit = Duchi.within(most, 100)
    ratio = Fraction(unit.coin, WORDS - unit.coin)
    assert most * (1 - Fraction(1, 10**9)) < ratio <= most or epsilon > 12


@pytest.mark.parametrize("dimension", [1, 2, 20])
def test_duchi_sends_a_vector_or_its_opposite_and_the_row_only_says_which(dimension: int) -> None:
    """Exactly: whatever the row is, the same two answers, one for ``coin`` of the 2^64 words and one for the others.
    Ties and all."""
    unit, n = Duchi.within(odds(Budget("pure", 1.0)), dimension), 200
    words = NoiseRng.for_tests(85).words(np.arange(n, dtype=np.uint64), unit.each)
    words[:20, 1:] &= np.uint64(2**64 - 2**32)  # angle 0: variates that are zero, so that <v, u> is a tie for some rows
    g = np.random.default_rng(86).standard_normal((dimension + 1, 3))
    rows = [*(g / np.linalg.norm(g, axis=0)).T, *np.eye(dimension + 1), *-np.eye(dimension + 1)]
    found = []
    for u in rows:
        for word in (0, unit.coin - 1, unit.coin, WORDS - 1):
            words[:, 0] = np.uint64(word)
            units = np.repeat(u[:, None], n, axis=1)
            found.append(received(unit.randomise(units, np.arange(n, dtype=np.uint64), lambda *_: words, SEED)))
    first = found[0]
    assert first.any(axis=1).all()
    for at in range(0, len(found), 4):
        low, edge, beyond, high = found[at : at + 4]
        assert np.array_equal(low, edge)
        assert np.array_equal(beyond, high)
        assert np.array_equal(low, -high)
        assert ((low == first).all(axis=1) | (low == -first).all(axis=1)).all()
