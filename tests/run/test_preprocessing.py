"""Zoom and scale as callers ask for them: what is wrapped, what is said, and that centres are in the caller's units."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

import cloister
from cloister.accounting.privacy_target import PrivacyTarget
from cloister.core.domains import Box
from cloister.core.errors import InvalidInput, Refused
from cloister.core.frames import UNKNOWN
from cloister.core.registry.draft import Kit
from cloister.core.registry.making import drafted
from cloister.core.registry.oracle_resolver import OracleResolver
from cloister.core.registry.registry import registry
from cloister.lab.hospital import BOUNDS, patients
from cloister.metrics import nicv
from cloister.run.fit import fit, source
from cloister.run.layers.layer import Scope
from cloister.run.layers.preprocessing import Preprocessing, scale_of
from cloister.run.request import PreparedRun, prepare
from cloister.run.result import Result
from cloister.showing.plot_data import Curve, Map
from tests.asking import asking
from tests.in_process import ran

COLUMNS = ("x", "y")
MIDDLES = np.array([[-0.5, -0.5], [0.5, 0.5], [0.5, -0.5]])


def blobs(n: int = 5000) -> np.ndarray:
    g = np.random.default_rng(0)
    return MIDDLES[g.integers(0, 3, n)] + g.normal(0, 0.05, (n, 2))


request = partial(asking, k=3, method="hst-means", epsilon=1.0, delta=1e-6, bounds=(-1, 1), rows=5000, seed=3)


def prepared(**given: Any) -> PreparedRun:
    return prepare(request(**given), COLUMNS)


# what is wrapped


@pytest.mark.parametrize(
    "given",
    [
        {"rows": 300},
        {"epsilon": 0.01},
        {"zoom": "off", "scale": "none", "bounds": [(0, 1), (0, 1000)]},
        {"rows": 300, "bounds": [(0, 1), (0, 2)]},
        {"bounds": "ball:1"},
        {"method": "sphere-packing", "bounds": [(0, 1), (0, 9)]},
        {"method": "one-round", "bounds": [(0, 1), (0, 2)], "rows": 10**6},
    ],
)
def test_public_figures_may_say_that_no_frame_is_worth_its_price(given: Any) -> None:
    plan = prepared(**given)
    assert plan.composed.spec.name != "zoom"
    assert plan.price == ""


def test_one_column_has_no_scale_of_its_own() -> None:
    assert prepare(request(rows=300, bounds=(0, 9)), ["x"]).composed.spec.name == "hst-means"


@pytest.mark.parametrize(
    ("given", "share", "scale"),
    [
        ({"rows": 30_000}, None, "none"),
        ({"rows": 300, "bounds": [(0, 1), (0, 3)]}, None, "bounds"),
        ({"rows": 300, "zoom": 0.2}, 0.2, "none"),
        ({"zoom": "off", "scale": "bounds"}, 0.0, "bounds"),
        ({"scale": {"y": 2, "x": 1, "z": 5}}, None, "1.0,2.0"),
        ({"method": "one-round", "bounds": [(0, 1), (0, 9)], "rows": 10**6}, 0.0, "bounds"),
        ({"bounds": "unknown"}, None, "bounds"),
    ],
)
def test_defaults_follow_from_public_figures(given: Any, share: float | None, scale: str) -> None:
    plan = prepared(**given)
    assert plan.composed.spec.name == "zoom"
    assert plan.composed.config()["options"] == {"share": share, "scale": scale}
    assert share != 0 or plan.price == ""


@pytest.mark.parametrize("trust", ["Local", "Shuffled", "Aggregated"])
def test_people_who_report_for_themselves_get_no_zoom_by_default_and_the_scale_that_all_get(trust: str) -> None:
    """Whether a shuffler is between or not, and whatever an oracle's delta: the same method, marked with each trust
    model, as its oracles are."""
    local = OracleResolver("Local").filled(drafted("grid-means"))
    marked = {slot: attrs.evolve(part, trust=part.trust and trust) for slot, part in local.inner.items()}
    reports = attrs.evolve(local, inner=marked, trust=trust)
    wide, apart = Box((-900.0, -900.0), (300.0, 300.0)), Box((0.0, 0.0), (1.0, 9.0))
    scope = Scope(PrivacyTarget(8.0, 1e-6), 3, wide, 10**8, Kit(registry()))
    found = Preprocessing("auto", None).around(reports, scope, 0.0)
    assert found.spec.name == "grid-means"  # nothing can be promised by what people report
    found = Preprocessing("auto", None).around(reports, attrs.evolve(scope, domain=apart), 0.0)
    assert (found.spec.name, found.value.scale) == ("zoom", "bounds")
    assert (found.value.share == 0) == (trust != "Aggregated")


def test_paths_of_slots_and_options_are_those_of_the_method_that_was_asked_for() -> None:
    plan = prepared(method="fastlloyd", components={"counts": "discrete-laplace"}, options={"rounds": 3}, zoom=0.1)
    slots = plan.composed.config()["slots"]
    assert slots["method"]["options"]["rounds"] == 3
    assert slots["method"]["slots"]["counts"]["name"] == "discrete-laplace"
    assert slots["counts"]["name"] == "discrete-gaussian"  # beside Gaussian sums: many small questions


def test_a_scale_that_lacks_a_column_is_refused_with_what_may_be_meant() -> None:
    """What else cannot be is refused in ``bad_inputs``."""
    with pytest.raises(InvalidInput, match=r"no scale for column y \(they have 'yy': is that meant"):
        prepared(scale={"x": 1, "yy": 1})


def test_weights_are_read_from_a_file_with_more_columns_than_are_used(tmp_path: Path) -> None:
    (tmp_path / "weights.toml").write_text("x = 1\ny = 0.5\nother = 3\n")
    for given in (str(tmp_path / "weights.toml"), "1,0.5"):
        assert scale_of(given, COLUMNS) == "1.0,0.5"


# what comes out


def test_the_statement_names_the_price_what_was_released_and_the_units(tmp_path: Path) -> None:
    result = fit(request(bounds="-50:50,unknown"), source(blobs() * [1, 1000]))
    assert result.problem["bounds"] == {"lower": [-50.0, UNKNOWN[0]], "upper": [50.0, UNKNOWN[1]]}
    text = result.privacy.text()
    assert "of the budget finds where the rows are within their bounds and the unknown range of 1." in text
    assert "It released these intervals: 0 -" in text
    assert "Each column has its own unit of distance" in text
    assert result.method["frame"]["slots"]["counts"]["name"] == "discrete-gaussian"
    result.save(tmp_path / "r.json")
    assert Result.load(tmp_path / "r.json").as_dict() == result.as_dict()


def test_costs_iterates_and_pictures_are_in_the_callers_units() -> None:
    """Where there is one unit. (Of projections ``showing/test_figures`` says so.)"""
    rows = 1000 * blobs()
    near = fit(request(method="tree-means", zoom="off"), source(rows / 1000))
    far = fit(request(method="tree-means", bounds=(-90_000, 90_000), zoom=0.1), source(rows))
    assert 0.1 < far.details["costs"][0] / near.details["costs"][0] / 1e6 < 10
    assert (Curve.of(far).costs >= 0).all()
    drawn = Map.of(far)
    assert np.array_equal(drawn.centers, far.centers)
    for corners in (drawn.border, drawn.cells):
        assert 600 < np.abs(corners).max() < 50_000  # rough intervals have room
    lloyd = fit(request(method="fastlloyd", bounds=(-9000, 9000), options={"shrink": 0.0}), source(rows))
    assert np.allclose(np.clip(lloyd.details["iterates"][-1], -9000, 9000), lloyd.centers)


def test_labels_are_by_the_distances_that_the_run_took() -> None:
    """The widest column does not decide alone whose row it is."""
    g = np.random.default_rng(6)
    groups = g.integers(0, 2, 6000)
    rows = np.column_stack([groups + g.normal(0, 0.05, 6000), g.uniform(0, 1e5, 6000)])
    asked: dict[str, Any] = {"method": "hst-means", "delta": 1e-6, "bounds": [(-4, 4), (0, 4e5)], "rows": 6000}
    model, raw = (cloister.KMeans(2, **asked, scale=scale) for scale in ([1e6, 1], "none"))
    assert adjusted_rand_score(groups, model.fit_predict(rows)) > 0.95
    assert model.transform(rows).min(axis=1).mean() < 2e5
    assert adjusted_rand_score(groups, raw.fit_predict(rows)) < 0.5


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("bounds", "given"),
    [
        (BOUNDS, {"rows": 20_000}),
        (dict.fromkeys(BOUNDS, "unknown"), {}),
    ],
)
def test_a_hospitals_groups_are_found_with_default_settings_from_bounds_per_column(bounds: Any, given: Any) -> None:
    rows, groups = patients()
    table = pd.DataFrame(rows, columns=list(BOUNDS))
    model = cloister.KMeans(7, epsilon=1.0, delta=1e-6, bounds=bounds, **given)
    assert np.median([adjusted_rand_score(groups, model.fit_predict(table)) for _ in range(5)]) >= 0.9


def test_unknown_bounds_need_no_public_number_of_rows_and_too_few_are_refused_once_they_are_counted() -> None:
    """A number of rows that is likely elsewhere, and too small for unknown bounds, does not decide for everybody."""
    asked = request(bounds="unknown", rows=None, method="auto")
    assert nicv(blobs(), fit(asked, source(blobs())).centers) < 4 * nicv(blobs(), MIDDLES)
    with pytest.raises(Refused, match="rows are too few to find the range"):
        fit(asked, source(blobs(200)))
    for epsilon, says in ((1e-5, "rows are too few"), (0.03, r"rows are too few .* if there are more rows, .*rows=N")):
        with pytest.raises(InvalidInput, match=says):
            prepared(bounds="unknown", rows=None, epsilon=epsilon)


# what is asked of whom


# the command line


def test_the_price_is_printed_before_the_run_and_figures_are_in_both_units(tmp_path: Path) -> None:
    pd.DataFrame(blobs() * [1, 1000], columns=list(COLUMNS)).to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "b.toml").write_text('x = [-9, 9]\ny = "unknown"\nz = [0, 1]\n')
    fitting = "fit rows.csv -k 3 --epsilon 1 --delta 1e-6 --columns x,y --bounds b.toml --rows 5000 --method hst-means"
    said = ran(f"{fitting} --out out.json", tmp_path).stderr
    assert "of the budget finds where the rows are within their bounds and the unknown range of y." in said
    figures = json.loads(ran("evaluate out.json rows.csv --no-reference --json", tmp_path).stdout)
    assert figures["nicv"] > 1000 * figures["scaled"]["nicv"] > 0
    told = ran("evaluate out.json rows.csv --no-reference", tmp_path).stdout
    first, last = told.index("In the units that the run took distances in"), told.index("In the columns' own units")
    assert first < last  # what the run minimised comes first
