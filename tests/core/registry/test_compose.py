"""Composing components by name, with the checks that the editor makes for those who write Python."""

from __future__ import annotations

from typing import Any, Generic, Literal

import attrs
import pytest

from cloister.core.errors import InvalidInput, UnknownName, WrongComposition
from cloister.core.registry.components import Role, Spec, component, option, slot
from cloister.core.registry.compose import compose, parse, slot_role
from cloister.core.registry.registry import Plugin, Registry, registry
from cloister.core.roles import FrequencyOracle, NonPrivateSolver, VectorSumOracle
from cloister.core.trust import Central, Local, T


@component
class Counts:
    """Counts."""

    trust = Central
    measure = "pure"
    levels: int = option(default=2, low=1, high=9, help="levels")


@component
class FromDevices:
    """Counts or sums of local reports."""

    digest_tag = "tests.test_compose.FromDevices"

    trust = Local
    measure = "pure"


@component
class Careless:
    """Exact counts whose spec claims a guarantee."""

    trust = Central
    measure = "exact"


@component
class Sums:
    """Sums."""

    trust = Central
    measure = "gaussian"
    wide: bool = option(default=False, help="wide")


@component
class Pooled(Generic[T]):
    """Sums that are made of counts: a slot in a slot."""

    trust = Central
    measure = "zcdp"
    inner: FrequencyOracle[Central] = slot("plain", help="counts within")


@component
class Solver:
    """A solver without trust."""

    starts: int | None = option(default=None, low=1, help="starts")


@component
class Any2(Generic[T]):
    """Two slots of one trust, whichever."""

    counts: FrequencyOracle[T] = slot("plain", help="counts")
    sums: VectorSumOracle[T] = slot(help="sums")
    solver: NonPrivateSolver = slot("solver", help="solver")
    rate: float = option(default=0.5, low=0.0, above=True, help="rate")
    rounds: int | None = option(default=None, low=1, help="rounds")
    mode: Literal["a", "b"] = option(default="a", choices=("a", "b"), help="mode")


@component
class OnlyLocal:
    """A method for local oracles alone."""

    counts: FrequencyOracle[Local] = slot("local", help="counts")


HERE = __name__
SPECS = [
    Spec("plain", "FrequencyOracle", f"{HERE}:Counts", "", "Central"),
    Spec("careless", "FrequencyOracle", f"{HERE}:Careless", "", "Central"),
    Spec("local", "FrequencyOracle", f"{HERE}:FromDevices", "", "Local"),
    Spec("sums", "VectorSumOracle", f"{HERE}:Sums", "", "Central"),
    Spec("sums-open", "VectorSumOracle", f"{HERE}:Sums", "", "Central", private=False),
    Spec("local-sums", "VectorSumOracle", f"{HERE}:FromDevices", "", "Local"),
    Spec("pooled", "VectorSumOracle", f"{HERE}:Pooled", "", "Central"),
    Spec("solver", "NonPrivateSolver", f"{HERE}:Solver", ""),
    Spec("two", "Method", f"{HERE}:Any2", ""),
    Spec("two-set", "Method", f"{HERE}:Any2", "", presets={"sums": "sums", "rate": 0.25}),
    Spec("only-local", "Method", f"{HERE}:OnlyLocal", ""),
]
FAKE = Registry((Plugin("fake", "here", tuple(SPECS)),))


def two(wires: dict[str, str] | None = None, values: dict[str, Any] | None = None, name: str = "two") -> Any:
    return compose(FAKE, "Method", name, wires or {}, values or {})


def test_slots_and_options_are_filled_by_name() -> None:
    made = two(
        {"sums": "sums"},
        {"rate": "0.125", "counts.levels": "7", "sums.wide": "yes", "rounds": "none", "solver.starts": 3},
    )
    filled = Any2(counts=Counts(levels=7), sums=Sums(wide=True), solver=Solver(starts=3), rate=0.125, rounds=None)
    assert made.value == filled
    assert (made.trust, made.measures, made.private) == ("Central", {"pure", "gaussian"}, True)
    assert not two({"sums": "sums-open"}).private
    assert not two({"sums": "sums-open"}).inner["sums"].private
    assert not two({"sums": "sums", "counts": "careless"}).private


def test_slots_may_be_nested_and_the_configuration_says_all_names_and_options() -> None:
    made = two({"sums": "pooled", "sums.inner": "plain"}, {"sums.inner.levels": 5, "counts.levels": 3})
    assert (made.value.sums.inner, made.value.counts) == (Counts(levels=5), Counts(levels=3))
    assert made.measures == {"pure", "zcdp"}
    inner = {"name": "plain", "options": {"levels": 5}, "slots": {}}
    assert made.config() == {
        "name": "two",
        "options": {"rate": 0.5, "rounds": None, "mode": "a"},
        "slots": {
            "counts": {**inner, "options": {"levels": 3}},
            "sums": {"name": "pooled", "options": {}, "slots": {"inner": inner}},
            "solver": {"name": "solver", "options": {"starts": None}, "slots": {}},
        },
    }


@pytest.mark.parametrize(
    ("name", "wires", "told"),
    [
        (
            "two",
            {},
            "slot 'sums' of 'two' is empty: fill it by --with sums=NAME, NAME one of: "
            "local-sums, pooled, sums, sums-open",
        ),
        (
            "two",
            {"sums": "local-sums"},
            "slot 'sums' of 'two' is Central because slot 'counts' holds 'plain'; 'local-sums' is Local. "
            "Central choices: pooled, sums, sums-open",
        ),
        (
            "two",
            {"sums": "pooled", "sums.inner": "local"},
            "slot 'sums.inner' of 'pooled' is Central; 'local' is Local. Central choices: careless, plain",
        ),
        (
            "only-local",
            {"counts": "plain"},
            "slot 'counts' of 'only-local' is Local; 'plain' is Central. Local choices: local",
        ),
        ("two", {"sums": "solver"}, "('solver' is a NonPrivateSolver)"),
    ],
)
def test_a_slot_that_is_empty_or_badly_filled_names_its_need_what_it_was_given_and_the_choices(
    name: str, wires: dict[str, str], told: str
) -> None:
    with pytest.raises(WrongComposition) as error:
        two(wires, name=name)
    assert told in str(error.value)
    assert two({"counts": "local", "sums": "local-sums"}).trust == "Local"


@pytest.mark.parametrize(
    ("wires", "values", "message"),
    [
        ({}, {"count.levels": 1}, r"no slot 'count': did you mean counts\? \(in 'count.levels', of 'two-set'\)"),
        ({}, {"sums.inner.levels": 1}, r"no slot 'inner': choose from: none \(in 'sums.inner.levels', of 'sums'\)"),
        ({"counts": "plain"}, {"counts": 1}, "no option 'counts'"),
    ],
)
def test_an_unknown_slot_or_option_is_told_with_near_names(wires: Any, values: Any, message: str) -> None:
    with pytest.raises(UnknownName, match=message):
        two(wires, values, "two-set")


@pytest.mark.parametrize(("named", "private"), [({}, False), ({"counts"}, False), ({"counts", "sums"}, True)])
def test_a_preset_of_exact_oracles_is_private_with_other_ones_in_all_of_its_slots(
    named: set[str], private: bool
) -> None:
    wires = dict.fromkeys(named, "discrete-gaussian")
    assert compose(registry(), "Method", "lloyd", wires, {}).private == private


def test_a_name_that_claims_no_guarantee_of_its_own_has_none_whatever_stands_in_its_slots() -> None:
    lloyd = registry().spec("Method", "lloyd")
    presets = {**lloyd.presets, "counts": "discrete-laplace", "sums": "discrete-laplace"}
    roles: tuple[Role, ...] = "Method", "FrequencyOracle", "VectorSumOracle"
    every = [spec for role in roles for spec in registry().specs(role)]
    leaky = attrs.evolve(lloyd, name="leaky", presets=presets)
    found = Registry((Plugin("a", "a", (leaky, *every)),))
    wires = dict.fromkeys(("counts", "sums"), "discrete-gaussian")
    assert not compose(found, "Method", "leaky", wires, {}).private


def test_a_slot_that_is_annotated_with_no_role_is_an_error_of_the_author() -> None:
    with pytest.raises(TypeError, match="annotated with a role"):
        slot_role(int)


def test_a_whole_number_is_taken_as_1e6_as_the_command_line_takes_rows() -> None:
    assert parse("rounds", "1e6", int | None) == parse("rounds", "1000000", int) == 10**6
    for text in ("1e-1", "1.5", "1e400", "many", "nane"):
        with pytest.raises(InvalidInput, match=f"option 'rounds' is '{text}': it takes a whole number"):
            parse("rounds", text, int)
