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

from cloister.lab.papers import sets

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


datasets = sets
needs_data = pytest.mark.skipif(not os.environ.get("CLOISTER_DATA"), reason="CLOISTER_DATA names no folder")


# stored sets

SHAPES = {
    "iris": (150, 4, 3),
    "birch2_25k": (25_000, 2, 100),
    "mnist_test10k": (10_000, 784, 10),
    "yeast": (1484, 8, 10),
    "breast_wisconsin_699": (699, 9, 2),
    "g2-256-100": (2048, 256, 2),
}
MADE = {"g10k_d32_k16": (10_000, 32, 16), "g100k_d10_k10": (100_000, 10, 10)}
SETS = [*(pytest.param(name, shape, marks=needs_data) for name, shape in SHAPES.items()), *MADE.items()]


@pytest.mark.parametrize(("name", "shape"), SETS)
def test_a_set_has_its_shape_and_fills_the_box(name: str, shape: tuple[int, int, int]) -> None:
    found = datasets.load(name)
    assert (*found.rows.shape, found.k) == shape
    assert found.name == name
    assert found.rows.dtype == np.float64
    low, high = found.rows.min(axis=0), found.rows.max(axis=0)
    constant = low == high
    assert np.all(low[~constant] == -1)
    assert np.all(high[~constant] == 1)
    assert np.all(low[constant] == 0)
