"""The false-alarm rates of statistical tests: what follows from one, and that each is said in code."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, norm

from tests.alarms import HIGHEST, MOST, Alarm, stated, together


def marked(*arguments: Any) -> Any:
    mark = pytest.mark.alarm(*arguments).mark if arguments else None
    return SimpleNamespace(nodeid=f"a test of {arguments}", get_closest_marker=lambda name: mark)


def test_thresholds_follow_from_the_rate() -> None:
    alarm = Alarm(1e-7)
    assert 2 * 5 * norm.sf(alarm.errors(5)) == pytest.approx(1e-7, rel=1e-6)
    low, high = alarm.proportion(30, 100, 4)
    assert binom.sf(29, 100, low) == pytest.approx(1e-7 / 8, rel=1e-6)
    assert binom.cdf(30, 100, high) == pytest.approx(1e-7 / 8, rel=1e-6)
    assert (alarm.proportion(0, 9)[0], alarm.proportion(9, 9)[1]) == (0.0, 1.0)


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


@pytest.mark.parametrize("arguments", [(1,), ("1e-7",), (0.0,), (2 * HIGHEST,), (1e-8, 1e-8)])
def test_a_mark_is_one_rate_that_may_be(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(pytest.UsageError, match="takes one rate"):
        stated(marked(*arguments))


def test_a_session_whose_rates_add_up_to_too_many_does_not_start() -> None:
    some: list[Any] = [marked(HIGHEST * (1 + i / 100) / 2) for i in range(10)]
    assert together([marked(), *some]) == pytest.approx(5.225e-6)
    with pytest.raises(pytest.UsageError, match=f"20 statistical tests .* more than {MOST:g}"):
        together([*some, *(marked(HIGHEST * (2 - i / 100) / 2) for i in range(10))])
