"""From an error to a budget: ``cloister explain --error``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cloister.core.errors import InvalidInput
from cloister.run.needing import MOST_EPSILON, STEPS, needs
from cloister.run.request import Request, prepare
from tests.in_process import ran, refused

COLUMNS = ["x", "y"]


def request(**given: Any) -> Request:
    return Request(**{"k": 15, "epsilon": 1.0, "delta": 1e-6, "bounds": (-1, 1), "rows": 5000, **given})


@pytest.mark.parametrize("asked", [request(), request(trust="local", epsilon=4.0, method="one-round", delta=0.0)])
def test_what_is_said_to_be_enough_is_and_less_is_not(asked: Request) -> None:
    """By forecasts of their own; two digits, and a hundredth, are how far above the least it may be."""
    error = 0.02
    found = needs(asked, COLUMNS, error)
    assert found.epsilon is not None
    assert found.rows is not None
    for name, least in (("epsilon", found.epsilon.epsilon), ("rows", found.rows.rows)):
        enough = prepare(Request(**{**vars_of(asked), name: least}), COLUMNS).error
        fewer = type(least)(least / (1.11 * STEPS))
        lacking = prepare(Request(**{**vars_of(asked), name: fewer}), COLUMNS).error
        assert enough is not None
        assert lacking is not None
        assert enough <= error < lacking


def vars_of(asked: Request) -> dict[str, Any]:
    return {name: getattr(asked, name) for name in ("k", "method", "epsilon", "delta", "bounds", "rows", "trust")}


def test_what_no_budget_or_number_reaches_is_said() -> None:
    found = needs(request(rows=100, k=40), COLUMNS, 1e-15)
    assert (found.epsilon, found.rows) == (None, None)
    assert f"takes no epsilon up to {MOST_EPSILON:g} with 100 rows" in found.text
    assert "it takes no number up to 2,000,000,000 rows" in found.text


@pytest.mark.parametrize(
    ("asked", "error", "why"),
    [
        (request(), 0.0, "error is 0.0: give a part of one centre's"),
        (request(), float("nan"), "error is nan"),
        (request(rows=None), 0.01, "no public number of rows"),
        (request(method="k-variates"), 0.01, "'k-variates' predicts no error"),
    ],
)
def test_what_cannot_be_forecast_is_refused(asked: Request, error: float, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        needs(asked, COLUMNS, error)


def test_the_command_prints_a_table_json_and_a_picture_and_reads_no_row(tmp_path: Path) -> None:
    words = "explain --columns x,y -k 15 --delta 1e-6 --bounds=-1:1 --rows 5000"
    done = ran(f"{words} --error 0.001 --picture p.svg", tmp_path)
    assert "A predicted error of at most 0.001 of one centre's takes epsilon = 0.0" in done.stdout
    assert "0.001, asked for" in (tmp_path / "p.svg").read_text()
    told = json.loads(ran(f"{words} --epsilon 0.5 --error 0.001 --json", tmp_path).stdout)
    assert (told["error"], told["asked"]["epsilon"], len(told["table"])) == (0.001, 0.5, 18)
    assert "--picture draws predicted errors: give --error too" in refused(
        f"{words} --epsilon 1 --picture p.svg", tmp_path
    )
