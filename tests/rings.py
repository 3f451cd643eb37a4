"""Cases of one test in two rings: most at every save, those that take long by ``-m thorough`` or ``-m long``."""

from __future__ import annotations

import re

import pytest


def but(
    cases: pytest.MarkDecorator, ids: str, mark: pytest.MarkDecorator = pytest.mark.thorough
) -> pytest.MarkDecorator:
    """The same ``parametrize`` with a mark on some cases. Args: ids (what a regular expression finds in them). Raises:
    AssertionError: it finds none, or all."""
    names, given = cases.mark.args
    found = [one for one in given if re.search(ids, one.id)]
    assert 0 < len(found) < len(given), f"{len(found)} of {len(given)} cases are those of {ids}"
    marked = {one.id for one in found}
    return pytest.mark.parametrize(
        names,
        [pytest.param(*p.values, id=p.id, marks=[*p.marks, mark]) if p.id in marked else p for p in given],
        **cases.mark.kwargs,
    )
