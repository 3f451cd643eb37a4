"""Comparisons: what a study holds, how it goes on, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from cloister.core.errors import CloisterError, InvalidInput
from cloister.lab.comparing import Contender, Study, comparison
from cloister.lab.comparing.conditions import population_of
from cloister.lab.comparing.study import MEAN, MIDPOINT, REFERENCE
from cloister.lab.comparing.study_file import NOTE
from cloister.run.fit import fit, source
from cloister.run.request import Request
from tests.lab.comparing.studies import ROWS, plain, study

# what a study holds


def test_a_study_has_a_cell_for_every_method_and_budget_with_all_its_runs() -> None:
    found = study(epsilons=[0.5, 2], methods=["auto", "fastlloyd", Contender("fastlloyd")])
    expected = [(name, epsilon, 2, True) for epsilon in (0.5, 2.0) for name in ("auto", "fastlloyd")]
    assert [(c.label, c.epsilon, len(c.nicv), c.private) for c in found.cells] == expected
    auto = found.at(0.5)[0]
    assert auto.picked is not None
    assert auto.mean is not None
    assert auto.mean.value == pytest.approx(np.mean(auto.nicv))
    assert len(set(auto.nicv)) == 2  # each run has noise of its own


def test_baselines_are_what_they_say() -> None:
    costs = plain().costs
    assert costs[MIDPOINT] == pytest.approx(np.square(ROWS).sum(axis=1).mean())
    assert costs[MEAN] == pytest.approx(np.square(ROWS - ROWS.mean(axis=0)).sum(axis=1).mean())
    assert costs[REFERENCE] < costs[MEAN] <= costs[MIDPOINT]


def test_delta_and_the_number_of_rows_are_the_papers_unless_they_are_given() -> None:
    assert plain().conditions.delta == pytest.approx(1 / (600 * np.log(600)))
    told = study(public_rows=500, delta=1e-7).conditions
    assert (told.rows, told.count, told.delta) == (500, 600, 1e-7)


def test_costs_are_taken_in_one_unit_per_column_whatever_a_method_does() -> None:
    """The same rows, with a column in thousandths: columns that differ in width are counted by their bounds."""
    wide = ROWS * [1, 1, 1000]
    found = study(rows=wide, bounds=[(-1, 1), (-1, 1), (-1000, 1000)])
    assert found.costs == pytest.approx(plain().costs)
    assert found.conditions.units.tolist() == [1, 1, 1000]
    weighed = study(scale="2,1,1").conditions
    assert weighed.units.tolist() == [0.5, 1, 1]


def test_categories_are_compared_by_as_a_fit_clusters_by_them() -> None:
    """Two wards that numbers do not tell apart: in the units of a fit, with its bounds, missing and unlisted cells."""
    wards = np.random.default_rng(1).choice(["A", "B", "other"], len(ROWS))
    frame = pandas.DataFrame({"x": ROWS[:, 0], "ward": wards, "y": ROWS[:, 1]})
    given = {"categories": {"ward": ["A", "B"]}, "rows": frame, "methods": ["hst-means"], "runs": 1}
    found, read = study(bounds=[(-1, 1), (-1, 1)], **given), study(bounds="rows", **given)
    assert found.conditions.domain.lower == (-1, 0, 0, -1)
    assert read.conditions.domain.lower[1:3] == (0, 0)
    assert not found.conditions.outside
    fitted = fit(
        Request(k=3, epsilon=1.0, delta=1e-6, bounds="-1:1", rows=600, method="hst-means", zoom="off"),
        source(frame, categories=given["categories"]),
    )
    assert fitted.units is not None
    np.testing.assert_allclose(found.conditions.units, fitted.units)
    encoded = np.array([[0.5, 1, 0, 2], [0.1, 0, 0, 3], [0.2, 0, 1, 4]])
    np.testing.assert_array_equal(population_of(encoded, found.conditions.selection).table(), encoded)


def note_of_the_middle(found: Study) -> str:
    (line,) = (line for line in found.table(100).splitlines() if MIDPOINT in line)
    (said,) = (record["note"] for record in found.records() if record["method"] == MIDPOINT)
    assert said.partition(":")[0] in line
    return str(said)


def test_bounds_can_be_read_off_the_rows_and_then_the_study_says_so() -> None:
    found = study(bounds="rows", runs=1)
    assert found.conditions.domain.lower == tuple(ROWS.min(axis=0))
    assert "read off these rows" in found.table()
    assert note_of_the_middle(found) == "NOT private: a single centre"
    assert note_of_the_middle(plain()) == "no data: a single centre"
    constant = np.column_stack([ROWS, np.full(len(ROWS), 7.0)])
    assert study(rows=constant, bounds="rows", runs=1).conditions.domain.upper[3] == 8


# what it says


def test_every_form_of_a_study_says_that_it_is_not_private(tmp_path: Path) -> None:
    found = study(epsilons=[1, 2])
    assert found.table().startswith("NOT private")
    assert found.table().count("(NOT private)") == 2
    assert found.as_dict()["private"] is False
    assert found.as_dict()["note"].startswith("NOT private")
    lines = found.csv().splitlines()
    assert len(lines) == 1 + 2 + 2 * 3
    assert all(line.endswith(NOTE) for line in lines[1:])
    found.plot(tmp_path / "picture.svg")
    drawn = (tmp_path / "picture.svg").read_text()
    assert "NOT private: computed from the rows themselves</text>" in drawn  # not only in the picture's title
    json.dumps(found.as_dict())


def test_a_method_that_gives_no_guarantee_is_marked() -> None:
    found = study(methods=["lloyd", "fastlloyd"])
    assert [cell.private for cell in found.cells] == [False, True]
    assert re.search(r"\blloyd\b.*NOT private", found.table())
    assert not re.search(r"\bfastlloyd\b.*NOT private", found.table())


# refusals


def test_a_method_that_cannot_run_is_a_cell_that_says_why() -> None:
    wide = np.column_stack([ROWS, ROWS, ROWS])
    found = study(rows=wide, methods=["grid-means", "gauss-lloyd:delta=0", "fastlloyd"], runs=1)
    assert [cell.nicv == () for cell in found.cells] == [True, True, False]
    for cell, why in zip(found.cells, ("columns", "delta", "None"), strict=True):
        assert why in str(cell.refused)
    assert "refused at epsilon = 1: grid-means" in found.table()


def test_a_run_that_fails_is_told_and_tried_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    out = tmp_path / "study.jsonl"

    def fails(request: Request, *_: Any) -> None:
        raise CloisterError(f"no luck with k = {request.k}, epsilon = {request.epsilon:g}")

    with monkeypatch.context() as patch:
        patch.setattr(comparison, "fit", fails)
        assert study(out=out).cells[0].refused == "no luck with k = 3, epsilon = 1"
    assert study(out=out).cells[0].refused is None


@pytest.mark.parametrize("failing", [0, 1])
def test_a_cell_has_the_figures_of_the_runs_that_ended_beside_one_that_failed(
    monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    runs = list[int]()

    def sometimes(request: Request, *rest: Any) -> Any:
        runs.append(len(runs))
        if runs[-1] == failing:
            raise CloisterError("no luck")
        return fit(request, *rest)

    monkeypatch.setattr(comparison, "fit", sometimes)
    (cell,) = study(workers=1).cells
    assert (cell.requested, len(cell.nicv), len(cell.seconds), cell.refused) == (2, 1, 1, "no luck")
    assert 0 < cell.nicv[0] < 1
    assert cell.seconds[0] > 0
    assert cell.mean is not None
    assert cell.mean.value == cell.nicv[0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"epsilons": []}, "positive numbers"),
        ({"epsilons": ["x"]}, "positive numbers"),
        ({"runs": True}, "runs is True"),
        ({"k": 2.5}, "k is 2.5"),
        ({"methods": ["grid-means"], "rows": np.tile(ROWS, 3)}, "no contender can run: grid-means"),
        ({"users": ["a"] * 40, "rows_per_user": 2}, "there is not one user per row"),
        ({"users": ["a"] * len(ROWS)}, "give both --user-column"),
        ({"rows_per_user": 2}, "give both --user-column"),
        ({"k": (2, 601)}, "k is .2, 601.: give a whole number, or a range, between 1 and the 600 rows"),
    ],
)
def test_what_makes_no_sense_is_refused_before_any_run(
    given: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a line can say, too, is among the bad inputs of ``compare``."""
    monkeypatch.setattr(comparison, "outcomes", None)
    with pytest.raises(InvalidInput, match=message):
        study(**given)


def test_costs_are_of_rows_clipped_as_runs_clip_and_the_others_stand_beside(tmp_path: Path) -> None:
    rows, out = np.concatenate([ROWS, [[1e6, 0.0, 0.0]]]), tmp_path / "study.jsonl"
    found = study(rows=rows, out=out)
    (cell,) = found.cells
    assert max(*cell.nicv, *found.costs.values()) < 3 < 1e8 < min(cell.unclipped)
    assert "with 1 rows outside: costs are of clipped rows" in found.table(120)
    assert "of the unclipped rows" in found.table(120)
    assert found.records()[0]["unclipped_nicv"] > 1e8
    assert study(rows=rows, out=out).cells[0].unclipped == cell.unclipped
    assert plain().cells[0].unclipped == ()
