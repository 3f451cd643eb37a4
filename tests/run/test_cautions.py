"""Warnings that public and released figures give, at the command line; ``tests/estimators/test_warnings.py`` has
Python's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

import cloister as package
from cloister.accounting.ledger.ledger import Ledger
from cloister.commands.common import print_result
from cloister.core.errors import CloisterError
from cloister.run.cautions import after, before
from cloister.run.fit import fit, source
from cloister.run.request import Request, prepare
from tests.in_process import cloister

ASKED = "-k", "3", "--bounds=-1:1", "--rows", "1000"


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(0, 0.3, (1000, 2)))
    return tmp_path / "rows.npy"


def said(**asked: object) -> list[str]:
    figures = {"k": 3, "epsilon": 1.0, "bounds": (-1, 1), "rows": 1000}
    return [str(warning) for warning in before(prepare(Request(**{**figures, **asked}), ["x", "y"]))]  # type: ignore[arg-type]


def test_each_figure_is_warned_of_from_its_limit_on() -> None:
    assert said() == said(epsilon=10.0) == said(delta=1e-4) == []
    assert said(epsilon=10.1)[0].startswith("epsilon = 10.1 hides little: a result may be e^10.1 = 24,343 times")
    assert said(epsilon=50.0)[0].startswith("epsilon = 50 hides little: a result may be e^50 times")
    assert said(delta=1.1e-4) == [
        "delta is not well below 1 / rows (0.001): it permits releasing some rows outright",
    ]
    assert said(delta=1e-3) == ["delta is not below 1 / rows (0.001): it permits releasing some rows outright"]
    assert "even the least predicted error" in said(epsilon=0.001, rows=200)[0]
    assert "predicted error of 'fastlloyd'" in said(epsilon=0.001, rows=200, delta=1e-6, method="fastlloyd")[0]
    assert said(epsilon=50.0, method="lloyd", not_private=True) == []


def test_what_depends_on_the_number_of_rows_waits_for_it() -> None:
    assert said(rows=None, delta=0.01, epsilon=0.001) == []
    assert len(said(rows=None, delta=0.01, epsilon=11.0)) == 1


def test_the_command_line_says_it_on_stderr_before_the_result_and_prints_clean_json(rows: Path) -> None:
    done = cloister("fit", str(rows), *ASKED, "--epsilon", "12", "--delta", "5e-4", "--json")
    assert done.returncode == 0
    loud, delta = [line for line in done.stderr.splitlines() if line.startswith("WARNING")]
    assert loud.startswith("WARNING: epsilon = 12 hides little")
    assert delta.startswith("WARNING: delta is not well below 1 / rows (0.001)")
    assert json.loads(done.stdout)["privacy"]["epsilon"] == 12.0
    assert delta in cloister("fit", str(rows), *ASKED, "--epsilon", "1", "--delta", "5e-4").stdout


def test_a_refusal_of_the_ledger_is_one_line_though_the_run_would_be_warned_of(rows: Path, tmp_path: Path) -> None:
    ledger = str(tmp_path / "budget.db")
    Ledger.open(ledger, create=True).declare("mine", 1.0)
    done = cloister("fit", str(rows), *ASKED, "--epsilon", "12", "--ledger", ledger, "--dataset", "mine")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


def test_empty_centres_are_said_in_the_same_words(capsys: pytest.CaptureFixture[str]) -> None:
    request = Request(k=3, epsilon=1.0, delta=1e-6, bounds=(-1, 1), rows=1000, method="fastlloyd")
    found = fit(request, source(np.zeros((1000, 2)), None, "refuse"))
    for weights, words in (([998.0, 3.0, 2.0], "2 of 3 centres hold hardly any rows"), ([900.0, 50.0, 50.0], "")):
        result = attrs.evolve(found, weights=np.array(weights))
        assert [str(warning)[: len(words)] for warning in after(result)] == ([words] if words else [])
        print_result(result)
        assert ("WARNING: 2 of 3 centres hold" in capsys.readouterr().out) == bool(words)


# figures beyond all sense


@pytest.mark.filterwarnings("error", "ignore::cloister.core.errors.PrivacyWarning")
@pytest.mark.parametrize("method", ["auto", "su-lloyd", "one-round"])
def test_an_epsilon_of_ten_thousand_is_warned_of_and_computed_without_an_overflow(method: str, tmp_path: Path) -> None:
    rows = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    made = package.KMeans(3, method=method, epsilon=1e4, bounds=(-1, 1), rows=500).fit(rows)
    made.result_.report(tmp_path / "a.html")
    assert np.isfinite(made.cluster_centers_).all()
    assert "WEAK PROMISE" in (tmp_path / "a.html").read_text("utf-8")


def test_what_gaussian_noise_cannot_promise_is_refused_in_a_line(tmp_path: Path) -> None:
    """A discrete Gaussian of so small a scale has a larger epsilon at this delta than a continuous one."""
    book = Ledger.open(tmp_path / "budget.db", create=True)
    book.declare("mine", 1e4, 1e-3)
    asked: dict[str, Any] = {
        "epsilon": 1e4,
        "delta": 1e-6,
        "bounds": (-1, 1),
        "rows": 500,
        "ledger": str(book.path),
        "dataset": "mine",
    }
    with pytest.raises(CloisterError, match="choose a larger delta, or pure noise"):
        package.KMeans(3, method="fastlloyd", **asked).fit(np.zeros((500, 2)))
    for k in (501, 10**12):
        with pytest.raises(ValueError, match="ask for fewer centres"):
            package.KMeans(k, **asked | {"epsilon": 1.0}).fit(np.zeros((500, 2)))
    assert book.runs() == ()
