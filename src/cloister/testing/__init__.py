"""Conformance kit that plugin authors run on their own components.

    from cloister.testing import parametrize

    @parametrize(MyCounts(), MySums(), MyMethod, MyMethod(counts=MyCounts(), sums=MySums()))
    def test_conformance(component, check):
        check(component)

A class stands for its component with default options and preferred slots; ``cloister.plugin.make`` makes any installed
component by its registry name.

    @parametrize(MyRows, role="Population")             # rows (n, d) -> population
    @parametrize(my_cells, role="Bucketing")            # (domain, rng) -> bucketing; likewise "Vectors"

Every check is a law of the role, and fails with the figures that break it. Statistical checks raise a false alarm at
most once in a million runs, and catch noise that is too small by a factor of 1.2. They test behaviour and do not read
code: they find mistakes, not malice, and replace no proof.
"""

from cloister.testing.check import Check, ConformanceError
from cloister.testing.collection import check_component, checks_for, parametrize

__all__ = ["Check", "ConformanceError", "check_component", "checks_for", "parametrize"]
