"""Public choices are the same on every make of processor, as far as this one can play others."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import cloister
from cloister.collection.plan.publish import publish
from cloister.core.budget import Budget
from cloister.core.randomness import ANY_KEY
from tests.processors import kernels
from tests.processors.choices import request_of
from tests.vectors.plans import METHODS

pytestmark = pytest.mark.thorough

SOURCES = Path(cloister.__file__).parent

FEW = (
    "one-round local 20 4",
    "radius-means local 20 3",
    "tree-coreset central 20 4",
    "fastlloyd local 2 3",
    "hst-means aggregated 20 4",
    "tree-coreset-median local 2 4",
    "one-round shuffled 5 4",
)
"""What differed before, under every trust model."""

TRUSTS = ("central", "aggregated", "local", "shuffled")

SLOW = {"nearest-centers", "one-round-net-tree", "weighted-centers", "weighted-centers-median", "zoom"}
"""A minute or more each where people pool, or are shuffled, in many columns."""

PUBLIC = ("plugins/trees/*.py", "core/reproducible_math.py", "core/domains.py", "core/budget.py")
"""What nothing but public choices is made by."""

IN_ANY_ORDER = {
    "plugins/trees/nearest_direction.py",
    "plugins/trees/simhash.py",
    "plugins/trees/grid_cells.py",
    "plugins/trees/net_tree.py",
    "plugins/trees/projection.py",
    "plugins/trees/reduction.py",
    "core/reproducible_math.py",
}
"""Modules whose products are of integers below 2^53, as their docstrings prove: exact in any order."""

KERNELS = {"qr", "svd", "eigh", "norm", "dot", "vdot", "standard_normal", "tensordot", "mean", "hypot"}
"""Names of what no public choice may be computed by."""


def differing(found: dict[str, dict[str, dict[str, str]]]) -> dict[str, list[str]]:
    """Of each case what is not the same under all kernels; centres may differ in their last bits."""
    bad = dict[str, list[str]]()
    for case in next(iter(found.values())):
        facts = [there[case] for there in found.values()]
        names = {name for one in facts for name in one} - {"centres"}
        if wrong := sorted(name for name in names if len({one.get(name) for one in facts}) > 1):
            bad[case] = wrong
    return bad


def everything() -> Iterator[Any]:
    """About 300 runs, each replayed by every other kernel: every number of centres with every trust model, and with
    every dimension."""
    for (i, trust), (j, dimension) in product(enumerate(TRUSTS), enumerate((2, 5, 20, 60))):
        k = (7, 2, 12)[(i + j) % 3]
        slow = SLOW if dimension >= 20 and trust in ("aggregated", "shuffled") else set[str]()
        cases = [f"{method} {trust} {dimension} {k}" for method in METHODS if method not in slow]
        yield pytest.param(tuple(kernels.KERNELS), cases, id=f"{trust}-{dimension}", marks=pytest.mark.long)


@pytest.mark.skipif(not kernels.runnable("SkylakeX"), reason="this processor has no AVX-512: nothing would differ")
@pytest.mark.parametrize(
    ("processors", "cases"), [pytest.param(("SkylakeX", "plain"), FEW, id="what differed before"), *everything()]
)
def test_plans_bundles_and_replayed_rounds_are_the_same_under_all_kernels(
    processors: Sequence[str], cases: Sequence[str], tmp_path: Path
) -> None:
    runnable = [kernel for kernel in processors if kernels.runnable(kernel)]
    found = {kernel: kernels.choices(kernel, tmp_path, cases) for kernel in runnable}
    assert cases is not FEW or not any("refused" in case for case in found["plain"].values())
    assert differing(found) == {}


def test_a_plan_holds_its_forecast_to_four_digits() -> None:
    """The whole figure would be another one on another machine, and the plan's hash with it."""
    outlook = publish(request_of("one-round", "local", 20, 4), dimension=20).outlook
    assert outlook is not None
    assert outlook.error == float(f"{outlook.error:.4g}")


def test_shares_do_not_follow_the_last_bits_of_a_weight() -> None:
    weights, budget = (0.1169792311, 0.8830207689), Budget("pure", 1.0)
    others = tuple(weight * (1 + 2.0**-50) for weight in weights)
    assert budget.split_users(ANY_KEY, *weights, 0.3) == budget.split_users(ANY_KEY, *others, 0.3)
    assert budget.split_for(*weights) == budget.split_for(others[0], weights[1])


def test_no_public_choice_is_computed_by_a_kernel() -> None:
    found = list[str]()
    for path in (path for pattern in PUBLIC for path in SOURCES.glob(pattern)):
        where = path.relative_to(SOURCES).as_posix()
        for node in ast.walk(ast.parse(path.read_text())):
            called = node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""
            if called in KERNELS:
                found.append(f"{where}:{node.lineno} calls {called}")
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult) and where not in IN_ANY_ORDER:
                found.append(f"{where}:{node.lineno} multiplies matrices")
    assert found == []


SCRIPT = """
import numpy as np
from cloister.plugins.methods.zoom_categories import distance
a = np.random.default_rng(0).random((60, 60))
print((a @ a).tobytes().hex())
print([distance(m, d, k).hex() for m in (2, 3, 7, 40) for d in range(1, 40) for k in (2, 5, 8, 30, 77)])
"""


def test_products_of_floats_differ_by_kernel_and_distances_of_categories_do_not() -> None:
    """So that what is compared here is not the same anyway. Distances are units of the lattice: a processor without
    fused multiplication has another last bit in some powers."""
    runnable = [kernel for kernel in ("SkylakeX", "plain") if kernels.runnable(kernel)]
    printed = [kernels.run(kernel, "-c", SCRIPT).splitlines() for kernel in runnable]
    products, distances = (set(lines) for lines in zip(*printed, strict=True))
    assert (len(products), len(distances)) == (len(runnable), 1)
