"""Records of the registry of deployments: valid against its schema, true to the run, and silent about nothing that is
demanded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import pytest
import yaml
from jsonschema import Draft7Validator

from cloister.core.errors import Damaged, InvalidInput
from cloister.core.trust import TRUSTS
from cloister.run.result import Result
from cloister.showing import registry
from cloister.showing.registry import record_of
from tests.showing.report.pages import STATEMENT, made

SCHEMA = json.loads(Path(registry.__file__).with_name("registry.json").read_text("utf-8"))["schema"]

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


@pytest.mark.parametrize(
    ("trust", "model"),
    [("Central", "Central"), ("Local", "Local"), ("Shuffled", "Shuffle"), ("Aggregated", "Federated")],
)
def test_every_trust_model_has_a_valid_record(trust: str, model: str) -> None:
    parts = of(stated(trust=trust, min_honest_users=900))
    assert parts["deployment_model"]["model_name"] == model
    assumed = parts["deployment_model"]["trust_assumptions"]
    assert TRUSTS[trust].promise in assumed
    assert ("900 people" in assumed) == (trust == "Shuffled")
    assert TRUSTS[trust].relation in parts["privacy_loss"]["privacy_unit_details"]


@pytest.mark.parametrize("delta", [0.0, 1e-6, 2.5e-7, 1e-300])
def test_a_record_says_what_the_run_promised_and_how(delta: float) -> None:
    parts = of(stated(delta=delta, epsilon=0.25))
    loss, how = parts["privacy_loss"], parts["implementation"]
    assert loss["privacy_parameters"] == {"epsilon": 0.25, "delta": delta}  # numbers, not words
    assert parts["dp_variant"]["variant_name"] == ("Approximate DP" if delta else "Pure DP")
    assert (loss["privacy_unit"], loss["number_of_privacy_units"]) == ("Row", 1000)
    assert how["mechanisms"] == "discrete-gaussian: cloister 0.1.0, method fastlloyd"
    assert "what the rows of each bucket add up to, discrete-gaussian, μ² 0.03" in how["composition"]
    assert (parts["administrative"]["status"], parts["administrative"]["tier"]) == ("Draft", 2)


def test_of_users_it_is_said_that_they_are_users_and_not_how_many() -> None:
    loss = of(stated(rows_per_user=3))["privacy_loss"]
    assert loss["privacy_unit"] == "User"
    assert "one user" in loss["privacy_unit_details"]
    assert "number_of_privacy_units" not in loss


def test_a_noisy_number_of_rows_is_not_called_public() -> None:
    assert "the number of rows" in of(made())["dp_variant"]["unprotected_quantities"]
    assert "the number of rows" not in of(stated(count_share=0.1))["dp_variant"]["unprotected_quantities"]


def test_what_is_supposed_holds_until_somebody_knows_better() -> None:
    parts = of(made(), deployment_model={"release_type": "Many releases"}, administrative={"tier": 3})
    model = parts["deployment_model"]
    assert (model["release_type"], model["access_type"]) == ("Many releases", "Non-interactive")
    assert (model["model_name"], parts["administrative"]["tier"]) == ("Central", 3)


@pytest.mark.parametrize(
    ("part", "fields"),
    [
        ("dp_variant", ["variant_name"]),
        (
            "privacy_loss",
            ["privacy_parameters", "privacy_unit", "privacy_unit_details", "number_of_privacy_units"],
        ),
        ("deployment_model", ["model_name", "trust_assumptions"]),
        ("implementation", ["mechanisms", "composition"]),
    ],
)
def test_nobody_can_state_another_promise_than_the_run(part: str, fields: list[str]) -> None:
    for field in fields:
        with pytest.raises(InvalidInput, match=f"{part}.{field} is stated by the run itself"):
            of(made(), **{part: {field: "Pure DP"}})


def test_everything_that_is_demanded_and_missing_is_named_at_once() -> None:
    demanded = [f"basic: '{name}'" for name in FACTS["basic"]] + ["administrative: 'registry_authors'"]
    with pytest.raises(InvalidInput, match="--facts") as caught:
        record_of(made(), {}, "groups")
    assert [name for name in demanded if f"{name} is a required property" not in str(caught.value)] == []
    assert str(caught.value).count("required") == len(demanded)


@pytest.mark.parametrize(
    ("part", "wrong", "says"),
    [
        ("baisc", {"name": "x"}, "'baisc' was unexpected"),
        ("basic", {"publication_date": "1/1/2026"}, "publication_date: '1/1/2026' is not a 'date'"),
        ("basic", {"data_curators": [{"data_curator_name": "x"}]}, "'data_curator_type' is a required"),
    ],
)
def test_wrong_facts_are_refused_by_the_schema(part: str, wrong: Any, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        of(made(), **{part: wrong})


@pytest.mark.parametrize("change", [{"seeded": True}, {"private": False}, {"simulated": True, "trust": "Local"}])
def test_a_run_that_protects_nobody_or_was_simulated_is_no_deployment(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="simulated or protects nobody"):
        of(stated(**change))


def test_results_without_sense_are_refused() -> None:
    for result in (made(method={}), stated(trust="none")):
        with pytest.raises(Damaged):
            of(result)


def test_untrusted_text_stays_text() -> None:
    odd = ('a": 1e5, "b', "line\nline", "\x1b\x7f\ud800\u2028", "年齢 😀", "- x: [")
    domain = of(made(5, columns=odd))["dp_variant"]["data_domain"]
    assert domain == 'Tables of rows of a": 1e5, "b, line\nline, \x1b???, 年齢 😀, - x: [, clipped to public bounds'
    assert "\x1b" not in record_of(made(5, columns=odd), FACTS, "groups")
