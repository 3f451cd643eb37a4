"""Rounds of methods, as real answers lead to them: public objects against what a device makes of their descriptions."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np

from cloister.core.buckets import Bucketing, BundleArrays, Vectors, described
from cloister.core.domains import Lattice
from cloister.core.lattice import shrink
from cloister.core.questions import Round
from cloister.core.randomness import NoiseRng, PublicRng
from cloister.core.session import Session
from cloister.core.types import Floats, Ints
from cloister.plugins.populations.arrays import Arrays as Rows
from cloister.run.request import Request, prepare
from tests.reference_client import buckets, snapping
from tests.reference_client.words import opened


def mixture(n: int, dimension: int, seed: int) -> Floats:
    """Rows (n, d) of three clusters in [-1, 1]^d."""
    g = np.random.default_rng(seed)
    centers = g.uniform(-0.7, 0.7, (3, dimension))
    return np.asarray(centers[np.arange(n) % 3] + g.normal(0, 0.05, (n, dimension)), np.float64)


@cache
def rounds(method: str, trust: str, dimension: int, rows: int = 4000, **changes: Any) -> tuple[Round[Any], ...]:
    """Every round of a run over ``mixture`` with this seed of noise. Args: changes (of the request; options as
    ``slot_option``)."""
    request = Request(
        k=3,
        method=method,
        epsilon=changes.pop("epsilon", 8.0),
        delta=1e-6 if trust == "Shuffled" else 0.0,
        bounds="-1:1",
        rows=rows,
        seed=5,
        trust=trust,
        options=changes,
    )
    prepared = prepare(request, [f"c{j}" for j in range(dimension)])
    seed = PublicRng.from_seed(5)
    held = Rows(mixture(rows, dimension, 5))
    session: Session[Any] = Session(prepared.problem, seed, held, noise=NoiseRng.for_tests(5))
    prepared.composed.value.cluster(prepared.problem, session, seed.child("method"))
    return tuple(session.rounds)


def as_devices_read(part: object) -> Any:
    """What a device reads of a public object: its JSON, with the arrays in it opened."""
    arrays = BundleArrays()
    text = json.dumps(described(part, arrays), sort_keys=True, allow_nan=False)
    return opened(json.loads(text), bytes(arrays.content))


def lattice_rows(lattice: Lattice, n: int, seed: int) -> Ints:
    """Lattice rows (n, d): all over the domain, in the clusters, and at its edges and middle."""
    g, d = np.random.default_rng(seed), lattice.dimension
    wide = g.uniform(-1.2, 1.2, (n - n // 2 - n // 4, d))
    edges = g.choice([-1.0, 1.0, 0.0, 1e-6, -1e-6], (n // 4, d))
    return lattice.snap(np.concatenate([wide, mixture(n // 2, d, 5), edges]))


def check_snapping(lattice: Lattice, rows: Floats) -> None:
    """A device puts these rows (n, d) where ``snap`` puts them."""
    read = as_devices_read(lattice)
    assert [snapping.snap(read, row) for row in rows.tolist()] == lattice.snap(rows).tolist()


def check_cells(cells: Bucketing, rows: Ints) -> None:
    """A device finds the buckets of these lattice rows (n, d) that ``locate`` finds."""
    read: Any = as_devices_read(cells)
    assert [int(size) for size in read["sizes"]] == list(cells.space.sizes)
    assert [buckets.locate(read, row) for row in rows.tolist()] == cells.locate(rows).tolist()


def check_vectors(found: Vectors, rows: Ints) -> None:
    """A device finds the vectors of those rows that are in a bucket, cut to the bound."""
    ids = found.cells.locate(rows)
    held = np.flatnonzero(ids[:, 0] >= 0)
    rows, ids = rows[held], ids[held]
    read: Any = as_devices_read(found)
    bound = found.bound
    assert (read["l2"], read["l1"], read["dimension"]) == (bound.l2, bound.l1, bound.dimension)
    cut = shrink(found.values(rows, ids), bound)
    assert [snapping.sent(read, row, id) for row, id in zip(rows.tolist(), ids[:, 0].tolist(), strict=True)] == (
        cut.tolist()
    )
