"""What the tests of comparisons share: small rows, and a study of them that is quick."""

from __future__ import annotations

from functools import cache
from typing import Any

import attrs

from cloister.lab.comparing import Study, Terms, compare
from cloister.lab.generated import blobs

ROWS = blobs(600, 3, 3, seed=1).numbers
QUICK: dict[str, Any] = {"k": 3, "epsilons": [1.0], "methods": ["fastlloyd"], "runs": 2, "bounds": (-1, 1)}


def study(**given: Any) -> Study:
    """A study under terms and with arguments that are given by name."""
    asked = {**QUICK, **given}
    terms = Terms(**{name: asked.pop(name) for name in attrs.fields_dict(Terms) if name in asked})
    return compare(asked.pop("rows", ROWS), terms, **asked)


@cache
def plain() -> Study:
    """The study that nothing is changed in, made once."""
    return study()
