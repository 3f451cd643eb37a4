"""What an entrant states about itself: the file ``entry.toml`` in its folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, final, get_type_hints

import attrs

from cloister.core.errors import InvalidInput, UnknownName, cause
from cloister.core.plain_data import parsed_toml

FILE = "entry.toml"

NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")

LONGEST = 300
"""Maximum number of characters of a text."""

CHOICES = {
    "guarantee": ("pure", "approximate", "none"),
    "trust": ("central", "aggregated", "local", "shuffled", "none"),
    "relation": ("add-or-remove", "replace", "none"),
    "noise": ("exact", "floating-point", "none"),
    "bounds": ("used", "unused"),
    "seed": ("public", "test-only"),
}
"""Values of the keys that have few."""


@final
@attrs.frozen(kw_only=True)
class EntrantFacts:
    """Statement of an entrant about itself.

    Args:
        name: in small letters, digits and hyphens.
        title: what it is, in one line.
        paper: its source, in one line.
        guarantee: ``pure`` (epsilon), ``approximate`` (epsilon, delta), or ``none``.
        trust: who sees the rows.
        relation: neighbouring data sets of the guarantee.
        needs: programs that must be on the PATH.
        noise: ``exact`` (discrete, from exact coins) or ``floating-point``.
        bounds: ``unused`` if it never reads the public bounds.
        seed: ``test-only`` if its noise follows ``BENCH_SEED``, so that nobody is protected; else ``public``.
        repeats: it makes as many releases in one run as ``BENCH_REPEATS`` says.
        note: a known flaw or limit, in one line.
    """

    name: str
    title: str
    paper: str
    guarantee: str
    trust: str
    relation: str
    needs: tuple[str, ...] = attrs.field(default=(), converter=tuple)
    noise: str = "floating-point"
    bounds: str = "used"
    seed: str = "public"
    repeats: bool = False
    note: str = ""

    @property
    def private(self) -> bool:
        """True if it states a guarantee."""
        return self.guarantee != "none"

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON."""
        return {**attrs.asdict(self), "needs": list(self.needs)}


def read_facts(folder: Path) -> EntrantFacts:
    """Return what an entrant's folder states.

    Raises:
        InvalidInput: there is no such file, or a value is missing or invalid.
        UnknownName: a key or a choice does not exist.
    """
    path = folder / FILE
    try:
        content = parsed_toml(path.read_bytes())
    except OSError as error:
        raise InvalidInput(
            f"cannot read {path}: {cause(error)}: an entrant is a folder with {FILE}, install.sh and run, which "
            f"'cloister bench new' writes"
        ) from error
    except ValueError as error:
        raise InvalidInput(f"{path} is no valid TOML: {error}") from error
    return checked_facts(content, str(path))


def checked_facts(content: dict[str, Any], where: str) -> EntrantFacts:
    """Return the statement of a parsed file. Args: where (the file, for messages). Raises as ``read_facts`` does."""
    fields = attrs.fields_dict(EntrantFacts)
    for key in content:
        if key not in fields:
            raise UnknownName(f"key of {where}", key, fields)
    for key, field in fields.items():
        if key not in content and field.default is attrs.NOTHING:
            raise InvalidInput(f"{where} has no {key}: write {_example(key)}")
    for key, value in content.items():
        _check(key, value, where)
    facts = EntrantFacts(**content)
    if not NAME.fullmatch(facts.name) or len(facts.name) > 40:
        raise InvalidInput(f"{where} has the name {facts.name!r}: use small letters, digits and hyphens, 40 at most")
    stated = {facts.guarantee == "none", facts.trust == "none", facts.relation == "none"}
    if len(stated) > 1:
        raise InvalidInput(
            f"{where}: guarantee, trust and relation are 'none' together, for a program that is not private, or none "
            f"of them is"
        )
    return facts


def _check(key: str, value: Any, where: str) -> None:
    kind = get_type_hints(EntrantFacts)[key]
    if key == "needs":
        if not isinstance(value, list) or not all(isinstance(name, str) and "/" not in name for name in value):
            raise InvalidInput(f'{where}: needs is {value!r}: write a list of programs, such as needs = ["node"]')
    elif kind is bool:
        if not isinstance(value, bool):
            raise InvalidInput(f"{where}: {key} is {value!r}: write true or false")
    elif not isinstance(value, str) or len(value) > LONGEST or "\n" in value:
        raise InvalidInput(f"{where}: {key} is {value!r}: write one line of text, of at most {LONGEST} characters")
    elif key in CHOICES and value not in CHOICES[key]:
        raise UnknownName(f"{key} in {where}", value, CHOICES[key])


def _example(key: str) -> str:
    return f"{key} = one of {', '.join(CHOICES[key])}" if key in CHOICES else f'{key} = "..."'
