"""Drafts: where names end."""

from __future__ import annotations

from typing import Any

import pytest

from cloister.core.errors import CloisterError, InvalidInput, UnknownName, WrongComposition
from cloister.core.registry.compose import compose
from cloister.core.registry.draft import Kit, drafted_again
from cloister.core.registry.making import drafted, make
from cloister.core.registry.oracle_resolver import OracleResolver
from cloister.core.registry.registry import Registry, registry
from cloister.run.request import Request, prepare

METHODS = [spec.name for spec in registry().specs("Method")]


@pytest.mark.parametrize("name", METHODS)
def test_a_draft_composes_as_its_names_do_and_again_as_what_it_was_composed_to(name: str) -> None:
    draft = drafted(name)
    composed = draft.composed()
    assert composed.config() == compose(registry(), "Method", name, {}, {}).config()
    again = drafted_again(registry(), composed)
    assert draft.chooses or list(again.open_oracles()) == []
    assert again.composed().config() == composed.config()
    assert drafted(composed.value).composed().config() == composed.config()
    assert drafted(draft) is draft


def test_open_slots_are_those_that_nobody_named_in_inner_methods_and_candidates_too() -> None:
    names = {"start": "hst-means", "start.tree_counts": "exact", "sums": "discrete-laplace"}
    slots = dict(drafted("fastlloyd", names).open_oracles())
    assert slots["counts"] == slots["start.counts"] == "FrequencyOracle"
    assert not slots.keys() & names.keys()
    candidates = {path.partition(".")[0] for path, _ in drafted("auto", {"hst-means": "none"}).open_oracles()}
    assert "grid-means" in candidates
    assert "hst-means" not in candidates


def test_what_is_named_below_an_open_slot_is_of_the_oracle_that_a_trust_model_puts_there() -> None:
    draft = drafted("one-round", options={"counts.share": "budget"})
    assert OracleResolver("Local").filled(draft).inner["counts"].value.share == "budget"
    with pytest.raises(UnknownName, match="no option 'share'"):
        OracleResolver("Central").filled(draft)


@pytest.mark.parametrize(
    ("method", "components", "options", "kind", "words"),
    [
        ("fastloyd", {}, {}, UnknownName, "no Method 'fastloyd': did you mean fastlloyd"),
        ("discrete-laplace", {}, {}, UnknownName, "('discrete-laplace' is a "),
        ("fastlloyd", {"count": "exact"}, {}, UnknownName, "no slot 'count': did you mean counts"),
        (
            "fastlloyd",
            {"counts": "exat"},
            {},
            WrongComposition,
            "slot 'counts' of 'fastlloyd' takes a ",
        ),
        ("fastlloyd", {}, {"round": 3}, UnknownName, "no option 'round': did you mean rounds"),
        ("fastlloyd", {}, {"rounds": "three"}, InvalidInput, "option 'rounds' is 'three': it takes a whole number"),
        ("fastlloyd", {}, {"sum.x": 3}, UnknownName, "no slot 'sum': did you mean sums"),
        ("auto", {}, {"rounds": 3}, UnknownName, "write NAME.rounds for a candidate's"),
        (make("Method", "fastlloyd"), {}, {"rounds": 3}, InvalidInput, "leave components and options out"),
        (3, {}, {}, InvalidInput, "3 is no Method: give the name of one (cloister list Method)"),
    ],
)
def test_wrong_names_are_refused_with_what_to_do(
    method: Any, components: dict[str, str], options: dict[str, Any], kind: type[CloisterError], words: str
) -> None:
    with pytest.raises(kind) as refused:
        prepare(
            Request(k=3, epsilon=1.0, bounds=(-1, 1), rows=3000, method=drafted(method, components, options)), ["x"]
        )
    assert words in str(refused.value)


def test_a_kit_without_what_a_run_needs_says_so() -> None:
    empty = Kit(Registry(()))
    with pytest.raises(InvalidInput, match="no installed method wraps another one to add a frame"):
        empty.wrapper("frame")
    with pytest.raises(InvalidInput, match="no installed method compares a start"):
        empty.starter()
