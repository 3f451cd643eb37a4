"""Privacy on the path of bundles: exact chances, in words of 2^64, from a bundle's integers alone.

Laws of randomisers of a bucket are enumerated: the intervals of secret words on which the reference client sends one
answer, at both edges of each, compared between all inputs, 'in no bucket' included. Vectors tie the client to cloister,
whose own enumerations (``tests/plugins/oracles``) tie it, and the randomisers of vectors, to their proofs; that a word
beyond epsilon is refused is among the wrong bundles of ``tests/vectors``, which ``clients/javascript`` refuses.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from itertools import combinations, pairwise, product
from math import prod
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.reference_client import counts
from tests.reference_client.words import ALL, Words
from tests.vectors.wrong_channels import power

VECTORS = Path(__file__).parents[1] / "vectors"
FILES = ("local-counts", "local-others", "shuffled")
USER = 12345

Facts: TypeAlias = dict[str, Any]
Law: TypeAlias = dict[tuple[int, ...], Fraction]


def levels(randomiser: str, most: int) -> list[tuple[Facts, Fraction]]:
    """Levels of the vectors with a randomiser and at most so many buckets, and e^epsilon of an answer; each kind once."""
    found = dict[str, tuple[Facts, Fraction]]()
    bundles = (one for name in FILES for one in json.loads((VECTORS / f"{name}.json").read_text())["bundles"])
    for question in (question for one in bundles for question in json.loads(one["bundle"])["questions"]):
        channel = question["channel"]
        for level in channel["levels"]:
            if level.get("randomiser") == randomiser and int(level["size"]) <= most:
                parts = len(channel["levels"]) if channel["level_key"] is None else 1
                coins = {name: value for name, value in level.items() if len(str(value)) != 32}
                limit = power(Fraction(question["alone"]) / parts)
                found.setdefault(json.dumps(coins, sort_keys=True), (level, limit))
    assert found
    return list(found.values())


def worst(laws: list[Law]) -> Fraction:
    """The largest ratio of the chances of one answer. Laws that do not reach the same answers have none."""
    assert all(law.keys() == laws[0].keys() for law in laws)
    assert all(sum(law.values()) == 1 for law in laws)
    return max(max(law[z] for law in laws) / min(law[z] for law in laws) for z in laws[0])


def law_of(send: Callable[[Words], list[int]], before: Sequence[int], cuts: list[list[int]]) -> Law:
    """Exact chances of what is sent for secret words: some that are given, and one per list of cuts.

    In every box of words between the cuts the same is sent at all corners: such a box is one answer's.
    """
    law: Law = {}
    for box in product(*(pairwise(sorted({0, *ends, ALL})) for ends in cuts)):
        corners = product(*((low, high - 1) for low, high in box))
        (answer,) = {tuple(send(Words([*before, *corner]))) for corner in corners}
        law[answer] = law.get(answer, Fraction(0)) + prod(Fraction(high - low, ALL) for low, high in box)
    return law


def evenly(parts: int) -> list[int]:
    """Where ``below(word, parts)`` steps."""
    return [-(-part * ALL // parts) for part in range(parts)]


def laws_of(level: Facts, cuts: list[list[int]], before: Sequence[int] = ()) -> list[Law]:
    """The laws of what is sent from every bucket, and from none."""
    return [law_of(partial(counts.answer, level, x, USER), before, cuts) for x in range(-1, level["size"])]


@pytest.mark.parametrize("randomiser", ["direct", "hashed", "signed", "unary"])
def test_responses_and_unary_bits_keep_epsilon_exactly(randomiser: str) -> None:
    for level, limit in levels(randomiser, 4 if randomiser == "unary" else 16):
        if randomiser == "unary":
            cuts = [[int(level["flip"]), 2**63]] * level["size"]
        else:
            cuts = [[int(level["keep"])], evenly(level["symbols"])]
        assert 1 < worst(laws_of(level, cuts)) <= limit


def test_subsets_keep_epsilon_exactly_whatever_set_was_drawn() -> None:
    for level, limit in levels("subset", 4):
        m, k = level["size"] + 1, level["chosen"]
        for chosen in combinations(range(m), k):
            ranks = [0 if at in chosen else ALL - 1 for at in range(m)]
            laws = laws_of(level, [evenly(k), [int(level["keep"])], evenly(m)], ranks)
            reached = set[tuple[int, ...]]().union(*laws)
            assert worst([{z: law.get(z, Fraction(0)) for z in reached} for law in laws]) <= limit
