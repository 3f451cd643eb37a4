"""Runs with categories: what a unit of distance is, what is recorded, and what is asked."""

from __future__ import annotations

import itertools
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cloister.accounting.ledger.ledger import Ledger
from cloister.core.domains import Box
from cloister.core.errors import InvalidInput
from cloister.core.randomness import NoiseRng
from cloister.plugins.methods.zoom_categories import distance
from cloister.run.account import Account
from cloister.run.bounds import domain_for
from cloister.run.fit import fit, source
from cloister.run.layers.levels import method_of
from cloister.run.request import Request, prepare
from cloister.run.result import Result
from cloister.run.warnings import after
from cloister.showing.profile import profile_of
from tests.in_process import ran, refused

WARDS = {"ward": ["A", "B", "C"]}


def frame(n: int = 3000) -> pd.DataFrame:
    g = np.random.default_rng(0)
    ward = g.integers(0, 3, n)
    return pd.DataFrame(
        {
            "age": np.clip(30 + 20 * ward + g.normal(0, 3, n), 0, 120),
            "ward": np.array(["A", "B", "C"])[ward],
            "smoker": g.random(n) < 0.5,
        }
    )


request = partial(
    Request, k=3, epsilon=2.0, delta=1e-6, bounds={"age": (0, 120)}, rows=3000, seed=1, method="hst-means"
)


def released(columns: Any = ("age",), categories: Any = WARDS, **more: Any) -> Result:
    population = source(frame(), columns=list(columns), categories=categories)
    return fit(request(**more), population, noise=NoiseRng.for_tests(0))


def far(result: Result, one: list[float], other: list[float]) -> float:
    units = np.ones(len(one)) if result.units is None else result.units
    return float(np.linalg.norm((np.array(one) - np.array(other)) / units))


@pytest.mark.parametrize("zoom", ["off", "auto", 0.3])
def test_two_categories_are_as_far_apart_as_public_figures_say(zoom: Any) -> None:
    result = released(zoom=zoom)
    low, high = np.array(result.details["intervals"])[0]
    ends = far(result, [low, 0, 0, 0], [high, 0, 0, 0]) / 2 * distance(3, 1, result.problem["k"])
    for one, other in itertools.combinations(np.eye(3).tolist(), 2):
        assert far(result, [0, *one], [0, *other]) == pytest.approx(ends, rel=1e-12)
    np.testing.assert_array_equal(np.array(result.details["intervals"])[1:], [[0, 1]] * 3)


def test_what_a_run_asks_and_the_range_of_a_category_do_not_depend_on_the_rows() -> None:
    """The adversary gives all rows one value, or none that is listed: a range that was looked for would be that value,
    and its unit next to nothing."""
    spends = set[Any]()
    for word in ("A", "C", "not listed"):
        population = source(frame().assign(ward=word), columns=["age"], categories=WARDS)
        result = fit(request(zoom=0.3), population, noise=NoiseRng.for_tests(0))
        np.testing.assert_array_equal(np.array(result.details["intervals"])[1:], [[0, 1]] * 3)
        np.testing.assert_allclose(np.array(result.details["units"])[1:], np.sqrt(2) / distance(3, 1, 3))
        spends.add(result.privacy.spends)
    assert len(spends) == 1


def test_without_a_scale_two_categories_are_one_of_the_caller_s_units_apart() -> None:
    for scale, years in (("none", 1), ({"age": 1.0}, 1), ({"age": 4.0}, 1 / 4)):
        result = released(zoom="off", scale=scale)
        apart = far(result, [0, 1, 0, 0], [0, 0, 1, 0])
        assert apart == pytest.approx(years * far(result, [1, 0, 0, 0], [0, 0, 0, 0]), rel=1e-12)


def test_a_result_records_them_and_one_without_is_what_it_was() -> None:
    result = released(["age", "smoker"])
    assert result.columns == ("age", "smoker", "ward=A", "ward=B", "ward=C")
    assert result.problem["categories"] == WARDS
    assert result.problem["bounds"] == {"lower": [0.0] * 5, "upper": [120.0, 1.0, 1.0, 1.0, 1.0]}
    assert Result.from_dict(result.as_dict()).problem == result.problem
    assert "categories" not in released(categories=None).problem


def test_a_run_that_began_with_another_candidate_of_auto_is_found_again(ledger: Ledger) -> None:
    """As where a plugin was installed then which is not here now."""
    population = source(frame(), columns=["age"], categories=WARDS)
    asked = request(method="auto")
    plan = prepare(asked, population.columns, None, population.selection)
    assert plan.choice is not None
    other = next(c for c in plan.choice.candidates if c.method != method_of(plan.composed).spec.name and c.error)
    began = prepare(asked, population.columns, other.name, population.selection)
    run = ledger.reserve("mine", began.total, began.budget, began.digest(), b"0" * 32)
    account = Account(ledger=ledger.path, dataset="mine", resume=run.id, same_rows=True)
    assert account.plan_to_resume(plan, asked, population.selection).digest() == began.digest() != plan.digest()
    assert fit(asked, population, account=account).method["name"] == other.method


def test_columns_of_nothing_but_categories_need_no_bounds_and_no_zoom() -> None:
    result = fit(request(bounds=None), source(frame(), columns=["ward"], categories=WARDS))
    assert not any("Zoom" in note for note in result.privacy.notes)
    assert sorted(result.centers.argmax(axis=1)) == [0, 1, 2]
    with pytest.raises(InvalidInput, match="there are only categories"):
        released(["ward"], bounds=(0, 1))


def test_booleans_have_bounds_of_their_own() -> None:
    chosen = source(frame(), columns=["age", "smoker"]).selection
    assert domain_for({"age": (0, 120)}, chosen) == Box((0, 0), (120, 1))
    assert domain_for({"age": (0, 120), "smoker": (-1, 2)}, chosen) == Box((0, -1), (120, 2))
    with pytest.raises(InvalidInput, match="no bounds"):
        domain_for(None, chosen)


# the command line


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    frame().assign(mrn=range(3000), visit=pd.Timestamp("2020-01-01")).to_parquet(tmp_path / "rows.parquet")
    return tmp_path


FIT = "-k 3 --epsilon 2 --rows 3000 --method hst-means --delta 1e-6"


def test_which_columns_are_used_is_said_before_anything_is_asked(folder: Path) -> None:
    (folder / "b.toml").write_text("age = [0, 120]\n")
    told = "columns used: age, ward (category); left out: smoker (not listed), mrn (not listed), visit (a date)"
    for asked in ("--bounds b.toml", "--columns age --bounds 0:120", "--bounds b.toml --dry-run"):
        done = ran(f"fit rows.parquet {FIT} {asked} --category ward=A,B,C", folder)
        assert done.stderr.splitlines()[0] == told
    which = "which columns? There are age (numbers), ward (text), smoker (booleans)"
    assert which in refused(f"fit rows.parquet {FIT} --bounds=-1:1", folder)


# values that no row has


def test_a_list_that_no_row_has_a_value_of_is_warned_of_by_released_values_alone(tmp_path: Path) -> None:
    population = source(frame(), columns=["age"], categories={"ward": ["a", "b", "c"]})
    result = fit(request(), population, noise=NoiseRng.for_tests(0))
    words = "of the rows hold a listed value of category 'ward' (a, b, c): rows with another are none of them. Check"
    assert [words in str(warning) for warning in after(result)] == [True]
    assert all(words in text for text in (profile_of(result).text(), "".join(profile_of(result).notes)))
    assert profile_of(result).as_dict()["warnings"]
    result.report(tmp_path / "a.html")
    assert "FEW ROWS HAVE A LISTED VALUE" in (tmp_path / "a.html").read_text("utf-8")


# values that are hard to say


def test_a_value_with_a_comma_goes_in_and_comes_back(tmp_path: Path) -> None:
    listed = ["A, B", 'C"D', "e=f"]
    g = np.random.default_rng(0)
    rows = pd.DataFrame({"age": g.uniform(0, 120, 3000), "ward": np.array(listed)[g.integers(0, 3, 3000)]})
    rows.to_csv(tmp_path / "rows.csv", index=False)
    common = f"fit rows.csv {FIT} --epsilon 9 --columns age --bounds 0:120"
    (tmp_path / "c.toml").write_text("[category]\nward = ['A, B', 'C\"D', 'e=f']\n")
    for say, out in (("""--category 'ward="A, B","C""D",e=f'""", "flag.json"), ("--config c.toml", "config.json")):
        ran(f"{common} {say} --out {out}", tmp_path)
        result = Result.load(tmp_path / out)
        assert result.problem["categories"] == {"ward": listed}
        assert result.columns == ("age", "ward=A, B", 'ward=C"D', "ward=e=f")
        assert not [warning for warning in after(result) if "listed value" in str(warning)]
        assert set(profile_of(result).clusters[0].categories["ward"]) == set(listed)
