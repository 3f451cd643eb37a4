"""Facts of a run as a record of the Differential Privacy Deployments Registry: what was promised, to whom, and how.

A record has six parts (``basic``, ``dp_variant`` ...). What the run states of itself (epsilon, delta, trust,
mechanisms) is written as it is, and nobody can have it otherwise; what it supposes (one release, a draft of tier 2)
holds unless somebody knows better; names, places, dates and links are somebody's to give. Released values and public
facts alone: no row is read, and nothing is spent. The schema, ``registry.json``, says where it is from.
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
from cloister.showing.report.promise import lines_of

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
"""Fields in which a run speaks for itself."""

HELP = 'what a run cannot know stands in a file of facts (--facts), as in [basic] name = "..."'


def record_of(result: Result, facts: Mapping[str, Any], slug: str) -> str:
    """A record that is valid against the registry's schema, as YAML, a field a line.

    Args:
        facts: what the run cannot know, by part and field: ``{"basic": {"name": ...}, "administrative": {...}}``.
        slug: the record's address in the registry.

    Raises:
        InvalidInput: a run that protects nobody or was simulated; facts that the registry demands and that are not
            given; facts that its schema does not know, or that the run itself states.
        Damaged: the result lacks its facts, or they make no sense.
        MissingExtra: jsonschema is not installed.
    """
    privacy = result.privacy
    if privacy.simulated or not privacy.protects:
        raise InvalidInput("this run was simulated or protects nobody: give the result of one that is deployed")
    known = json.loads(Path(__file__).with_name("registry.json").read_text("utf-8"))
    try:
        parts = _own(result, known["models"])
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise Damaged(f"this result has no facts to record: {error!r}") from error
    for part, fields in [*known["supposed"].items(), *facts.items()]:
        if not isinstance(fields, dict):
            raise InvalidInput(f"the fact {part!r} stands in no part: {HELP}")
        if taken := sorted(STATED & fields.keys()):
            raise InvalidInput(f"the run itself states {part}.{taken[0]}: leave it out of the facts")
        parts[part] = parts.get(part, {}) | fields
    record = json.loads(json.dumps({"url_slug": slug, "deployment": parts}, default=str))  # TOML's days become text
    if faults := _faults(record, known["schema"]):
        raise InvalidInput(f"the registry's schema takes no such record, {'; '.join(faults)}: {HELP}")
    lines = [f"url_slug: {_yaml(slug)}", "deployment:"]
    for part, kind in known["schema"]["properties"]["deployment"]["properties"].items():
        own = record["deployment"][part]
        lines += [f"  {part}:", *(f"    {name}: {_yaml(own[name])}" for name in kind["properties"] if name in own)]
    return "\n".join([*lines, ""])


def _own(result: Result, models: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """The run's own facts, by part."""
    privacy, told = result.privacy, list(result.problem.get("described", {}))
    words = [result.problem["words"]["column"]] if "words" in result.problem else []
    columns, every = ", ".join(result.columns), ", ".join(dict.fromkeys([*result.columns, *told, *words]))
    held = f"; counts of what the rows of each cluster hold in {', '.join(told)}" if told else ""
    held += f"; words of {words[0]} that many rows of a cluster have, with counts" if words else ""
    rows = "" if privacy.count_share else ", the number of rows"
    rowwise = privacy.rows_per_user is None  # of users nobody knows how many there are
    trust = [*privacy.promised(), *(privacy.without() if privacy.trust == "Shuffled" else [])]
    mechanisms = ", ".join(sorted({spend.mechanism for spend in privacy.spends}))
    budget = "; ".join(f"round {s.round}: {s.asked}, {s.mechanism}, {s.amount}" for s in lines_of(privacy.spends))
    return {
        "basic": {
            "description": f"{len(result.centers)} cluster centres and what was released of their sizes: {columns}"
            + held,
        },
        "dp_variant": {
            "variant_name": "Approximate DP" if privacy.delta else "Pure DP",
            "data_domain": f"Tables of rows of {every}, clipped to public bounds",
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
    """What the schema does not take, by part and field."""
    try:
        from jsonschema import Draft7Validator
    except ImportError:
        raise MissingExtra("jsonschema", "plot", "a record for the registry") from None
    found = Draft7Validator(schema, format_checker=Draft7Validator.FORMAT_CHECKER).iter_errors(record)
    return [f"{'.'.join(map(str, list(error.path)[1:])) or 'facts'}: {error.message}" for error in found]


def _yaml(value: Any) -> str:
    """A value as JSON, which is YAML but for numbers: YAML takes 1e-06, without a point, for a word."""
    return re.sub(r'(?<=[^\\]": )(\d+)e', r"\1.0e", printable(json.dumps(value, ensure_ascii=False)))
