"""Record of a run for the Differential Privacy Deployments Registry.

A record has six parts (``basic``, ``dp_variant`` ...). The run's own facts (epsilon, delta, trust, mechanisms) cannot
be overridden; assumptions (one release, a draft of tier 2) can; names, places, dates and links are given by the caller.
Records hold released values and public facts alone. The schema, ``registry.json``, names its source.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cloister.core.errors import Damaged, InvalidInput, MissingExtra
from cloister.run.result import Result
from cloister.showing.frame import printable
from cloister.showing.report.budget import lines_of

STATED = {
    "variant_name",
    "privacy_unit",
    "privacy_unit_details",
    "number_of_privacy_units",
    "privacy_parameters",
    "model_name",
    "trust_assumptions",
    "mechanisms",
    "composition",
}
"""Fields that a run states itself."""

HELP = 'state what the run cannot know in a file of facts (--facts), such as [basic] name = "..."'


def record_of(result: Result, facts: Mapping[str, Any], slug: str) -> str:
    """Return a record that is valid against the registry's schema, as YAML with a field per line.

    Args:
        result: of a run that was deployed.
        facts: what the run cannot know, by part and field: ``{"basic": {"name": ...}, "administrative": {...}}``.
        slug: the record's address in the registry.

    Raises:
        InvalidInput: the run protects nobody or was simulated; or facts are missing, unknown to the schema, or stated
            by the run itself.
        Damaged: the result lacks its facts, or they are invalid.
        MissingExtra: jsonschema is not installed.
    """
    privacy = result.privacy
    if privacy.simulated or not privacy.protects:
        raise InvalidInput("this run was simulated or protects nobody: give the result of a deployed run")
    registry = json.loads(Path(__file__).with_name("registry.json").read_text("utf-8"))
    try:
        parts = _own(result, registry["models"])
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise Damaged(f"this result lacks the facts of its run: {error!r}") from error
    for part, fields in [*registry["supposed"].items(), *facts.items()]:
        if not isinstance(fields, dict):
            raise InvalidInput(f"the fact {part!r} belongs to no part: {HELP}")
        if taken := sorted(STATED & fields.keys()):
            raise InvalidInput(f"{part}.{taken[0]} is stated by the run itself: leave it out of the facts")
        parts[part] = parts.get(part, {}) | fields
    record = json.loads(json.dumps({"url_slug": slug, "deployment": parts}, default=str))  # TOML's days become text
    if faults := _faults(record, registry["schema"]):
        raise InvalidInput(f"the record does not fit the registry's schema, {'; '.join(faults)}: {HELP}")
    lines = [f"url_slug: {_yaml(slug)}", "deployment:"]
    for part, kind in registry["schema"]["properties"]["deployment"]["properties"].items():
        fields_given = record["deployment"][part]
        lines += [
            f"  {part}:",
            *(f"    {name}: {_yaml(fields_given[name])}" for name in kind["properties"] if name in fields_given),
        ]
    return "\n".join([*lines, ""])


def _own(result: Result, models: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return the run's own facts, by part."""
    privacy, described = result.privacy, list(result.problem.get("described", {}))
    words = [result.problem["words"]["column"]] if "words" in result.problem else []
    columns, all_columns = ", ".join(result.columns), ", ".join(dict.fromkeys([*result.columns, *described, *words]))
    contents = f"; histograms of {', '.join(described)} per cluster" if described else ""
    contents += f"; frequent words of {words[0]} per cluster, with counts" if words else ""
    rows = "" if privacy.count_share else ", the number of rows"
    rowwise = privacy.rows_per_user is None  # the number of users is not public
    trust = [*privacy.promised(), *(privacy.without() if privacy.trust == "Shuffled" else [])]
    mechanisms = ", ".join(sorted({spend.mechanism for spend in privacy.spends}))
    budget = "; ".join(f"round {s.round}: {s.question}, {s.mechanism}, {s.amount}" for s in lines_of(privacy.spends))
    return {
        "basic": {
            "description": f"{len(result.centers)} cluster centres and their sizes, if released: {columns}" + contents,
        },
        "dp_variant": {
            "variant_name": "Approximate DP" if privacy.delta else "Pure DP",
            "data_domain": f"Tables of rows of {all_columns}, clipped to public bounds",
            "unprotected_quantities": f"None that was computed from rows. Public: the columns and their bounds{rows}",
        },
        "privacy_loss": {
            "privacy_unit": "Row" if rowwise else "User",
            "privacy_unit_details": f"Neighbouring data sets: {privacy.relation}",
            "privacy_parameters": {"epsilon": privacy.epsilon, "delta": privacy.delta},
            **({"number_of_privacy_units": privacy.rows} if rowwise else {}),
        },
        "deployment_model": {"model_name": models[privacy.trust], "trust_assumptions": " ".join(trust)},
        "implementation": {
            "mechanisms": f"{mechanisms}: cloister {result.version}, method {result.method['name']}",
            "composition": f"All questions together are within the stated epsilon and delta. {budget}",
        },
    }


def _faults(record: dict[str, Any], schema: dict[str, Any]) -> list[str]:
    """List the schema's complaints, by part and field."""
    try:
        from jsonschema import Draft7Validator
    except ImportError:
        raise MissingExtra("jsonschema", "plot", "a record for the registry") from None
    errors = Draft7Validator(schema, format_checker=Draft7Validator.FORMAT_CHECKER).iter_errors(record)
    return [f"{'.'.join(map(str, list(error.path)[1:])) or 'facts'}: {error.message}" for error in errors]


def _yaml(value: Any) -> str:
    """Return a value as JSON, which is YAML except for numbers: YAML reads 1e-06, without a point, as a string."""
    return re.sub(r'(?<=[^\\]": )(\d+)e', r"\1.0e", printable(json.dumps(value, ensure_ascii=False)))
