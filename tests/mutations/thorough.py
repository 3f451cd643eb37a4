"""The deliberate faults that no test of the first ring sees: ``python -m tests.mutations.thorough`` prints them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable

from tests.mutations.forked import ROOT
from tests.mutations.test_mutations import MUTATIONS, cases

COLLECT = (sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider")


def first_ring(files: Iterable[str]) -> list[str]:
    """Node ids of the tests in these files that ``pytest`` without options runs."""
    done = subprocess.run([*COLLECT, *files], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def unseen() -> list[str]:
    """Names of the faults whose tests are all in other rings."""
    first = first_ring(sorted({test.partition("::")[0] for one in MUTATIONS for test in one.values[0]["tests"]}))
    return [str(one.id) for one in MUTATIONS if not any(cases(first, test) for test in one.values[0]["tests"])]


if __name__ == "__main__":
    found = unseen()
    print(f"{len(found)} of {len(MUTATIONS)} deliberate faults are seen by the thorough ring alone:", *found, sep="\n")
