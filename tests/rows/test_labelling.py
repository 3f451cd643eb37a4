"""Labels by one formula: what the product is sure of, the formula says too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cloister.core.errors import InvalidInput
from cloister.rows import labelling as products
from cloister.rows.labelling import DOUBLE, SINGLE, Labelling, Precision


def by_the_formula(labelling: Labelling, rows: Any) -> Any:
    with np.errstate(all="raise", under="ignore"):
        return np.concatenate([labelling.scores(rows[i : i + 100]).argmin(axis=1) for i in range(0, len(rows), 100)])


def agrees(labelling: Labelling, rows: Any) -> Any:
    """The labels, which are those of the formula."""
    wanted = by_the_formula(labelling, rows)
    assert np.array_equal(labelling.labels(rows), wanted)
    return wanted


ODD = [-0.0, 5e-324, -1e-200, 1e-150, 1e17, -1e300, 1.7976931348623157e308, -1.7976931348623157e308, 2.0**500]
"""Zeros of both signs, denormals, and numbers near the largest."""


@pytest.mark.parametrize("seed", range(6))
def test_labels_are_those_of_the_formula_whatever_rows_they_come_with(seed: int) -> None:
    """Among ties and hostile numbers."""
    rng = np.random.default_rng(seed)
    d, k = int(rng.integers(1, 12)), int(rng.integers(1, 40))
    centers = rng.normal(size=(k, d)) if seed % 2 else rng.integers(-3, 4, (k, d)).astype(float)
    labelling = Labelling.of(centers, None if seed % 3 else rng.uniform(1e-3, 1e3, d))
    rows = np.concatenate([rng.integers(-3, 4, (500, d)), rng.normal(size=(500, d)), (centers[:1] + centers) / 2])
    rows[rng.integers(0, 500, 250), rng.integers(0, d, 250)] = rng.choice(ODD, 250)
    wanted = agrees(labelling, rows)
    alone = [int(labelling.labels(rows[i : i + 1])[0]) for i in range(0, len(rows), 17)]
    assert alone == wanted[::17].tolist()
    assert len(labelling.labels(rows[:0])) == 0


def test_the_label_is_the_nearest_centre_and_of_ties_the_lowest() -> None:
    rng = np.random.default_rng(1)
    rows, centers = rng.integers(-5, 6, (2000, 3)).astype(float), rng.integers(-5, 6, (30, 3)).astype(float)
    exact = ((rows[:, None] - centers) ** 2).sum(axis=2)
    assert (np.sort(exact, axis=1)[:, 0] == np.sort(exact, axis=1)[:, 1]).any()
    assert np.array_equal(Labelling.of(centers).labels(rows), exact.argmin(axis=1))


def test_numbers_that_cannot_be_compared_are_refused() -> None:
    with pytest.raises(InvalidInput, match="rows must be finite: row 8 "):
        Labelling.of(np.eye(2)).labels(np.array([[0.0, 0.0], [np.nan, 0.0]]), offset=7)
    with pytest.raises(InvalidInput, match="too large or too small"):
        Labelling.of(np.array([[0.0], [1e200]]))


def near_bisectors(rng: np.random.Generator, centers: Any, n: int) -> Any:
    """Rows (n, d) beside the bisector of two neighbours each, from one part in two to one in 2^50 away from it."""
    one = rng.integers(0, len(centers), n)
    away = np.square(centers[one][:, None] - centers).sum(axis=2)
    away[np.arange(n), one] = np.inf
    one, other = centers[one], centers[away.argmin(axis=1)]
    return (one + other) / 2 + (one - other) * np.exp2(-rng.uniform(1, 50, (n, 1)))


@pytest.mark.parametrize(("k", "away"), [(2, 0.0), (3, 30.0), (40, 1e9), (300, 0.0), (300, 30.0), (2000, 0.0)])
def test_rows_beside_a_boundary_have_the_labels_of_the_formula_at_every_distance_from_it(k: int, away: float) -> None:
    """An index takes the last bits of a number's place: without an allowance for them a wrong centre is the least."""
    rng = np.random.default_rng(k)
    centers = rng.normal(size=(k, 3)) + away
    agrees(Labelling.of(centers), near_bisectors(rng, centers, 1000))


@pytest.mark.parametrize("kind", [SINGLE, DOUBLE], ids=["single", "double"])
@pytest.mark.parametrize(("d", "away"), [(1, 0.0), (10, 0.25), (10, 0.0), (1000, 0.25)])
def test_labels_are_those_of_the_formula_however_wrong_a_product_may_be(
    kind: Precision, d: int, away: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A product that is wrong by all that its d products and sums can be, for one centre this way, for the next the
    other."""

    def adverse(lines: Any, columns: Any, out: Any) -> None:
        exact = lines.astype(np.longdouble) @ columns.astype(np.longdouble)
        size = np.abs(lines).astype(np.longdouble) @ np.abs(columns).astype(np.longdouble)
        ways = np.where(np.arange(len(lines)) % 2, 1, -1)[:, None]
        out[:] = exact + ways * (d + 1) * kind.u * size

    rng = np.random.default_rng(d)
    centers = rng.uniform(0.5, 1, (7, d)) + away
    labelling = Labelling.of(centers)
    rows = near_bisectors(rng, centers, 300) * np.where(rng.random((300, 1)) < 0.3, -1, 1)
    wanted = by_the_formula(labelling, rows)
    monkeypatch.setattr(products, "product", adverse)
    object.__setattr__(labelling, "_screens", tuple(s for s in labelling._screens if s.kind is kind))
    assert labelling._screens
    assert np.array_equal(labelling.labels(rows), wanted)
    monkeypatch.setattr(products.Screen, "_apart", lambda screen, x, largest: screen.kind.real(0))
    assert not np.array_equal(labelling.labels(rows), wanted)


SMALL, FAR = np.random.default_rng(0).uniform(-1, 1, (50, 1)), np.random.default_rng(8)
EDGES: dict[str, tuple[Any, Any, Any]] = {
    "centres that differ by the smallest of doubles": (SMALL[:5] * 2.0**-330, np.array([2.0**200]), SMALL * 2.0**-400),
    "cells that the formula takes for zeros": (
        np.array([[-1.0], [1.0]]) * 2.0**-490,
        np.array([2.0**-200]),
        np.linspace(-3, 3, 601)[:, None] * 2.0**-500,
    ),
    # what moves the middle into a product's offsets is wrong by its own size, however near to 0 the rows are
    "rows far from the centres, beside a boundary": (
        np.array([[-1.0, 1e9], [1.0, 1e9 + 2.0**-22], [0.0, 1e9 + 2.0]]),
        None,
        np.column_stack(
            [
                1e9 * 2.0**-23 + FAR.choice([-1.0, 1.0], 2000) * np.exp2(-FAR.uniform(1, 50, 2000)),
                np.zeros(2000),
            ]
        ),
    ),
}
"""Centres, units, and rows."""


@pytest.mark.parametrize("name", EDGES)
def test_labels_are_those_of_the_formula_at_the_edges_of_numbers(name: str) -> None:
    centers, units, rows = EDGES[name]
    wanted = agrees(Labelling.of(centers, units), rows)
    if "zeros" in name:
        assert not wanted[301:390].any()
