"""Every round of every method can be put before devices that run no Python, and they find what cloister finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cloister.core.buckets import Bundled
from cloister.core.errors import InvalidInput
from cloister.core.registry.registry import built_in
from tests.reference_client.buckets import KINDS
from tests.reference_client.comparing import (
    as_devices_read,
    check_cells,
    check_snapping,
    check_vectors,
    lattice_rows,
    mixture,
    rounds,
)

pytestmark = pytest.mark.thorough
METHODS = sorted(spec.name for spec in built_in().specs() if spec.role == "Method")
NOT_FOR_DEVICES = {("naive-noise", "Shuffled")}
"""Of another trust model."""

WIDE = ("one-round", "hst-means", "weighted-centers")
"""Looked at in a hundred columns, too."""

OTHERS: tuple[dict[str, Any], ...] = (
    {"method": "tree-means", "passes": 3, "margin": 0.33},  # rows near badly cut centres are spared
    {"method": "zoom", "rows": 200_000},  # finds the range first
    {"method": "described", "beside": 2, "columns": "0,2,3:1", "bins": 3},  # clusters by the first two columns
    {"method": "one-round-net-tree", "tree.levels": 8, "tree.dimension": 6},  # ids too long to be packed
    {"method": "weighted-centers", "epsilon": 40.0, "hash_bits": 30, "hash_threshold": 1.0, "center_threshold": 0.5},
)


def check(method: str, trust: str, dimension: int, n: int, **changes: Any) -> None:
    for round in rounds(method, trust, dimension, **changes):
        check_snapping(round.domain, 3 * mixture(n, dimension, 1))
        rows = lattice_rows(round.domain, n, round.index)
        for part in round.parts:
            assert isinstance(part.cells, Bundled)
            check_cells(part.cells, rows)
            if part.vectors is not None:
                assert isinstance(part.vectors, Bundled)
                check_vectors(part.vectors, rows)


@pytest.mark.parametrize("trust", ["Local", pytest.param("Shuffled", marks=pytest.mark.long)])  # the oracles differ
@pytest.mark.parametrize("method", METHODS)
def test_a_device_finds_lattice_rows_buckets_and_vectors_of_every_round(method: str, trust: str) -> None:
    if (method, trust) in NOT_FOR_DEVICES:
        with pytest.raises(InvalidInput, match="no Shuffled oracles"):
            rounds(method, trust, 2)
        return
    check(method, trust, 2, 60)
    check(method, trust, 100 if method in WIDE and trust == "Local" else 6, 20)


@pytest.mark.parametrize("changes", OTHERS, ids=lambda changes: str(changes["method"]))
def test_and_with_options_that_ask_other_buckets(changes: dict[str, Any]) -> None:
    check(trust="Local", dimension=4, n=60, **changes)


def kinds(read: Any) -> set[str]:
    """Kinds of a description and of those within it."""
    if isinstance(read, dict):
        own = {read["kind"]} if "kind" in read else set[str]()
        return own.union(*(kinds(part) for part in read.values()))
    return set[str]().union(*(kinds(part) for part in read)) if isinstance(read, list) else set()


def test_these_methods_ask_every_kind_of_buckets_and_vectors() -> None:
    every = [rounds(method, "Local", 2) for method in METHODS if (method, "Local") not in NOT_FOR_DEVICES]
    every += [rounds(trust="Local", dimension=4, **changes) for changes in OTHERS]
    parts = [part for some in every for round in some for part in round.parts]
    assert set[str]().union(*(kinds(as_devices_read(part.cells)) for part in parts)) == set(KINDS)
    vectors = (kinds(as_devices_read(part.vectors)) for part in parts if part.vectors is not None)
    assert set[str]().union(*vectors) == {"rows", "offsets", "clipped"}


def test_where_hash_values_are_frequent_devices_find_their_regions() -> None:
    """Otherwise lists are empty, and the test above sees no row in any of these buckets."""
    every = rounds(trust="Local", dimension=4, **OTHERS[-1])
    rows = every[-1].domain.snap(mixture(400, 4, 5))
    found = dict.fromkeys(("regions", "created", "assigned"), 0)
    for part in (part for round in every for part in round.parts):
        kind = as_devices_read(part.cells)["kind"]
        if kind in found:
            found[kind] += int((part.cells.locate(rows) >= 0).sum())
    assert min(found.values()) > 0
    own = [as_devices_read(part.cells)["own"] for part in every[-1].parts]
    assert any(len(one["created"]["values"]) for some in own for one in some)
    assert np.unique(every[-1].parts[0].cells.locate(rows)).size > 1
