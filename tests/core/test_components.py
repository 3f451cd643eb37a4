"""Options and slots, declared once on the class."""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np
import pytest

from cloister.core.components import Option, component, option, options_of, slot, slots_of
from cloister.core.errors import InvalidInput
from cloister.core.roles import FrequencyOracle
from cloister.core.trust import Central


@component
class Thing:
    """A component."""

    counts: FrequencyOracle[Central] = slot("some", help="rows")
    other: FrequencyOracle[Central] = slot(help="must be filled")
    share: float = option(0.5, low=0.0, high=1.0, above=True, unit="of all", help="a share")
    size: int = option(3, low=1, help="a size")
    name: str = option("a", choices=("a", "b"), help="a name")
    free: float | None = option(None, help="anything")


def thing(**options: Any) -> Thing:
    return Thing(counts=None, other=None, **options)  # type: ignore[arg-type]


def test_a_component_is_frozen_and_takes_keywords_only() -> None:
    made = thing(size=4)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        made.size = 5  # type: ignore[misc]
    with pytest.raises(TypeError, match="positional"):
        Thing(None, None)  # type: ignore[misc]
    with pytest.raises(TypeError, match="other"):
        Thing(counts=None)  # type: ignore[call-arg, arg-type]


def test_its_declarations_can_be_read_back() -> None:
    assert {name: default for name, (_, default) in options_of(Thing).items()} == {
        "share": 0.5, "size": 3, "name": "a", "free": None
    }  # fmt: skip
    assert options_of(Thing)["share"][0] == Option("a share", "of all", 0.0, 1.0, True)
    assert {name: (s.default, s.help) for name, s in slots_of(Thing).items()} == {
        "counts": ("some", "rows"), "other": (None, "must be filled")
    }  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [
        {"share": 0.0}, {"share": -0.1}, {"share": 1.0001}, {"share": math.nan}, {"share": math.inf}, {"share": "0.5"},
        {"size": 0}, {"size": -math.inf}, {"size": math.nan}, {"size": [2]}, {"name": "c"}, {"name": None}, {"name": "A"},
    ],
)  # fmt: skip
def test_a_value_out_of_its_bounds_is_refused_with_the_range(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    told = {"share": "> 0, <= 1", "size": ">= 1", "name": r"a \| b"}[name]
    with pytest.raises(InvalidInput, match=rf"option '{name}' is .*{told}"):
        thing(**wrong)


@pytest.mark.parametrize("right", [{"share": 1.0}, {"share": 1e-300}, {"size": 1}, {"size": 10**9}, {"name": "b"}, {"free": -5}])
def test_a_value_at_its_bound_is_taken(right: dict[str, Any]) -> None:
    (name,) = right
    assert getattr(thing(**right), name) == right[name]


@pytest.mark.xfail(strict=True, reason="components.py, Option.check looks for NaN only where there are bounds; its docstring says 'a NaN never is'")
def test_nan_is_never_an_option() -> None:
    with pytest.raises(InvalidInput, match="free"):
        thing(free=math.nan)


@pytest.mark.xfail(
    strict=True,
    reason="components.py, Option.check takes int and float only: numpy.int64(4), which a grid search over numpy.arange passes, is "
    "refused with 'it must be >= 1'",
)
def test_numbers_of_numpy_are_numbers() -> None:
    assert thing(size=np.int64(4)).size == 4


def test_a_field_that_is_neither_option_nor_slot_is_an_error_of_the_author() -> None:
    with pytest.raises(TypeError, match=r"Odd\.size is neither an option\(\) nor a slot\(\)"):

        @component
        class Odd:
            size: int = 3
