"""What a run may begin from: results and tables, mapped by the names of columns, or refused."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pytest

from cloister.core.errors import InvalidInput
from cloister.core.randomness import NoiseRng
from cloister.core.registry.making import make
from cloister.run.fit import fit, source
from cloister.run.layers.levels import method_of
from cloister.run.layers.warm_start import Start
from cloister.run.request import Request, prepare
from cloister.run.result import Result
from tests.testing.zoo_noise import ExactUnderAPrivateName

G = np.random.default_rng(1)
ROWS = pa.table({"x": G.normal(10, 3, 4000), "y": G.normal(0, 0.1, 4000), "ward": ["A", "B"] * 2000})
ASKED: dict[str, Any] = {"k": 3, "epsilon": 1.0, "delta": 1e-6, "rows": 4000, "seed": 1}


def fitted(**given: Any) -> Result:
    population = source(ROWS, columns=["x", "y", "ward"], categories={"ward": ["A", "B"]})
    return fit(Request(**ASKED | given), population, noise=NoiseRng.for_tests(1))


@pytest.fixture(scope="module")
def earlier() -> Result:
    """As if its noise were secret."""
    found = fitted(bounds={"x": (0, 100), "y": (-1, 1)})
    return attrs.evolve(found, privacy=attrs.evolve(found.privacy, seeded=False))


def option(start: Any, columns: list[str]) -> str:
    return Start.of(start).option(columns, 3)


def test_columns_are_mapped_by_name(earlier: Result) -> None:
    columns = ["ward=B", "y", "x", "ward=A"]
    found = np.array([row.split(",") for row in option(earlier, columns).split(";")], float)
    assert np.array_equal(found, earlier.centers[:, [earlier.columns.index(name) for name in columns]])


def test_other_columns_and_categories_are_refused(earlier: Result) -> None:
    for columns, words in (
        (["x", "y", "ward=A"], "the start has ward=B"),
        (["x", "z", "ward=A", "ward=B"], "lacks z and has y"),
    ):
        with pytest.raises(InvalidInput, match=words):
            option(earlier, columns)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"k": 4}, "has 3 centres, k is 4"),
        ({"k": (2, 5)}, "k is"),
        ({"method": "fastlloyd"}, "begins from no start"),
        ({"method": "auto-median"}, "is for k-median, and a start for k-means"),
    ],
)
def test_another_k_and_a_method_that_begins_from_nothing_are_refused(earlier: Result, given: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        fitted(start=earlier, **given)


@pytest.mark.parametrize("name", ["auto", "refit"])
def test_a_component_begins_from_a_start_as_its_name_does(name: str) -> None:
    asked = partial(Request, k=2, epsilon=1.0, delta=1e-6, rows=3000, bounds=(-1, 1))
    start = {"x": [-0.5, 0.5], "y": [0, 0]}
    made, named = (prepare(asked(method=method, start=start), ("x", "y")) for method in (make("Method", name), name))
    assert method_of(made.composed).config() == method_of(named.composed).config()
    assert made.digest() == named.digest()


def test_a_class_that_no_plugin_offers_begins_from_no_start() -> None:
    """Its record could not hold the centres."""
    stranger = make("Method", "refit", counts=ExactUnderAPrivateName())
    with pytest.raises(InvalidInput, match="begins from no start"):
        fitted(start={"x": [0], "y": [0], "ward=A": [0], "ward=B": [0]}, k=1, method=stranger)


@pytest.mark.parametrize("how", [{"private": False}, {"seeded": True}])
@pytest.mark.parametrize("method", ["auto", "refit", "kept-centers"])
def test_centres_of_a_run_that_protects_nobody_are_no_start(earlier: Result, method: str, how: Any) -> None:
    """Centres under a seed's noise are as good as exact: whoever knows it takes it off, and they stay in results."""
    exact = attrs.evolve(earlier, privacy=attrs.evolve(earlier.privacy, **how))
    request = Request(**ASKED, start=exact, method=method)
    with pytest.raises(InvalidInput, match="the start is the result of a run that is NOT private"):
        prepare(request, exact.columns)
    assert prepare(attrs.evolve(request, not_private=True), exact.columns).composed.private


@pytest.mark.parametrize("method", ["auto", "refit", "kept-centers"])
def test_a_statement_says_that_its_start_counts_as_public(earlier: Result, method: str) -> None:
    """A result's centres may be those that it began from, whose own promise is another run's."""
    told = "the promise of whatever found them, and adds to this one"
    for described in ((), ["y"]):
        assert told in fitted(start=earlier, method=method, describe=described).privacy.text()
    assert told not in earlier.privacy.text()


@pytest.mark.parametrize("trust", ["aggregated", "local", "shuffled"])
def test_a_start_is_compared_under_every_trust_model(trust: str) -> None:
    """Under users' trust, too, though what cannot be composed is refused in one line."""
    request = Request(
        k=2, epsilon=2.0, delta=1e-6, rows=100_000, bounds=(-1, 1), trust=trust, start={"x": [-0.5, 0.5], "y": [0, 0]}
    )
    assert prepare(request, ("x", "y")).composed.trust == trust.capitalize()


def test_files_of_results_and_of_columns_are_read(earlier: Result, tmp_path: Path) -> None:
    columns = list(earlier.columns)
    earlier.save(tmp_path / "r.npz")
    (tmp_path / "bare.json").write_text(json.dumps(earlier.as_dict()))
    table = dict(zip(columns, earlier.centers.T.tolist(), strict=True))
    (tmp_path / "table.json").write_text(json.dumps(table))
    (tmp_path / "table.toml").write_text("".join(f'"{name}" = {values}\n' for name, values in table.items()))
    for name in ("r.npz", "bare.json", "table.json", "table.toml"):
        assert option(tmp_path / name, columns) == option(table, columns), name


def test_refit_works_within_what_the_start_found_and_pays_for_no_zoom(earlier: Result) -> None:
    plan = prepare(Request(start=earlier, method="refit", **ASKED), earlier.columns)
    assert plan.price == ""
    assert plan.describe()["bounds"]["lower"] == np.asarray(earlier.details["intervals"])[:, 0].tolist()
    again = fitted(start=earlier, method="refit")
    assert again.details["units"] == pytest.approx(np.asarray(earlier.details["units"]))


def test_bounds_are_the_earlier_ones_unless_given(earlier: Result) -> None:
    assert fitted(start=earlier).problem["bounds"] == earlier.problem["bounds"]
    assert fitted(start=earlier, bounds={"x": (0, 50), "y": (-1, 1)}).problem["bounds"]["upper"][0] == 50


def test_a_method_that_trusts_its_start_works_within_what_that_found_and_auto_within_what_was_declared(
    earlier: Result,
) -> None:
    """Auto may find that rows are elsewhere now. Columns are matched by name; bounds that are given win over both."""
    found = {"x": (2.0, 30.0), "y": (-0.5, 0.25), "ward=A": (0.0, 1.0), "ward=B": (0.0, 1.0)}
    declared = {**found, "x": (0.0, 100.0), "y": (-1.0, 1.0)}
    start = attrs.evolve(earlier, details={**earlier.details, "intervals": list(found.values())})
    columns = ("ward=A", "y", "x", "ward=B")
    for method, expected in (("refit", found), ("kept-centers", found), ("auto", declared)):
        bounds = prepare(Request(**ASKED, start=start, method=method), columns).describe()["bounds"]
        assert list(zip(bounds["lower"], bounds["upper"], strict=True)) == [expected[name] for name in columns]
        given = prepare(Request(**ASKED, start=start, method=method, bounds=(-7, 70)), columns).describe()["bounds"]
        assert (set(given["lower"]), set(given["upper"])) == ({-7.0}, {70.0})
