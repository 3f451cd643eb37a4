"""Comparisons: what a study holds, how it goes on, and what is refused."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cloister.comparing import Contender, Study, compare, comparison, trials
from cloister.comparing.conditions import usual_delta
from cloister.comparing.figures import MEAN, MIDPOINT, REFERENCE, Cell
from cloister.comparing.study_file import NOTE
from cloister.core.errors import CloisterError, Damaged, InvalidInput, MissingExtra
from cloister.core.types import Floats
from cloister.datasets.made import blobs
from cloister.metrics import nicv

ROWS = blobs(600, 3, 3, seed=1).numbers
QUICK: dict[str, Any] = {"k": 3, "epsilons": [1.0], "methods": ["fastlloyd"], "runs": 2, "bounds": (-1, 1)}


def study(**given: Any) -> Study:
    return compare(given.pop("rows", ROWS), **{**QUICK, **given})


# what a study holds


def test_a_study_has_a_cell_for_every_method_and_budget_with_all_its_runs() -> None:
    found = study(epsilons=[0.5, 2], methods=["auto", "fastlloyd"])
    assert [(c.label, c.epsilon, len(c.nicv), c.private) for c in found.cells] == [
        ("auto", 0.5, 2, True), ("fastlloyd", 0.5, 2, True), ("auto", 2.0, 2, True), ("fastlloyd", 2.0, 2, True),
    ]  # fmt: skip
    auto = found.at(0.5)[0]
    assert auto.picked is not None
    assert auto.mean is not None
    assert auto.mean.value == pytest.approx(np.mean(auto.nicv))
    assert len(set(auto.nicv)) == 2  # each run has noise of its own


def test_baselines_are_what_they_say() -> None:
    costs = study().costs
    assert costs[MIDPOINT] == pytest.approx(np.square(ROWS).sum(axis=1).mean())
    assert costs[MEAN] == pytest.approx(np.square(ROWS - ROWS.mean(axis=0)).sum(axis=1).mean())
    assert costs[REFERENCE] < costs[MEAN] <= costs[MIDPOINT]


def test_the_default_is_auto_and_what_it_picks_from() -> None:
    found = study(methods=None, runs=1)
    labels = [cell.label for cell in found.cells]
    assert labels[0] == "auto"
    assert {"fastlloyd", "grid-means", "hst-means"} < set(labels)


def test_delta_and_the_number_of_rows_are_the_papers_unless_they_are_given() -> None:
    assert study().conditions.delta == pytest.approx(1 / (600 * np.log(600)))
    told = study(public_rows=500, delta=1e-7).conditions
    assert (told.rows, told.count, told.delta) == (500, 600, 1e-7)
    with pytest.raises(InvalidInput, match="at least 2 rows"):
        usual_delta(1)


def test_costs_are_taken_in_one_unit_per_column_whatever_a_method_does() -> None:
    """The same rows, with a column in thousandths: columns that differ in width are counted by their bounds."""
    wide = ROWS * [1, 1, 1000]
    found = study(rows=wide, bounds=[(-1, 1), (-1, 1), (-1000, 1000)])
    assert found.costs == pytest.approx(study().costs)
    assert found.conditions.units.tolist() == [1, 1, 1000]
    weighed = study(scale="2,1,1").conditions
    assert weighed.units.tolist() == [0.5, 1, 1]


def test_bounds_can_be_read_off_the_rows_and_then_the_study_says_so() -> None:
    found = study(bounds="rows")
    assert found.conditions.domain.lower == tuple(ROWS.min(axis=0))
    assert "read off these rows" in found.table()
    constant = np.column_stack([ROWS, np.full(len(ROWS), 7.0)])
    assert study(rows=constant, bounds="rows").conditions.domain.upper[3] == 8


def test_local_methods_take_part_and_name_their_trust() -> None:
    found = study(methods=["one-round", "fastlloyd:trust=local"], runs=1)
    assert [cell.trust for cell in found.cells] == ["Local", "Local"]


@pytest.mark.slow
def test_two_workers_find_a_study_of_the_same_form_as_one(tmp_path: Path) -> None:
    """Costs are noise, and of one law: the means of 20 runs are within six standard errors of one another (a false
    alarm rate below 1e-6)."""
    one, two = (study(runs=20, workers=workers) for workers in (1, 2))
    assert one.costs == two.costs
    assert [(c.label, len(c.nicv)) for c in one.cells] == [(c.label, len(c.nicv)) for c in two.cells]
    a, b = one.cells[0].mean, two.cells[0].mean
    assert a is not None
    assert b is not None
    assert abs(a.value - b.value) < 6 * np.hypot(a.standard_error, b.standard_error)


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
    with pytest.raises(InvalidInput, match=r"\.png or \.svg"):
        found.plot(tmp_path / "picture.pdf")
    json.dumps(found.as_dict())


def test_a_method_that_gives_no_guarantee_is_marked() -> None:
    found = study(methods=["lloyd", "fastlloyd"])
    assert [cell.private for cell in found.cells] == [False, True]
    (line,) = [line for line in found.table().splitlines() if "lloyd" in line and "fastlloyd" not in line]
    assert "NOT private" in line


def test_a_single_run_shows_no_standard_error() -> None:
    found = study(runs=1)
    assert "±" not in found.table().partition("epsilon =")[2]
    assert found.records()[0]["standard_error"] is None
    found.plot()


def test_a_cost_of_zero_has_no_ratio_over_it() -> None:
    found = study(rows=np.repeat(np.array([[0.0, 0.5], [0.5, 0.0]]), 50, axis=0), k=2)
    assert found.records()[0]["ratio"] is None
    found.plot()


# refusals


def test_a_method_that_cannot_run_is_a_cell_that_says_why() -> None:
    wide = np.column_stack([ROWS, ROWS, ROWS])
    found = study(rows=wide, methods=["grid-means", "fastlloyd"])
    refused, ran = found.cells
    assert refused.refused is not None
    assert "columns" in refused.refused
    assert refused.nicv == ()
    assert ran.refused is None
    assert "refused at epsilon = 1: grid-means" in found.table()


def test_a_method_that_needs_a_delta_is_refused_without_one() -> None:
    found = study(methods=["gauss-lloyd:delta=0", "su-lloyd"])
    assert found.cells[0].refused is not None
    assert "delta" in found.cells[0].refused
    assert found.cells[1].refused is None


def test_a_run_that_fails_is_told_and_tried_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    out = tmp_path / "study.jsonl"

    def fails(*_: Any) -> None:
        raise CloisterError("no luck")

    with monkeypatch.context() as patch:
        patch.setattr(trials, "fit", fails)
        assert study(out=out).cells[0].refused == "no luck"
    assert study(out=out).cells[0].refused is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"epsilons": []}, "positive numbers"), ({"epsilons": [0.0]}, "positive numbers"),
        ({"epsilons": [float("nan")]}, "positive numbers"), ({"epsilons": ["x"]}, "positive numbers"),
        ({"runs": 0}, "runs is 0"), ({"runs": True}, "runs is True"), ({"workers": 0}, "workers is 0"),
        ({"k": 601}, "between 1 and the 600 rows"), ({"k": 2.5}, "k is 2.5"), ({"bounds": "unknown"}, "unknown bounds"),
        ({"methods": ["fastloyd"]}, "did you mean fastlloyd"), ({"methods": ["fastlloyd:rouns=3"]}, "rounds"),
        ({"methods": ["fastlloyd:rounds"]}, "not one name=value"), ({"methods": ["fastlloyd:delta=x"]}, "not a number"),
        ({"methods": ["fastlloyd:trust=nobody"]}, "no trust"), ({"rivals": ["sklern"]}, "did you mean sklearn"),
        ({"methods": ["grid-means"], "rows": np.tile(ROWS, 3)}, "nothing can be compared: grid-means"),
        ({"out": "study.json"}, "studies are saved as .jsonl"), ({"delta": 2.0}, "nothing can be compared"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_before_any_run(
    given: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "outcomes", None)
    with pytest.raises(InvalidInput, match=message):
        study(**given)


def test_without_scikit_learn_there_is_no_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "sklearn.cluster", None)
    with pytest.raises(MissingExtra, match="scikit-learn"):
        study()


# contenders


def test_a_contenders_text_names_options_slots_trust_and_delta() -> None:
    text = "fastlloyd:counts=discrete-laplace:rounds=3:trust=central:delta=1e-06"
    one = Contender.of(text)
    assert one == Contender("fastlloyd", {"rounds": "3"}, {"counts": "discrete-laplace"}, "central", 1e-6)
    assert one.label == text
    assert Contender.of(one.label) == one


def test_one_contender_given_twice_runs_once() -> None:
    assert len(study(methods=["fastlloyd", Contender("fastlloyd")]).cells) == 1


# rivals


def test_scikit_learn_joins_as_not_private() -> None:
    cell = study(rivals=["sklearn"]).cells[-1]
    assert (cell.label, cell.private, len(cell.nicv)) == ("sklearn", False, 2)


def diffprivlib_of(monkeypatch: pytest.MonkeyPatch, centers: Any) -> list[dict[str, Any]]:
    """A stand-in for the package: it need not be installed, nor fit this scikit-learn."""
    asked = list[dict[str, Any]]()

    class KMeans:
        def __init__(self, **given: Any) -> None:
            asked.append(given)

        def fit(self, rows: Floats) -> Any:
            return SimpleNamespace(cluster_centers_=centers(rows))

    models = ModuleType("diffprivlib.models")
    models.KMeans = KMeans  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "diffprivlib", ModuleType("diffprivlib"))
    monkeypatch.setitem(sys.modules, "diffprivlib.models", models)
    return asked


def test_diffprivlib_gets_the_same_budget_and_bounds_in_the_studys_units(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = diffprivlib_of(monkeypatch, lambda rows: rows[:3])
    wide = ROWS * [1, 1, 1000]
    found = study(rows=wide, bounds=[(-1, 1), (-1, 1), (-2000, 1000)], rivals=["diffprivlib"], epsilons=[0.3])
    assert [given["epsilon"] for given in asked] == [0.3, 0.3]
    np.testing.assert_allclose(asked[0]["bounds"], [[-1, -1, -2000 / 1500], [1, 1, 1000 / 1500]])
    units = found.conditions.units
    assert found.cells[-1].nicv[0] == pytest.approx(nicv(wide / units, wide[:3] / units))
    assert found.cells[-1].private is False
    assert "spends more epsilon than asked" in found.table()


@pytest.mark.parametrize(
    "centers", [lambda rows: rows[:3] * np.nan, lambda rows: 1 / 0], ids=["not finite", "an error of its own"]
)
def test_a_rival_that_fails_is_a_cell_that_says_so(monkeypatch: pytest.MonkeyPatch, centers: Any) -> None:
    diffprivlib_of(monkeypatch, centers)
    cell = study(rivals=["diffprivlib"]).cells[-1]
    assert cell.refused is not None
    assert cell.refused.startswith("diffprivlib")


def test_a_rival_that_is_not_there_or_takes_no_ball_is_a_cell_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "diffprivlib", None)
        assert "not installed" in str(study(rivals=["diffprivlib"]).cells[-1].refused)
    diffprivlib_of(monkeypatch, lambda rows: rows[:3])
    assert "ball" in str(study(rivals=["diffprivlib"], bounds="ball:2").cells[-1].refused)


# going on


def test_a_study_goes_on_where_it_was_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed after its third run: three are kept, three are made, and nothing twice."""
    out, made = tmp_path / "study.jsonl", 0
    run = trials.Bench.run

    class Killed(BaseException):
        pass

    def dies(self: Any, trial: Any) -> Any:
        nonlocal made
        made += 1
        if made == 4:
            raise Killed
        return run(self, trial)

    monkeypatch.setattr(trials.Bench, "run", dies)
    with pytest.raises(Killed):
        study(runs=6, out=out)
    kept = [json.loads(line) for line in out.read_text().splitlines()]
    first = [entry["nicv"] for entry in kept if "run" in entry]
    assert len(first) == 3
    steps = list[tuple[int, int]]()
    found = study(runs=6, out=out, progress=lambda done, total: steps.append((done, total)))
    assert made == 4 + 3
    assert list(found.cells[0].nicv[:3]) == first
    assert len(found.cells[0].nicv) == 6
    assert steps == [(3, 6), (4, 6), (5, 6), (6, 6)]


def test_a_line_that_a_crash_cut_short_is_dropped(tmp_path: Path) -> None:
    out = tmp_path / "study.jsonl"
    first = study(out=out).cells[0].nicv
    whole = out.read_bytes()
    for cut in (1, 20, len(whole) - 30):
        out.write_bytes(whole[:-cut])
        again = study(out=out).cells[0].nicv
        assert len(again) == 2
        assert again[0] == first[0] or cut > 20
        assert len([line for line in out.read_bytes().splitlines() if b'"run"' in line]) == 2


def test_more_methods_budgets_and_runs_join_a_study(tmp_path: Path) -> None:
    out = tmp_path / "study.jsonl"
    first = study(out=out).cells[0].nicv
    found = study(out=out, runs=3, epsilons=[1, 2], methods=["su-lloyd", "fastlloyd"])
    mine = next(cell for cell in found.cells if (cell.label, cell.epsilon) == ("fastlloyd", 1))
    assert mine.nicv[:2] == first
    assert len(mine.nicv) == 3


@pytest.mark.parametrize(
    ("given", "what"),
    [({"k": 2}, "k"), ({"delta": 1e-7}, "delta"), ({"bounds": (-2, 2)}, "bounds"), ({"rows": ROWS[1:]}, "sha256"),
     ({"scale": "bounds"}, "scale"), ({"public_rows": 601}, "public rows")],
)  # fmt: skip
def test_a_study_of_other_conditions_does_not_go_on(given: dict[str, Any], what: str, tmp_path: Path) -> None:
    out = tmp_path / "study.jsonl"
    study(out=out)
    kept = out.read_bytes()
    with pytest.raises(InvalidInput, match=f"other conditions .*{what}"):
        study(out=out, **given)
    assert out.read_bytes() == kept


def test_a_file_that_is_no_study_is_left_as_it_is(tmp_path: Path) -> None:
    out = tmp_path / "study.jsonl"
    for content in (b"my notes", b"my notes\n", b'{"format": "other"}\n'):
        out.write_bytes(content)
        with pytest.raises(InvalidInput, match="not a study"):
            study(out=out)
        assert out.read_bytes() == content


def test_a_study_that_somebody_edited_is_damaged(tmp_path: Path) -> None:
    out = tmp_path / "study.jsonl"
    study(out=out)
    out.write_bytes(out.read_bytes().replace(b'"run": 1', b'"ran": 1'))
    with pytest.raises(Damaged, match="cannot be read"):
        study(out=out)


def test_two_processes_do_not_write_one_study(tmp_path: Path) -> None:
    import fcntl

    out = tmp_path / "study.jsonl"
    with out.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(InvalidInput, match="held by another process"):
            study(out=out)


def test_a_worker_that_dies_loses_no_finished_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from concurrent.futures.process import BrokenProcessPool

    out = tmp_path / "study.jsonl"

    def broken(*_: Any) -> Any:
        raise BrokenProcessPool

    study(out=out)
    monkeypatch.setattr(trials, "pool_of", lambda *_: _Pool(broken))
    with pytest.raises(CloisterError, match="fewer workers"):
        study(out=out, runs=5, workers=2)
    monkeypatch.undo()
    assert len(study(out=out).cells[0].nicv) == 2


class _Pool:
    """A pool whose work fails."""

    def __init__(self, work: Any) -> None:
        from concurrent.futures import ThreadPoolExecutor

        self._work, self._threads = work, ThreadPoolExecutor(1)

    def __enter__(self) -> _Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown()

    def submit(self, fn: Any, trial: Any) -> Any:
        return self._threads.submit(self._work, trial)

    def shutdown(self, **_: Any) -> None:
        pass


# against the page


def page_row(name: str, epsilon: float) -> tuple[float, float]:
    """auto's figure in docs/accuracy.md and its standard error."""
    page = (Path(__file__).parents[2] / "docs" / "accuracy.md").read_text()
    (line,) = [text for text in page.splitlines() if text.startswith(f"| {name} | {epsilon:g} |")]
    value, error = line.split("|")[3].replace("(r)", "").replace("(m)", "").split("±")
    return float(value), float(error)


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("CLOISTER_DATA"), reason="CLOISTER_DATA names no folder")
@pytest.mark.parametrize(("name", "k", "epsilon"), [("house", 3, 0.5), ("iris", 3, 1.0)])
def test_a_comparison_reproduces_a_row_of_the_page(name: str, k: int, epsilon: float) -> None:
    """Ten runs against the page's twenty, in units of both standard errors: one that is right differs by more than six
    less than once in 1e6. One with a tenth of the budget is further off than ten of the page's."""
    with np.load(Path(os.environ["CLOISTER_DATA"]) / f"{name}.npz") as stored:
        rows = stored["X"].astype(np.float64)
    found = compare(rows, k=k, epsilons=[epsilon, epsilon / 10], methods=["auto"], runs=10, scale="bounds")
    value, error = page_row(name, epsilon)
    ratios, spreads = zip(*(_ratio(found, cell) for cell in found.cells), strict=True)
    assert abs(ratios[0] - value) < 6 * np.hypot(error, spreads[0])
    assert ratios[1] > value + 10 * error


def _ratio(found: Study, cell: Cell) -> tuple[float, float]:
    assert cell.mean is not None
    value, error = found.ratio(cell.mean.value), found.ratio(cell.mean.standard_error)
    assert value is not None
    assert error is not None
    return value, error
