"""What a run may begin from: results and tables, mapped by the names of columns, or refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pytest

from cloister.core.errors import InvalidInput
from cloister.core.randomness import NoiseRng
from cloister.run.fit import fit, source
from cloister.run.request import Request, prepare
from cloister.run.result import Result
from cloister.run.starting import Start

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


def option(result: Result | Any, columns: list[str], k: int = 3) -> str:
    return Start.of(result).option(columns, k)


def test_columns_are_mapped_by_name(earlier: Result) -> None:
    columns = ["ward=B", "y", "x", "ward=A"]
    found = np.array([row.split(",") for row in option(earlier, columns).split(";")], float)
    assert np.array_equal(found, earlier.centers[:, [earlier.columns.index(name) for name in columns]])


@pytest.mark.parametrize(
    ("columns", "k", "words"),
    [
        (["x", "y", "ward=A"], 3, "the start has ward=B"),
        (["x", "z", "ward=A", "ward=B"], 3, "lacks z and has y"),
        (["x", "y", "ward=A", "ward=B"], 4, "has 3 centres, k is 4"),
    ],
)
def test_other_columns_categories_and_another_k_are_refused(
    earlier: Result, columns: list[str], k: int, words: str
) -> None:
    with pytest.raises(InvalidInput, match=words):
        option(earlier, columns, k)


def test_a_range_of_k_and_a_method_that_begins_from_nothing_are_refused(earlier: Result) -> None:
    with pytest.raises(InvalidInput, match="k is"):
        fitted(start=earlier, k=(2, 5))
    with pytest.raises(InvalidInput, match="begins from no start"):
        fitted(start=earlier, method="fastlloyd")
    with pytest.raises(InvalidInput, match="is for k-median, and a start for k-means"):
        fitted(start=earlier, method="auto-median")


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
    assert told in fitted(start=earlier, method=method).privacy.text()
    assert told in fitted(start=earlier, method=method, describe=["y"]).privacy.text()
    assert told not in earlier.privacy.text()


@pytest.mark.parametrize("trust", ["aggregated", "local", "shuffled"])
def test_a_start_is_compared_under_every_trust_model(trust: str) -> None:
    """Under users' trust, too, though what cannot be composed is refused in one line."""
    request = Request(
        k=2, epsilon=2.0, delta=1e-6, rows=100_000, bounds=(-1, 1), trust=trust, start={"x": [-0.5, 0.5], "y": [0, 0]}
    )
    assert prepare(request, ("x", "y")).composed.trust == trust.capitalize()


def test_files_of_results_and_of_columns_are_read(earlier: Result, tmp_path: Path) -> None:
    earlier.save(tmp_path / "r.npz")
    (tmp_path / "bare.json").write_text(json.dumps(earlier.as_dict()))
    table = dict(zip(earlier.columns, earlier.centers.T.tolist(), strict=True))
    (tmp_path / "table.json").write_text(json.dumps(table))
    (tmp_path / "table.toml").write_text("".join(f'"{name}" = {values}\n' for name, values in table.items()))
    files = "r.npz", "bare.json", "table.json", "table.toml"
    texts = {option(tmp_path / name, list(earlier.columns)) for name in files}
    assert texts == {option(table, list(earlier.columns))}


def test_refit_works_within_what_the_start_found_and_pays_for_no_zoom(earlier: Result) -> None:
    plan = prepare(Request(start=earlier, method="refit", **ASKED), earlier.columns)
    assert plan.price == ""
    intervals = earlier.details["intervals"]
    assert plan.describe()["bounds"]["lower"] == [low for low, _ in np.asarray(intervals).tolist()]
    again = fitted(start=earlier, method="refit")
    assert again.details["units"] == pytest.approx(np.asarray(earlier.details["units"]))


def test_bounds_are_the_earlier_ones_unless_given(earlier: Result) -> None:
    assert fitted(start=earlier).problem["bounds"] == earlier.problem["bounds"]
    assert fitted(start=earlier, bounds={"x": (0, 50), "y": (-1, 1)}).problem["bounds"]["upper"][0] == 50
