"""Labels by one formula: what the product is sure of, the formula says too."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cloister.core.errors import InvalidInput
from cloister.core.labelling import Labelling


def hostile(rng: np.random.Generator, n: int, d: int) -> Any:
    """Rows with ties, zeros of both signs, denormals, and numbers near the largest."""
    rows = rng.integers(-3, 4, (n, d)).astype(float)
    odd = [-0.0, 5e-324, -1e-200, 1e-150, 1e17, -1e300, 1.7976931348623157e308, -1.7976931348623157e308, 2.0**500]
    places = rng.integers(0, n, n // 2), rng.integers(0, d, n // 2)
    rows[places] = rng.choice(odd, n // 2)
    return rows


@pytest.mark.parametrize("seed", range(6))
def test_labels_are_those_of_the_formula_whatever_rows_they_come_with(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d, k = int(rng.integers(1, 12)), int(rng.integers(1, 40))
    centers = rng.normal(size=(k, d)) if seed % 2 else rng.integers(-3, 4, (k, d)).astype(float)
    units = None if seed % 3 else rng.uniform(1e-3, 1e3, d)
    labelling = Labelling.of(centers, units)
    rows = np.concatenate([hostile(rng, 500, d), rng.normal(size=(500, d)), (centers[:1] + centers) / 2])
    with np.errstate(all="raise", under="ignore"):
        wanted = labelling.scores(rows).argmin(axis=1)
    assert np.array_equal(labelling.labels(rows), wanted)
    alone = [int(labelling.labels(rows[i : i + 1])[0]) for i in range(0, len(rows), 17)]
    assert alone == wanted[::17].tolist()


def test_of_whole_numbers_the_label_is_the_nearest_centre_and_of_ties_the_lowest() -> None:
    rng = np.random.default_rng(1)
    rows, centers = rng.integers(-5, 6, (2000, 3)).astype(float), rng.integers(-5, 6, (30, 3)).astype(float)
    exact = ((rows[:, None] - centers) ** 2).sum(axis=2)
    assert (np.sort(exact, axis=1)[:, 0] == np.sort(exact, axis=1)[:, 1]).any()
    assert np.array_equal(Labelling.of(centers).labels(rows), exact.argmin(axis=1))


def test_the_label_is_the_nearest_centre_but_for_rounding() -> None:
    rng = np.random.default_rng(2)
    rows, centers, units = rng.normal(size=(200, 4)), rng.normal(size=(9, 4)), rng.uniform(0.1, 10, 4)
    labels = Labelling.of(centers, units).labels(rows)
    for row, label in zip(rows.tolist(), labels.tolist(), strict=True):
        away = [
            sum(((Fraction(x) - Fraction(c)) / Fraction(u)) ** 2 for x, c, u in zip(row, center, units, strict=True))
            for center in centers.tolist()
        ]
        assert away.index(min(away)) == label


def test_only_rows_near_a_boundary_are_left_to_the_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = list[int]()
    formula = Labelling.scores
    monkeypatch.setattr(Labelling, "scores", lambda self, rows: (seen.append(len(rows)), formula(self, rows))[1])
    rng = np.random.default_rng(3)
    centers = rng.normal(size=(100, 8))
    Labelling.of(np.concatenate([centers, centers])).labels(rng.normal(size=(20_000, 8)))
    assert sum(seen) < 20


def test_numbers_that_cannot_be_compared_are_refused() -> None:
    with pytest.raises(InvalidInput, match="rows must be finite: row 8 "):
        Labelling.of(np.eye(2)).labels(np.array([[0.0, 0.0], [np.nan, 0.0]]), before=7)
    with pytest.raises(InvalidInput, match="too large or too small"):
        Labelling.of(np.array([[0.0], [1e200]]))


def test_centres_that_differ_by_the_smallest_of_doubles_have_the_labels_of_the_formula() -> None:
    centers = np.random.default_rng(0).uniform(-1, 1, (5, 1)) * 2.0**-330
    labelling = Labelling.of(centers, np.array([2.0**200]))
    rows = np.random.default_rng(1).uniform(-1, 1, (50, 1)) * 2.0**-400
    assert np.array_equal(labelling.labels(rows), labelling.scores(rows).argmin(axis=1))
