"""How often a statistical test may fail though nothing is wrong: said at the test, in code, and added up.

    @pytest.mark.alarm(1e-8)
    def test_signs_are_even(alarm: Alarm) -> None:
        signs = drawn(1_000_000)
        alarm.near(signs.mean(), 0, signs.std() / 1000)
        alarm.fits(binomtest(int((signs > 0).sum()), len(signs)).pvalue)

The mark holds for each case of a test that has many. Every threshold follows from its rate; a test that makes several
comparisons says how many, and each gets an equal share (Bonferroni). ``test_alarms.py`` adds up all cases of its
session, which must stay below ``MOST``. Cases with seeds count too, though their outcome is the same every time; checks
of the conformance kit do not: all their draws have seeds, and ``cloister.testing.statistics`` says their rate.
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import NormalDist
from typing import Any

import attrs
import numpy as np
import pytest

MOST = 1e-5
"""False alarms of one session, of whatever rings, expected."""

HIGHEST = 1e-6
"""The same of one case."""


@attrs.frozen
class Alarm:
    """The false-alarm rate of a test, and what follows from it. Attributes: rate (of one case)."""

    rate: float

    def each(self, comparisons: int = 1) -> float:
        """The share of one of so many comparisons: the p-value below which it rejects."""
        return self.rate / comparisons

    def errors(self, comparisons: int = 1) -> float:
        """How many standard errors a normal estimate may be off, either way, in one of so many comparisons."""
        return -NormalDist().inv_cdf(self.each(comparisons) / 2)

    def near(self, found: Any, expected: Any, error: Any, of: int = 1) -> None:
        """Normal estimates are as expected. Args: found, expected, error (numbers, or arrays of one shape; standard
        errors), of (so many calls are made in the test)."""
        off = np.abs(np.asarray(found) - expected) / error
        assert off.max() < self.errors(off.size * of), f"off by {off.max()} standard errors: {found}, not {expected}"

    def fits(self, *p_values: Any, of: int = 1) -> None:
        """Observations follow a law. Args: p_values (of tests of it), of (so many calls are made in the test)."""
        assert min(p_values) > self.each(len(p_values) * of), p_values

    def refutes(self, *p_values: Any) -> None:
        """Observations do not follow a law that is off by as much as the test promises to see."""
        assert max(p_values) < self.rate, p_values

    def proportion(self, hits: int, n: int, comparisons: int = 1) -> tuple[float, float]:
        """Bounds on a probability from ``hits`` in ``n`` trials, exact (Clopper and Pearson 1934)."""
        from cloister.testing.statistics import ALARM, probability_bounds

        return probability_bounds(hits, n, comparisons * ALARM / self.rate)


def stated(item: pytest.Item) -> float:
    """The rate at a test; 0 if it is no statistical one. Raises: AssertionError: the mark is no rate that may be."""
    mark = item.get_closest_marker("alarm")
    if mark is None:
        return 0.0
    rate = mark.args[0] if len(mark.args) == 1 and not mark.kwargs else None
    assert isinstance(rate, float), f"{item.nodeid}: alarm takes one rate, not {mark.args}"
    assert 0 < rate <= HIGHEST, f"{item.nodeid}: alarm takes one rate of at most {HIGHEST:g}, not {rate}"
    return rate


def together(items: Iterable[pytest.Item]) -> float:
    """The rates of all cases together. Raises: AssertionError: too many."""
    rates = {item.nodeid: rate for item in items if (rate := stated(item))}
    total, most = sum(rates.values()), sorted(rates, key=lambda name: -rates[name])[:5]
    assert total <= MOST, (
        f"{len(rates)} statistical tests would raise {total:.1e} false alarms a session, more than {MOST:g}: lower the "
        f"rates of some, such as {', '.join(most)}"
    )
    return total
