"""Drift: a shift of a tenth of a group's rows is seen, and no shift seldom called one."""

from __future__ import annotations

import math

import attrs
import numpy as np
import pytest
from scipy.stats import binom

from cloister.core.errors import Damaged, InvalidInput
from cloister.core.randomness import NoiseRng
from cloister.core.types import Floats
from cloister.run.drift import AT_ONCE, DRAWS, LEVEL, Compared, Drift, drift
from cloister.run.estimates import Estimate
from cloister.run.fit import fit, source
from cloister.run.request import Request
from cloister.run.result import Result
from cloister.run.statement import PrivacyStatement
from tests.alarms import Alarm

PLACES = np.array([[-0.6, -0.6], [0.6, -0.6], [-0.6, 0.6], [0.6, 0.6]])
START = {str(j): PLACES[:, j].tolist() for j in range(2)}


def month(seed: int, how: str = "none") -> Floats:
    """20,000 rows in four groups, of which one has a tenth elsewhere."""
    g = np.random.default_rng(seed)
    of = g.choice(4, 20_000, p=[0.1, 0.2, 0.3, 0.4])
    rows = PLACES[of] + 0.1 * g.standard_normal((20_000, 2))
    some = np.flatnonzero(of == 1)[: int((of == 1).sum()) // 10]
    if how == "moved":
        rows[some] += PLACES[2] - PLACES[1]
    elif how == "outwards":
        rows[some] = PLACES[1] + 2.5 * (rows[some] - PLACES[1])
    elif how == "new":
        rows[some] = 0.05 * g.standard_normal((len(some), 2))
    return np.clip(rows, -1, 1)


def kept(rows: Floats, seed: int, epsilon: float = 0.1) -> Result:
    request = Request(k=4, method="kept-centers", epsilon=epsilon, rows=20_000, bounds=(-1, 1), start=START, seed=1)
    return fit(request, source(rows), noise=NoiseRng.for_tests(seed))


@pytest.mark.parametrize("how", ["moved", "outwards", "new"])
def test_a_tenth_of_a_groups_rows_elsewhere_is_seen(how: str) -> None:
    seen = [drift(kept(month(s), s, 0.3), kept(month(100 + s, how), 100 + s)).shifted for s in range(5)]
    assert sum(seen) >= 4


@pytest.mark.thorough
@pytest.mark.alarm(1e-8)
def test_without_a_shift_the_chance_is_as_it_says(alarm: Alarm) -> None:
    """Tables drawn from one law, with noise: of 400 as few are called shifted as ``LEVEL`` says, or twice that."""
    g, calls = np.random.default_rng(6), 0
    base = kept(month(1), 1)
    shares = np.array([0.1, 0.2, 0.3, 0.4])[:, None] * np.array([0.0] * 6 + [0.1, 0.3, 0.4, 0.15, 0.05, 0.0])
    for _ in range(400):
        both = [g.multinomial(20_000, shares.ravel()).reshape(4, 12) + g.laplace(0, 60, (4, 12)) for _ in range(2)]
        results = [
            attrs.evolve(base, details=base.details | {"counted": each, "counted_error": 60 * np.sqrt(2)})
            for each in both
        ]
        calls += drift(*results).shifted
    alarm.fits(float(binom.sf(calls - 1, 400, 2 * LEVEL)))


def test_bins_are_held_from_the_first_to_the_last_that_is_seen_whatever_lies_between() -> None:
    """Noise of one row in two tables of one group: 4 sqrt(2) = 5.66 rows of both are seen."""
    compared = Compared(np.zeros((2, 1, 7)), np.ones((2, 1, 7)), np.arange(7.0))
    counts = np.array([[[2.8, 2.9, 0.0, -3.0, 0.0, 50.0, 2.8]]] * 2)
    assert compared.held(counts).ravel().tolist() == [False, True, True, True, True, True, False]
    assert not compared.held(np.full((2, 1, 7), 2.8)).any()


def test_without_distances_sizes_alone_are_compared_and_without_their_errors_nothing() -> None:
    old, new = kept(month(1), 1), kept(month(2, "moved"), 2)
    found = drift(attrs.evolve(old, details={"weights_error": old.details["weights_error"]}), new)
    assert (found.shifted, found.cost) == (True, None)
    assert "sizes alone" in found.text
    with pytest.raises(InvalidInput, match="no sizes with standard errors"):
        drift(attrs.evolve(old, details={}), new)


SHARES = np.array([[0.1, 0.2, 0.0], [0.2, 0.1, 0.05], [0.05, 0.1, 0.2]])
"""Of all rows, by group and bin."""


def released(counts: Floats, error: float) -> Result:
    """What a run of ``kept-centers`` released: counts by group and distance, up to 0.1, 0.2 and 0.4."""
    details = {"counted": counts, "counted_error": error, "distances": {"edges": [0.1, 0.2, 0.4]}}
    return Result(
        np.zeros((3, 1)), None, ("x",), {}, {}, PrivacyStatement("Central", 1.0, 0.0, (), 20_000), details, "0"
    )


@pytest.mark.parametrize(("count", "error"), [(math.inf, 10.0), (math.nan, 10.0), (1e300, 10.0), (1.0, -1.0)])
def test_counts_that_are_none_are_damage(count: float, error: float) -> None:
    good = released(20_000 * SHARES, 10.0)
    with pytest.raises(Damaged, match="counts are damaged"):
        drift(released(np.full(SHARES.shape, count), error), good)


def test_changes_are_measured_in_the_errors_of_either_side() -> None:
    """Twice as many rows then as now, with noise of 10 and of 150: sampling and noise of both sides add."""
    moved = np.array([[0.0, 0.0, 0.0], [0.0, -0.05, 0.0], [0.0, 0.05, 0.0]])
    then, now = 20_000 * SHARES, 10_000 * (SHARES + moved)
    found = drift(released(then, 10.0), released(now, 150.0))
    sizes = np.array([then.sum(axis=1) / 20_000, now.sum(axis=1) / 10_000])
    pooled = (then + now).sum(axis=1) / 30_000
    noise = 3 * ((10 / 20_000) ** 2 + (150 / 10_000) ** 2)
    errors = np.sqrt(noise + pooled / 20_000 + pooled / 10_000)
    assert found.shares == pytest.approx(sizes)
    for i in range(len(found.called)):
        then, now = (Estimate.of_share(found.shares[j, i], found.share_errors[j, i]).text for j in range(2))
        assert f"{then} of the rows, now {now}" in found.text
    assert found.apart == pytest.approx((sizes[1] - sizes[0]) / errors)


def test_a_group_is_named_as_changed_beyond_three_standard_errors_in_either_direction() -> None:
    shares, apart = np.full((2, 4), 0.25), np.array([3.0, 3.01, -3.0, -3.01])
    text = Drift(False, 0.5, shares, apart, None, None, ("a", "b", "c", "d"), np.full((2, 4), 0.01)).text
    assert [line[8] for line in text.splitlines() if line.endswith(", changed")] == ["b", "d"]


def test_the_change_of_cost_has_an_error_in_parts_of_the_cost() -> None:
    """Twice as far out now: the error of a ratio is the root of the sum of squared relative errors, times the ratio."""
    far = np.roll(SHARES, 1, axis=1)
    then, now = 20_000 * SHARES, 5_000 * far
    found, squares = drift(released(then, 1e-3), released(now, 1e-3)), np.array([0.01, 0.04, 0.16])
    means = [float(shares.sum(axis=0) @ squares) for shares in (SHARES, far)]
    assert found.cost == pytest.approx(means[1] / means[0])
    assert not 0.8 < found.cost < 1.25
    pooled = (then + now).sum(axis=0) / 25_000
    spread = np.sqrt(pooled @ squares**2 - (pooled @ squares) ** 2) / (pooled @ squares)
    assert found.cost_error == pytest.approx(found.cost * spread * np.sqrt(1 / 20_000 + 1 / 5_000), rel=0.05)


def test_the_chance_counts_the_run_itself_and_draws_that_are_as_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 4,000 draws and the run: all are as large as no change, and none as a change beyond all chance."""
    same = released(20_000 * SHARES, 10.0)
    assert drift(same, same).chance == 1.0
    assert drift(same, released(20_000 * SHARES[::-1], 10.0)).chance == pytest.approx(1 / (1 + DRAWS), rel=1e-12)
    monkeypatch.setattr(Compared, "drawn", lambda self, g: np.broadcast_to(self.counts, (AT_ONCE, *self.counts.shape)))
    assert drift(same, released(20_000 * SHARES[::-1], 10.0)).chance == 1.0
