"""What the tests of comparisons share: small rows, and a study of them that is quick."""

from __future__ import annotations

from functools import cache
from typing import Any

from cloister.lab.comparing import Study, compare
from cloister.lab.generated import blobs

ROWS = blobs(600, 3, 3, seed=1).numbers
QUICK: dict[str, Any] = {"k": 3, "epsilons": [1.0], "methods": ["fastlloyd"], "runs": 2, "bounds": (-1, 1)}


def study(**given: Any) -> Study:
    return compare(given.pop("rows", ROWS), **{**QUICK, **given})


@cache
def plain() -> Study:
    """The study that nothing is changed in, made once."""
    return study()
