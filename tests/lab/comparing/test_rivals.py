"""Rivals from other packages: what they are told, and that they count as not private."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cloister.core.types import Floats
from cloister.metrics import nicv
from tests.lab.comparing.studies import ROWS, study


def test_scikit_learn_joins_as_not_private() -> None:
    cell = study(rivals=["sklearn"]).cells[-1]
    assert (cell.label, cell.private, len(cell.nicv)) == ("sklearn", False, 2)


def diffprivlib_of(monkeypatch: pytest.MonkeyPatch, centers: Any) -> list[dict[str, Any]]:
    """A stand-in for the package: it need not be installed, nor fit this scikit-learn."""
    asked = list[dict[str, Any]]()

    class KMeans:
        def __init__(self, **given: Any) -> None:
            asked.append(given)

        def fit(self, rows: Floats) -> Any:
            return SimpleNamespace(cluster_centers_=centers(rows))

    models = ModuleType("diffprivlib.models")
    models.KMeans = KMeans  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "diffprivlib", ModuleType("diffprivlib"))
    monkeypatch.setitem(sys.modules, "diffprivlib.models", models)
    return asked


def test_diffprivlib_gets_the_same_budget_and_bounds_in_the_studys_units(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = diffprivlib_of(monkeypatch, lambda rows: rows[:3])
    wide = ROWS * [1, 1, 1000]
    found = study(rows=wide, bounds=[(-1, 1), (-1, 1), (-2000, 1000)], rivals=["diffprivlib"], epsilons=[0.3])
    assert [given["epsilon"] for given in asked] == [0.3, 0.3]
    np.testing.assert_allclose(asked[0]["bounds"], [[-1, -1, -2000 / 1500], [1, 1, 1000 / 1500]])
    units = found.conditions.units
    assert found.cells[-1].nicv[0] == pytest.approx(nicv(wide / units, wide[:3] / units))
    assert found.cells[-1].private is False
    assert "spends more epsilon than asked" in found.table()


@pytest.mark.parametrize(
    ("centers", "bounds", "said"),
    [
        (None, (-1, 1), "diffprivlib is not installed"),
        (lambda rows: rows[:3] * np.nan, (-1, 1), "diffprivlib"),
        (lambda rows: 1 / 0, (-1, 1), "diffprivlib"),
        (lambda rows: rows[:3], "ball:2", "ball"),
    ],
)
def test_a_rival_that_fails_is_a_cell_that_says_so(
    monkeypatch: pytest.MonkeyPatch, centers: Any, bounds: Any, said: str
) -> None:
    if centers is None:
        monkeypatch.setitem(sys.modules, "diffprivlib", None)
    else:
        diffprivlib_of(monkeypatch, centers)
    assert said in str(study(rivals=["diffprivlib"], bounds=bounds).cells[-1].refused)
