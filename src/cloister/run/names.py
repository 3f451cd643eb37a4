"""Names of groups, for people: given by whoever has looked at a result, and kept beside its released figures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cloister.core.errors import InvalidInput
from cloister.run.bounds import FILES, table_from

HELP = "give a number of the result and its name, as in 0=Frail,1=Young, or a .toml or .json file of such"

LONGEST = 40
"""Most characters of a name."""


def checked_names(given: str | Mapping[Any, Any], k: int) -> list[str]:
    """Names of k groups by number, empty for those without one.

    Args:
        given: ``0=Frail,1=Young``, a path of a .toml or .json file (``0 = "Frail"``), or a mapping.
        k: number of groups.

    Raises: InvalidInput: what is given is no such list; a group that the result has not, or one with two names; a name
        that is no text, is empty, longer than 40 characters, a number, or another group's.
    """
    found = [""] * k
    for key, name in _pairs(given):
        number = str(key).strip()
        if not (number.isascii() and number.isdecimal() and len(number) < 10 and int(number) < k):
            raise InvalidInput(f"there is no group {number!r} to be named {name!r}: their numbers are 0 to {k - 1}")
        named = name.strip() if isinstance(name, str) else ""
        if not named or not named.isprintable() or len(named) > LONGEST or named.isdecimal():
            raise InvalidInput(
                f"{name!r} is no name of group {number}: give a line of at most {LONGEST} characters that is no number"
            )
        if found[int(number)]:
            raise InvalidInput(f"group {number} is named twice, {found[int(number)]!r} and {name!r}: leave one out")
        if named in found:
            raise InvalidInput(f"groups {found.index(named)} and {number} are both named {name!r}: give each its own")
        found[int(number)] = named
    return found


def _pairs(given: str | Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    table = given
    if isinstance(given, str):
        if given.endswith(FILES):
            table = table_from(Path(given), "names")
        else:
            parts = [part.partition("=") for part in given.split(",")]
            if not all(equals for _, equals, _ in parts):
                raise InvalidInput(f"the names {given!r} cannot be read: {HELP}")
            return [(number, name) for number, _, name in parts]
    if not isinstance(table, Mapping) or not table:
        raise InvalidInput(f"the names are {table!r}: {HELP}")
    return list(table.items())
