"""Options and slots, declared once on the class."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
import pytest

from cloister.core.errors import InvalidInput, WrongComposition
from cloister.core.registry.components import Spec, component, option, slot
from cloister.core.registry.making import filled, make
from cloister.core.roles import FrequencyOracle
from cloister.core.trust import Central


@component
class Thing:
    """A component."""

    counts: FrequencyOracle[Central] = slot("some", help="rows")
    other: FrequencyOracle[Central] = slot(help="must be filled")
    share: float = option(default=0.5, low=0.0, high=1.0, above=True, unit="of all", help="a share")
    size: int = option(default=3, low=1, help="a size")
    name: str = option(default="a", choices=("a", "b"), help="a name")
    free: float | None = option(default=None, help="anything")


def thing(**options: Any) -> Thing:
    return Thing(counts=None, other=None, **options)  # type: ignore[arg-type]


def test_a_component_is_frozen_and_takes_keywords_only() -> None:
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        thing(size=4).size = 5  # type: ignore[misc]
    with pytest.raises(TypeError, match="positional"):
        Thing(None, None)  # type: ignore[misc]
    with pytest.raises(TypeError, match=r"Thing has empty slots: counts, other\. Fill them, as in Thing\(counts="):
        Thing()  # type: ignore[call-arg]


def test_a_spec_takes_the_trust_that_is_listed_and_no_other() -> None:
    listed = Spec("thing", "Method", "things:Thing", "does things", "any trust")
    assert listed == Spec("thing", "Method", "things:Thing", "does things")
    with pytest.raises(InvalidInput, match="'thing' is 'Centrum': choose Central, Local, Shuffled, Aggregated"):
        Spec("thing", "Method", "things:Thing", "does things", "Centrum")


def test_slots_are_filled_by_what_they_prefer() -> None:
    with pytest.raises(WrongComposition, match="slot 'other' of Thing has no preferred component: give other="):
        filled(Thing, counts=None)
    assert filled(Thing, counts=None, other=None, size=4).size == 4


@pytest.mark.parametrize(
    ("name", "values", "told"),
    [
        ("share", (0.0, -0.1, 1.0001, math.nan, math.inf, "0.5"), "> 0, <= 1"),
        ("size", (0, -math.inf, math.nan, [2]), ">= 1"),
        ("name", ("c", None, "A"), r"a \| b"),
        ("size", (2.5, 2.0, True, None, np.float64(3.0), np.True_, np.array(3)), "it (takes|must be)"),
        ("free", ("1", True, np.nan), "it (takes|must be)"),
    ],
)
def test_a_value_out_of_its_bounds_or_of_another_type_is_refused(name: str, values: Any, told: str) -> None:
    for value in values:
        with pytest.raises(InvalidInput, match=rf"option '{name}' is .*{told}"):
            thing(**{name: value})


if TYPE_CHECKING:
    from cloister.core.roles import VectorSumOracle


def test_a_component_whose_annotations_only_a_checker_can_read_can_be_made() -> None:
    @component
    class Lazy:
        sums: VectorSumOracle[Central] = slot(help="sums")
        size: int = option(default=3, low=1, help="a size")

    assert Lazy(sums=None, size=4).size == 4  # type: ignore[arg-type]


def test_a_field_that_is_neither_option_nor_slot_is_an_error_of_the_author() -> None:
    with pytest.raises(
        TypeError, match=r"Odd\.size is neither an option\(\) nor a slot\(\); .* no annotation: size = "
    ):

        @component
        class Odd:
            size: int = 3


@pytest.mark.parametrize(
    "given", [{"free": 10**400}, {"free": math.inf}, {"free": -math.inf}, {"size": 10**400}, {"size": -(10**400)}]
)
def test_a_number_beyond_doubles_is_refused_even_where_an_option_has_no_limit(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=r"beyond 1\.8e308"):
        thing(**given)


def test_a_candidate_that_is_given_as_an_object_keeps_its_own_parts() -> None:
    own = make("Method", "grid-means", counts="discrete-laplace", grid_share=0.7)
    method: Any = make("Method", "auto", candidates={"grid-means": own, "one": "one-round"})
    assert method.candidates["grid-means"] == own
    assert type(method.candidates["one"]) is type(make("Method", "one-round"))


@pytest.mark.parametrize(
    ("name", "given", "kept"),
    [
        ("size", np.int64(4), 4),
        ("size", np.uint8(4), 4),
        ("share", np.float32(0.25), 0.25),
        ("share", np.int32(1), 1),
        ("share", Fraction(1, 4), 0.25),
        ("free", np.float16(2.0), 2.0),
    ],
)
def test_numbers_of_numpy_become_pythons_own_which_can_be_saved(name: str, given: Any, kept: float) -> None:
    value = getattr(thing(**{name: given}), name)
    assert (type(value), value) == (type(kept), kept)
    assert json.loads(json.dumps(value)) == kept
