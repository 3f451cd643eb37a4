"""The false-alarm rates of statistical tests: what follows from one, and that each is said in code."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from tests.alarms import HIGHEST, MOST, Alarm, stated, together

HERE = Path(__file__).parent


def marked(*arguments: Any) -> Any:
    mark = pytest.mark.alarm(*arguments).mark if arguments else None
    return SimpleNamespace(nodeid=f"a test of {arguments}", get_closest_marker=lambda name: mark)


@pytest.mark.parametrize("of", [1, 50])
def test_each_comparison_gets_an_equal_share(of: int) -> None:
    alarm, off = Alarm(1e-7), np.array([0.0, 0.0])
    off[1] = 0.999 * norm.isf(1e-7 / (4 * of))
    alarm.near(off, 0, 1, of=of)
    alarm.fits(1.001e-7 / (2 * of), 0.5, of=of)
    with pytest.raises(AssertionError, match="standard errors"):
        alarm.near(off * 1.002, 0, 1, of=of)
    with pytest.raises(AssertionError):
        alarm.fits(0.999e-7 / (2 * of), 0.5, of=of)
    with pytest.raises(AssertionError):
        alarm.refutes(1e-9, 2e-7)


@pytest.mark.parametrize("arguments", [("1e-7",), (0.0,), (2 * HIGHEST,), (1e-8, 1e-8)])
def test_a_mark_is_one_rate_that_may_be(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(AssertionError, match="takes one rate"):
        stated(marked(*arguments))


def test_the_rates_of_this_session_add_up_to_few(request: pytest.FixtureRequest) -> None:
    assert together(request.session.items) <= MOST


def test_rates_that_add_up_to_too_many_are_found() -> None:
    some: list[Any] = [marked(HIGHEST * (1 + i / 100) / 2) for i in range(10)]
    assert together([marked(), *some]) == pytest.approx(5.225e-6)
    with pytest.raises(AssertionError, match=f"20 statistical tests .* more than {MOST:g}"):
        together([*some, *(marked(HIGHEST * (2 - i / 100) / 2) for i in range(10))])


def test_no_rate_is_said_in_prose_alone() -> None:
    """A test that speaks of them has the mark, and one that has the mark takes its thresholds from it."""
    texts = {path: path.read_text("utf-8") for path in HERE.rglob("test_*.py")}
    for path in (path for path, text in texts.items() if "alarm" in text.lower()):
        for test in ast.walk(ast.parse(texts[path])):
            if isinstance(test, ast.FunctionDef) and test.name.startswith("test_"):
                said = "false alarm" in (ast.get_docstring(test) or "").lower()
                takes = any(argument.arg == "alarm" for argument in test.args.args)
                marks = any(ast.unparse(mark).startswith("pytest.mark.alarm(") for mark in test.decorator_list)
                assert takes == marks, f"{path.relative_to(HERE)}::{test.name}"
                assert marks or not said, f"{path.relative_to(HERE)}::{test.name}"
