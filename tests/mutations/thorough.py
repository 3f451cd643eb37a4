"""The deliberate faults that no test of the first ring sees: ``python -m tests.mutations.thorough`` prints them."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterable

import pytest

from tests.mutations.forked import ROOT
from tests.mutations.test_mutations import MUTATIONS, cases

QUIET = ["-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]


class _First:
    """A plugin of pytest that keeps the tests which the first ring runs."""

    def __init__(self) -> None:
        self.tests = list[str]()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.tests += [item.nodeid for item in session.items]


def first_ring(files: Iterable[str]) -> list[str]:
    """Node ids of the tests in these files that ``pytest`` without options runs."""
    first = _First()
    with contextlib.redirect_stdout(io.StringIO()):
        code = pytest.main(["--collect-only", "-q", *QUIET, *files], plugins=[first])
    assert code == 0, "pytest could not collect them"
    return first.tests


def unseen() -> list[str]:
    """Names of the faults whose tests are all in other rings."""
    first = first_ring(
        sorted({str(ROOT / test.partition("::")[0]) for one in MUTATIONS for test in one.values[0]["tests"]})
    )
    return [str(one.id) for one in MUTATIONS if not any(cases(first, test) for test in one.values[0]["tests"])]


if __name__ == "__main__":
    found = unseen()
    print(f"{len(found)} of {len(MUTATIONS)} deliberate faults are seen by the thorough ring alone:", *found, sep="\n")
