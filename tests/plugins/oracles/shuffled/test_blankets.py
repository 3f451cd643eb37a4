"""What a hash value hides in: the exact divergence against enumeration of all messages."""

from __future__ import annotations

import itertools
import math
import tracemalloc
from collections import Counter
from fractions import Fraction

import pytest

from cloister.plugins.oracles.shuffled import blanket_histogram as module
from cloister.plugins.oracles.shuffled.blanket_histogram import delta_of, losses, most_values

Law = dict[tuple[tuple[int, int], ...], Fraction]
Hash = tuple[int, int]
"""A hash function's values of two rows, x and x'."""


def law(row: int | None, hashes: list[Hash], blankets: int, values: int) -> Law:
    """Of the multiset of messages (hash, value): one user's, in this bucket or none, among uniform ones."""
    every = list(itertools.product(range(len(hashes)), range(values)))
    hers = every if row is None else [(v, hashes[v][row]) for v in range(len(hashes))]
    found: Counter[tuple[tuple[int, int], ...]] = Counter()
    for mine in hers:
        for others in itertools.product(every, repeat=blankets):
            found[tuple(sorted((mine, *others)))] += 1
    total = len(hers) * len(every) ** blankets
    return {messages: Fraction(count, total) for messages, count in found.items()}


def divergence(one: Law, other: Law, epsilon: float) -> float:
    """Sum of (P - e^eps Q)_+."""
    e = math.exp(epsilon)
    return float(sum(max(0.0, float(p) - e * float(other.get(m, 0))) for m, p in one.items()))


def worst_pair(blankets: int, values: int) -> list[tuple[float, float]]:
    """Chances under P and Q of (messages of x, messages of x'), hers included, exactly."""
    found, rest = Counter[tuple[int, int, int]](), 1 - 2 / values
    for x in range(blankets + 1):
        for other in range(blankets + 1 - x):
            left = blankets - x - other
            ways = math.factorial(blankets) / (math.factorial(x) * math.factorial(other) * math.factorial(left))
            chance = ways * (1 / values) ** (x + other) * rest**left
            found[(x + 1, other, 0)] += chance  # type: ignore[assignment]
            found[(x, other + 1, 1)] += chance  # type: ignore[assignment]
    keys = {(x, y) for x, y, _ in found}
    return [(float(found[(*key, 0)]), float(found[(*key, 1)])) for key in keys]


def exact(epsilon: float, blankets: int, values: int, levels: int = 1) -> float:
    pairs, e = worst_pair(blankets, values), math.exp(epsilon)
    both = [(1.0, 1.0)]
    for _ in range(levels):
        both = [(p * a, q * b) for p, q in both for a, b in pairs]
    return sum(max(0.0, p - e * q) for p, q in both)


@pytest.mark.parametrize("epsilon", [0.2, 0.7, 1.5])
@pytest.mark.parametrize(("blankets", "values"), [(12, 2), (30, 5), (60, 9)])
def test_the_computed_delta_is_above_the_exact_one_and_near_it(epsilon: float, blankets: int, values: int) -> None:
    true = exact(epsilon, blankets, values)
    assert true <= delta_of(epsilon, blankets, values) <= true * 1.02 + 1e-12


def test_levels_compose_as_enumeration_says() -> None:
    for levels, blankets, values in ((2, 16, 3), (3, 8, 2)):
        true = exact(0.9, blankets, values, levels)
        assert true <= delta_of(0.9, blankets, values, levels) <= true * 1.02 + 1e-12


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
def test_no_hash_family_is_worse_than_the_pair_that_is_accounted_for(epsilon: float) -> None:
    """All messages are enumerated: rows whose hashes never agree (the worst), at times, or always, and users in no
    bucket."""
    for values, hashes in (
        (2, [(0, 1), (1, 0)]),
        (2, [(0, 1), (1, 1)]),
        (3, [(0, 1), (2, 2), (1, 0)]),
        (3, [(0, 1), (1, 2)]),
        (2, [(0, 0), (1, 1)]),
    ):
        blankets = 3
        most = exact(epsilon, blankets, values)
        rows = [law(row, hashes, blankets, values) for row in (0, 1, None)]
        for one, other in itertools.permutations(rows, 2):
            assert divergence(one, other, epsilon) <= most + 1e-12
        disjoint = all(a != b for a, b in hashes)
        if disjoint:
            assert divergence(rows[0], rows[1], epsilon) == pytest.approx(most)


def test_the_number_of_values_uses_the_budget_up() -> None:
    for epsilon, delta, blankets, levels in ((1.0, 1e-6, 36_000, 1), (0.5, 1e-8, 90_000, 1), (2.0, 1e-6, 20_000, 6)):
        values = most_values(epsilon, delta, blankets, levels, 2**16)
        assert delta_of(epsilon, blankets, values, levels) <= delta
        assert delta_of(epsilon, blankets, values + values // 50 + 2, levels) > delta
    assert most_values(4.0, 1e-3, 10**7, 1, 2**16) == 2**16
    assert most_values(0.1, 1e-9, 50, 1, 2**16) == 1


@pytest.mark.thorough
def test_many_levels_take_bounded_memory_and_err_on_the_safe_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """60 levels of nine million blankets took 16 GB: the law of all levels together is as long as their number's
    square. Steps are coarser then; where even they are too many nothing is promised."""
    case = 0.5, 5_000, 12, 3
    fine = delta_of.__wrapped__(*case)
    size = 3 * len(losses(5_000, 12, 0.5 / (module.FINE * 3))[1])
    monkeypatch.setattr(module, "MOST", size // 5)
    coarse = delta_of.__wrapped__(*case)
    assert fine < coarse < 1.1 * fine
    monkeypatch.setattr(module, "MOST", size // 200)
    assert delta_of.__wrapped__(*case) == 1.0
    monkeypatch.undo()
    tracemalloc.start()
    try:
        assert 0 < delta_of.__wrapped__(0.0725, 9_216_000, 65_536, 60) <= 1
        assert tracemalloc.get_traced_memory()[1] < 2**31
    finally:
        tracemalloc.stop()
