"""Clipped offsets and bins of distances: exact, of each row alone, and of one cost whatever was released."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cloister.core.buckets import QuestionContext, Space
from cloister.core.budget import Budget
from cloister.core.domains import REACH, Ball, Box, Domain
from cloister.core.errors import InvalidInput
from cloister.core.nearest import NearestCenter
from cloister.core.randomness import PublicRng
from cloister.core.registry.compose import compose
from cloister.core.registry.registry import built_in
from cloister.plugins.methods.clipping import SCALE, ClippedOffsets, DistanceBins
from tests.plugins.tables import Table

KEY = PublicRng.from_seed(1)


def near(domain: Domain, rng: PublicRng, k: int = 5) -> NearestCenter:
    return NearestCenter(domain.snap(domain.sample(rng.generator(), k, 0.0)), domain.max_norm)


@pytest.mark.parametrize("radius", [1, 3, 1000, REACH, 2 * REACH])
@pytest.mark.parametrize("d", [1, 2, 7])
def test_no_vector_is_longer_than_the_bound_also_at_the_ends_of_the_lattice(d: int, radius: int) -> None:
    """The adversary chooses rows and origins as far apart as they can be, one lattice step apart, and equal."""
    g = np.random.default_rng(d)
    ends = g.standard_normal((500, d))
    ends = np.trunc(ends * (REACH - d) / np.linalg.norm(ends, axis=1, keepdims=True)).astype(np.int64)
    rows = np.concatenate([ends, -ends[:1] + 1, ends[:1], ends[:1] + np.eye(d, dtype=np.int64)[0]])
    for origin in (-ends[:1], ends[:1], np.zeros((1, d), np.int64)):
        vectors = ClippedOffsets(NearestCenter(origin, REACH), origin, np.array([radius]))
        values = vectors.values(rows, np.zeros((len(rows), 1), np.int64))
        for value, offset in zip(values.tolist(), (rows - origin).tolist(), strict=True):
            length = math.isqrt(sum(u * u for u in offset))
            assert sum(v * v for v in value) <= SCALE**2
            assert all(abs(v) * max(radius, length) <= abs(u) * SCALE for u, v in zip(offset, value, strict=True))
            want = [u * SCALE / max(radius, math.hypot(*offset)) for u in offset]
            assert np.abs(np.array(value) - want).max() <= 1 + 2.0**-9


def test_released_sums_are_read_in_the_callers_units_each_with_its_own_radius() -> None:
    domain = Ball((3.0, 3.0), 10.0)
    cells = NearestCenter(domain.snap(np.array([[0.0, 0.0], [6.0, 6.0]])), domain.max_norm)
    vectors = ClippedOffsets.around(cells, np.array([1.0, 0.125]), domain)
    rows = domain.snap(np.array([[0.5, 0.5], [0.25, 0.0], [6.0, 6.1]]))
    values, ids = vectors.values(rows, cells.locate(rows)), cells.locate(rows)[:, 0]
    totals = np.stack([values[ids == j].sum(axis=0) for j in range(2)]) * domain.unit
    sums, errors = vectors.read(Table(totals, np.array([SCALE, SCALE]) * domain.unit))
    assert np.allclose(sums, [[0.75, 0.5], [0.0, 0.1]], atol=1e-4)
    assert np.allclose(errors, [1.0, 0.125], rtol=1e-4)


@pytest.mark.parametrize("name", ["discrete-gaussian", "masked-gaussian", "skellam"])
def test_what_a_round_costs_is_the_same_whatever_radii_were_released(name: str) -> None:
    """The adversary releases the widest and the narrowest radii, and centres on one point or far apart."""
    domain = Box((-1.0,) * 3, (1.0,) * 3)
    oracle = compose(built_in(), "VectorSumOracle", name, {}, {}).value
    events = []
    for radii in (np.full(5, 1e-300), np.full(5, 0.3), np.full(5, 1e300), np.array([1.0, 0.1, 1e-9, 2.0, 0.3])):
        for cells in (near(domain, KEY), NearestCenter(np.zeros((5, 3), np.int64), domain.max_norm)):
            vectors = ClippedOffsets.around(cells, radii, domain)
            context = QuestionContext(100, domain.unit, KEY)
            events.append(oracle.open(Space((5,)), Budget("gaussian", 0.5), context, vectors.bound).events)
    assert all(event == events[0] for event in events)


def test_radii_below_a_step_and_origins_off_the_lattice_are_refused() -> None:
    cells = NearestCenter(np.zeros((1, 2), np.int64), REACH)
    for origin, radius in (([[0, 0]], 0), ([[REACH, 1]], 5)):
        with pytest.raises(InvalidInput, match="at least one step"):
            ClippedOffsets(cells, np.array(origin), np.array([radius]))


def test_the_quantile_lies_within_its_bin_as_far_as_rows_of_it_are_needed() -> None:
    domain = Box((-1.0,), (1.0,))
    cells = DistanceBins(NearestCenter(np.zeros((1, 1), np.int64), REACH), 2 * REACH, number=8)
    values = np.array([0.0, 10, 70, 16, 4, 0, 0, 0])
    found = [cells.quantile(values, share, 100, domain) for share in (0.1, 0.45, 0.8, 0.92, 1.0)]
    wanted = cells.edges[[1, 2, 2, 3, 4]] * 2.0 ** np.array([0, -0.5, 0, -0.25, 0])
    assert np.allclose(np.square(found) / domain.unit**2, wanted)
