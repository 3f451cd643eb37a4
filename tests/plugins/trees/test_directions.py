"""Public directions: lengths, spread, exactness, and how many may be asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cloister.core.domains import REACH
from cloister.core.errors import InvalidInput
from cloister.core.randomness import PublicRng
from cloister.plugins.trees import directions as module
from cloister.plugins.trees.directions import MAX_REPELLED, NORM, directions

SEED = PublicRng.from_seed(31)


@pytest.mark.parametrize("kind", ["repelled", "orthogonal", "unit"])
@pytest.mark.parametrize(("number", "d"), [(1, 1), (3, 1), (1, 4), (2, 2), (65, 3)])
def test_any_number_of_directions_in_any_dimension_has_unit_length(number: int, d: int, kind: Any) -> None:
    found = directions(SEED, number, d, kind)
    lengths = np.linalg.norm(found / NORM, axis=1)
    assert found.shape == (number, d)
    assert np.abs(lengths - 1).max() < 1e-8


@pytest.mark.parametrize("d", [1, 30, 100, 1000])
def test_every_partial_sum_of_a_product_is_an_integer_that_float64_holds(d: int) -> None:
    """The worst row for any order of adding: parallel to |g|, of the largest norm of a lattice point."""
    around = directions(SEED, 4, d, "unit")
    for g in around.tolist():
        length = sum(v * v for v in g) ** 0.5
        worst = [int(abs(v) * REACH / length) for v in g]
        assert sum(abs(v) * x for v, x in zip(g, worst, strict=True)) < 2**51


def test_directions_are_shared_and_so_cannot_be_written_to() -> None:
    assert directions(SEED, 8, 3) is directions(SEED, 8, 3)
    with pytest.raises(ValueError, match="read-only"):
        directions(SEED, 8, 3)[0, 0] = 1


@pytest.mark.parametrize("block", [1, 50, 10**6])
def test_the_push_is_the_fifteenth_power_relative_to_the_largest(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK", block)
    near = np.random.default_rng(1).uniform(-0.8, 0.8, (20, 20))
    np.fill_diagonal(near, 0)
    largest = np.abs(near).max()
    assert module._push(near.copy()) == pytest.approx((near / largest) ** 15, rel=1e-12)
    assert np.array_equal(module._push(np.zeros((3, 3))), np.zeros((3, 3)))


def test_spreading_makes_less_of_what_it_descends_on() -> None:
    def energy(kind: Any) -> float:
        g = directions(SEED, 128, 8, kind) / NORM
        near = g @ g.T
        np.fill_diagonal(near, 0)
        return float((near**16).sum())

    assert energy("repelled") < 0.1 * energy("unit")


def test_too_many_directions_are_not_spread() -> None:
    """Pairs of 2^15 directions are 8 GB: a plan must open on a phone."""
    many = MAX_REPELLED + 1
    with pytest.raises(InvalidInput, match="'orthogonal'"):
        directions(SEED, many, 4, "repelled")
    assert np.array_equal(directions(SEED, many, 4, "auto"), directions(SEED, many, 4, "orthogonal"))


def test_directions_of_a_block_are_orthogonal() -> None:
    found = directions(SEED, 64, 32, "orthogonal") / NORM
    for block in (found[:32], found[32:]):
        assert np.abs(block @ block.T - np.eye(32)).max() < 1e-7
