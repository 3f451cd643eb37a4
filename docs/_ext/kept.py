"""Names that a version promises to keep, as they are today, and the page of them: ``tests/written_before`` read."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import typer
from prose import escaped

from cloister.cli import app
from cloister.core.registry.registry import built_in

BEFORE = Path(__file__).parents[2] / "tests" / "written_before"
MODULES = ("cloister", "cloister.encoder", "cloister.plugin", "cloister.testing")


def public(module: str) -> list[str]:
    """What a module offers: its ``__all__``, or else all that begins with no underscore."""
    found: Any = import_module(module)
    return [name for name in getattr(found, "__all__", dir(found)) if not name.startswith("_")]


def today() -> dict[str, list[str]]:
    """Names that scripts and plugins may hold on to, sorted, by where they are: a command's flags, a module's public
    names, a role's components."""
    found = {f"cloister {name}".rstrip(): flags for name, flags in _flags(typer.main.get_command(app), "")}
    found |= {f"from {module} import": sorted(public(module)) for module in MODULES}
    roles = sorted({spec.role for spec in built_in().specs()})
    return found | {role: sorted(spec.name for spec in built_in().specs(role)) for role in roles}


def _flags(command: Any, name: str) -> Iterator[tuple[str, list[str]]]:
    yield name, sorted(flag for each in command.params for flag in (*each.opts, *each.secondary_opts) if flag[0] == "-")
    for inner, each in getattr(command, "commands", {}).items():
        yield from _flags(each, f"{name} {inner}".strip())


def kept() -> dict[str, list[str]]:
    """Names that are promised, in the same form."""
    table = json.loads((BEFORE / "names.json").read_text("utf-8"))
    return {where: names.split() for where, names in table.items()}


def page() -> Iterator[str]:
    """Formats with the test that reads each, and names by where they are, as reStructuredText."""
    yield ".. list-table::\n   :header-rows: 1\n   :widths: 30 35 35\n\n"
    yield "   * - format\n     - files kept\n     - read by\n"
    for one in tomllib.loads((BEFORE / "formats.toml").read_text("utf-8"))["format"]:
        what = escaped(one["what"].replace("`", ""))
        yield f"   * - {what}\n     - {_code(one['files'])}\n     - ``{one['test']}``\n"
    yield "\n.. list-table::\n   :header-rows: 1\n   :widths: 25 75\n\n   * - where\n     - names\n"
    for where, names in kept().items():
        yield f"   * - ``{where}``\n     - {_code(names)}\n"


def _code(names: list[str]) -> str:
    return ", ".join(f"``{name}``" for name in names) or "(no flags)"
