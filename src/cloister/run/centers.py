"""The number of centres that a caller asks for: one number, or a range of which the run chooses one.

Of a range, one run with one budget is planned for the largest number, and chooses by what it has released
(``core.capabilities.ChoosesK``). Only a curator's methods do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from numbers import Integral
from typing import Any

from cloister.core.capabilities import chooses_k
from cloister.core.clustering import Problem
from cloister.core.errors import CloisterError, InvalidInput
from cloister.core.registry.components import own_number
from cloister.core.registry.compose import Composed, compose
from cloister.core.registry.registry import registry

HOW = "give a whole number, or a range such as 2..20"


def number_of_centers(value: Any) -> Any:
    """A number as it is, or a range (fewest, most) from a pair or from text such as "2..20".

    Raises: InvalidInput: a pair or a text that is no range of at least two numbers from 2 on.
    """
    if isinstance(value, str):
        ends = re.fullmatch(r"\s*(\d{1,9})\s*\.\.\s*(\d{1,9})\s*", value, re.ASCII)
        if ends is None:
            raise InvalidInput(f"k is {value!r}: {HOW}")
        return _range(int(ends[1]), int(ends[2]))
    if not isinstance(value, (tuple, list)):
        return own_number(value)
    if len(value) != 2 or not all(isinstance(end, Integral) and not isinstance(end, bool) for end in value):
        raise InvalidInput(f"k is {value!r}: {HOW}, as a pair (2, 20)")
    return _range(int(value[0]), int(value[1]))


def _range(fewest: int, most: int) -> tuple[int, int]:
    if fewest < 2:
        raise InvalidInput(f"k is {fewest}..{most}: a range begins at 2, since one group is parted from none")
    if fewest >= most:
        raise InvalidInput(f"k is {fewest}..{most}: a range goes from a smaller to a larger number, such as 2..20")
    return fewest, most


def check_chooses(composed: Composed, fewest: int, most: int) -> None:
    """Raises: InvalidInput: the method as composed cannot choose the number of centres."""
    name = composed.spec.name
    if composed.trust not in (None, "Central"):
        raise InvalidInput(
            f"only a curator's run chooses k, and '{name}' as composed is {composed.trust}: give one number for k, not "
            f"{fewest}..{most}"
        )
    if not chooses_k(composed.value):
        raise InvalidInput(
            f"'{name}' cannot choose k in {fewest}..{most}: give one number, or a method that can: "
            f"{', '.join(choosing())}"
        )


def choosing() -> list[str]:
    """Names of the methods that can choose k, as they are."""
    found = list[str]()
    for spec in registry().specs("Method"):
        with suppress(CloisterError):
            if spec.private and chooses_k(compose(registry(), "Method", spec.name, {}, {}).value):
                found.append(spec.name)
    return found


def notes(problem: Problem, details: Mapping[str, Any]) -> tuple[str, ...]:
    """A statement's words on the k that was chosen."""
    if problem.fewest is None:
        return ()
    k = details["curve"]["suggested"]
    return (
        f"k = {k} was chosen among {problem.fewest}..{problem.k} by what the run released, at no further cost. A fit "
        f"with another k is another run, with a budget of its own.",
    )


def chosen(problem: Mapping[str, Any], details: Mapping[str, Any]) -> str:
    """A result's line on the k that was chosen; empty if none was."""
    if "curve" not in details or "k_range" not in problem:
        return ""
    (fewest, most), curve = problem["k_range"], details["curve"]
    return f"Of {fewest} to {most} groups, {curve['suggested']} are suggested: {curve['why']}."
