"""Records of the registry of deployments: valid against its schema, true to the run, and silent about nothing that is
demanded."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
import yaml
from jsonschema import Draft7Validator

from cloister.core.errors import Damaged, InvalidInput, MissingExtra
from cloister.core.trust import TRUSTS
from cloister.run.result import Result
from cloister.showing import registry
from cloister.showing.registry import STATED, record_of
from tests.showing.report.pages import SPENDS, STATEMENT, made

KNOWN = json.loads(Path(registry.__file__).with_name("registry.json").read_text("utf-8"))
SCHEMA = KNOWN["schema"]

FACTS: dict[str, Any] = {
    "basic": {
        "name": "Groups of patients",
        "data_curators": [{"data_curator_name": "A hospital", "data_curator_type": "Nonprofit"}],
        "intended_use": "Planning",
        "data_product_region": "Europe",
        "publication_date": "2026-12-01",
    },
    "administrative": {"registry_authors": ["A statistician"]},
}


def read(text: str) -> dict[str, Any]:
    """A record as the registry reads it, found valid by an independent reader of the schema."""
    record: dict[str, Any] = yaml.safe_load(text)
    faults = Draft7Validator(SCHEMA, format_checker=Draft7Validator.FORMAT_CHECKER).iter_errors(record)
    assert [fault.message for fault in faults] == []
    return record


def of(result: Result, **more: dict[str, Any]) -> dict[str, Any]:
    """The parts of a result's record."""
    facts = {part: FACTS.get(part, {}) | more.get(part, {}) for part in {**FACTS, **more}}
    parts: dict[str, Any] = read(record_of(result, facts, "groups"))["deployment"]
    return parts


def stated(**change: Any) -> Result:
    return made(privacy=attrs.evolve(STATEMENT, **change))


def nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """Every schema within a schema."""
    if isinstance(schema, dict):
        yield schema
        for name, inner in schema.items():
            yield from nodes(inner) if name != "properties" else (n for each in inner.values() for n in nodes(each))
    elif isinstance(schema, list):
        for each in schema:
            yield from nodes(each)


def test_the_schema_names_its_source_and_holds_no_prose() -> None:
    Draft7Validator.check_schema(SCHEMA)
    for word in ("opendp/deployments-registry-data", "057e5d81cf60150dd3307e0cf4504b957802fb3b", "licence"):
        assert word in SCHEMA["$comment"]
    assert not {"description", "description_long", "title"} & {name for node in nodes(SCHEMA) for name in node}


@pytest.mark.parametrize(
    ("trust", "model"),
    [("Central", "Central"), ("Local", "Local"), ("Shuffled", "Shuffle"), ("Aggregated", "Federated")],
)
def test_every_trust_model_has_a_valid_record(trust: str, model: str) -> None:
    parts = of(stated(trust=trust, min_honest_users=900))
    assert set(KNOWN["models"]) == set(TRUSTS)
    assert parts["deployment_model"]["model_name"] == model
    assert TRUSTS[trust].promise in parts["deployment_model"]["trust_assumptions"]
    assert ("900 people" in parts["deployment_model"]["trust_assumptions"]) == (trust == "Shuffled")
    assert TRUSTS[trust].relation in parts["privacy_loss"]["privacy_unit_details"]


@pytest.mark.parametrize("delta", [0.0, 1e-6, 2.5e-7, 1e-300])
def test_a_record_says_what_the_run_promised_and_how(delta: float) -> None:
    parts = of(stated(delta=delta, epsilon=0.25))
    assert parts["privacy_loss"]["privacy_parameters"] == {"epsilon": 0.25, "delta": delta}  # numbers, not words
    assert parts["dp_variant"]["variant_name"] == ("Approximate DP" if delta else "Pure DP")
    assert parts["privacy_loss"]["privacy_unit"] == "Row"
    assert parts["privacy_loss"]["number_of_privacy_units"] == 1000
    assert parts["implementation"]["mechanisms"] == "discrete-gaussian: cloister 0.1.0, method fastlloyd"
    assert (
        "what the rows of each bucket add up to, discrete-gaussian, μ² 0.03" in parts["implementation"]["composition"]
    )
    assert (parts["administrative"]["status"], parts["administrative"]["tier"]) == ("Draft", 2)


def test_of_users_it_is_said_that_they_are_users_and_not_how_many() -> None:
    parts = of(stated(rows_per_user=3))
    assert parts["privacy_loss"]["privacy_unit"] == "User"
    assert "one user" in parts["privacy_loss"]["privacy_unit_details"]
    assert "number_of_privacy_units" not in parts["privacy_loss"]


def test_a_noisy_number_of_rows_is_not_called_public() -> None:
    assert "the number of rows" in of(made())["dp_variant"]["unprotected_quantities"]
    assert "the number of rows" not in of(stated(count_share=0.1))["dp_variant"]["unprotected_quantities"]


def test_what_is_supposed_holds_until_somebody_knows_better() -> None:
    parts = of(
        made(),
        deployment_model={"release_type": "Many releases", "actors": "A hospital"},
        basic={"description": "Ours"},
        administrative={"tier": 3},
    )
    assert parts["deployment_model"]["release_type"] == "Many releases"
    assert parts["deployment_model"]["access_type"] == "Non-interactive"
    assert parts["deployment_model"]["model_name"] == "Central"
    assert (parts["basic"]["description"], parts["administrative"]["tier"]) == ("Ours", 3)


@pytest.mark.parametrize(
    ("part", "field"),
    [
        ("dp_variant", "variant_name"),
        ("privacy_loss", "privacy_parameters"),
        ("privacy_loss", "privacy_unit"),
        ("privacy_loss", "privacy_unit_details"),
        ("privacy_loss", "number_of_privacy_units"),
        ("deployment_model", "model_name"),
        ("deployment_model", "trust_assumptions"),
        ("implementation", "mechanisms"),
        ("implementation", "composition"),
    ],
)
def test_nobody_can_state_another_promise_than_the_run(part: str, field: str) -> None:
    assert field in STATED
    with pytest.raises(InvalidInput, match=f"the run itself states {part}.{field}"):
        of(made(), **{part: {field: "Pure DP"}})


def test_everything_that_is_demanded_and_missing_is_named_at_once() -> None:
    demanded = [f"basic: '{name}'" for name in FACTS["basic"]] + ["administrative: 'registry_authors'"]
    with pytest.raises(InvalidInput) as caught:
        record_of(made(), {}, "groups")
    for name in demanded:
        assert f"{name} is a required property" in str(caught.value)
    assert str(caught.value).count("required") == len(demanded)
    assert "--facts" in str(caught.value)


@pytest.mark.parametrize(
    ("part", "wrong", "says"),
    [
        ("baisc", {"name": "x"}, "'baisc' was unexpected"),
        ("basic", {"publication_date": "1/1/2026"}, "publication_date: '1/1/2026' is not a 'date'"),
        ("basic", {"data_curators": [{"data_curator_name": "x"}]}, "'data_curator_type' is a required"),
        ("basic", "x", "'basic' stands in no part"),
    ],
)
def test_wrong_facts_are_refused_by_the_schema(part: str, wrong: Any, says: str) -> None:
    facts = {**FACTS, part: {**FACTS.get(part, {}), **wrong} if isinstance(wrong, dict) else wrong}
    with pytest.raises(InvalidInput, match=says):
        record_of(made(), facts, "groups")


@pytest.mark.parametrize("change", [{"seeded": True}, {"private": False}, {"simulated": True, "trust": "Local"}])
def test_a_run_that_protects_nobody_or_was_simulated_is_no_deployment(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="simulated or protects nobody"):
        of(stated(**change))


def test_results_without_sense_are_refused() -> None:
    for result in (
        made(method={}),
        made(problem={"described": 3}),
        stated(trust="none"),
        stated(spends=(attrs.evolve(SPENDS[0], measure="x"),)),
    ):
        with pytest.raises(Damaged):
            of(result)


def test_untrusted_text_stays_text() -> None:
    odd = ('a": 1e5, "b', "line\nline", "\x1b\x7f\ud800\u2028", "年齢 😀", "- x: [")
    domain = of(made(5, columns=odd))["dp_variant"]["data_domain"]
    assert domain == 'Tables of rows of a": 1e5, "b, line\nline, \x1b???, 年齢 😀, - x: [, clipped to public bounds'
    assert "\x1b" not in record_of(made(5, columns=odd), FACTS, "groups")


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    with pytest.raises(MissingExtra, match=r"needs jsonschema: pip install .*\[plot\]'"):
        of(made())
