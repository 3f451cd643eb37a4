"""Composing components by name, with the checks that the editor makes for those who write Python."""

from __future__ import annotations

import math
from typing import Any, Generic, Literal

import attrs
import pytest

from cloister.core.errors import InvalidInput, UnknownName, WrongComposition
from cloister.core.registry.components import Role, Spec, component, option, slot
from cloister.core.registry.compose import compose, parse, slot_role, slot_trust
from cloister.core.registry.describe import describe, trusts_of
from cloister.core.registry.registry import Plugin, Registry, registry
from cloister.core.roles import FrequencyOracle, NonPrivateSolver, TreeBuilder, VectorSumOracle
from cloister.core.trust import Aggregated, Central, Local, T


@component
class Counts:
    """Counts."""

    trust = Central
    measure = "pure"
    levels: int = option(default=2, low=1, high=9, help="levels")


@component
class LocalCounts:
    """Local counts."""

    digest_tag = "tests.test_compose.LocalCounts"

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
class LocalSums:
    """Local sums."""

    trust = Local
    measure = "pure"


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
    Spec("local", "FrequencyOracle", f"{HERE}:LocalCounts", "", "Local"),
    Spec("sums", "VectorSumOracle", f"{HERE}:Sums", "", "Central"),
    Spec("sums-open", "VectorSumOracle", f"{HERE}:Sums", "", "Central", private=False),
    Spec("local-sums", "VectorSumOracle", f"{HERE}:LocalSums", "", "Local"),
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
    assert (type(made.value), type(made.value.counts), type(made.value.sums)) == (Any2, Counts, Sums)
    assert (made.value.rate, made.value.counts.levels, made.value.sums.wide, made.value.rounds) == (
        0.125,
        7,
        True,
        None,
    )
    assert made.value.solver.starts == 3
    assert made.trust == "Central"
    assert made.measures == {"pure", "gaussian"}
    assert made.private
    assert not two({"sums": "sums-open"}).private
    assert not two({"sums": "sums-open"}).inner["sums"].private
    assert not two({"sums": "sums", "counts": "careless"}).private


def test_presets_fill_what_the_caller_does_not() -> None:
    assert two(name="two-set").value.rate == 0.25
    assert two(name="two-set").value.sums == Sums()
    assert two({"sums": "pooled"}, {"rate": 0.5}, "two-set").value.rate == 0.5


def test_slots_may_be_nested() -> None:
    made = two({"sums": "pooled", "sums.inner": "plain"}, {"sums.inner.levels": 5, "counts.levels": 3})
    assert made.value.sums.inner.levels == 5
    assert made.value.counts.levels == 3
    assert made.measures == {"pure", "zcdp"}
    assert made.config()["slots"]["sums"] == {
        "name": "pooled",
        "options": {},
        "slots": {"inner": {"name": "plain", "options": {"levels": 5}, "slots": {}}},
    }


def test_the_configuration_says_all_names_and_options() -> None:
    assert two({"sums": "sums"}, {"rounds": 4}).config() == {
        "name": "two",
        "options": {"rate": 0.5, "rounds": 4, "mode": "a"},
        "slots": {
            "counts": {"name": "plain", "options": {"levels": 2}, "slots": {}},
            "sums": {"name": "sums", "options": {"wide": False}, "slots": {}},
            "solver": {"name": "solver", "options": {"starts": None}, "slots": {}},
        },
    }


def test_an_empty_slot_says_how_to_fill_it_and_with_what() -> None:
    with pytest.raises(WrongComposition) as error:
        two()
    assert str(error.value) == (
        "slot 'sums' of 'two' is empty: fill it by --with sums=NAME, NAME one of: local-sums, pooled, sums, sums-open"
    )


def test_mixed_trusts_name_the_slot_its_need_what_it_was_given_and_the_choices() -> None:
    with pytest.raises(WrongComposition) as error:
        two({"sums": "local-sums"})
    assert str(error.value) == (
        "slot 'sums' of 'two' is Central because slot 'counts' holds 'plain'; 'local-sums' is Local. "
        "Central choices: pooled, sums, sums-open"
    )
    assert two({"counts": "local", "sums": "local-sums"}).trust == "Local"


def test_the_wrong_trust_names_the_slot_its_need_what_it_was_given_and_the_choices() -> None:
    with pytest.raises(WrongComposition) as error:
        compose(FAKE, "Method", "only-local", {"counts": "plain"}, {})
    assert str(error.value) == "slot 'counts' of 'only-local' is Local; 'plain' is Central. Local choices: local"
    with pytest.raises(
        WrongComposition,
        match=r"slot 'sums\.inner' of 'pooled' is Central; 'local' is Local\. Central choices: careless, plain",
    ):
        two({"sums": "pooled", "sums.inner": "local"})


@pytest.mark.parametrize(
    ("wires", "values", "message"),
    [
        (
            {"sums": "sum"},
            {},
            "slot 'sums' of 'two' takes a VectorSumOracle: no VectorSumOracle 'sum': did you mean sums",
        ),
        ({"sums": "solver"}, {}, r"slot 'sums' of 'two' takes a VectorSumOracle: .*\('solver' is a NonPrivateSolver\)"),
    ],
)
def test_a_component_that_does_not_fit_its_slot_is_told_with_near_names(wires: Any, values: Any, message: str) -> None:
    with pytest.raises(WrongComposition, match=message):
        two(wires, values)


@pytest.mark.parametrize(
    ("wires", "values", "message"),
    [
        ({"sum": "sums"}, {}, "no slot 'sum': did you mean sums"),
        ({"counts.inner": "plain"}, {}, r"no slot 'inner': choose from: none \('plain' has none\)"),
        ({}, {"rat": 1}, "no option 'rat': did you mean rate"),
        ({}, {"counts.level": 1}, r"no option 'level': did you mean levels\? \(of 'plain'\)"),
        ({}, {"count.levels": 1}, r"no slot 'count': did you mean counts\? \(in 'count.levels', of 'two-set'\)"),
        ({}, {"sums.inner.levels": 1}, r"no slot 'inner': choose from: none \(in 'sums.inner.levels', of 'sums'\)"),
        ({}, {"counts": 1}, "no option 'counts'"),
        ({"counts": "plain"}, {"counts": 1}, "no option 'counts'"),
    ],
)
def test_an_unknown_slot_or_option_is_told_with_near_names(wires: Any, values: Any, message: str) -> None:
    with pytest.raises(UnknownName, match=message):
        two(wires, values, "two-set")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"rate": "fast"}, "option 'rate' is 'fast': it takes float"),
        ({"rate": "0"}, "option 'rate' is 0.0: it must be > 0"),
        ({"rate": "nan"}, "option 'rate' is nan"),
        ({"rounds": "2.5"}, "option 'rounds' is '2.5': it takes int"),
        ({"counts.levels": "10"}, "option 'levels' is 10: it must be >= 1, <= 9"),
        ({"sums.wide": "perhaps"}, r"option 'sums\.wide' is 'perhaps': it takes bool"),
        ({"mode": "c"}, r"option 'mode' is 'c': choose from a \| b"),
    ],
)
def test_a_value_that_is_none_of_its_option_is_refused(values: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        two({}, values, "two-set")


@pytest.mark.parametrize(
    ("text", "hint", "value"),
    [
        ("3", int, 3),
        ("1e3", float, 1000.0),
        ("-inf", float, -math.inf),
        ("True", bool, True),
        ("0", bool, False),
        ("none", int | None, None),
        ("None", float | None, None),
        ("4", int | None, 4),
        ("none", str, "none"),
        ("b", Literal["a", "b"], "b"),
        (7, str, 7),
        (None, int, None),
    ],
)
def test_text_becomes_the_value_that_the_annotation_asks_for(text: Any, hint: Any, value: Any) -> None:
    parsed = parse("x", text, hint)
    assert (parsed, type(parsed)) == (value, type(value))


def test_annotations_say_role_and_trust() -> None:
    assert slot_role(FrequencyOracle[Central]) == "FrequencyOracle"
    assert slot_role(TreeBuilder) == "TreeBuilder"
    assert slot_trust(FrequencyOracle[Aggregated]) == "Aggregated"
    assert slot_trust(FrequencyOracle[T]) is None
    assert slot_trust(NonPrivateSolver) is None
    with pytest.raises(TypeError, match="annotated with a role"):
        slot_role(int)


def test_components_run_under_their_own_trust_their_slots_or_any() -> None:
    assert trusts_of(LocalCounts) == ("Local",)
    assert trusts_of(OnlyLocal) == ("Local",)
    assert trusts_of(Any2) == trusts_of(Solver) == ("Central", "Local", "Shuffled", "Aggregated")


def test_a_description_is_read_off_the_class() -> None:
    told = describe(FAKE, FAKE.spec("Method", "two-set"))
    assert told["trust"] == "Central"
    assert told["runs under"] == ["Central", "Local", "Shuffled", "Aggregated"]
    assert {o["name"]: o["default"] for o in told["options"]} == {"rate": 0.25, "rounds": None, "mode": "a"}
    assert {o["name"]: o["range"] for o in told["options"]} == {"rate": "> 0", "rounds": ">= 1", "mode": "a | b"}
    assert {s["name"]: (s["role"], s["default"], s["takes"]) for s in told["slots"]} == {
        "counts": ("FrequencyOracle", "plain", ["careless", "local", "plain"]),
        "sums": ("VectorSumOracle", "sums", ["local-sums", "pooled", "sums", "sums-open"]),
        "solver": ("NonPrivateSolver", "solver", ["solver"]),
    }
    assert told["documentation"].startswith("Two slots of one trust, whichever.")
    assert describe(FAKE, FAKE.spec("Method", "two"))["trust"] is None
    only = describe(FAKE, FAKE.spec("Method", "only-local"))
    assert (only["trust"], only["slots"][0]["takes"]) == ("Local", ["local"])


@pytest.mark.parametrize("name", ["fastlloyd", "gauss-lloyd", "su-lloyd", "lloyd"])
def test_the_built_in_methods_compose_as_they_are(name: str) -> None:
    made = compose(registry(), "Method", name, {}, {})
    assert made.trust == "Central"
    assert made.private == (name != "lloyd")
    assert made.measures == {"su-lloyd": {"pure"}, "lloyd": {"exact"}}.get(name, {"gaussian"})
    config = made.config()
    assert config["name"] == name
    assert (config["options"]["updates"], config["options"]["radius"]) == (
        ("relative", "step") if name == "fastlloyd" else ("absolute", "none")
    )
    mixed = compose(registry(), "Method", name, {"counts": "discrete-laplace"}, {"rounds": "3"})
    assert mixed.value.rounds == 3
    assert "pure" in mixed.measures


def test_composing_draws_nothing_and_two_compositions_are_equal() -> None:
    one, other = (two({"sums": "pooled"}, {"counts.levels": 4}) for _ in range(2))
    assert one.value == other.value


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
