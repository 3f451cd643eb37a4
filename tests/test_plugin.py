"""One import for authors of plugins: everything is there, explained, and imported only when it is asked for."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from inspect import isclass, isroutine
from pathlib import Path
from types import ModuleType

import pytest

from cloister import accounting, plugin
from cloister._lazy import homes

HOMES = homes(plugin.__file__)


@pytest.mark.parametrize(("face", "name"), [(face, name) for face in (plugin, accounting) for name in dir(face)])
def test_every_name_is_there_and_those_that_are_called_are_explained(face: ModuleType, name: str) -> None:
    value = getattr(face, name)
    assert value is getattr(import_module(homes(str(face.__file__))[name]), name)
    assert value.__doc__ or not (isclass(value) or isroutine(value))


PACKAGE = Path(plugin.__file__).parent
EXAMPLES = Path(__file__).parents[1] / "examples"


def passed_by(path: Path) -> Iterator[str]:
    """Names of the face that a file imports from elsewhere."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{path.name}: {name.name}" for name in node.names if HOMES.get(name.name) == node.module)


@pytest.mark.parametrize("folder", [PACKAGE / "plugins", PACKAGE / "testing", EXAMPLES], ids=lambda path: path.name)
def test_plugins_and_their_kit_import_what_the_face_has_from_the_face(folder: Path) -> None:
    """The built-in ones too: so the face has what a plugin needs."""
    files = sorted(folder.rglob("*.py"))
    assert len(files) > 10
    assert [name for path in files for name in passed_by(path)] == []


def test_the_face_offers_nothing_of_the_floors_above_it() -> None:
    assert {home.split(".")[1] for home in HOMES.values()} <= {"core", "rows", "accounting", "noise"}


def loaded(code: str) -> set[str]:
    """The modules of a new process that runs this."""
    shown = [sys.executable, "-c", f"import sys; {code}; print(*sys.modules)"]
    return set(subprocess.run(shown, capture_output=True, text=True, check=True).stdout.split())


def test_a_manifest_loads_nothing_heavy() -> None:
    assert not loaded("import cloister.plugin") & {"numpy", "scipy", "pluggy", "attr", "cloister.core"}
    assert not loaded("from cloister.plugin import Spec, hookimpl") & {"numpy", "scipy", "opendp"}


def test_a_conversion_loads_no_ledger() -> None:
    """Devices convert guarantees, and must start quickly."""
    assert not {name for name in loaded("from cloister.accounting import mu_of") if "ledger" in name}


def test_a_name_that_no_face_has_is_refused() -> None:
    with pytest.raises(AttributeError, match=r"module 'cloister\.plugin' has no attribute 'Specs'"):
        plugin.Specs  # type: ignore[attr-defined]  # noqa: B018
