"""A comparison measures what the page on accuracy says."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from cloister.lab.comparing import Study, compare
from cloister.lab.comparing.study import Cell
from tests.alarms import Alarm


def page_row(name: str, epsilon: float) -> tuple[float, float]:
    """auto's figure in docs/accuracy.md and its standard error."""
    (path,) = (Path(__file__).parents[3] / "docs").rglob("accuracy.md")
    page = path.read_text()
    (line,) = [text for text in page.splitlines() if text.startswith(f"| {name} | {epsilon:g} |")]
    value, error = line.split("|")[3].replace("(r)", "").replace("(m)", "").split("±")
    return float(value), float(error)


@pytest.mark.alarm(1e-8)
@pytest.mark.thorough
@pytest.mark.skipif(not os.environ.get("CLOISTER_DATA"), reason="CLOISTER_DATA names no folder")
@pytest.mark.parametrize(("name", "k", "epsilon"), [("house", 3, 0.5), ("iris", 3, 1.0)])
def test_a_comparison_reproduces_a_row_of_the_page(name: str, k: int, epsilon: float, alarm: Alarm) -> None:
    """Ten runs against the page's twenty, in units of both standard errors. One with a tenth of the budget is further
    off than ten of the page's."""
    with np.load(Path(os.environ["CLOISTER_DATA"]) / f"{name}.npz") as stored:
        rows = stored["X"].astype(np.float64)
    found = compare(rows, k=k, epsilons=[epsilon, epsilon / 10], methods=["auto"], runs=10, scale="bounds")
    value, error = page_row(name, epsilon)
    ratios, spreads = zip(*(_ratio(found, cell) for cell in found.cells), strict=True)
    alarm.near(ratios[0], value, np.hypot(error, spreads[0]))
    assert ratios[1] > value + 10 * error


def _ratio(found: Study, cell: Cell) -> tuple[float, float]:
    assert cell.mean is not None
    value, error = found.ratio(cell.mean.value), found.ratio(cell.mean.standard_error)
    assert value is not None
    assert error is not None
    return value, error
