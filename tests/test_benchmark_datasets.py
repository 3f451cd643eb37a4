"""The benchmark sets: recipes, scaling, and the measured separation of the synthetic ones.

Sets that are stored outside the repository are tested where CLOISTER_DATA names their folder.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister.core.errors import InvalidInput

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def script(name: str) -> Any:
    """A module of the benchmarks folder, which is not a package."""
    spec = importlib.util.spec_from_file_location(f"cloister_benchmarks_{name}", BENCHMARKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


datasets = script("datasets")
needs_data = pytest.mark.skipif(not os.environ.get("CLOISTER_DATA"), reason="CLOISTER_DATA names no folder")


# stored sets

SHAPES = {
    "iris": (150, 4, 3),
    "wine": (178, 13, 3),
    "lsun": (400, 2, 3),
    "house": (1837, 3, 3),
    "digits8x8": (1797, 64, 10),
    "s1": (5000, 2, 15),
    "birch2_25k": (25_000, 2, 100),
    "adult": (48_842, 6, 3),
    "shuttle": (58_000, 9, 7),
    "mnist_test10k": (10_000, 784, 10),
    "g10k_d32_k16": (10_000, 32, 16),
    "g100k_d10_k10": (100_000, 10, 10),
    "yeast": (1484, 8, 10),
    "breast_wisconsin_699": (699, 9, 2),
    "g2-2-10": (2048, 2, 2),
    "g2-256-100": (2048, 256, 2),
}
EVERYWHERE = ("g10k_d32_k16", "g100k_d10_k10")
SETS = [pytest.param(name, marks=() if name in EVERYWHERE else needs_data) for name in SHAPES]


@pytest.mark.parametrize("name", SETS)
def test_a_set_has_its_shape_and_fills_the_box(name: str) -> None:
    found = datasets.load(name)
    assert (*found.rows.shape, found.k) == SHAPES[name]
    assert found.name == name
    assert found.rows.dtype == np.float64
    low, high = found.rows.min(axis=0), found.rows.max(axis=0)
    constant = low == high
    assert np.all(low[~constant] == -1)
    assert np.all(high[~constant] == 1)
    assert np.all(low[constant] == 0)


def test_without_a_folder_the_variable_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CLOISTER_DATA", raising=False)
    with pytest.raises(InvalidInput, match=r"set CLOISTER_DATA to the folder that holds iris\.npz"):
        datasets.load("iris")
    monkeypatch.setenv("CLOISTER_DATA", str(tmp_path))
    with pytest.raises(InvalidInput, match=r"does not hold g2/g2-512-10\.npz: put it there"):
        datasets.load("g2-512-10")
    with pytest.raises(InvalidInput, match=rf"'cloister data get iris --out {tmp_path}' gets it"):
        datasets.load("iris")


# synthetic sets
