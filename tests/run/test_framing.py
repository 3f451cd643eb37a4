"""Zoom and scale as callers ask for them: what is wrapped, what is said, and that centres are in the caller's units."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import adjusted_rand_score

import cloister
from cloister.accounting.total import Total
from cloister.core.domains import Box
from cloister.core.errors import InvalidInput, Refused
from cloister.core.frames import UNKNOWN
from cloister.core.randomness import NoiseRng
from cloister.core.registry.filling import Filler
from cloister.core.registry.registry import Plugin, Registry, registry
from cloister.federated.plan import pooled
from cloister.metrics import nicv
from cloister.run.fit import fit, parties, source
from cloister.run.framing import Framing, recorded, unframed
from cloister.run.request import PreparedRun, Request, prepare
from cloister.showing.plot_data import Curve, Map
from tests.in_process import ran

COLUMNS = ("x", "y")
MIDDLES = np.array([[-0.5, -0.5], [0.5, 0.5], [0.5, -0.5]])


def blobs(n: int = 5000, seed: int = 0) -> np.ndarray:
    g = np.random.default_rng(seed)
    return MIDDLES[g.integers(0, 3, n)] + g.normal(0, 0.05, (n, 2))


def request(**given: Any) -> Request:
    asked: dict[str, Any] = {"k": 3, "method": "hst-means", "epsilon": 1.0, "delta": 1e-6, "rows": 5000, "seed": 3}
    return Request(**{**asked, "bounds": (-1, 1), **given})


def prepared(**given: Any) -> PreparedRun:
    return prepare(request(**given), COLUMNS)


def name(plan: PreparedRun) -> str:
    return plan.composed.spec.name


# what is wrapped


def test_which_method_wraps_another_one_is_its_specs_to_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run knows no wrapper by name: under another name it is put to the same use, and recorded alike."""
    found = registry()
    specs = tuple(attrs.evolve(s, name="lens") if s.adds == "frame" and s.wraps else s for s in found.specs())
    plain = recorded(prepared(zoom=0.2).composed)
    for module in ("framing", "request", "choosing"):
        monkeypatch.setattr(f"cloister.run.{module}.registry", lambda: Registry((Plugin("x", "y", specs),)))
    plan = prepared(zoom=0.2)
    assert name(plan) == "lens"
    assert unframed(plan.composed).spec.name == "hst-means"
    assert recorded(plan.composed) == plain | {"frame": plain["frame"] | {"name": "lens"}}
    with pytest.raises(InvalidInput, match="'lens' has its own options"):
        prepared(method="lens", zoom=0.2)
    bare = tuple(attrs.evolve(s, wraps="") for s in specs)
    with pytest.raises(InvalidInput, match="no installed method wraps another one"):
        Registry((Plugin("x", "y", bare),)).wrapper()


@pytest.mark.parametrize(
    ("given", "frame"),
    [
        ({}, {"share": None, "scale": "none"}),
        ({"rows": 300}, None),
        ({"epsilon": 0.01}, None),
        ({"rows": 300, "bounds": [(0, 1), (0, 3)]}, {"share": None, "scale": "bounds"}),
        ({"rows": 300, "bounds": [(0, 1), (0, 2)]}, None),
        ({"rows": 300, "zoom": 0.2}, {"share": 0.2, "scale": "none"}),
        ({"zoom": "off", "scale": "bounds"}, {"share": 0.0, "scale": "bounds"}),
        ({"scale": {"y": 2, "x": 1, "z": 5}}, {"share": None, "scale": "1.0,2.0"}),
        ({"bounds": "ball:1"}, None),
        ({"method": "one-round", "bounds": [(0, 1), (0, 9)], "rows": 10**6}, {"share": 0.0, "scale": "bounds"}),
        ({"bounds": "unknown"}, {"share": None, "scale": "bounds"}),
    ],
)
def test_defaults_follow_from_public_figures(given: Any, frame: dict[str, Any] | None) -> None:
    plan = prepared(**given)
    assert (name(plan) == "zoom") == (frame is not None)
    if frame is None or frame["share"] == 0:
        assert plan.price == ""
    if frame is not None:
        assert plan.composed.config()["options"] == frame


@pytest.mark.parametrize("trust", ["Local", "Shuffled", "Aggregated"])
def test_people_who_report_for_themselves_get_no_zoom_by_default_and_the_scale_that_all_get(trust: str) -> None:
    """Whether a shuffler is between or not, and whatever an oracle's delta: the same method, marked with each trust
    model."""
    reports = attrs.evolve(Filler(registry(), "Local").filled("Method", "grid-means", {}, {}), trust=trust)
    wide, apart = Box((-900.0, -900.0), (300.0, 300.0)), Box((0.0, 0.0), (1.0, 9.0))
    _, found = Framing("auto", None).of(reports, Total(8.0, 1e-6), 3, wide, 10**8)
    assert found.spec.name == ("zoom" if trust == "Aggregated" else "grid-means")
    _, found = Framing("auto", None).of(reports, Total(8.0, 1e-6), 3, apart, 10**8)
    assert (found.spec.name, found.value.scale) == ("zoom", "bounds")
    assert (found.value.share == 0) == (trust != "Aggregated")


def test_paths_of_slots_and_options_are_those_of_the_method_that_was_asked_for() -> None:
    plan = prepared(
        method="fastlloyd", components={"counts": "discrete-laplace"}, options={"rounds": 3}, delta=1e-6, zoom=0.1
    )
    slots = plan.composed.config()["slots"]
    assert slots["method"]["options"]["rounds"] == 3
    assert slots["method"]["slots"]["counts"]["name"] == "discrete-laplace"
    assert slots["counts"]["name"] == "discrete-gaussian"  # beside Gaussian sums: many small questions


def test_a_scale_that_lacks_a_column_is_refused_with_what_may_be_meant() -> None:
    """What else cannot be is refused in ``bad_inputs``."""
    with pytest.raises(InvalidInput, match=r"no scale for column y \(they have 'yy': is that meant"):
        prepared(scale={"x": 1, "yy": 1})


def test_unknown_bounds_stand_for_the_widest_ones_in_every_form(tmp_path: Path) -> None:
    (tmp_path / "clinical.toml").write_text('x = [0, 120]\ny = "unknown"\nunused = [0, 1]\n')
    for bounds in ("0:120,unknown", [(0, 120), "unknown"], str(tmp_path / "clinical.toml")):
        domain = prepared(bounds=bounds).describe()["bounds"]
        assert domain == {"lower": [0.0, UNKNOWN[0]], "upper": [120.0, UNKNOWN[1]]}


# what comes out


@pytest.mark.parametrize(
    ("method", "bounds"),
    [("hst-means", (-900, 300)), ("tree-coreset", (-900, 300)), ("fastlloyd", "unknown"), ("hst-median", "unknown")],
)
def test_centres_are_found_in_bounds_that_are_much_too_wide_or_unknown(method: str, bounds: Any) -> None:
    rows = blobs()
    runs = [fit(request(method=method, bounds=bounds, seed=s), source(rows)) for s in range(3)]
    assert min(nicv(rows, result.centers) for result in runs) < 4 * nicv(rows, MIDDLES)
    assert all(result.method["name"] == method for result in runs)


def test_the_statement_names_the_price_what_was_released_and_the_units() -> None:
    rows = blobs() * [1, 1000]
    result = fit(request(bounds=[(-50, 50), "unknown"]), source(rows))
    text = result.privacy.text()
    assert "of the budget finds where the rows are within their bounds and the unknown range of 1." in text
    assert "It released these intervals: 0 -" in text
    assert "Distances were taken in units of each column's own" in text
    assert result.method["frame"]["slots"]["counts"]["name"] == "discrete-gaussian"
    plain = fit(request(zoom="off"), source(blobs()))
    assert (plain.privacy.notes, plain.as_dict()["privacy"]["notes"], plain.units) == ((), [], None)
    assert "frame" not in plain.method


@pytest.mark.parametrize("d", [1, 12])
def test_pictures_are_drawn_in_the_callers_units(d: int) -> None:
    g = np.random.default_rng(5)
    rows = np.array([1.0, 300.0] * 6)[:d] * (np.eye(3, 12)[g.integers(0, 3, 6000), :d] + g.normal(0, 0.03, (6000, d)))
    result = fit(request(bounds=(-9000, 9000), scale="bounds"), source(rows), noise=NoiseRng.for_tests(d))
    drawn = Map.of(result)
    if not drawn.view.projected:
        assert np.array_equal(drawn.centers[:, 0], result.centers[:, 0])
        assert drawn.border[:, 0].max() < 50  # rough intervals have room
        assert (np.abs(drawn.cells[..., 0]) < 50).all()
    assert (Curve.of(result).costs >= 0).all()


def test_labels_are_by_the_distances_that_the_run_took() -> None:
    """The widest column does not decide alone whose row it is."""
    g = np.random.default_rng(6)
    groups = g.integers(0, 2, 6000)
    rows = np.column_stack([groups + g.normal(0, 0.05, 6000), g.uniform(0, 1e5, 6000)])
    model = cloister.KMeans(2, method="hst-means", delta=1e-6, bounds=[(-4, 4), (0, 4e5)], rows=6000, scale=[1e6, 1])
    assert adjusted_rand_score(groups, model.fit_predict(rows)) > 0.95
    assert model.transform(rows).min(axis=1).mean() < 2e5
    raw = cloister.KMeans(2, method="hst-means", delta=1e-6, bounds=[(-4, 4), (0, 4e5)], rows=6000, scale="none")
    assert adjusted_rand_score(groups, raw.fit_predict(rows)) < 0.5


def test_unknown_bounds_need_no_public_number_of_rows_and_too_few_are_refused_once_they_are_counted() -> None:
    """A number of rows that is likely elsewhere, and too small for unknown bounds, does not decide for everybody."""
    asked = request(bounds="unknown", rows=None, method="auto")
    assert nicv(blobs(), fit(asked, source(blobs())).centers) < 4 * nicv(blobs(), MIDDLES)
    with pytest.raises(Refused, match="rows are too few to find the range"):
        fit(asked, source(blobs(200)))
    with pytest.raises(InvalidInput, match="rows are too few"):
        prepared(bounds="unknown", rows=None, epsilon=1e-5)


# what is asked of whom


def test_what_is_composed_does_not_depend_on_rows() -> None:
    """Neighbours, unrelated rows: the same plan, the same rounds, the same price."""
    tables = blobs(), blobs()[1:], np.full((4000, 2), 7.0)
    runs = [fit(request(bounds=(-90, 90), scale="bounds"), source(rows)) for rows in tables]
    assert len({json.dumps(run.method) for run in runs}) == 1
    assert len({run.privacy.spends for run in runs}) == 1


def test_parties_who_pool_zoom_by_their_own_oracle_and_find_the_rows_of_all() -> None:
    rows = blobs()
    components, options = pooled("hst-means", {}, {}, 2)
    together = parties({name: source(rows[i::2]) for i, name in enumerate(("north", "south"))})
    asked = request(bounds=(-900, 900), components=components, options=options, epsilon=2.0)
    result = fit(asked, together)
    counts = result.method["frame"]["slots"]["counts"]
    assert (counts["name"], counts["options"]["parties"]) == ("skellam", 2)
    assert (np.abs(result.details["intervals"]) < 3).all()
    assert (result.details["intervals"] @ [-1, 1] > 1).all()


# the command line


def test_the_price_is_printed_before_the_run_and_figures_are_in_both_units(tmp_path: Path) -> None:
    pd.DataFrame(blobs() * [1, 1000], columns=list(COLUMNS)).to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "b.toml").write_text('x = [-9, 9]\ny = "unknown"\nz = [0, 1]\n')
    fitting = "fit rows.csv -k 3 --epsilon 1 --delta 1e-6 --columns x,y --bounds b.toml --rows 5000 --method hst-means"
    said = ran(f"{fitting} --out out.json", tmp_path).stderr
    assert "of the budget finds where the rows are within their bounds and the unknown range of y." in said
    figures = json.loads(ran("evaluate out.json rows.csv --no-reference --json", tmp_path).stdout)
    assert figures["nicv"] > 1000 * figures["scaled"]["nicv"] > 0
